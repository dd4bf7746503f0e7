/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/linux_regs.h"

#include <string.h>

#define FRED_PADDING 16u
/*
 * EFLAGS (SDM vol. 1, 3.4.3): bit 1 is always set; bits 3, 5, 15 and 22 and above are always clear.
 */
#define FLAGS_SET UINT64_C(0x2)
#define FLAGS_CLEAR (~UINT64_C(0x3fffff) | 0x8028)

/* Selectors of ring 3 in Linux's GDT (arch/x86/include/asm/segment.h): 0x33, 0x23, 0x2b. */
static bool is_user_selector(uint16_t selector)
{
	return (selector & ~0x38u) == 3;
}

static bool look_like_program(const uint64_t w[5])
{
	return !(w[0] >> 56) && is_user_selector(linux_regs_selector(w[1])) && (w[2] & FLAGS_SET) &&
	       !(w[2] & FLAGS_CLEAR) && w[3] && !(w[3] >> 56) &&
	       is_user_selector(linux_regs_selector(w[4]));
}

bool linux_regs_at_end(const uint8_t *end, size_t len, size_t least, struct linux_regs *out)
{
	for (size_t pad = 0; pad <= FRED_PADDING; pad += FRED_PADDING) {
		uint64_t w[5];

		if (least < sizeof(w) || len < least + pad)
			return false;
		memcpy(w, end - pad - sizeof(w), sizeof(w));
		if (!look_like_program(w))
			continue;
		*out = (struct linux_regs){ .ip = w[0],
					    .sp = w[3],
					    .cs = linux_regs_selector(w[1]) };
		return true;
	}
	return false;
}
