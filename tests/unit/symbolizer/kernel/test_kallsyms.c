/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/kallsyms.h"

#include "tests/unit/kallsyms_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void same_symbols(const struct kf_shape *s, const struct symtab *t)
{
	char type, name[600];
	uint64_t addr, off;

	assert_int_equal(symtab_count(t), s->count);
	for (unsigned int i = 0; i < s->count; i++) {
		const struct symbol *f;

		kf_symbol(s, i, &addr, &type, name);
		f = symtab_find(t, name);
		assert_non_null(f);
		assert_int_equal(f->addr, addr);
		assert_int_equal(f->type, type);
		if (type == 'A' || type == 'R' || addr == KF_TEXT + s->slide)
			continue;
		assert_ptr_equal(symtab_lookup(t, addr + 5, &off), f);
		assert_int_equal(off, 5);
	}
	/* Per-CPU offsets are no code. */
	assert_null(symtab_lookup(t, 64, &off));
}

static void each_layout(void **state)
{
	(void)state;
	for (size_t i = 0; i < KF_SHAPES; i++) {
		const struct kf_shape *s = &kf_shapes[i];
		struct kallsyms_info info = { 0 };
		struct symtab *t = NULL;
		struct kf_places p;
		struct err e = { 0 };
		struct buf b;

		buf_init(&b);
		kf_build(s, &b, &p);
		if (kf_decode(s, &b, &t, &info, &e) < 0)
			fail_msg("%s: %s", s->name, e.text);
		same_symbols(s, t);
		assert_int_equal(info.encoding, s->encoding);
		assert_int_equal(info.addresses_first, s->first);
		assert_int_equal(info.count, s->count);
		assert_int_equal(info.names_va, KF_TEXT + p.names);
		assert_int_equal(info.addresses_va, KF_TEXT + p.addresses);
		assert_int_equal(info.long_names, s->long_len > 126 && !s->byte_lengths);
		symtab_destroy(t);
		buf_deinit(&b);
	}
}

/* Live memory: nothing is known of the kernel's extent, and all of it has moved. */
static void slid_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < KF_SHAPES; i++) {
		struct kf_shape s = kf_shapes[i];
		struct kallsyms_range r[3];
		struct symtab *t = NULL;
		struct kf_places p;
		struct err e = { 0 };
		uint8_t low[64] = { 0 };
		struct buf b;
		int ret;

		s.slide = 0x1ba00000;
		buf_init(&b);
		kf_build(&s, &b, &p);
		r[0] = (struct kallsyms_range){ .va = 0, .bytes = low, .len = sizeof(low) };
		r[1] = (struct kallsyms_range){ .va = KF_TEXT + s.slide,
						.bytes = b.data,
						.len = b.len };
		r[2] = (struct kallsyms_range){ .va = KF_TEXT + s.slide + 0x100000,
						.bytes = low,
						.len = 64 };
		ret = kallsyms_decode(
			&(struct kallsyms_source){
				.range = r, .nrange = 3, .text = 0, .end = 0, .name = s.name },
			&t, NULL, &e);
		if (s.text_only) {
			/* Then there is nothing that proves the addresses. */
			assert_int_equal(ret, -EBADMSG);
		} else {
			if (ret < 0)
				fail_msg("%s: %s", s.name, e.text);
			same_symbols(&s, t);
		}
		symtab_destroy(t);
		buf_deinit(&b);
	}
}

static void from_image(void **state)
{
	const struct kf_shape *s = &kf_shapes[3];
	struct kimage k = { .text = KF_TEXT, .nseg = 2 };
	struct symtab *t = NULL;
	struct kf_places p;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	buf_init(&b);
	kf_build(s, &b, &p);
	k.elf = b.data;
	k.elf_len = b.len;
	k.etext = KF_TEXT + KF_RODATA;
	k.end = KF_TEXT + b.len;
	/* A segment that begins at an odd address, and all. */
	k.seg[0] = (struct kimage_segment){ .va = 5, .file_off = 1, .file_len = 99, .mem_len = 99 };
	k.seg[1] = (struct kimage_segment){ .va = KF_TEXT, .file_len = b.len, .mem_len = b.len };
	if (kallsyms_from_image(&k, "image", &t, NULL, &e) < 0)
		fail_msg("%s", e.text);
	same_symbols(s, t);
	symtab_destroy(t);
	buf_deinit(&b);
}

