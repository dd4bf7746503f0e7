/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/core/kimage.h"
#include "symbolizer/kernel/variables.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = { 0 };
	struct symtab *t = NULL;
	struct kimage k;
	uint8_t b[64];
	size_t avail;

	if (kimage_parse(&k, "fuzz", data, size, &e) < 0)
		return 0;
	if (k.text > k.etext || k.nseg > KIMAGE_MAX_SEGMENTS)
		abort();
	(void)kimage_read(&k, k.text, b, sizeof(b));
	(void)kimage_read(&k, k.etext - 1, b, 1);
	for (unsigned int i = 0; i < k.nseg; i++) {
		const uint8_t *p = kimage_ptr(&k, k.seg[i].va, &avail);

		if (p && (avail > size || p < data || p + avail > data + size))
			abort();
	}
	if (kimage_symbols(&k, &t, &e) == 0)
		for (size_t i = 0; i < symtab_count(t) && i < 1000; i++) {
			uint64_t off;
			const struct symbol *s = symtab_lookup(t, symtab_at(t, i)->addr, &off);

			if (s && off >= s->size)
				abort();
			if (!symtab_find(t, symtab_at(t, i)->name))
				abort();
		}
	(void)kimage_keeps_frame_pointers(&k, t);
	(void)kimage_keeps_frame_pointers(&k, NULL);
	if (t)
		(void)variables_add(&k, &t, NULL);
	symtab_destroy(t);
	return 0;
}
