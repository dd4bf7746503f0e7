/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hist.h"
#include "base/sample.h"
#include "tests/sample_check.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t seed = 0xba5e;

static uint64_t rnd(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * UINT64_C(0x2545f4914f6cdd1d);
}

/* -- err -------------------------------------------------------------------------- */

static void err_first_wins(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(err_set(&e, ENOENT, "%s: %d", "first", 1), -ENOENT);
	assert_int_equal(err_set(&e, EIO, "second"), -EIO); /* its own code, the first's text */
	assert_int_equal(e.code, ENOENT);
	assert_string_equal(e.text, "first: 1");
	err_clear(&e);
	assert_int_equal(e.code, 0);
	assert_string_equal(e.text, "");
	assert_int_equal(err_set(&e, EIO, "third"), -EIO);
	assert_string_equal(e.text, "third");
	assert_int_equal(err_set(NULL, EINVAL, "nobody listens %d", 1), -EINVAL);
	/* Text from a file or a guest: one line without terminal control characters. */
	err_clear(&e);
	err_set(&e, EINVAL, "%s", "a\nb\033[2Jc\x7f\xc3\xa4");
	assert_string_equal(e.text, "a?b?[2Jc?\xc3\xa4");
}

static void err_is_cut_and_terminated(void **state)
{
	struct {
		struct err e;
		char guard[16];
	} s;
	char text[2000];

	(void)state;
	memset(&s, 0x5a, sizeof(s));
	s.e.code = 0;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	err_set(&s.e, E2BIG, "%s", text);
	assert_int_equal(strlen(s.e.text), sizeof(s.e.text) - 1);
	for (unsigned int i = 0; i < sizeof(s.guard); i++)
		assert_int_equal(s.guard[i], 0x5a);
}

/* -- buf -------------------------------------------------------------------------- */

static void buf_appends(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	buf_add(&b, "", 0);
	assert_int_equal(b.len, 0);
	buf_u8(&b, 0x11);
	buf_u16(&b, 0x2233);
	buf_u32(&b, 0x44556677);
	buf_u64(&b, UINT64_C(0x8899aabbccddeeff));
	assert_int_equal(b.len, 15);
	assert_memory_equal(b.data, "\x11\x33\x22\x77\x66\x55\x44\xff\xee\xdd\xcc\xbb\xaa\x99\x88",
			    15);
	buf_align(&b, 8);
	assert_int_equal(b.len, 16);
	assert_int_equal(b.data[15], 0);
	buf_align(&b, 8);
	assert_int_equal(b.len, 16);
	buf_add(&b, NULL, 3);
	assert_memory_equal(b.data + 16, "\0\0\0", 3);
	buf_printf(&b, "%s-%d", "n", 7);
	assert_int_equal(b.len, 22); /* without the terminator */
	assert_memory_equal(b.data + 19, "n-7", 3);
	buf_printf(&b, "%s", "");
	assert_int_equal(b.len, 22);
	buf_put16(&b, 0, 0xa1a2);
	buf_put32(&b, 18, 0xb1b2b3b4);
	buf_put64(&b, 2, UINT64_C(0xc1c2c3c4c5c6c7c8));
	assert_memory_equal(b.data, "\xa2\xa1\xc8\xc7\xc6\xc5\xc4\xc3\xc2\xc1", 10);
	assert_memory_equal(b.data + 18, "\xb4\xb3\xb2\xb1", 4);
	assert_false(b.failed);
	buf_deinit(&b);
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	buf_deinit(&b);
}

static void buf_grows(void **state)
{
	struct buf b;
	uint8_t *p;

	(void)state;
	buf_init(&b);
	for (uint32_t i = 0; i < 100000; i++)
		buf_u32(&b, i);
	assert_int_equal(b.len, 400000);
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t v;

		memcpy(&v, b.data + 4 * (size_t)i, 4);
		assert_int_equal(v, i);
	}
	p = buf_reserve(&b, 1 << 20);
	assert_ptr_equal(p, b.data + b.len);
	assert_int_equal(b.len, 400000);
	assert_true(b.cap >= b.len + (1 << 20));
	buf_deinit(&b);
}

