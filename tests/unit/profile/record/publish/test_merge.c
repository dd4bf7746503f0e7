/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that a run staged for the build-id cache: some are moved, and some are left. */
#include "profile/record/publish/place.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ID "0123456789abcdef0123456789abcdef01234567"

static char top[64];

static void make(const char *name, const char *text)
{
	char dir[PATH_MAX];
	int fd;

	snprintf(dir, sizeof(dir), "%s", name);
	*strrchr(dir, '/') = 0;
	assert_int_equal(file_mkdirs(dir, NULL), 0);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static bool is_text(const char *name, const char *text)
{
	char got[64] = "";
	cleanup_close int fd = open(name, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, got, sizeof(got) - 1) >= 0 && !strcmp(got, text);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/kvmprof-merge.XXXXXX");
	if (!mkdtemp(top) || chdir(top))
		return -1;
	return mkdir("cache", 0755);
}

static int tear_down(void **state)
{
	(void)state;
	return chdir("/") || file_remove_tree(top, NULL);
}

/* Notes, publishes and removes cache/stage; returns what place_publish() does. */
static int publish(void)
{
	cleanup_close int dir = open("cache", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct place p = { .kind = PLACE_CACHE, .dir = dir, .tmp = "stage" };
	struct err e = { 0 };
	int ret = place_check(&p, &e);

	assert_int_equal(ret, 0);
	ret = place_publish(&p, &e);
	assert_true((ret == 0) == (e.code == 0));
	(void)place_remove(&p, NULL);
	return ret;
}

static void files_of_a_cache_are_moved(void **state)
{
	(void)state;
	make("cache/stage/usr/bin/.hidden/prog/" ID "/elf", "new");
	make("cache/stage/[vdso]/ab12/vdso", "vdso");
	make("cache/[vdso]/ab12/vdso", "before");
	make("cache/stage/[guest.kernel.kallsyms]/" ID "/kallsyms", "names");
	assert_int_equal(file_mkdirs("cache/stage/.build-id/01", NULL), 0);
	assert_int_equal(symlink("../../[guest.kernel.kallsyms]/" ID,
				 "cache/stage/.build-id/01/23456789abcdef0123456789abcdef01234567"),
			 0);
	assert_int_equal(publish(), 0);
	assert_true(is_text("cache/usr/bin/.hidden/prog/" ID "/elf", "new"));
	assert_true(is_text("cache/[vdso]/ab12/vdso", "before"));
	assert_true(is_text("cache/[guest.kernel.kallsyms]/" ID "/kallsyms", "names"));
	assert_true(is_text("cache/.build-id/ab/12/vdso", "before"));
	/* Two names have one id here. */
	assert_true(is_text("cache/.build-id/01/23456789abcdef0123456789abcdef01234567/kallsyms",
			    "names"));
	assert_int_equal(access("cache/stage", F_OK), -1);
}

static void other_files_are_not_moved(void **state)
{
	char deep[PATH_MAX] = "cache/stage";

	(void)state;
	make("secret/" ID "/elf", "secret");
	make("cache/stage/x/" ID "/run.sh", "x");
	make("cache/stage/x/y/elf", "x");
	make("cache/stage/" ID "/elf", "x");
	make("cache/stage/elf", "x");
	make("cache/stage/.build-id/01/23/elf", "x");
	make("cache/stage/.ssh/" ID "/elf", "x");
	make("cache/stage/ABCDEF/ABCDEF/elf", "x");
	make("cache/stage/l/abcd/none", "x");
	assert_int_equal(link("secret/" ID "/elf", "cache/stage/l/abcd/elf"), 0);
	assert_int_equal(symlink("/etc/passwd", "cache/stage/l/abcd/vdso"), 0);
	assert_int_equal(mkfifo("cache/stage/l/abcd/kallsyms", 0600), 0);
	assert_int_equal(symlink("../../secret", "cache/stage/s"), 0);
	for (unsigned int i = 0; i < 80; i++)
		strcat(deep, "/d");
	strcat(deep, "/" ID "/elf");
	make(deep, "x");
	(void)publish(); /* a tree that is so deep is not removed, either */
	for (const char *const *x = (const char *const[]){ "x", "l", "s", ".ssh", "elf", "d", ID,
							   "ABCDEF", ".build-id", NULL };
	     *x; x++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "cache/%s", *x);
		assert_int_equal(access(path, F_OK), -1);
	}
	assert_true(is_text("secret/" ID "/elf", "secret"));
}

/* The cache's own directories may be links that somebody else has made: nothing is written through them. */
static void links_in_the_cache_are_not_followed(void **state)
{
	(void)state;
	make("secret/file", "secret");
	assert_int_equal(symlink("../secret", "cache/name"), 0);
	make("cache/stage/name/" ID "/elf", "new");
	make("cache/stage/other/abcd/elf", "other");
	assert_true(publish() < 0);
	assert_int_equal(access("secret/" ID, F_OK), -1);
	/* One that cannot be moved keeps no other from its place. */
	assert_true(is_text("cache/other/abcd/elf", "other"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(files_of_a_cache_are_moved),
		TEST(other_files_are_not_moved),
		TEST(links_in_the_cache_are_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
