/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/jail.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/record/sandbox/landlock.h"
#include "profile/record/sandbox/rights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A directory that every system has: the child's file system is built there, in its own namespace.
 */
#define BASE "/tmp"
#define NEW "/new"
#define OLD "/old"
#define NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
/* linux/mount.h (Linux 5.12): headers of the C library may not have it. */
#define NR_MOUNT_SETATTR 442
#define ATTR_RDONLY 1u
#define ATTR_NOSUID 2u
#define ATTR_NODEV 4u

struct attr {
	uint64_t set, clear, propagation, userns_fd;
};

/* -- in the parent ----------------------------------------------------------------------------- */

/* Tries in a child that ends at once whether the first steps of jail_enter() work. */
static bool jail_can(unsigned long namespaces)
{
	pid_t pid = (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, NULL, NULL, NULL, NULL);
	int status = -1;

	if (!pid)
		syscall(SYS_exit_group, 0);
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return pid > 0 && !status;
}

static void jail_choose_user(struct jail *j)
{
	struct rights_user other;

	j->uid = geteuid();
	j->gid = getegid();
	/*
	 * Without our own user namespace the child could not be ended: that takes CAP_KILL, which a
	 * run gives up.
	 */
	if (!(j->namespaces & CLONE_NEWUSER) || !rights_choose_user(&other))
		return;
	j->other_user = true;
	j->uid = other.uid;
	j->gid = other.gid;
}

int jail_open(struct jail *j, struct buf *said, struct err *e)
{
	const char *without;

	*j = (struct jail){ .namespaces = NAMESPACES };
	if (!jail_can(j->namespaces)) {
		j->namespaces &= ~(unsigned long)CLONE_NEWUSER;
		if (geteuid() || !jail_can(j->namespaces))
			j->namespaces = 0;
	}
	if (!j->namespaces)
		buf_printf(said, "it has no namespaces of its own, which this host does not allow");
	if (!landlock_probe(&without))
		buf_printf(said, "%sits files are not confined by Landlock: %s",
			   said->len ? "; " : "", without);
	jail_choose_user(j);
	return said->failed ? err_nomem(e) : 0;
}

void jail_close(struct jail *j)
{
	while (j->npaths)
		free(j->path[--j->npaths].path);
}

static void jail_put(struct jail *j, const char *path, bool in_root)
{
	char *copy = j->npaths < JAIL_MAX_PATHS ? strdup(path) : NULL;

	if (copy)
		j->path[j->npaths++] = (struct jail_path){ copy, in_root };
	else
		j->failed = true;
}

/* Keeps our user for the child, which could not read this path as another user. */
static void jail_keep_user(struct jail *j)
{
	j->other_user = false;
	j->uid = geteuid();
	j->gid = getegid();
}

static bool jail_may_read(const struct jail *j, const struct stat *st)
{
	return st->st_mode & S_IROTH || (st->st_uid == j->uid && st->st_mode & S_IRUSR);
}

void jail_add(struct jail *j, const char *path)
{
	struct stat st;

	if (path[0] != '/' || !path[1] || lstat(path, &st) < 0)
		return;
	jail_put(j, path, true);
	if (j->other_user && !jail_may_read(j, &st))
		jail_keep_user(j);
}

void jail_add_system(struct jail *j)
{
	static const char *const paths[] = {
		"/usr",	     "/bin",	    "/sbin",	  "/lib",	"/lib64",
		"/lib32",    "/libx32",	    "/nix/store", "/gnu/store", "/etc/ld.so.cache",
		"/dev/null", "/dev/urandom"
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		jail_add(j, paths[i]);
}

void jail_add_fd(struct jail *j, int fd, int as)
{
	char path[40];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", as);
	jail_put(j, path, false);
	if (j->other_user && (fstat(fd, &st) < 0 || !jail_may_read(j, &st)))
		jail_keep_user(j);
}

static int write_file(pid_t pid, const char *name, const char *text)
{
	cleanup_close int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
}

/* Root builds the child's file system as root, which the child cannot become afterwards. */
static int write_map(const struct jail *j, pid_t pid, const char *name, unsigned int own,
		     unsigned int other)
{
	char text[64];

	if (j->other_user)
		snprintf(text, sizeof(text), "0 0 1\n%u %u 1\n", other, other);
	else
		snprintf(text, sizeof(text), "%u %u 1\n", own, own);
	return write_file(pid, name, text);
}

int jail_map_user(const struct jail *j, pid_t pid)
{
	int ret;

	if (!(j->namespaces & CLONE_NEWUSER))
		return 0;
	/* An unprivileged map of groups requires this. */
	ret = j->other_user ? 0 : write_file(pid, "setgroups", "deny");
	if (ret)
		return ret;
	ret = write_map(j, pid, "gid_map", getegid(), j->gid);
	return ret ? ret : write_map(j, pid, "uid_map", geteuid(), j->uid);
}

/* -- in the child: its file system ------------------------------------------------------------- */

static int jail_mkdirs(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	return 0;
}

/* Includes all mounts below it, if the kernel can do that in one call. */
static int jail_read_only(const char *path, bool device)
{
	struct attr attr = { .set = ATTR_NOSUID | ATTR_RDONLY | (device ? 0 : ATTR_NODEV) };

	/* A read-only mount allows writing to a device; only its node stays unchanged. */
	if (syscall(NR_MOUNT_SETATTR, AT_FDCWD, path, /* AT_RECURSIVE */ 0x8000, &attr,
		    sizeof(attr)) == 0)
		return 0;
	return mount(NULL, path, NULL,
		     MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | (device ? 0 : MS_NODEV),
		     NULL) < 0
		       ? -errno
		       : 0;
}

/* /bin is such a link on most systems. */
static int jail_copy_link(const char *from, const char *to)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlink(target, to) < 0 && errno != EEXIST ? -errno : 0;
}

