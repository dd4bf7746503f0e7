/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/textstore.c"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t live[24] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
				  13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24 };

static struct textstore *parse(const struct buf *b)
{
	struct textstore *t = NULL;
	struct err e = { 0 };

	if (textstore_parse(&t, "text", b->data, b->len, &e) < 0)
		fail_msg("%s", e.text);
	return t;
}

static void round_trip(void **state)
{
	uint8_t image[24], back[24];
	struct textstore *t;
	const struct textstore_range *r;
	struct buf b;

	(void)state;
	memcpy(image, live, sizeof(image));
	image[0] = 0xe8;
	image[3] = 0x90; /* joins the first: a diff costs more than three bytes */
	image[23] = 0xc3;
	buf_init(&b);
	textstore_write_begin(&b);
	assert_true(textstore_write(&b, "", 0xffffffff81000000, live, image, sizeof(live)));
	assert_true(textstore_write(&b, "ext4", 0xffffffffa0000000, live, NULL, 8));
	assert_true(textstore_write(&b, "ext4", 0xffffffffa0000004, live + 8, NULL, 8));
	assert_true(textstore_write(&b, "", 0xffffffff82000000, live, live, 4));
	t = parse(&b);
	assert_int_equal(t->n, 4);

	r = textstore_find(t, "", 0xffffffff81000017);
	assert_non_null(r);
	assert_true(r->has_image);
	assert_int_equal(r->ndiff, 2);
	assert_memory_equal(r->live, live, sizeof(live));
	textstore_image(r, back);
	assert_memory_equal(back, image, sizeof(image));

	/* The later one counts; a module's code is not the kernel's. */
	r = textstore_find(t, "ext4", 0xffffffffa0000005);
	assert_int_equal(r->addr, 0xffffffffa0000004);
	assert_false(r->has_image);
	assert_int_equal(textstore_find(t, "ext4", 0xffffffffa0000003)->addr, 0xffffffffa0000000);
	assert_null(textstore_find(t, "", 0xffffffffa0000005));
	assert_null(textstore_find(t, "", 0xffffffff81000018));
	assert_int_equal(textstore_find(t, "", 0xffffffff82000000)->ndiff, 0);
	assert_true(textstore_find(t, "", 0xffffffff82000000)->has_image);
	textstore_destroy(t);
	buf_deinit(&b);
}

static void over_caps(void **state)
{
	uint8_t *big = calloc(TEXTSTORE_MAX_LEN + 1, 1);
	char name[TEXTSTORE_MAX_NAME + 1];
	struct textstore *t;
	struct buf b;

	(void)state;
	memset(name, 'a', sizeof(name));
	name[TEXTSTORE_MAX_NAME] = '\0';
	buf_init(&b);
	textstore_write_begin(&b);
	assert_false(textstore_write(&b, "", 0, big, NULL, 0));
	assert_false(textstore_write(&b, "", 0, big, NULL, TEXTSTORE_MAX_LEN + 1));
	assert_false(textstore_write(&b, "", UINT64_MAX - 3, big, NULL, 8));
	assert_false(textstore_write(&b, name, 0, big, NULL, 8));
	assert_true(textstore_write(&b, name + 1, 0, big, NULL, TEXTSTORE_MAX_LEN));
	t = parse(&b);
	assert_int_equal(t->n, 1);
	textstore_destroy(t);
	buf_deinit(&b);
	free(big);
}

/* Every place where it can be cut, and every field out of range, is found. */
static void damaged(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} bad[] = {
		{ 0, 'x' },   /* magic */
		{ 8, 2 },     /* version */
		{ 22, 0xff }, /* length */
		{ 24, 9 },    /* more differences than there are */
		{ 28, 0 },    /* a name without its 0 */
		{ 30, 0 },    /* differences without an image */
		{ 32, 'x' },  /* the name's 0 */
		{ 57, 24 },   /* a difference outside */
		{ 61, 25 },   /* one that is too long */
		{ 61, 0 },    /* one without a byte */
	};
	uint8_t image[24], copy[256];
	struct textstore *t;
	struct buf b;

	(void)state;
	memcpy(image, live, sizeof(image));
	image[2] ^= 1;
	buf_init(&b);
	textstore_write_begin(&b);
	textstore_write(&b, "", 0x1000, live, image, sizeof(live));
	assert_true(b.len < sizeof(copy));
	for (size_t n = 0; n < b.len; n++) {
		struct err e = { 0 };

		if (n == 12) /* a file without functions */
			continue;
		assert_int_equal(textstore_parse(&t, "text", b.data, n, &e), -EINVAL);
		assert_true(e.text[0]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(copy, b.data, b.len);
		copy[bad[i].at] = bad[i].value;
		assert_int_equal(textstore_parse(&t, "text", copy, b.len, NULL), -EINVAL);
	}
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(over_caps),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
