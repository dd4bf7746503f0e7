/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/types/btf_types.h"

#include "tests/unit/btf_fixture.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct btf *open_made(const struct buf *b)
{
	struct err e = { 0 };
	struct btf *t = NULL;

	if (btf_open(&t, b->data, b->len, "made", &e) < 0)
		fail_msg("%s", e.text);
	return t;
}

static void expect(const struct types *t, const char *structure, const char *path, uint32_t off,
		   uint32_t size, uint8_t bit_off, uint8_t bit_count)
{
	struct type_member m;

	if (t->member(t->ctx, structure, path, &m) < 0)
		fail_msg("%s.%s is missing", structure, path);
	if (m.off != off || m.size != size || m.bit_off != bit_off || m.bit_count != bit_count)
		fail_msg("%s.%s: byte %u of size %u, bits %u:%u", structure, path, m.off, m.size,
			 m.bit_off, m.bit_count);
}

static void answers(void **state)
{
	static const struct {
		const char *structure, *path;
		uint32_t off, size;
		uint8_t bit_off, bit_count;
	} members[] = {
		{ "list_head", "next", 0, 8, 0, 0 },
		{ "list_head", "prev", 8, 8, 0, 0 },
		{ "task", "comm", 0, 16, 0, 0 },
		{ "task", "comm[3]", 3, 1, 0, 0 },
		{ "task", "pid", 16, 4, 0, 0 },
		{ "task", "low", 20, 4, 0, 3 },
		{ "task", "high", 20, 4, 3, 7 },
		{ "task", "number", 24, 4, 0, 0 },
		{ "task", "x", 24, 4, 0, 0 },
		{ "task", "y", 28, 4, 0, 0 },
		{ "task", "run", 32, 32, 0, 0 },
		{ "task", "run[1].prev", 56, 8, 0, 0 },
		{ "task", "tail", 64, 0, 0, 0 },
		/* Two types with one name: the first one that has the member. */
		{ "other", "first", 0, 4, 0, 0 },
		{ "other", "second", 8, 4, 0, 0 },
		{ "last", "b", 4, 4, 0, 0 },
	};
	static const char *const missing[][2] = {
		{ "task", "" },		{ "task", "com" },
		{ "task", "comm[16]" }, { "task", "comm." },
		{ "task", "comm[" },	{ "task", "comm[]" },
		{ "task", "comm[1" },	{ "task", "comm[1]x" },
		{ "task", "[0]" },	{ "task", "run.next" },
		{ "task", "run[2]" },	{ "task", "run[0].next.next" },
		{ "task", "tail[0]" },	{ "task", "pid.x" },
		{ "task", ".pid" },	{ "task", "pid[0]" },
		{ "task", "comm[-1]" }, { "task", "comm[99999999999999999999]" },
		{ "nothing", "pid" },	{ "", "x" },
		{ "pid_t", "x" },	{ "task", "run[0]..next" },
	};
	struct type_member m;
	struct types t;
	struct btf *b;
	uint64_t size;
	int64_t v;
	struct buf raw;

	(void)state;
	buf_init(&raw);
	bf_kernel(&raw);
	b = open_made(&raw);
	t = btf_types(b);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		expect(&t, members[i].structure, members[i].path, members[i].off, members[i].size,
		       members[i].bit_off, members[i].bit_count);
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
		if (t.member(t.ctx, missing[i][0], missing[i][1], &m) != -ENOENT)
			fail_msg("%s.%s was found", missing[i][0], missing[i][1]);
	assert_int_equal(t.size(t.ctx, "task", &size), 0);
	assert_int_equal(size, 64);
	assert_int_equal(t.size(t.ctx, "other", &size), 0);
	assert_int_equal(size, 4);
	assert_int_equal(t.size(t.ctx, "pid_t", &size), -ENOENT);
	assert_int_equal(t.enumerator(t.ctx, "MINUS", &v), 0);
	assert_int_equal(v, -1);
	assert_int_equal(t.enumerator(t.ctx, "PLUS", &v), 0);
	assert_int_equal(v, 1);
	assert_int_equal(t.enumerator(t.ctx, "HIGH_BIT", &v), 0);
	assert_int_equal(v, 0x80000000);
	assert_int_equal(t.enumerator(t.ctx, "WIDE", &v), 0);
	assert_int_equal(v, 0x0123456789abcdef);
	assert_int_equal(t.enumerator(t.ctx, "sign", &v), -ENOENT);
	assert_int_equal(btf_count(b), 29);
	assert_int_equal(btf_size(b), raw.len);
	btf_destroy(b);
	buf_deinit(&raw);
}

