/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mangled names, one per line: any result is bounded, and short work. */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/core/demangle.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = strndup((const char *)data, size), *line, *rest = copy;

	while ((line = strsep(&rest, "\n"))) {
		char *d = demangle(line);

		if (d && (!*d || strlen(d) > DEMANGLE_MAX_RESULT + 4))
			abort();
		free(d);
	}
	free(copy);
	return 0;
}
