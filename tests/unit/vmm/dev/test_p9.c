/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operations on a shared directory that 9P allows a guest, and those that it refuses. */
#include "base/buf.h"
#include "base/cursor.h"
#include "base/file.h"
#include "guest/p9_messages.h"
#include "tests/unit/dir_fixture.h"
#include "vmm/dev/p9.h"
#include "vmm/dev/p9_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
	char base[64], share[96];
	struct p9 *p9;
	uint8_t reply[P9_MSIZE];
	struct cursor answer; /* behind the header */
} t;

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static char *below(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", t.share, name);
	return path;
}

/* base/secret is what the guest must not get; base/share has links to it. */
static int begin(bool read_only)
{
	struct err e = { 0 };
	char secret[128];

	strcpy(t.base, "/tmp/kvmprof-p9.XXXXXX");
	assert_non_null(mkdtemp(t.base));
	snprintf(t.share, sizeof(t.share), "%s/share", t.base);
	snprintf(secret, sizeof(secret), "%s/secret", t.base);
	assert_int_equal(mkdir(t.share, 0755), 0);
	write_text(secret, "secret");
	write_text(below("file"), "0123456789");
	assert_int_equal(mkdir(below("dir"), 0755), 0);
	write_text(below("dir/inner"), "inner");
	assert_int_equal(symlink("../secret", below("leak")), 0);
	assert_int_equal(symlink("..", below("up")), 0);
	assert_int_equal(mkfifo(below("fifo"), 0644), 0);
	return p9_create(&t.p9,
			 &(struct p9_share){ .dir = t.share,
					     .read_only = read_only,
					     .max_files = P9_MAX_FILES },
			 &e);
}

static int set_up(void **state)
{
	(void)state;
	return begin(false);
}

static int set_up_read_only(void **state)
{
	(void)state;
	return begin(true);
}

static int tear_down(void **state)
{
	(void)state;
	p9_destroy(t.p9);
	return file_remove_tree(t.base, NULL);
}

/*
 * One request: after its type d and q are numbers of 4 and 8 bytes, w of 2, s a string, b
 * (length, bytes) raw. 0, or the error that was the answer.
 */
static int ask(uint8_t type, const char *format, ...)
{
	struct buf b;
	va_list ap;
	size_t n;

	buf_init(&b);
	buf_u32(&b, 0);
	buf_u8(&b, type);
	buf_u16(&b, 77);
	va_start(ap, format);
	for (; *format; format++) {
		const char *s;

		switch (*format) {
		case 'w':
			buf_u16(&b, (uint16_t)va_arg(ap, unsigned int));
			break;
		case 'd':
			buf_u32(&b, va_arg(ap, unsigned int));
			break;
		case 'q':
			buf_u64(&b, va_arg(ap, uint64_t));
			break;
		case 's':
			s = va_arg(ap, const char *);
			buf_u16(&b, (uint16_t)strlen(s));
			buf_add(&b, s, strlen(s));
			break;
		default:
			n = va_arg(ap, size_t);
			buf_add(&b, va_arg(ap, const void *), n);
		}
	}
	va_end(ap);
	buf_put32(&b, 0, (uint32_t)b.len);
	n = p9_handle(t.p9, b.data, b.len, t.reply, sizeof(t.reply));
	buf_deinit(&b);
	assert_true(n >= 7);
	cursor_init(&t.answer, t.reply, n);
	assert_int_equal(cursor_u32(&t.answer), n);
	n = cursor_u8(&t.answer);
	assert_int_equal(cursor_u16(&t.answer), 77);
	if (n == 7)
		return -(int)cursor_u32(&t.answer);
	assert_int_equal(n, type + 1);
	return 0;
}

static void attach(void)
{
	assert_int_equal(ask(TVERSION, "ds", 8192u, "9P2000.L"), 0);
	assert_int_equal(cursor_u32(&t.answer), 8192);
	assert_int_equal(ask(TATTACH, "ddssd", 1u, ~0u, "root", "", 0u), 0);
	assert_int_equal(cursor_u8(&t.answer), 0x80);
}

