/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folded stacks: what is handed on lies in the text, and what is told adds up. */
#include "tests/fuzz/fuzz.h"

#include "profile/analyse/import/folded.h"

#include <stdlib.h>

struct text {
	const char *s;
	size_t len;
	uint64_t n;
};

static void check_text(const struct text *t, struct import_text x)
{
	if (x.len && (x.s < t->s || x.s + x.len > t->s + t->len))
		abort();
}

static int check(void *ctx, const struct import_sample *s)
{
	struct text *t = ctx;

	if (!s->n || s->n > IMPORT_MAX_FRAMES || s->weight > IMPORT_MAX_WEIGHT + 1)
		abort();
	check_text(t, s->comm);
	for (uint32_t i = 0; i < s->n; i++)
		check_text(t, s->frame[i].name);
	t->n++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (enum import_first first = IMPORT_FIRST_IS_FRAME; first <= IMPORT_FIRST_IS_COMM;
	     first++) {
		struct text t = { (const char *)data, size, 0 };
		struct import_stats st;
		struct err e = { 0 };
		int ret = import_folded((struct import_text){ t.s, t.len }, first, check, &t, &st,
					&e);

		if (st.samples != t.n || (ret == 0) != (t.n > 0) || (ret && !e.text[0]) ||
		    (st.ignored > 0) != (st.first_ignored > 0))
			abort();
	}
	return 0;
}
