/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that a person names for output: what was there must survive whatever goes wrong. */
#include "base/outfile.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/kvmprof-outfile.XXXXXX";

static int setup(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) && !chdir(root) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return chdir("/") || file_remove_tree(root, NULL);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void expect(const char *path, const char *text)
{
	char got[64] = "";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, text);
}

/* Entries of the directory, "." and ".." not counted. */
static unsigned int entries(void)
{
	cleanup_closedir DIR *d = opendir(".");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	return n - 2;
}

/* No file may become longer than this; as on a full disk part of the bytes may go in. */
static void limit_files(rlim_t bytes)
{
	struct rlimit l = { 0, RLIM_INFINITY };

	l.rlim_cur = bytes;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void whole_or_not(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(outfile_write("new", "first", 5, &e), 0);
	expect("new", "first");
	chmod("new", 0640);
	limit_files(4);
	assert_int_equal(outfile_write("new", "second", 6, &e), -EFBIG);
	assert_non_null(strstr(e.text, "new: cannot write: "));
	expect("new", "first");
	err_clear(&e);
	assert_int_equal(outfile_write("other", "second", 6, &e), -EFBIG);
	limit_files(RLIM_INFINITY);
	assert_int_equal(entries(), 1);
	assert_int_equal(outfile_write("new", "second", 6, NULL), 0);
	expect("new", "second");
	assert_int_equal(entries(), 1);
	struct stat st;

	assert_int_equal(stat("new", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void links_stay(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(mkdir("far", 0755), 0);
	put("far/file", "old");
	assert_int_equal(symlink("far/file", "link"), 0);
	assert_int_equal(outfile_write("link", "new", 3, NULL), 0);
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	expect("far/file", "new");
	limit_files(1);
	assert_int_equal(outfile_write("link", "newer", 5, NULL), -EFBIG);
	limit_files(RLIM_INFINITY);
	expect("link", "new");
	assert_int_equal(symlink("far/none", "nowhere"), 0);
	assert_int_equal(outfile_write("nowhere", "x", 1, NULL), 0);
	expect("far/none", "x");
	assert_int_equal(lstat("nowhere", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

/* A pipe stands for all that is no regular file. */
static void pipe_is_written_through(void **state)
{
	struct stat st;
	struct err e = { 0 };
	char got[8] = "";
	int fd;

	(void)state;
	assert_int_equal(mkfifo("pipe", 0644), 0);
	assert_int_equal(symlink("pipe", "link"), 0);
	fd = open("pipe", O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_int_equal(outfile_write("link", "abc", 3, &e), 0);
	assert_int_equal(read(fd, got, sizeof(got)), 3);
	assert_string_equal(got, "abc");
	struct outfile o;

	assert_int_equal(outfile_open(&o, "link", &e), 0);
	close(fd);
	assert_int_equal(outfile_finish(&o, -EPIPE, &e), -EPIPE);
	assert_string_equal(e.text, "link: cannot write: Broken pipe");
	assert_int_equal(lstat("pipe", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	err_clear(&e);
	assert_int_equal(outfile_check("pipe", OUTFILE_ANY, &e), 0);
	assert_int_equal(outfile_check("link", OUTFILE_REGULAR, &e), -EEXIST);
}

#define CHECK(path, ret) assert_int_equal(outfile_check(path, OUTFILE_REGULAR, NULL), ret)

static void checked_before(void **state)
{
	(void)state;
	put("file", "x");
	assert_int_equal(mkdir("dir", 0755), 0);
	CHECK("file", 0);
	CHECK("new", 0);
	CHECK("dir/new", 0);
	CHECK("dir", -EISDIR);
	CHECK("dir/", -EISDIR);
	CHECK("new/", -EISDIR);
	CHECK("", -EISDIR);
	CHECK("none/new", -ENOENT);
	CHECK("file/new", -ENOTDIR);
	CHECK("-", -EINVAL);
	assert_int_equal(outfile_check("-", OUTFILE_ANY, NULL), 0);
	assert_int_equal(outfile_write("dir", "x", 1, NULL), -EISDIR);
	assert_int_equal(outfile_write("none/new", "x", 1, NULL), -ENOENT);
	assert_int_equal(entries(), 2);
}

/* A publication moves and removes what is in its way, but only what can be its own. */
static void publish_spares_others(void **state)
{
	struct stat st;

	(void)state;
	put("tmp", "new");
	assert_int_equal(mkfifo("pipe", 0644), 0);
	assert_int_equal(file_publish("tmp", "pipe", NULL), -EEXIST);
	assert_int_equal(mkfifo("file.old", 0644), 0);
	put("file", "old");
	assert_int_equal(file_publish("tmp", "file", NULL), -EEXIST);
	assert_int_equal(lstat("file.old", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	expect("file", "old");
	expect("tmp", "new");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(whole_or_not),
		T(links_stay),
		T(pipe_is_written_through),
		T(checked_before),
		T(publish_spares_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