/* One failure, and nothing that follows is half done. */
static void buf_fails_once_and_for_all(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	buf_add(&b, "abc", 3);
	assert_null(buf_reserve(&b, SIZE_MAX - 1)); /* the sum overflows */
	assert_true(b.failed);
	assert_int_equal(b.len, 3);
	buf_add(&b, "def", 3);
	buf_u64(&b, 1);
	buf_printf(&b, "%d", 5);
	buf_align(&b, 8);
	buf_put16(&b, 1000, 5); /* would be out of range, but the bytes are not there anyway */
	assert_null(buf_reserve(&b, 1));
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "abc", 3);
	buf_deinit(&b);
	assert_false(b.failed);
}

/* -- cursor ----------------------------------------------------------------------- */

static void cursor_reads(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	struct cursor c;

	(void)state;
	cursor_init(&c, bytes, sizeof(bytes));
	assert_int_equal(cursor_u8(&c), 1);
	assert_int_equal(cursor_u16(&c), 0x0302);
	assert_int_equal(cursor_u32(&c), 0x07060504);
	assert_int_equal(cursor_u64(&c), UINT64_C(0x0f0e0d0c0b0a0908));
	assert_int_equal(cursor_left(&c), 0);
	assert_false(c.bad); /* all of it is not too much */
	assert_int_equal(cursor_u8(&c), 0);
	assert_true(c.bad);

	cursor_seek(&c, 0); /* no way back: one check at the end is enough */
	assert_true(c.bad);
	assert_int_equal(cursor_u8(&c), 0);
	assert_int_equal(cursor_left(&c), 0);
	assert_null(cursor_bytes(&c, 0));
}

static void cursor_bounds(void **state)
{
	static const uint8_t bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint64_t too_far[] = { 9, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX - 2,
					    UINT64_MAX };
	struct cursor c, w;

	(void)state;
	for (size_t i = 0; i < sizeof(too_far) / sizeof(too_far[0]); i++) {
		cursor_init(&c, bytes, sizeof(bytes));
		cursor_skip(&c, 3);
		cursor_seek(&c, too_far[i]);
		assert_true(c.bad);
		assert_int_equal(c.pos, 3);
		cursor_init(&c, bytes, sizeof(bytes));
		cursor_skip(&c, 3);
		assert_null(cursor_bytes(&c, too_far[i]));
		assert_true(c.bad);
		assert_int_equal(c.pos, 3);
		cursor_init(&c, bytes, sizeof(bytes));
		w = cursor_window(&c, too_far[i], 1);
		assert_true(w.bad);
		assert_int_equal(cursor_u8(&w), 0);
		w = cursor_window(&c, 1, too_far[i]);
		assert_true(w.bad);
		assert_null(cursor_str_at(&c, too_far[i]));
		assert_false(c.bad); /* the parent goes on */
	}
	cursor_init(&c, bytes, sizeof(bytes));
	assert_null(cursor_bytes(&c, 9));
	cursor_init(&c, bytes, sizeof(bytes));
	cursor_seek(&c, 8);
	assert_false(c.bad);
	assert_int_equal(cursor_left(&c), 0);
	cursor_init(&c, bytes, sizeof(bytes));
	cursor_seek(&c, 5);
	assert_int_equal(cursor_u32(&c), 0); /* three bytes are left: not a part of them */
	assert_true(c.bad);

	cursor_init(&c, bytes, sizeof(bytes));
	w = cursor_window(&c, 2, 4);
	assert_false(w.bad);
	assert_int_equal(cursor_u32(&w), 0x06050403);
	assert_int_equal(cursor_u8(&w), 0); /* the window's end, not the parent's */
	assert_true(w.bad);
	w = cursor_window(&c, 8, 0);
	assert_false(w.bad);
	assert_int_equal(cursor_left(&w), 0);
	w = cursor_window(&c, 8, 1);
	assert_true(w.bad);
	assert_int_equal(c.pos, 0);
}

