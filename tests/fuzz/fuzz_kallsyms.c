/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 1500 runs */
/*
 * The first byte chooses. Below 0x80: one of the fixture's layouts with changes, so
 * that the search gets past its first checks: u16 offset from the read-only data,
 * u8 operation, u8 value, and so on. From 0x80 on: the rest is the memory itself.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "symbolizer/kernel/kallsyms.h"
#include "tests/unit/kallsyms_fixture.h"

#include <stdlib.h>
#include <string.h>

static void check_table(const struct symtab *t, const struct kallsyms_info *info)
{
	size_t n = symtab_count(t);

	if (n == 0 || n > info->count || !info->layout[0])
		abort();
	for (size_t i = 0; i < n; i++) {
		const struct symbol *s = symtab_at(t, i);

		if (!s->name[0] || strlen(s->name) > KALLSYMS_MAX_NAME ||
		    (i && s->addr < symtab_at(t, i - 1)->addr))
			abort();
	}
}

static void decode(const uint8_t *bytes, size_t len, bool known)
{
	struct kallsyms_range r = { .va = KF_TEXT, .len = len };
	struct kallsyms_info info = { 0 };
	uint8_t *copy = malloc(len ? len : 1); /* exactly as large as the input */
	struct symtab *t = NULL;
	struct err e = { 0 };

	if (!copy)
		return;
	memcpy(copy, bytes, len);
	r.bytes = copy;
	if (kallsyms_decode(&(struct kallsyms_source){ .range = &r,
						       .nrange = 1,
						       .text = known ? KF_TEXT : 0,
						       .end = known ? KF_TEXT + len : 0,
						       .name = "fuzz" },
			    &t, &info, &e) == 0)
		check_table(t, &info);
	else if (!e.text[0] || t)
		abort();
	symtab_destroy(t);
	free(copy);
}

static void change(struct buf *b, struct cursor *c)
{
	while (cursor_left(c) >= 4) {
		size_t at = KF_RODATA + cursor_u16(c);
		uint8_t what = cursor_u8(c), v = cursor_u8(c);

		if (at >= b->len)
			continue;
		switch (what % 5) {
		case 0:
			b->data[at] = v;
			break;
		case 1:
			b->data[at] ^= v;
			break;
		case 2:
			b->data[at] = (uint8_t)(b->data[at] + v);
			break;
		case 3:
			memset(b->data + at, v, b->len - at < 64 ? b->len - at : 64);
			break;
		default:
			b->len = at;
			break;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct buf made[KF_SHAPES];
	struct cursor c;
	uint8_t first;
	struct buf b;

	cursor_init(&c, data, size);
	first = cursor_u8(&c);
	if (first & 0x80) {
		decode(data + 1, size - 1, first & 1);
		return 0;
	}
	if (!made[first % KF_SHAPES].data) {
		struct kf_places p;

		kf_build(&kf_shapes[first % KF_SHAPES], &made[first % KF_SHAPES], &p);
	}
	buf_init(&b);
	buf_add(&b, made[first % KF_SHAPES].data, made[first % KF_SHAPES].len);
	if (!b.failed) {
		change(&b, &c);
		decode(b.data, b.len, !(first & 0x40));
	}
	buf_deinit(&b);
	return 0;
}
