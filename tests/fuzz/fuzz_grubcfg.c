/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A grub.cfg; behind a NUL byte, if there is one, its environment block; behind a second, an entry for blscfg. */
#include "tests/fuzz/fuzz.h"

#include "vmm/bootdisk/grubcfg.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	size_t len = nul ? (size_t)(nul - data) : size;
	const uint8_t *second = nul ? memchr(nul + 1, 0, size - len - 1) : NULL;
	size_t script_len = second ? size - (size_t)(second - data) - 1 : 0;
	char *script = calloc(1, script_len + 1);
	const struct grub_bls bls = { "title", "id", script };
	struct grubcfg_source source = { .name = "grub.cfg", .text = { data, len }, .bls = &bls };
	struct grubcfg g;

	if (!script)
		return 0;
	if (second) {
		memcpy(script, second + 1, script_len);
		source.nbls = 1;
	}
	if (nul)
		source.env = (struct bytes){ nul + 1,
					     (size_t)((second ? second : data + size) - nul - 1) };
	if (!grubcfg_parse(&g, &source, NULL)) {
		const struct grub_entry *t = grubcfg_default(&g);

		if (g.n > GRUBCFG_MAX_ENTRIES || g.nsubmenus > GRUBCFG_MAX_MENUS || !g.chosen ||
		    !g.chosen_by)
			abort();
		if (t && ((t->linux_path && !t->args) || !t->title || !t->index || t->bls > 1))
			abort();
		grubcfg_deinit(&g);
	}
	free(script);
	return 0;
}