/* Before 4.20 bit fields had integers of their own, before 6.0 enums told no sign. */
static void old_kernels(void **state)
{
	uint32_t num, three, seven;
	struct types t;
	struct btf *b;
	struct buf raw;
	struct bf f;
	int64_t v;

	(void)state;
	buf_init(&raw);
	bf_init(&f);
	num = bf_int(&f, "int", 4, 32, 0);
	three = bf_int(&f, "int", 4, 3, 0);
	seven = bf_int(&f, "int", 4, 7, 2);
	bf_type(&f, BF_STRUCT, "old", 4, false, 8);
	bf_member(&f, "whole", num, 0);
	bf_member(&f, "low", three, 32);
	bf_member(&f, "odd", three, 37);
	bf_member(&f, "shifted", seven, 40);
	bf_type(&f, BF_ENUM, NULL, 1, false, 4);
	bf_value(&f, "MINUS", -5);
	bf_finish(&f, &raw);
	b = open_made(&raw);
	t = btf_types(b);
	expect(&t, "old", "whole", 0, 4, 0, 0);
	expect(&t, "old", "low", 4, 4, 0, 3);
	expect(&t, "old", "odd", 4, 4, 5, 3);
	expect(&t, "old", "shifted", 5, 4, 2, 7);
	assert_int_equal(t.enumerator(t.ctx, "MINUS", &v), 0);
	assert_int_equal(v, -5);
	btf_destroy(b);
	buf_deinit(&raw);
}

static void refused(const struct buf *b, int code, const char *text)
{
	struct btf *t = NULL;
	struct err e = { 0 };
	int ret = btf_open(&t, b->data, b->len, "made", &e);

	if (ret != code || !strstr(e.text, text))
		fail_msg("%d instead of %d for \"%s\": %s", ret, code, text, e.text);
	assert_null(t);
}

static void damaged_header(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
		int code;
		const char *text;
	} bad[] = {
		{ 0, 0x00019feb, -EINVAL, "big-endian" },
		{ 0, 0x0001eb9e, -EINVAL, "no BTF" },
		{ 0, 0x0002eb9f, -EINVAL, "version 2" },
		{ 4, 20, -EBADMSG, "not inside" },
		{ 4, UINT32_MAX, -EBADMSG, "not inside" },
		{ 8, 2, -EBADMSG, "not inside" },
		{ 8, UINT32_MAX - 3, -EBADMSG, "not inside" },
		{ 12, UINT32_MAX, -EBADMSG, "not inside" },
		{ 16, UINT32_MAX, -EBADMSG, "not inside" },
		{ 20, UINT32_MAX, -EBADMSG, "not inside" },
		{ 20, 0, -EBADMSG, "not closed" },
		{ 20, 7, -EBADMSG, "not closed" },
		{ 16, 0, -EINVAL, "module" },
	};
	struct buf raw, b;

	(void)state;
	buf_init(&raw);
	bf_kernel(&raw);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		buf_init(&b);
		buf_add(&b, raw.data, raw.len);
		buf_put32(&b, bad[i].at, bad[i].value);
		refused(&b, bad[i].code, bad[i].text);
		buf_deinit(&b);
	}
	for (size_t len = 0; len < raw.len; len++) {
		struct btf *t = NULL;
		uint8_t *copy = malloc(len + 1); /* so that a sanitizer sees the end */

		assert_non_null(copy);
		memcpy(copy, raw.data, len);
		assert_true(btf_open(&t, copy, len, "cut", NULL) < 0);
		free(copy);
	}
	buf_deinit(&raw);
}

/* One record that is wrong, behind an int. */
static void damaged_record(uint32_t kind, const char *name, uint32_t vlen, uint32_t type,
			   const char *item, int code, const char *text)
{
	struct buf raw;
	struct bf f;

	bf_init(&f);
	bf_int(&f, "int", 4, 32, 0);
	bf_type(&f, kind, name, vlen, false, type);
	if (item)
		for (uint32_t i = 0; i < 3; i++)
			buf_u32(&f.types, (uint32_t)item[i]);
	buf_init(&raw);
	bf_finish(&f, &raw);
	refused(&raw, code, text);
	buf_deinit(&raw);
}

