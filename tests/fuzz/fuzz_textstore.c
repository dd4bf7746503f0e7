/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile's code: what is read from it lies inside, and can be disassembled and printed. */
#include "tests/fuzz/fuzz.h"

#include "profile/analyse/annotate/print.h"
#include "profile/format/perfdata/textstore.c"

#include <stdlib.h>
#include <string.h>

#define SHOWN 4096u

static void show(const struct textstore_range *r, const uint8_t *image)
{
	const struct annotate_hit hit = { r->addr, 1, 1 };
	const struct annotate_style style = { .color = true };
	struct annotate_input in = {
		.addr = r->addr,
		.live = r->live,
		.image = r->has_image ? image : NULL,
		.len = r->len < SHOWN ? r->len : SHOWN,
		.hit = &hit,
		.nhits = 1,
		.syntax = r->addr & 1 ? DISASM_INTEL : DISASM_ATT,
		.function = "f",
	};
	struct annotate *a;
	uint64_t next = r->addr;
	struct json_writer w;
	struct buf b;

	if (annotate_build(&a, &in, NULL) < 0)
		return;
	for (size_t i = 0; i < a->nrows; i++) {
		if (a->row[i].addr != next || !a->row[i].insn.len || a->row[i].insn.len > 15)
			abort();
		next += a->row[i].insn.len;
	}
	if (next != r->addr + in.len || a->row[0].samples != 1)
		abort();
	buf_init(&b);
	annotate_print(&b, a, &style);
	json_begin(&w, &b);
	annotate_json(&w, NULL, a, /* children= */ true);
	buf_deinit(&b);
	annotate_destroy(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct textstore *t;
	struct err e = { 0 };

	if (textstore_parse(&t, "fuzz", data, size, &e) < 0) {
		if (!e.text[0])
			abort();
		return 0;
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct textstore_range *r = &t->range[i];
		uint8_t *image = malloc(r->len);

		if (!image || !textstore_find(t, r->name, r->addr))
			abort();
		textstore_image(r, image);
		if (!r->ndiff && memcmp(image, r->live, r->len) != 0)
			abort();
		if (i < 4)
			show(r, image);
		free(image);
	}
	textstore_destroy(t);
	return 0;
}