static int walk(unsigned int fid, unsigned int new, const char *name)
{
	return ask(TWALK, "ddws", fid, new, 1u, name);
}

static void reads_and_writes(void **state)
{
	struct stat st;

	(void)state;
	attach();
	assert_int_equal(walk(1, 2, "file"), 0);
	assert_int_equal(ask(TLOPEN, "dd", 2u, (unsigned int)O_RDWR), 0);
	assert_int_equal(ask(TREAD, "dqd", 2u, (uint64_t)3, 4u), 0);
	assert_int_equal(cursor_u32(&t.answer), 4);
	assert_memory_equal(cursor_bytes(&t.answer, 4), "3456", 4);
	/* No more than the message has room for. */
	assert_int_equal(ask(TREAD, "dqd", 2u, (uint64_t)0, ~0u), 0);
	assert_int_equal(cursor_u32(&t.answer), 10);
	assert_int_equal(ask(TWRITE, "dqdb", 2u, (uint64_t)8, 4u, (size_t)4, "wxyz"), 0);
	assert_int_equal(cursor_u32(&t.answer), 4);
	assert_int_equal(ask(TFSYNC, "dd", 2u, 0u), 0);
	assert_int_equal(stat(below("file"), &st), 0);
	assert_int_equal(st.st_size, 12);
	/* More is announced than is there. */
	assert_int_equal(ask(TWRITE, "dqdb", 2u, (uint64_t)0, 400u, (size_t)4, "wxyz"), -EINVAL);
	assert_int_equal(ask(TCLUNK, "d", 2u), 0);
	assert_int_equal(ask(TREAD, "dqd", 2u, (uint64_t)0, 4u), -EBADF);
	assert_int_equal(p9_stats(t.p9).written_bytes, 4);
}

static void makes_and_removes(void **state)
{
	struct stat st;

	(void)state;
	attach();
	assert_int_equal(walk(1, 2, "dir"), 0);
	assert_int_equal(ask(TLCREATE, "dsddd", 2u, "new", 02u | 0100u, 04755u, 0u), 0);
	assert_int_equal(ask(TWRITE, "dqdb", 2u, (uint64_t)0, 3u, (size_t)3, "abc"), 0);
	assert_int_equal(stat(below("dir/new"), &st), 0);
	assert_int_equal(st.st_mode & 07000, 0);
	assert_int_equal(st.st_size, 3);
	assert_int_equal(ask(TMKDIR, "dsdd", 1u, "made", 0755u, 0u), 0);
	assert_int_equal(walk(1, 3, "made"), 0);
	assert_int_equal(walk(1, 4, "dir"), 0);
	assert_int_equal(ask(TRENAMEAT, "dsds", 4u, "new", 3u, "newer"), 0);
	assert_int_equal(stat(below("made/newer"), &st), 0);
	assert_int_equal(ask(TSYMLINK, "dssd", 3u, "link", "newer", 0u), 0);
	assert_int_equal(walk(3, 5, "link"), 0);
	assert_int_equal(ask(TREADLINK, "d", 5u), 0);
	assert_int_equal(cursor_u16(&t.answer), 5);
	assert_int_equal(ask(TUNLINKAT, "dsd", 3u, "link", 0u), 0);
	assert_int_equal(ask(TUNLINKAT, "dsd", 1u, "made", 0x200u), -ENOTEMPTY);
	assert_int_equal(ask(TUNLINKAT, "dsd", 3u, "newer", 0u), 0);
	assert_int_equal(ask(TUNLINKAT, "dsd", 1u, "made", 0x200u), 0);
	assert_int_equal(stat(below("made"), &st), -1);
}

