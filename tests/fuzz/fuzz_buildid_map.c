/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of a build-id map: what parses is sorted and every entry is found again. */
#include "tests/fuzz/fuzz.h"

#include "profile/format/files/buildid_map.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buildid_map m;
	struct err e = { 0 };

	if (buildid_map_parse(&m, "fuzz", data, size, &e) < 0) {
		if (strncmp(e.text, "fuzz:", 5) != 0)
			abort();
		return 0;
	}
	for (size_t i = 0; i < m.n; i++) {
		const struct buildid_entry *x = &m.at[i];
		const char *path = NULL;

		if (x->len == 0 || x->len > ELF_ID_MAX || !*x->path)
			abort();
		for (size_t k = 0; path != x->path; k++) {
			path = buildid_map_find(&m, x->id, x->len, k);
			if (!path)
				abort();
		}
	}
	buildid_map_deinit(&m);
	return 0;
}
