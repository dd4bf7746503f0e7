/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory of its own for each test, and what a run leaves in it. */
#ifndef KVMPROF_TESTS_UNIT_PROFILE_RECORD_PUBLISH_LEFT_H
#define KVMPROF_TESTS_UNIT_PROFILE_RECORD_PUBLISH_LEFT_H

#include "profile/record/publish/place.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char top[64];

static void make(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

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

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(name, &st), 0);
	return st.st_mode & 07777;
}

static void make_profile(const char *dir, const char *text)
{
	char path[PATH_MAX];

	assert_int_equal(mkdir(dir, 0755), 0);
	for (const char *const *sub = (const char *const[]){ "kcore_dir", "dso", NULL }; *sub;
	     sub++) {
		snprintf(path, sizeof(path), "%s/%s", dir, *sub);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	for (const char *const *f =
		     (const char *const[]){ "data", "text", "kvmprof.json", "kcore_dir/kallsyms",
					    "dso/0123abcd", NULL };
	     *f; f++) {
		snprintf(path, sizeof(path), "%s/%s", dir, *f);
		make(path, text);
	}
}

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/kvmprof-keeper.XXXXXX");
	return !mkdtemp(top) || chdir(top);
}

static int tear_down(void **state)
{
	(void)state;
	return chdir("/") || file_remove_tree(top, NULL);
}

static struct place place_of(enum place_kind kind, const char *tmp, const char *name)
{
	struct place p = { .kind = kind, .dir = AT_FDCWD, .file = -1 };

	snprintf(p.tmp, sizeof(p.tmp), "%s", tmp);
	snprintf(p.name, sizeof(p.name), "%s", name);
	return p;
}

#endif
