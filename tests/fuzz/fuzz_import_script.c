/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text of `perf script`, parsed and made into a profile's tables: all of it stays inside. */
#include "tests/fuzz/fuzz.h"

#include "profile/analyse/import/import.h"
#include "profile/analyse/import/script.h"

#include <stdlib.h>

struct text {
	const char *s;
	size_t len;
	uint64_t n;
	struct import *import;
};

static void check_text(const struct text *t, struct import_text x)
{
	if (x.len && (x.s < t->s || x.s + x.len > t->s + t->len))
		abort();
}

static int check(void *ctx, const struct import_sample *s)
{
	struct text *t = ctx;
	int ret;

	if (!s->n || s->n > IMPORT_MAX_FRAMES || s->weight > IMPORT_MAX_PERIOD)
		abort();
	check_text(t, s->comm);
	check_text(t, s->event);
	for (uint32_t i = 0; i < s->n; i++) {
		check_text(t, s->frame[i].name);
		check_text(t, s->frame[i].dso);
	}
	t->n++;
	ret = import_add(t->import, s);
	if (ret && ret != -12 && !import_error(ret)[0])
		abort();
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text t = { .s = (const char *)data, .len = size };
	struct import_options opt = { 0 };
	struct import_stats st;
	struct err e = { 0 };
	int ret;

	if (import_create(&t.import, &opt, NULL) < 0)
		return 0;
	ret = import_script((struct import_text){ t.s, t.len }, check, &t, &st, &e);
	if (st.samples != t.n || (!ret && !t.n))
		abort();
	import_destroy(t.import);
	return 0;
}