static int jail_bind(const char *path)
{
	char from[PATH_MAX + 8], to[PATH_MAX + 8];
	struct stat st;
	int ret, fd;

	snprintf(from, sizeof(from), OLD "%s", path);
	snprintf(to, sizeof(to), NEW "%s", path);
	ret = jail_mkdirs(to);
	if (ret)
		return ret;
	if (lstat(from, &st) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return jail_copy_link(from, to);
	if (S_ISDIR(st.st_mode)) {
		ret = mkdir(to, 0755) < 0 && errno != EEXIST ? -errno : 0;
	} else {
		fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		/* ETXTBSY: it is a program that runs. */
		ret = fd < 0 ? errno == EROFS || errno == EACCES || errno == ETXTBSY ? 1 : -errno
			     : close(fd);
	}
	if (ret) /* 1: it lies in a directory that exists already */
		return ret > 0 ? 0 : ret;
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	return jail_read_only(to, S_ISCHR(st.st_mode));
}

/*
 * Its processes are those of its namespace; where none can be mounted, all that Landlock allows are
 * its own.
 */
static int jail_proc(void)
{
	if (mkdir(NEW "/proc", 0555) < 0 && errno != EEXIST)
		return -errno;
	if (mount("proc", NEW "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		return 0;
	return mount(OLD "/proc", NEW "/proc", NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : 0;
}

static int pivot_root(const char *new, const char *old)
{
	return syscall(SYS_pivot_root, new, old) < 0 ? -errno : 0;
}

/* An empty one, as the root, with what was the root at OLD. */
static int jail_begin_root(void)
{
	int ret = 0;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("jail", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") < 0 ||
	    mkdir(BASE OLD, 0755) < 0 || mkdir(BASE NEW, 0755) < 0)
		return -errno;
	ret = pivot_root(BASE, BASE OLD);
	if (!ret && (chdir("/") < 0 || mount(NEW, NEW, NULL, MS_BIND, NULL) < 0))
		ret = -errno;
	return ret;
}

static int jail_end_root(void)
{
	int ret;

	if (umount2(OLD, MNT_DETACH) < 0 || chdir(NEW) < 0)
		return -errno;
	ret = pivot_root(".", ".");
	if (ret)
		return ret;
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	/* The directories in which the mounts lie. */
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) <
	    0)
		return -errno;
	return 0;
}

/*
 * A namespace within this one would give it capabilities there. Not each kernel lets this be
 * written.
 */
static void jail_no_users(void)
{
	cleanup_close int fd = open(NEW "/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, "0", 1);
}

static int jail_root(const struct jail *j)
{
	int ret = jail_begin_root();

	for (unsigned int i = 0; !ret && i < j->npaths; i++)
		if (j->path[i].in_root)
			ret = jail_bind(j->path[i].path);
	if (ret)
		return ret;
	ret = jail_proc();
	if (ret)
		return ret;
	jail_no_users();
	return jail_end_root();
}

/* -- in the child: its rights ------------------------------------------------------------------ */

static int jail_user(const struct jail *j)
{
	if (!j->other_user)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(j->gid, j->gid, j->gid) < 0 ||
	    setresuid(j->uid, j->uid, j->uid) < 0)
		return -errno;
	return 0;
}

static int jail_limits(const struct jail *j)
{
	const struct {
		int what;
		bool wanted;
		uint64_t most;
	} limits[] = {
		{ RLIMIT_CORE, true, 0 },
		{ RLIMIT_NOFILE, true, 256 },
		{ RLIMIT_MEMLOCK, true, 0 },
		{ RLIMIT_MSGQUEUE, true, 0 },
		/* Users of other namespaces do not count here. */
		{ RLIMIT_NPROC, j->namespaces & CLONE_NEWUSER, 64 },
		{ RLIMIT_AS, j->memory != 0, j->memory },
		{ RLIMIT_FSIZE, j->file_size != 0, j->file_size },
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].wanted)
			ret = rights_limit(limits[i].what, limits[i].most);
	return ret;
}

static int jail_landlock(const struct jail *j)
{
	struct sandbox_plan p = { .scope = SANDBOX_FILES };
	struct err ignored = { 0 };
	const char *without;
	int abi = landlock_probe(&without);

	if (!abi)
		return 0;
	for (unsigned int i = 0; i < j->npaths; i++)
		sandbox_plan_add(&p, j->path[i].path,
				 strcmp(j->path[i].path, "/dev/null") ? SANDBOX_READ
								      : SANDBOX_WRITE);
	sandbox_plan_add(&p, "/proc/self", SANDBOX_READ);
	return landlock_enter(&p, abi, &ignored);
}

int jail_enter(const struct jail *j, const char **what)
{
	int ret = 0;

	*what = "its file system";
	if (j->namespaces & CLONE_NEWNS)
		ret = jail_root(j);
	if (ret)
		return ret;
	*what = "its user";
	ret = jail_user(j);
	if (ret)
		return ret;
	*what = "its limits";
	ret = jail_limits(j);
	if (ret)
		return ret;
	*what = "PR_SET_NO_NEW_PRIVS";
	ret = rights_no_new();
	if (ret)
		return ret;
	*what = "Landlock";
	ret = jail_landlock(j);
	if (ret)
		return ret;
	*what = "its capabilities";
	return rights_has_any() ? rights_keep(0) : 0;
}
