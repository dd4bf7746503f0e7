/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JIT's map: its pieces lie within their symbols, and these have names. */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/program/perfmap.h"

#include <stdlib.h>
#include <string.h>

/* In order, without gaps, within their symbols. */
static void check_pieces(const struct perfmap *m)
{
	uint64_t last = 0;

	for (size_t i = 0; i < perfmap_pieces(m); i++) {
		uint64_t start, end;
		const struct symbol *s = perfmap_piece(m, i, &start, &end);

		/* Behind a symbol that ends where addresses do. */
		if (start == UINT64_MAX && !s)
			break;
		if (start >= end || (i && start != last))
			abort();
		if (s && (start < s->addr || end - s->addr > s->size || !s->name[0] ||
			  strlen(s->name) > SYMTAB_MAX_NAME))
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
	check_pieces(m);
	perfmap_destroy(m);
	return 0;
}