static void sets_attributes(void **state)
{
	struct stat st;

	(void)state;
	attach();
	assert_int_equal(walk(1, 2, "file"), 0);
	/* mode, size, mtime */
	assert_int_equal(ask(TSETATTR,
			     "ddddd"
			     "q"
			     "qqqq",
			     2u, 0x1u | 0x8u | 0x20u | 0x100u, 06640u, 0u, 0u, (uint64_t)4,
			     (uint64_t)0, (uint64_t)0, (uint64_t)1000, (uint64_t)5),
			 0);
	assert_int_equal(stat(below("file"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(st.st_mtim.tv_sec, 1000);
	assert_int_equal(ask(TGETATTR, "dq", 2u, ~(uint64_t)0), 0);
	cursor_skip(&t.answer, 8 + 13);
	assert_int_equal(cursor_u32(&t.answer), S_IFREG | 0640);
	assert_int_equal(ask(TSTATFS, "d", 1u), 0);
	/* A link: through /proc what it points to would be changed. */
	assert_int_equal(walk(1, 3, "leak"), 0);
	assert_int_equal(ask(TSETATTR,
			     "ddddd"
			     "q"
			     "qqqq",
			     3u, 0x8u, 0u, 0u, 0u, (uint64_t)0, (uint64_t)0, (uint64_t)0,
			     (uint64_t)0, (uint64_t)0),
			 -EOPNOTSUPP);
}

static void lists(void **state)
{
	unsigned int n = 0;
	uint64_t off = 0;

	(void)state;
	attach();
	assert_int_equal(ask(TWALK, "ddw", 1u, 2u, 0u), 0);
	assert_int_equal(ask(TLOPEN, "dd", 2u, 0u), 0);
	/* Two entries a time, at most. */
	for (;;) {
		struct cursor list;
		uint32_t len;

		assert_int_equal(ask(TREADDIR, "dqd", 2u, off, 60u), 0);
		len = cursor_u32(&t.answer);
		if (!len)
			break;
		assert_true(len <= 60);
		cursor_init(&list, cursor_bytes(&t.answer, len), len);
		while (cursor_left(&list)) {
			cursor_skip(&list, 13);
			off = cursor_u64(&list);
			cursor_u8(&list);
			cursor_skip(&list, cursor_u16(&list));
			assert_false(list.bad);
			n++;
		}
	}
	assert_int_equal(n, 7); /* with "." and ".." */
	assert_int_equal(ask(TREADDIR, "dqd", 2u, (uint64_t)0, 10u), -EINVAL);
	assert_int_equal(ask(TREADDIR, "dqd", 2u, ~(uint64_t)0, 100u), -EINVAL);
}

static void stays_inside(void **state)
{
	(void)state;
	attach();
	/* ".." at the root is the root. */
	assert_int_equal(walk(1, 2, ".."), 0);
	assert_int_equal(walk(2, 3, "secret"), -ENOENT);
	assert_int_equal(walk(1, 3, "../secret"), -EINVAL);
	assert_int_equal(walk(1, 3, "dir/inner"), -EINVAL);
	assert_int_equal(walk(1, 3, ""), -EINVAL);
	assert_int_equal(walk(1, 3, "."), -EINVAL);
	/* A link is itself, and nothing is behind it. */
	assert_int_equal(walk(1, 3, "leak"), 0);
	assert_int_not_equal(ask(TLOPEN, "dd", 3u, 0u), 0);
	assert_int_equal(walk(1, 4, "up"), 0);
	assert_int_equal(walk(4, 5, "secret"), -ENOTDIR);
	assert_int_equal(ask(TMKDIR, "dsdd", 4u, "made", 0755u, 0u), -ENOTDIR);
	assert_int_equal(ask(TLCREATE, "dsddd", 4u, "made", 0101u, 0644u, 0u), -ENOTDIR);
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "leak", 0101u, 0644u, 0u), -ELOOP);
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "../x", 0101u, 0644u, 0u), -EINVAL);
	assert_int_equal(ask(TUNLINKAT, "dsd", 1u, "..", 0x200u), -EINVAL);
	assert_int_equal(ask(TRENAMEAT, "dsds", 1u, "file", 1u, "../file"), -EINVAL);
	/* From a directory back to where the walk came from, also when the host moves it. */
	assert_int_equal(walk(1, 6, "dir"), 0);
	{
		char moved[128];

		snprintf(moved, sizeof(moved), "%s/moved", t.base);
		assert_int_equal(rename(below("dir"), moved), 0);
	}
	assert_int_equal(walk(6, 7, ".."), 0);
	assert_int_equal(walk(7, 8, "secret"), -ENOENT);
	assert_int_equal(walk(7, 8, "file"), 0);
	/* A FIFO would wait for ever. */
	assert_int_equal(walk(1, 9, "fifo"), 0);
	assert_int_equal(ask(TLOPEN, "dd", 9u, 0u), -ENXIO);
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "fifo", 0100u, 0644u, 0u), -ENXIO);
}