static void expect(const struct kf_shape *s, const struct buf *b, int want, const char *text)
{
	struct symtab *t = NULL;
	struct err e = { 0 };
	int ret = kf_decode(s, b, &t, NULL, &e);

	if (ret != want || (text && !strstr(e.text, text)))
		fail_msg("%s: returned %d, expected %d with \"%s\": %s", s->name, ret, want, text,
			 e.text);
	assert_null(t);
}

static void damage(const struct kf_shape *s, const char *what)
{
	struct kf_places p;
	struct buf b;
	const char *text = NULL;
	int want = -EBADMSG;

	buf_init(&b);
	kf_build(s, &b, &p);
	if (!strcmp(what, "none")) {
		b.len = KF_RODATA + 64;
		want = -ENOENT;
		text = "no kallsyms tables";
	} else if (!strcmp(what, "markers")) {
		b.data[p.markers + (s->wide ? 8 : 4)] ^= 1;
		text = "a token table lies at";
	} else if (!strcmp(what, "count")) {
		b.data[p.count]--;
		text = "a token table lies at";
	} else if (!strcmp(what, "order")) {
		unsigned int size = s->encoding == KALLSYMS_ABSOLUTE ? 8 : 4;
		uint8_t tmp[8];

		/* Two distant addresses change places. */
		memcpy(tmp, b.data + p.addresses + 100 * size, size);
		memmove(b.data + p.addresses + 100 * size, b.data + p.addresses + 200 * size, size);
		memcpy(b.data + p.addresses + 200 * size, tmp, size);
		text = "no addresses for them";
	} else if (!strcmp(what, "base") && p.base) {
		buf_put64(&b, p.base, KF_TEXT + s->slide + 16);
		text = s->text_only ? "puts _text at" : "linux_banner";
	} else if (!strcmp(what, "banner") && !s->text_only) {
		b.data[KF_RODATA] ^= 0x20;
		text = "where no banner is";
	} else if (!strcmp(what, "tokens")) {
		b.data[p.tokens + 200] = 0x80; /* somewhere in a token, or its end */
		want = -ENOENT;
	} else if (!strcmp(what, "twice")) {
		struct buf c;

		buf_init(&c);
		buf_add(&c, b.data, b.len);
		buf_add(&b, c.data, c.len);
		buf_deinit(&c);
		text = "more than one set";
	} else {
		want = 0;
	}
	if (want)
		expect(s, &b, want, text);
	buf_deinit(&b);
}

static void damaged(void **state)
{
	static const char *const what[] = { "none", "markers", "count",	 "order",
					    "base", "banner",  "tokens", "twice" };

	(void)state;
	for (size_t i = 0; i < KF_SHAPES; i++)
		for (size_t k = 0; k < sizeof(what) / sizeof(what[0]); k++)
			damage(&kf_shapes[i], what[k]);
}

static void foreign_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < KF_SHAPES; i++) {
		const struct kf_shape *s = &kf_shapes[i];
		struct symtab *t = NULL;
		struct kf_places p;
		struct err e = { 0 };
		struct kallsyms_range r;
		struct buf b;

		buf_init(&b);
		kf_build(s, &b, &p);
		r = (struct kallsyms_range){ .va = KF_TEXT, .bytes = b.data, .len = b.len };
		assert_int_equal(
			kallsyms_decode(&(struct kallsyms_source){ .range = &r,
								   .nrange = 1,
								   .text = KF_TEXT - 0x1000,
								   .end = KF_TEXT + b.len,
								   .name = s->name },
					&t, NULL, &e),
			-EBADMSG);
		assert_non_null(strstr(e.text, "puts _text at"));
		/* Somewhere else altogether. */
		assert_int_equal(
			kallsyms_decode(&(struct kallsyms_source){ .range = &r,
								   .nrange = 1,
								   .text = KF_TEXT + 0x1000000,
								   .end = KF_TEXT + 0x2000000,
								   .name = s->name },
					&t, NULL, NULL),
			-EBADMSG);
		assert_null(t);
		buf_deinit(&b);
	}
}

