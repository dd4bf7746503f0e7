/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/top/code.h"

#include "profile/analyse/annotate/annotate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const char *no_name(void *ctx, uint64_t addr, uint64_t *off)
{
	(void)ctx;
	(void)addr;
	(void)off;
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct annotate_hit *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int top_code_draw(struct buf *text, const struct top_code *code, struct err *e)
{
	struct annotate_hit *hit = calloc(code->nhits + 1, sizeof(*hit));
	struct annotate_input in = {
		.addr = code->addr,
		.live = code->code.data,
		.len = code->code.len,
		.hit = hit,
		.function = code->symbol,
		.name = no_name,
	};
	const struct annotate_style style = { 0 };
	struct annotate *a = NULL;
	int ret = 0;

	if (!hit)
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < code->nhits; i++)
		if (code->hit[i].weight >= 1)
			hit[in.nhits++] = (struct annotate_hit){
				.addr = code->hit[i].addr,
				.weight = (uint64_t)llround(code->hit[i].weight),
				.samples = 1,
			};
	qsort(hit, in.nhits, sizeof(*hit), by_address);
	ret = in.len ? annotate_build(&a, &in, e)
		     : err_set(e, ENODATA, "the guest has no code there now");
	if (!ret) {
		annotate_print(text, a, &style);
		buf_u8(text, 0);
		if (text->failed)
			ret = err_set(e, ENOMEM, "out of memory");
	}
	annotate_destroy(a);
	free(hit);
	return ret;
}
