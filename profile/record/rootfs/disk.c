/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/rootfs/disk.h"

#include "base/cleanup.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MIB (UINT64_C(1) << 20)
#define SPARE (64 * MIB)
#define SIZE_MAX_BYTES (UINT64_C(1) << 40)
/* The size of a directory entry, an inode, and the rest of a block. */
#define ENTRY_BYTES 4608u
#define OPEN_DIRS 32

/* nftw() has no argument for it. */
static _Thread_local uint64_t total;

static int add_size(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)path;
	(void)where;
	total += ENTRY_BYTES + (kind == FTW_F ? (uint64_t)st->st_size : 0);
	return 0;
}

/* Reads the first line of mke2fs's error messages. */
static void read_reason(int fd, char *text, size_t cap)
{
	ssize_t n = pread(fd, text, cap - 1, 0);

	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
}

static int run_mke2fs(const char *dir, const char *image, struct err *e)
{
	char *const argv[] = { (char *)"mke2fs",
			       (char *)"-q",
			       (char *)"-F",
			       (char *)"-t",
			       (char *)"ext4",
			       (char *)"-m",
			       (char *)"0",
			       (char *)"-O",
			       (char *)"^has_journal",
			       (char *)"-d",
			       (char *)(uintptr_t)dir,
			       (char *)(uintptr_t)image,
			       NULL };
	char *const envp[] = { (char *)"PATH=/usr/sbin:/sbin:/usr/bin:/bin", (char *)"LC_ALL=C",
			       (char *)"MKE2FS_SYNC=0", NULL };
	cleanup_close int out = memfd_create("mke2fs", MFD_CLOEXEC);
	const char *const place[] = { "/usr/sbin/mke2fs", "/sbin/mke2fs" };
	posix_spawn_file_actions_t actions;
	int ret = ENOENT, status;
	char reason[200];
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, out, 2);
	for (size_t i = 0; ret && i < ARRAY_SIZE(place); i++)
		ret = posix_spawn(&pid, place[i], &actions, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	if (ret)
		return err_set(e, ret, "cannot run mke2fs: %s: install e2fsprogs", strerror(ret));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(e, errno, "mke2fs: %s", strerror(errno));
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	read_reason(out, reason, sizeof(reason));
	return err_set(e, EIO, "mke2fs cannot make a file system of %.150s: %s", dir, reason);
}

int rootfs_disk_make(const char *dir, char *path, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	cleanup_close int fd = -1;
	int ret;

	total = 0;
	if (nftw(dir, add_size, OPEN_DIRS, FTW_PHYS | FTW_MOUNT) < 0)
		return err_set(e, errno, "%.200s: %s", dir, strerror(errno));
	total = (total + total / 2 + SPARE) / MIB * MIB;
	if (total > SIZE_MAX_BYTES)
		return err_set(e, EFBIG, "%.200s: more than %llu GiB", dir,
			       (unsigned long long)(SIZE_MAX_BYTES >> 30));
	if (snprintf(path, PATH_MAX, "%s/kvmprof-rootfs.XXXXXX", tmp && *tmp ? tmp : "/var/tmp") >=
	    PATH_MAX)
		return err_set(e, ENAMETOOLONG, "TMPDIR is too long");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_set(e, errno, "%.200s: %s", path, strerror(errno));
	(void)signals_remove(path);
	/* Sparse: unused blocks take no space. */
	ret = ftruncate(fd, (off_t)total) < 0
		      ? err_set(e, errno, "%.200s: %s", path, strerror(errno))
		      : run_mke2fs(dir, path, e);
	if (ret)
		unlink(path);
	return ret;
}