/* Cut anywhere, it is refused; the place-relative one ends with tables that nobody needs. */
static void cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < KF_SHAPES; i++) {
		const struct kf_shape *s = &kf_shapes[i];
		struct kf_places p;
		size_t all, needed;
		struct buf b;

		buf_init(&b);
		kf_build(s, &b, &p);
		all = b.len;
		needed = p.index + 512;
		if (!s->first)
			needed =
				p.base ? p.base + 8
				       : p.addresses +
						 (size_t)s->count *
							 (s->encoding == KALLSYMS_ABSOLUTE ? 8 : 4);
		for (size_t len = KF_RODATA; len < all; len += 61) {
			struct kallsyms_range r = { .va = KF_TEXT, .len = len };
			struct symtab *t = NULL;
			uint8_t *copy = malloc(len); /* so that a sanitizer sees the end */
			int ret;

			assert_non_null(copy);
			memcpy(copy, b.data, len);
			r.bytes = copy;
			ret = kallsyms_decode(&(struct kallsyms_source){ .range = &r,
									 .nrange = 1,
									 .text = KF_TEXT,
									 .end = KF_TEXT + all,
									 .name = s->name },
					      &t, NULL, NULL);
			if (len < needed)
				assert_true(ret == -ENOENT || ret == -EBADMSG);
			else
				assert_int_equal(ret, 0);
			symtab_destroy(t);
			free(copy);
		}
		buf_deinit(&b);
	}
}

/* Whatever bytes change: an answer or a refusal with a reason. */
static void random_damage(void **state)
{
	unsigned int seed = 1, refused = 0;
	struct buf made[KF_SHAPES];
	struct kf_places p;

	(void)state;
	for (size_t i = 0; i < KF_SHAPES; i++) {
		buf_init(&made[i]);
		kf_build(&kf_shapes[i], &made[i], &p);
	}
	for (unsigned int round = 0; round < 3000; round++) {
		const struct kf_shape *s = &kf_shapes[round % KF_SHAPES];
		const struct buf *from = &made[round % KF_SHAPES];
		struct symtab *t = NULL;
		struct err e = { 0 };
		struct buf b;
		int ret;

		buf_init(&b);
		buf_add(&b, from->data, from->len);
		for (unsigned int k = rand_r(&seed) % 4 + 1; k; k--)
			b.data[KF_RODATA + (unsigned int)rand_r(&seed) % (b.len - KF_RODATA)] ^=
				(uint8_t)(1u << rand_r(&seed) % 8);
		ret = kf_decode(s, &b, &t, NULL, &e);
		assert_true(ret == 0 || ((ret == -ENOENT || ret == -EBADMSG) && e.text[0]));
		refused += ret != 0;
		symtab_destroy(t);
		buf_deinit(&b);
	}
	assert_true(refused > 300);
	for (size_t i = 0; i < KF_SHAPES; i++)
		buf_deinit(&made[i]);
}

/* Long runs of what the search looks for must not take long. */
static void expensive(void **state)
{
	const struct kf_shape *s = &kf_shapes[8];
	struct kf_places p;
	struct err e = { 0 };
	struct symtab *t = NULL;
	struct buf b, c;

	(void)state;
	buf_init(&b);
	buf_init(&c);
	kf_build(s, &c, &p);
	/* Marker-like numbers in front of token tables, many times. */
	for (unsigned int k = 0; k < 40; k++) {
		for (unsigned int i = 0; i < 40000; i++)
			buf_u32(&b, i % 190 * 600);
		buf_add(&b, c.data + p.tokens, p.end - p.tokens);
	}
	assert_true(kf_decode(s, &b, &t, NULL, &e) < 0);
	assert_null(t);
	/* Strings that fit an index wherever they are taken to begin, but are no alphabet. */
	b.len = 0;
	for (unsigned int k = 0; k < 20000; k++) {
		for (unsigned int i = 0; i < 400; i++)
			buf_add(&b, "abc", 4);
		for (unsigned int i = 0; i < 256; i++)
			buf_u16(&b, (uint16_t)(4 * i));
	}
	err_clear(&e);
	assert_int_equal(kf_decode(s, &b, &t, NULL, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "too much"));
	assert_null(t);
	buf_deinit(&b);
	buf_deinit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_layout),	 cmocka_unit_test(slid_memory),
		cmocka_unit_test(from_image),	 cmocka_unit_test(damaged),
		cmocka_unit_test(foreign_text),	 cmocka_unit_test(cut_short),
		cmocka_unit_test(random_damage), cmocka_unit_test(expensive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