static void tells_how_far_it_came(void **state)
{
	(void)state;
	attach();
	assert_int_equal(ask(TWALK, "ddwss", 1u, 2u, 2u, "dir", "inner"), 0);
	assert_int_equal(cursor_u16(&t.answer), 2);
	assert_int_equal(ask(TWALK, "ddwss", 1u, 3u, 2u, "dir", "none"), 0);
	assert_int_equal(cursor_u16(&t.answer), 1);
	/* No fid was made. */
	assert_int_equal(ask(TGETATTR, "dq", 3u, (uint64_t)0), -EBADF);
	assert_int_equal(ask(TWALK, "ddw", 1u, 3u, 17u), -EINVAL);
	/* A number that is taken. */
	assert_int_equal(walk(1, 2, "dir"), -EINVAL);
}

static void changes_nothing_read_only(void **state)
{
	(void)state;
	attach();
	assert_int_equal(walk(1, 2, "file"), 0);
	assert_int_equal(ask(TLOPEN, "dd", 2u, 01u), -EROFS);
	assert_int_equal(ask(TLOPEN, "dd", 2u, 01000u), -EROFS);
	assert_int_equal(ask(TLOPEN, "dd", 2u, 0u), 0);
	assert_int_equal(ask(TREAD, "dqd", 2u, (uint64_t)0, 4u), 0);
	assert_int_equal(ask(TMKDIR, "dsdd", 1u, "made", 0755u, 0u), -EROFS);
	assert_int_equal(ask(TUNLINKAT, "dsd", 1u, "file", 0u), -EROFS);
	assert_int_equal(ask(TRENAMEAT, "dsds", 1u, "file", 1u, "f"), -EROFS);
	assert_int_equal(ask(TSYMLINK, "dssd", 1u, "l", "x", 0u), -EROFS);
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "n", 0101u, 0644u, 0u), -EROFS);
}

static void refuses_nonsense(void **state)
{
	uint8_t short_one[] = { 7, 0, 0, 0, 100, 1, 0 };

	(void)state;
	assert_int_equal(p9_handle(t.p9, short_one, 3, t.reply, sizeof(t.reply)), 0);
	assert_int_equal(p9_handle(t.p9, short_one, 7, t.reply, 10), 0);
	assert_int_equal(p9_handle(t.p9, short_one, 7, t.reply, 11), 11);
	assert_int_equal(ask(200, ""), -EOPNOTSUPP);
	assert_int_equal(ask(TVERSION, "ds", 100u, "9P2000.L"), -EINVAL);
	assert_int_equal(ask(TVERSION, "ds", 8192u, "9P2000.u"), 0);
	cursor_u32(&t.answer);
	assert_int_equal(cursor_u16(&t.answer), 7); /* "unknown" */
	attach();
	/* Fids cost descriptors. */
	for (unsigned int i = 0; i < P9_MAX_FIDS - 1; i++)
		assert_int_equal(ask(TWALK, "ddw", 1u, 100 + i, 0u), 0);
	assert_int_equal(ask(TWALK, "ddw", 1u, 99u, 0u), -EMFILE);
	p9_reset(t.p9);
	assert_int_equal(ask(TGETATTR, "dq", 1u, (uint64_t)0), -EBADF);
}

