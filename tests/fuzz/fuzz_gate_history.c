/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An entry of a gate's history: what parses is in order, and each value is found again. */
#include "tests/fuzz/fuzz.h"

#include "profile/compare/gate/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gate_history_entry *x = NULL;
	struct err e = { 0 };

	if (gate_history_parse(&x, "fuzz", (const char *)data, size, &e) < 0) {
		if (strncmp(e.text, "fuzz:", 5) != 0 || strchr(e.text, '\n') || x)
			abort();
		return 0;
	}
	if (!x->runs || x->runs > STATS_MAX_RUNS || strlen(x->label) > GATE_HISTORY_LABEL)
		abort();
	for (size_t i = 0; i < x->nvalues; i++) {
		const struct gate_history_value *v = &x->value[i];

		if (!v->name || !v->mode != !v->dso || !v->runs)
			abort();
		if (gate_history_find(x, v->name, v->dso, v->mode) != v)
			abort();
	}
	gate_history_entry_destroy(x);
	return 0;
}
