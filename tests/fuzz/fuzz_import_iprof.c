/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A directory of counts by image and offset: kernel.syms, a line with a form feed, and a file of counts. What is
 * handed on lies in the input, and a profile's tables take it.
 */
#include "tests/fuzz/fuzz.h"

#include "profile/analyse/import/import.h"
#include "profile/analyse/import/iprof.h"

#include <stdlib.h>

struct text {
	const char *s;
	size_t len;
	uint64_t n;
	struct import *import;
};

static void check_text(const struct text *t, struct import_text x)
{
	static const char kernel[] = "[kernel.kallsyms]", name[] = "a_b";

	if (x.len && (x.s < t->s || x.s + x.len > t->s + t->len) && !import_equals(x, kernel) &&
	    !import_equals(x, name))
		abort();
}

static int check(void *ctx, const struct import_sample *s)
{
	struct text *t = ctx;

	if (s->n != 1 || !s->weight || s->weight > IMPORT_MAX_WEIGHT || !s->frame[0].placed ||
	    s->frame[0].off > s->frame[0].addr)
		abort();
	check_text(t, s->comm);
	check_text(t, s->frame[0].name);
	check_text(t, s->frame[0].dso);
	t->n++;
	return import_add(t->import, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct import_options opt = { .counts = true };
	struct text t = { (const char *)data, size, 0, NULL };
	const char *feed = memchr(data, '\f', size);
	struct import_text syms = { t.s, feed ? (size_t)(feed - t.s) : 0 };
	struct import_text counts = { t.s + syms.len, size - syms.len };
	struct import_stats st = { 0 };
	struct import_iprof *p;
	uint64_t ignored;
	int ret;

	if (import_create(&t.import, &opt, NULL) < 0)
		return 0;
	if (!import_iprof_create(&p, syms, &ignored, NULL)) {
		ret = import_iprof(p, "a_b-0123456789abcdef-7.prof", counts, check, &t, &st);
		if (st.samples != t.n || (ret && !import_error(ret)[0]) ||
		    (st.ignored > 0) != (st.first_ignored > 0))
			abort();
		import_iprof_destroy(p);
	}
	import_destroy(t.import);
	return 0;
}
