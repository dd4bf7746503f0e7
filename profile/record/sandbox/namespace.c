/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/namespace.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* linux/mount.h (Linux 5.2, 5.12) and asm-generic/unistd.h; headers of older systems lack them. */
#define TREE_CLONE 1u
#define MOVE_FROM_FD 4u
#define NR_OPEN_TREE 428
#define NR_MOVE_MOUNT 429
#define NR_MOUNT_SETATTR 442
#define ATTR_RDONLY 0x1ull
#define ATTR_NOSUID 0x2ull
#define ATTR_NODEV 0x4ull

/* Bytes of a file that are copied; the rest is cut. */
#define NAMESPACE_COPY_MAX 65536u

struct mount_attributes {
	uint64_t set, clear, propagation, userns_fd;
};

static int namespace_write(const char *path, const char *text)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ? -errno : 0;
}

/* Enters a user namespace in which this user and group, and no others, are mapped to themselves. */
static int namespace_user(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	char users[64], groups[64];
	int ret;

	snprintf(users, sizeof(users), "%u %u 1", uid, uid);
	snprintf(groups, sizeof(groups), "%u %u 1", gid, gid);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	ret = namespace_write("/proc/self/setgroups", "deny");
	if (ret)
		return ret;
	ret = namespace_write("/proc/self/gid_map", groups);
	return ret ? ret : namespace_write("/proc/self/uid_map", users);
}

static int namespace_root(const char *dir, bool read_only)
{
	struct mount_attributes attr = { .set = ATTR_NOSUID | ATTR_NODEV };
	cleanup_close int tree = -1;

	if (read_only)
		attr.set |= ATTR_RDONLY;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	/* Descriptors are used so that the directory may be "/". */
	tree = (int)syscall(NR_OPEN_TREE, AT_FDCWD, dir, TREE_CLONE | O_CLOEXEC | AT_RECURSIVE);
	if (tree < 0 || syscall(NR_MOVE_MOUNT, tree, "", AT_FDCWD, dir, MOVE_FROM_FD) < 0 ||
	    fchdir(tree) < 0)
		return -errno;
	/*
	 * An additional protection behind the server's own checks; a kernel before 5.12 lacks it.
	 */
	(void)syscall(NR_MOUNT_SETATTR, AT_FDCWD, ".", AT_RECURSIVE, &attr, sizeof(attr));
	/*
	 * The old root is then mounted on top of the new one, and is removed: pivot_root(2), NOTES.
	 */
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

static int namespace_unshare(void)
{
	if (unshare(CLONE_NEWNS) == 0)
		return 0;
	return errno == EPERM ? namespace_user() : -errno;
}

int namespace_enter(const char *dir, bool read_only, int *proc)
{
	cleanup_close int own = -1;
	int ret = namespace_unshare();

	if (ret)
		return ret;
	/* A mount of its own without a parent: its ".." leads nowhere. */
	own = (int)syscall(NR_OPEN_TREE, AT_FDCWD, "/proc/self/fd", TREE_CLONE | O_CLOEXEC);
	if (own < 0)
		return -errno;
	ret = namespace_root(dir, read_only);
	if (!ret)
		*proc = cleanup_take_fd(&own);
	return ret;
}

/*
 * Writes a file below the current directory, of which `path` is the name from the root; makes its
 * directories.
 */
static int namespace_copy(const char *path, const void *data, size_t len)
{
	cleanup_close int fd = -1;
	char part[PATH_MAX];

	for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(at - path - 1), path + 1);
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	fd = open(path + 1, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	return fd < 0 || write(fd, data, len) != (ssize_t)len ? -errno : 0;
}

int namespace_enter_empty(const char *file)
{
	cleanup_close int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char data[NAMESPACE_COPY_MAX];
	ssize_t len = fd < 0 ? -1 : read(fd, data, sizeof(data));
	int ret = namespace_unshare();

	if (ret)
		return ret;
	/* The mount covers a directory that every host has. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=256k,mode=0755") < 0 ||
	    chdir("/proc") < 0)
		return -errno;
	ret = len < 0 ? 0 : namespace_copy(file, data, (size_t)len);
	if (ret)
		return ret;
	if (mount(NULL, "/proc", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

bool namespace_probe(void)
{
	int status = 1, proc;
	pid_t pid = fork();

	if (pid == 0)
		syscall(SYS_exit_group, namespace_enter("/", false, &proc) != 0);
	if (pid > 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	return pid > 0 && status == 0;
}
