/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JIT's map: what is found at an address covers it, and has a name. */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/program/perfmap.h"

#include <stdlib.h>
#include <string.h>

static void check(const struct perfmap *m, uint64_t addr)
{
	uint64_t off = 0;
	const struct symbol *s = perfmap_lookup(m, addr, &off);

	if (s && (addr < s->addr || addr - s->addr >= s->size || off != addr - s->addr ||
		  !s->name[0] || strlen(s->name) > SYMTAB_MAX_NAME))
		abort();
}

/* In order, without gaps, and with the answers of lookups. */
static void check_pieces(const struct perfmap *m)
{
	uint64_t last = 0;

	for (size_t i = 0; i < perfmap_pieces(m); i++) {
		uint64_t start, end;
		const struct symbol *s = perfmap_piece(m, i, &start, &end);

		/* Behind a symbol that ends where addresses do. */
		if (start == UINT64_MAX && !s)
			break;
		if (start >= end || (i && start != last) || perfmap_lookup(m, start, NULL) != s ||
		    perfmap_lookup(m, end - 1, NULL) != s)
			abort();
		last = end;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfmap *m;
	struct perfmap_info info;
	struct err e = { 0 };

	if (perfmap_parse(&m, "fuzz", data, size, &info, &e) < 0) {
		if (!e.text[0])
			abort();
		return 0;
	}
	if (info.entries == 0 || info.hidden >= info.entries)
		abort();
	for (uint64_t a = 0; a < 0x200; a++)
		check(m, a);
	for (unsigned int bit = 9; bit < 64; bit++) {
		check(m, 1ull << bit);
		check(m, (1ull << bit) - 1);
	}
	check(m, UINT64_MAX);
	check_pieces(m);
	perfmap_destroy(m);
	return 0;
}
