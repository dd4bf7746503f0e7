/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A grub.cfg; behind a NUL byte, if there is one, its environment block. */
#include "tests/fuzz/fuzz.h"

#include "vmm/bootdisk/grubcfg.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	size_t len = nul ? (size_t)(nul - data) : size;
	const struct bytes none = { NULL, 0 };
	const struct grub_entry *t;
	struct grubcfg g;

	if (grubcfg_parse(&g, "grub.cfg", (struct bytes){ data, len },
			  nul ? (struct bytes){ nul + 1, size - len - 1 } : none, NULL))
		return 0;
	if (g.n > GRUBCFG_MAX_ENTRIES || !g.chosen)
		abort();
	t = grubcfg_default(&g);
	if (t && (!t->linux_path || !t->args))
		abort();
	grubcfg_deinit(&g);
	return 0;
}