static void damaged_records(void **state)
{
	(void)state;
	damaged_record(0, "x", 0, 0, NULL, -EINVAL, "offset 0x10 has kind 0");
	damaged_record(20, "x", 0, 0, NULL, -EINVAL, "kind 20, newer than");
	damaged_record(BF_STRUCT, "x", 2, 8, "\0\1\0", -EBADMSG,
		       "type 2 at offset 0x10 is cut off");
	damaged_record(BF_TYPEDEF, "x", 0, 3, NULL, -EBADMSG, "refers to type 3 of 2");
	damaged_record(BF_PTR, NULL, 0, 3, NULL, -EBADMSG, "refers to type 3 of 2");
	damaged_record(BF_STRUCT, "x", 1, 8, "\0\3\0", -EBADMSG, "refers to type 3 of 2");
	damaged_record(BF_STRUCT, "x", 1, 8, "\x7f\1\0", -EBADMSG, "a name at 0x7f of");
	damaged_record(BF_ARRAY, NULL, 0, 0, "\3\1\1", -EBADMSG, "refers to type 3 of 2");
	damaged_record(BF_DATASEC, "x", 1, 0, "\3\0\4", -EBADMSG, "refers to type 3 of 2");
	/* Holding itself: directly, as the element of an array, through another name. */
	damaged_record(BF_TYPEDEF, "x", 0, 2, NULL, -EBADMSG, "type 2 at offset 0x10 holds itself");
	damaged_record(BF_STRUCT, "x", 1, 8, "\0\2\0", -EBADMSG, "holds itself");
	damaged_record(BF_ARRAY, NULL, 0, 0, "\2\1\1", -EBADMSG, "holds itself");
}

/* n structures, each inside of the next, or each twice: 2^n ways. */
static void nest(struct buf *raw, uint32_t n, uint32_t times, bool backwards)
{
	struct bf f;

	bf_init(&f);
	bf_int(&f, "int", 4, 32, 0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t inner = backwards ? (i == n - 1 ? 1 : f.n + 2) : f.n;

		bf_type(&f, BF_STRUCT, "nest", times, false, 4);
		for (uint32_t k = 0; k < times; k++)
			bf_member(&f, NULL, inner, 0);
	}
	bf_finish(&f, raw);
}

static void depth(void **state)
{
	struct type_member m;
	struct types t;
	struct btf *b;
	struct buf raw;

	(void)state;
	for (int backwards = 0; backwards < 2; backwards++) {
		buf_init(&raw);
		nest(&raw, BTF_MAX_DEPTH - 1, 2, backwards);
		b = open_made(&raw);
		t = btf_types(b);
		/* Endless, if nobody counted. */
		assert_int_equal(t.member(t.ctx, "nest", "x", &m), -EINVAL);
		btf_destroy(b);
		buf_deinit(&raw);
		buf_init(&raw);
		nest(&raw, BTF_MAX_DEPTH, 1, backwards);
		refused(&raw, -EBADMSG, "more than 64 others");
		buf_deinit(&raw);
	}
}

static void huge_sizes(void **state)
{
	struct type_member m;
	struct types t;
	struct btf *b;
	uint32_t a;
	struct buf raw;
	struct bf f;

	(void)state;
	buf_init(&raw);
	bf_init(&f);
	bf_int(&f, "int", 4, 32, 0);
	a = bf_array(&f, 1, UINT32_MAX);
	a = bf_array(&f, a, UINT32_MAX);
	bf_type(&f, BF_STRUCT, "huge", 3, false, 64);
	bf_member(&f, "all", a, 0);
	bf_member(&f, "outside", 1, 8 * 62);
	bf_member(&f, "odd", 1, 3);
	bf_finish(&f, &raw);
	b = open_made(&raw);
	t = btf_types(b);
	assert_int_equal(t.member(t.ctx, "huge", "all", &m), -EINVAL);
	assert_int_equal(t.member(t.ctx, "huge", "all[1]", &m), -EINVAL);
	assert_int_equal(t.member(t.ctx, "huge", "all[4000000000][4000000000]", &m), -EINVAL);
	assert_int_equal(t.member(t.ctx, "huge", "all[0][15]", &m), -EINVAL);
	assert_int_equal(t.member(t.ctx, "huge", "outside", &m), -EINVAL);
	btf_destroy(b);
	buf_deinit(&raw);
}