/* A session is saved, and another one goes on with it. */
/* A FIFO or a device that is there already is not opened to find out what it is. */
static void opens_nothing_but_files(void **state)
{
	struct pollfd p = { .fd = open(below("fifo"), O_RDONLY | O_NONBLOCK), .events = POLLIN };

	(void)state;
	assert_true(p.fd >= 0);
	assert_int_equal(ask(TVERSION, "ds", 65536u, "9P2000.L"), 0);
	assert_int_equal(ask(TATTACH, "ddssd", 1u, ~0u, "", "", 0u), 0);
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "fifo", 0101u, 0644u, 0u), -ENXIO);
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "fifo", 0102u, 0644u, 0u), -ENXIO);
	/* It has had no writer, else it would have lost it (POLLHUP). */
	assert_int_equal(poll(&p, 1, 0), 0);
	close(p.fd);
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "dir", 0101u, 0644u, 0u), -EISDIR);
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "file", 0301u, 0644u, 0u), -EEXIST);
	/* An existing file is opened, and keeps its contents unless O_TRUNC is given. */
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "file", 0100u, 0644u, 0u), 0);
	assert_int_equal(ask(TREAD, "dqd", 1u, UINT64_C(0), 100u), 0);
	assert_int_equal(cursor_u32(&t.answer), 10);
	assert_int_equal(ask(TCLUNK, "d", 1u), 0);
	assert_int_equal(ask(TATTACH, "ddssd", 1u, ~0u, "", "", 0u), 0);
	assert_int_equal(ask(TLCREATE, "dsddd", 1u, "file", 01102u, 0644u, 0u), 0);
	assert_int_equal(ask(TREAD, "dqd", 1u, UINT64_C(0), 100u), 0);
	assert_int_equal(cursor_u32(&t.answer), 0);
}

/* The guest can't take all of the host's descriptors, whatever way it goes. */
static void descriptors_are_bounded(void **state)
{
	unsigned int before, fid = 2, max = 200, opened = 0;
	struct err e = { 0 };
	int ret = 0;

	(void)state;
	p9_destroy(t.p9);
	before = dir_entries("/proc/self/fd");
	assert_int_equal(p9_create(&t.p9,
				   &(struct p9_share){
					   .dir = t.share, .read_only = false, .max_files = max },
				   &e),
			 0);
	assert_int_equal(ask(TVERSION, "ds", 65536u, "9P2000.L"), 0);
	assert_int_equal(ask(TATTACH, "ddssd", 1u, ~0u, "", "", 0u), 0);
	/* Deeper and deeper, a fid for each: all on the way down is held. */
	for (unsigned int i = 0; i < 150; i++, fid++) {
		assert_int_equal(ask(TMKDIR, "dsdd", fid - 1, "d", 0755u, 0u), 0);
		assert_int_equal(ask(TWALK, "ddws", fid - 1, fid, 1u, "d"), 0);
	}
	/* Each of these walks makes 16 more. */
	for (unsigned int i = 0; i < 100 && !ret; i++, fid++) {
		ret = ask(TWALK, "ddwssssssssssssssss", 1u, fid, 16u, "d", "d", "d", "d", "d", "d",
			  "d", "d", "d", "d", "d", "d", "d", "d", "d", "d");
		if (!ret)
			ret = ask(TGETATTR, "dq", fid, UINT64_C(0x7ff)) == -EBADF ? -EMFILE : 0;
	}
	assert_int_equal(ret, -EMFILE);
	/* Its own are the share and /proc/self/fd, the second of which is not counted. */
	assert_true(dir_entries("/proc/self/fd") - before <= max + 1);
	/* Freed descriptors can be used again; open files count as well. */
	for (unsigned int i = 100; i < 152; i++)
		assert_int_equal(ask(TCLUNK, "d", 253u - i), 0);
	for (fid = 1000, ret = 0; !ret && fid < 2000; fid++) {
		ret = ask(TWALK, "ddws", 1u, fid, 1u, "file");
		ret = ret ? ret : ask(TLOPEN, "dd", fid, 0u);
		opened += !ret;
	}
	assert_int_equal(ret, -EMFILE);
	assert_true(opened > 0);
	assert_true(dir_entries("/proc/self/fd") - before <= max + 1);
	assert_int_equal(ask(TVERSION, "ds", 65536u, "9P2000.L"), 0);
	assert_int_equal(dir_entries("/proc/self/fd") - before, 2);
}

