/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hlt: does the code that ends here end with HLT? Its byte ends other instructions, too.
 *
 * Encodings: SDM vol. 2, 2.1 and appendix A. Any thread.
 */
#ifndef KVMPROF_VMM_HLT_H
#define KVMPROF_VMM_HLT_H

#include <stdbool.h>
#include <stdint.h>

/* As many bytes of code as are looked at. */
#define HLT_BYTES 6u

#define HLT_OPCODE 0xf4
#define HLT_STI 0xfb

static inline bool hlt_is_last(const uint8_t b[HLT_BYTES])
{
	if (b[5] != HLT_OPCODE)
		return false;
	/* As idle loops have it: no interrupt comes between the two. */
	if (b[4] == HLT_STI)
		return true;
	/* The displacement of a short jump or LOOP, or of a memory operand: -12(%rbp), -12(%rsp). */
	if ((b[4] & 0xc0) == 0x40 || b[4] == 0xeb || (b[4] & 0xfc) == 0xe0 || b[4] == 0x24)
		return false;
	/* The highest byte of a near call's or jump's. */
	return b[1] != 0xe8 && b[1] != 0xe9 && !(b[0] == 0x0f && (b[1] & 0xf0) == 0x80);
}

#endif