#define IMAGE_TEXT 0xffffffff81000000ull

/* An image without sections, with these bytes at an odd place in its text segment. */
static void make_image(struct buf *b, const struct buf *inside)
{
	size_t len = 0x400 + inside->len + 100;
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			 .e_type = ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(h),
			 .e_ehsize = sizeof(h),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1 };
	Elf64_Phdr p = { .p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_offset = 0x100,
			 .p_vaddr = IMAGE_TEXT,
			 .p_filesz = len - 0x100,
			 .p_memsz = len - 0x100 };

	buf_init(b);
	buf_add(b, &h, sizeof(h));
	buf_add(b, &p, sizeof(p));
	buf_add(b, NULL, len - b->len);
	/* Two that are none, then what was asked for. */
	memcpy(b->data + 0x201, "\x9f\xeb\1\0", 4);
	memcpy(b->data + 0x301, "\x9f\xeb\1\0\x18\0\0\0\0\0\0\0\4\0\0\0\4\0\0\0\4\0\0\0", 24);
	if (inside->len)
		memcpy(b->data + 0x3a5, inside->data, inside->len);
}

static void found_by_content(void **state)
{
	struct buf raw, image, none;
	struct btf *b = NULL;
	struct err e = { 0 };
	struct kimage k;
	struct types t;

	(void)state;
	buf_init(&raw);
	bf_kernel(&raw);
	make_image(&image, &raw);
	assert_int_equal(kimage_parse(&k, "image", image.data, image.len, &e), 0);
	assert_int_equal(btf_from_image(&b, &k, "image", &e), 0);
	assert_int_equal(btf_size(b), raw.len);
	t = btf_types(b);
	expect(&t, "last", "b", 4, 4, 0, 0);
	btf_destroy(b);
	buf_deinit(&image);
	/* The message says what is wrong with a damaged type. */
	raw.data[24 + 7] = 31;
	make_image(&image, &raw);
	assert_int_equal(kimage_parse(&k, "image", image.data, image.len, &e), 0);
	assert_int_equal(btf_from_image(&b, &k, "image", &e), -EINVAL);
	assert_non_null(strstr(e.text, "kind 31"));
	buf_deinit(&image);
	buf_init(&none);
	make_image(&image, &none);
	memset(image.data + 0x201, 0, 0x200);
	err_clear(&e);
	assert_int_equal(kimage_parse(&k, "image", image.data, image.len, &e), 0);
	assert_int_equal(btf_from_image(&b, &k, "image", &e), -ENOENT);
	assert_non_null(strstr(e.text, "CONFIG_DEBUG_INFO_BTF"));
	buf_deinit(&image);
	buf_deinit(&raw);
}

/* Whatever bits change: answers, or a refusal with a reason. */
static void random_damage(void **state)
{
	unsigned int seed = 1, bad = 0;
	struct buf raw;

	(void)state;
	buf_init(&raw);
	bf_kernel(&raw);
	for (unsigned int round = 0; round < 20000; round++) {
		struct type_member m;
		struct btf *t = NULL;
		struct err e = { 0 };
		struct buf b;

		buf_init(&b);
		buf_add(&b, raw.data, raw.len);
		for (unsigned int k = rand_r(&seed) % 3 + 1; k; k--)
			b.data[(unsigned int)rand_r(&seed) % b.len] ^=
				(uint8_t)(1u << rand_r(&seed) % 8);
		if (btf_open(&t, b.data, b.len, "damaged", &e) < 0) {
			assert_true(e.text[0]);
			bad++;
		} else {
			struct types types = btf_types(t);

			(void)types.member(types.ctx, "task", "run[1].prev", &m);
			(void)types.member(types.ctx, "task", "y", &m);
			btf_destroy(t);
		}
		buf_deinit(&b);
	}
	assert_in_range(bad, 2000, 18000);
	buf_deinit(&raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(old_kernels),
		cmocka_unit_test(damaged_header),
		cmocka_unit_test(damaged_records),
		cmocka_unit_test(depth),
		cmocka_unit_test(huge_sizes),
		cmocka_unit_test(found_by_content),
		cmocka_unit_test(random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