static void is_saved(void **state)
{
	struct err e = { 0 };
	struct p9 *other;
	struct cursor in;
	struct buf b;

	(void)state;
	attach();
	assert_int_equal(ask(TWALK, "ddwss", 1u, 2u, 2u, "dir", "inner"), 0);
	assert_int_equal(walk(1, 3, "leak"), 0);
	assert_int_equal(walk(1, 4, "dir"), 0);
	assert_int_equal(walk(2, 5, ".."), 0);
	buf_init(&b);
	assert_int_equal(p9_save(t.p9, &b, &e), 0);
	assert_int_equal(p9_create(&other,
				   &(struct p9_share){ .dir = t.share,
						       .read_only = false,
						       .max_files = P9_MAX_FILES },
				   &e),
			 0);
	p9_destroy(t.p9);
	t.p9 = other;
	cursor_init(&in, b.data, b.len);
	assert_int_equal(p9_restore(t.p9, &in, &e), 0);
	assert_int_equal(cursor_left(&in), 0);
	assert_int_equal(ask(TLOPEN, "dd", 2u, (unsigned int)O_RDONLY), 0);
	assert_int_equal(ask(TREAD, "dqd", 2u, (uint64_t)0, 10u), 0);
	assert_int_equal(cursor_u32(&t.answer), 5);
	assert_memory_equal(cursor_bytes(&t.answer, 5), "inner", 5);
	assert_int_equal(walk(5, 6, "inner"), 0);
	assert_int_equal(walk(4, 7, ".."), 0);
	assert_int_equal(walk(7, 8, ".."), 0); /* the root's parent is the root */
	assert_int_equal(walk(8, 9, "file"), 0);
	assert_int_equal(ask(TREADLINK, "d", 3u), 0);
	assert_int_equal(walk(1, 2, "file"), -EINVAL); /* there is a fid 2 */

	/* Cut anywhere; then what is open, what is another file, what is gone. */
	for (size_t n = 0; n < b.len; n++) {
		cursor_init(&in, b.data, n);
		err_clear(&e);
		assert_int_equal(p9_restore(t.p9, &in, &e), -EINVAL);
	}
	buf_deinit(&b);
	attach();
	assert_int_equal(ask(TWALK, "ddwss", 1u, 2u, 2u, "dir", "inner"), 0);
	assert_int_equal(ask(TLOPEN, "dd", 2u, (unsigned int)O_RDONLY), 0);
	buf_init(&b);
	err_clear(&e);
	assert_int_equal(p9_save(t.p9, &b, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "'dir/inner'"));
	buf_deinit(&b);
	assert_int_equal(ask(TCLUNK, "d", 2u), 0);
	assert_int_equal(walk(1, 2, "file"), 0);
	buf_init(&b);
	err_clear(&e);
	assert_int_equal(p9_save(t.p9, &b, &e), 0);
	write_text(below("newer"), "x");
	{
		char newer[256];

		snprintf(newer, sizeof(newer), "%s", below("newer"));
		assert_int_equal(rename(newer, below("file")), 0);
	}
	cursor_init(&in, b.data, b.len);
	assert_int_equal(p9_restore(t.p9, &in, &e), -ESTALE);
	assert_non_null(strstr(e.text, "'file'"));
	assert_int_equal(unlink(below("file")), 0);
	cursor_init(&in, b.data, b.len);
	err_clear(&e);
	assert_int_equal(p9_restore(t.p9, &in, &e), -ENOENT);
	buf_deinit(&b);
	/* Stood in something that was removed meanwhile. */
	attach();
	assert_int_equal(ask(TWALK, "ddwss", 1u, 2u, 2u, "dir", "inner"), 0);
	assert_int_equal(unlink(below("dir/inner")), 0);
	buf_init(&b);
	err_clear(&e);
	assert_int_equal(p9_save(t.p9, &b, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "removed"));
	buf_deinit(&b);
}

int main(void)
{
#define P9_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		P9_TEST(reads_and_writes),
		P9_TEST(makes_and_removes),
		P9_TEST(sets_attributes),
		P9_TEST(lists),
		P9_TEST(stays_inside),
		P9_TEST(tells_how_far_it_came),
		cmocka_unit_test_setup_teardown(changes_nothing_read_only, set_up_read_only,
						tear_down),
		P9_TEST(refuses_nonsense),
		P9_TEST(is_saved),
		P9_TEST(opens_nothing_but_files),
		P9_TEST(descriptors_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