static void cursor_strings(void **state)
{
	static const char bytes[] = { 'a', 'b', 0, 'c', 0, 'd' };
	struct cursor c;

	(void)state;
	cursor_init(&c, bytes, sizeof(bytes));
	assert_string_equal(cursor_str_at(&c, 0), "ab");
	assert_string_equal(cursor_str_at(&c, 2), "");
	assert_string_equal(cursor_str_at(&c, 3), "c");
	assert_null(cursor_str_at(&c, 5)); /* not terminated inside */
	assert_null(cursor_str_at(&c, 6));
}

/* -- file ------------------------------------------------------------------------- */

static char dir[64], path[160], other[160];

static int in_directory(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/kvmprof-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int out_of_directory(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

static const char *at(char *buf, const char *name)
{
	snprintf(buf, sizeof(path), "%s/%s", dir, name);
	return buf;
}

static void put_file(const char *name, const char *text)
{
	char p[160];
	cleanup_close int fd = open(at(p, name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

static bool holds(const char *name, const char *text)
{
	struct file_map m = { 0 };
	char p[160];
	bool same;

	if (file_map_open(&m, at(p, name), 1000, NULL))
		return false;
	same = m.len == strlen(text) && !memcmp(m.data, text, m.len);
	file_map_close(&m);
	return same;
}

static void file_map_errors(void **state)
{
	struct file_map m = { .data = NULL, .len = 77 };
	struct err e = { 0 };

	(void)state;
	put_file("full", "0123456789");
	put_file("empty", "");
	assert_int_equal(mkfifo(at(path, "fifo"), 0600), 0);
#define REFUSED(name, max, code_)                                                       \
	do {                                                                            \
		err_clear(&e);                                                          \
		assert_int_equal(file_map_open(&m, at(path, name), max, &e), -(code_)); \
		assert_non_null(strstr(e.text, path));                                  \
		assert_null(m.data);                                                    \
		assert_int_equal(m.len, 77);                                            \
	} while (0)
	REFUSED("missing", 100, ENOENT);
	REFUSED("full/below", 100, ENOTDIR);
	REFUSED(".", 100, EISDIR);
	REFUSED("fifo", 100, EINVAL); /* and it does not wait for a writer */
	REFUSED("empty", 100, EINVAL);
	REFUSED("full", 9, EFBIG);
#undef REFUSED
	err_clear(&e);
	assert_int_equal(file_map_open(&m, at(path, "full"), 10, &e), 0);
	assert_int_equal(m.len, 10);
	assert_memory_equal(m.data, "0123456789", 10);
	file_map_close(&m);
	assert_null(m.data);
	file_map_close(&m);
	assert_int_equal(e.code, 0);
}

static void file_write_fails(void **state)
{
	(void)state;
	assert_int_equal(file_write_all(-1, "x", 1), -EBADF);
	assert_int_equal(file_write_all(-1, "x", 0), 0);
}

static void file_replaces(void **state)
{
	struct err e = { 0 };
	struct stat st;

	(void)state;
	put_file("target", "kept");
	put_file("out", "before");
	assert_int_equal(symlink("target", at(path, "tmp")), 0); /* a leftover, not followed */
	assert_int_equal(file_replace(path, at(other, "out"), "after", 5, &e), 0);
	assert_true(holds("out", "after"));
	assert_true(holds("target", "kept"));
	assert_int_equal(lstat(path, &st), -1);
	assert_int_equal(lstat(other, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(e.code, 0);

	/* a directory is not replaced, and nothing is left beside it */
	assert_int_equal(file_mkdirs(at(other, "sub"), &e), 0);
	assert_int_equal(file_replace(path, other, "x", 1, &e), -EISDIR);
	assert_int_equal(lstat(path, &st), -1);
	assert_non_null(strstr(e.text, "sub: cannot write: "));
	err_clear(&e);
	assert_int_equal(file_replace(at(path, "none/tmp"), other, "x", 1, &e), -ENOENT);
	assert_non_null(strstr(e.text, "none/tmp: cannot create: "));
}

static void file_makes_directories(void **state)
{
	char too_long[5000];
	struct err e = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(file_mkdirs(at(path, "a/b//c/"), &e), 0);
	assert_int_equal(stat(at(path, "a/b/c"), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(file_mkdirs(path, &e), 0); /* again */
	assert_int_equal(file_mkdirs("/", &e), 0);
	assert_int_equal(file_mkdirs(".", &e), 0);
	assert_int_equal(e.code, 0);

	put_file("a/file", "x");
	assert_int_equal(file_mkdirs(at(path, "a/file/d"), &e), -ENOTDIR);
	assert_non_null(strstr(e.text, "a/file"));
	err_clear(&e);
	assert_int_equal(file_mkdirs(at(path, "a/file"), &e), -ENOTDIR); /* is no directory */
	err_clear(&e);
	assert_int_equal(file_mkdirs("", &e), -ENOENT);
	err_clear(&e);
	memset(too_long, 'x', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = 0;
	assert_int_equal(file_mkdirs(too_long, &e), -ENAMETOOLONG);
	/* through a link to a directory */
	assert_int_equal(symlink("a", at(path, "link")), 0);
	err_clear(&e);
	assert_int_equal(file_mkdirs(path, &e), 0);
	assert_int_equal(file_mkdirs(at(path, "link/x"), &e), 0);
	assert_int_equal(stat(at(path, "a/x"), &st), 0);
}

static void file_removes_trees(void **state)
{
	struct err e = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(file_remove_tree(at(path, "missing"), &e), 0);
	assert_int_equal(file_mkdirs(at(path, "keep"), &e), 0);
	put_file("keep/file", "x");
	assert_int_equal(file_mkdirs(at(path, "tree/sub"), &e), 0);
	put_file("tree/sub/file", "x");
	assert_int_equal(symlink("../keep", at(path, "tree/link")), 0);
	assert_int_equal(symlink("nowhere", at(path, "tree/broken")), 0);
	assert_int_equal(file_remove_tree(at(path, "tree"), &e), 0);
	assert_int_equal(lstat(path, &st), -1);
	assert_true(holds("keep/file", "x")); /* links are removed, not followed */
	assert_int_equal(file_remove_tree(at(path, "keep/file"), &e), 0);
	assert_int_equal(lstat(path, &st), -1);
	assert_int_equal(e.code, 0);
}

static void file_publishes(void **state)
{
	char too_long[5000];
	struct err e = { 0 };
	struct stat st;

	(void)state;
	for (int i = 1; i <= 3; i++) {
		char text[2] = { (char)('0' + i), 0 };

		put_file("tmp", text);
		assert_int_equal(file_publish(at(path, "tmp"), at(other, "out"), &e), 0);
		assert_true(holds("out", text));
		assert_int_equal(lstat(path, &st), -1);
		text[0]--;
		assert_int_equal(holds("out.old", text), i > 1); /* one generation back */
	}
	/* a directory in a file's place; then the .old is a directory that has to go */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(file_mkdirs(at(path, "tmp"), &e), 0);
		put_file("tmp/data", i ? "new" : "first");
		assert_int_equal(file_publish(at(path, "tmp"), at(other, "out"), &e), 0);
	}
	assert_true(holds("out/data", "new"));
	assert_true(holds("out.old/data", "new"));
	assert_int_equal(e.code, 0);

	assert_int_equal(file_publish(at(path, "tmp"), at(other, "fresh"), &e), -ENOENT);
	assert_non_null(strstr(e.text, "fresh"));
	err_clear(&e);
	memset(too_long, 'x', sizeof(too_long));
	too_long[4093] = 0; /* fits, but not with .old behind it */
	assert_int_equal(file_publish(path, too_long, &e), -ENAMETOOLONG);
}

/* -- hist ------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void hist_quantiles(void **state)
{
	enum { N = 20000 };
	static uint64_t v[N];
	static const unsigned int q[] = { 1, 10, 100, 250, 500, 750, 900, 990, 999, 1000 };

	(void)state;
	for (int shape = 0; shape < 4; shape++) {
		struct hist h = { 0 };
		uint64_t sum = 0;

		for (int i = 0; i < N; i++) {
			v[i] = shape == 0 ? rnd() % 100000 : /* uniform */
				       shape == 1 ? rnd() >> rnd() % 64
						  : /* over all magnitudes */
				       shape == 2 ? rnd() % 12
						  :		   /* few small values */
				       5000 + rnd() % 8 * 1000000; /* lumps */
			hist_add(&h, v[i]);
			sum += v[i];
		}
		qsort(v, N, sizeof(v[0]), by_value);
		assert_int_equal(h.count, N);
		assert_int_equal(h.sum, sum);
		assert_int_equal(h.max, v[N - 1]);
		for (size_t i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
			uint64_t exact = v[(N * q[i] + 999) / 1000 - 1];
			uint64_t got = hist_quantile(&h, q[i]);

			/* never below the truth, and above it by an eighth at most */
			assert_true(got >= exact);
			assert_true(got - exact <= exact / 8);
		}
	}
}

static void hist_edges(void **state)
{
	struct hist h = { 0 }, sum = { 0 };

	(void)state;
	assert_int_equal(hist_quantile(&h, 500), 0);
	hist_add(&h, UINT64_MAX);
	hist_add(&h, 0);
	assert_int_equal(hist_quantile(&h, 500), 0);
	assert_int_equal(hist_quantile(&h, 1000), UINT64_MAX);
	assert_int_equal(h.max, UINT64_MAX);
	/* at and around every power of two */
	for (int k = 1; k < 64; k++)
		for (int d = -1; d <= 1; d++) {
			uint64_t ns = (UINT64_C(1) << k) + (uint64_t)(int64_t)d;
			struct hist one = { 0 };

			hist_add(&one, ns);
			one.max = UINT64_MAX; /* so that the bucket's own limit shows */
			assert_true(hist_quantile(&one, 1000) >= ns);
			assert_true(hist_quantile(&one, 1000) - ns <= ns / 8);
		}
	hist_merge(&sum, &h);
	hist_merge(&sum, &h);
	assert_int_equal(sum.count, 4);
	assert_int_equal(sum.max, UINT64_MAX);
	assert_int_equal(sum.sum, 2 * UINT64_MAX);
	assert_int_equal(hist_quantile(&sum, 250), 0);
	assert_int_equal(hist_quantile(&sum, 501), UINT64_MAX);
}

/* -- sample ----------------------------------------------------------------------- */

#define STACK_BYTES 256

static struct sample *made(void)
{
	struct sample *s = calloc(1, sizeof(*s) + STACK_BYTES);

	assert_non_null(s);
	s->version = SAMPLE_VERSION;
	s->stack_len = STACK_BYTES;
	s->nslices = 2;
	s->slice[0] = (struct sample_slice){ 0xffffc90000000f00, 0, 128 };
	s->slice[1] = (struct sample_slice){ 0xffffffffffffff80, 128, 128 };
	s->returns = (struct sample_slice){ 0xffff888000000000, 64, 64 };
	for (unsigned int i = 0; i < STACK_BYTES; i++)
		s->stack[i] = (uint8_t)i;
	return s;
}

static void sample_hostile(void **state)
{
	cleanup_free struct sample *s = made();
	size_t len = sizeof(*s) + STACK_BYTES;

	(void)state;
	assert_int_equal(sample_check(s, len), 0);
	for (size_t n = 0; n < len; n++) /* cut anywhere */
		assert_int_equal(sample_check(s, n), -EINVAL);
	assert_int_equal(sample_check(s, len + 1), -EINVAL);

	/* the word behind `field` set to bad, checked, and put back */
#define BAD(field, value)                                        \
	do {                                                     \
		__typeof__(s->field) good_ = s->field;           \
		s->field = (__typeof__(s->field))(value);        \
		assert_int_equal(sample_check(s, len), -EINVAL); \
		s->field = good_;                                \
		assert_int_equal(sample_check(s, len), 0);       \
	} while (0)
	BAD(version, 0);
	BAD(version, SAMPLE_VERSION + 1);
	BAD(nslices, SAMPLE_MAX_SLICES + 1);
	BAD(nslices, 255);
	BAD(stack_len, STACK_BYTES - 1);
	BAD(stack_len, STACK_BYTES + 1);
	BAD(stack_len, UINT32_MAX);
	BAD(slice[0].off, STACK_BYTES - 127);
	BAD(slice[0].off, STACK_BYTES + 1);
	BAD(slice[0].off, UINT32_MAX);
	BAD(slice[1].len, 129);
	BAD(slice[1].len, UINT32_MAX);
	BAD(slice[1].off, UINT32_MAX - 127); /* off + len wraps to 0 */
	BAD(returns.len, STACK_BYTES - 63);
	BAD(returns.off, UINT32_MAX - 63);
#undef BAD
	/* more stack than a sample may have, even where the length agrees */
	s->stack_len = SAMPLE_MAX_STACK + 1;
	s->nslices = 0;
	assert_int_equal(sample_check(s, sizeof(*s) + SAMPLE_MAX_STACK + 1), -EINVAL);
}

static void sample_reads(void **state)
{
	cleanup_free struct sample *s = made();
	uint8_t b[300];
	/* The compiler must not know the value: it would warn of the copy that the check prevents. */
	volatile size_t most = SIZE_MAX;
	uint64_t v;

	(void)state;
	assert_int_equal(sample_read(s, 0xffffc90000000f08, &v, 8), 0);
	assert_int_equal(v, UINT64_C(0x0f0e0d0c0b0a0908));
	assert_int_equal(sample_read(s, 0xffffc90000000f00, b, 128), 0);
	assert_int_equal(sample_read(s, 0xffffc90000000f00, b, 129), -EFAULT);
	assert_int_equal(sample_read(s, 0xffffc90000000eff, b, 1), -EFAULT);
	assert_int_equal(sample_read(s, 0xffffc90000000f79, &v, 8), -EFAULT);
	assert_int_equal(sample_read(s, 0xffffc90000000f80, b, 1), -EFAULT);
	assert_int_equal(sample_read(s, 0xffffc90000000f00, b, most), -EFAULT);
	/* up to the last byte that has an address, and not round to the first */
	assert_int_equal(sample_read(s, 0xfffffffffffffff8, &v, 8), 0);
	assert_int_equal(v, UINT64_C(0xfffefdfcfbfaf9f8));
	assert_int_equal(sample_read(s, 0xfffffffffffffff9, &v, 8), -EFAULT);
	assert_int_equal(sample_read(s, 0, b, 1), -EFAULT);
	s->nslices = 0;
	assert_int_equal(sample_read(s, 0xffffc90000000f00, b, 1), -EFAULT);
}

int main(void)
{
#define FILE_TEST(t) cmocka_unit_test_setup_teardown(t, in_directory, out_of_directory)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_first_wins),
		cmocka_unit_test(err_is_cut_and_terminated),
		cmocka_unit_test(buf_appends),
		cmocka_unit_test(buf_grows),
		cmocka_unit_test(buf_fails_once_and_for_all),
		cmocka_unit_test(cursor_reads),
		cmocka_unit_test(cursor_bounds),
		cmocka_unit_test(cursor_strings),
		FILE_TEST(file_map_errors),
		cmocka_unit_test(file_write_fails),
		FILE_TEST(file_replaces),
		FILE_TEST(file_makes_directories),
		FILE_TEST(file_removes_trees),
		FILE_TEST(file_publishes),
		cmocka_unit_test(hist_quantiles),
		cmocka_unit_test(hist_edges),
		cmocka_unit_test(sample_hostile),
		cmocka_unit_test(sample_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
