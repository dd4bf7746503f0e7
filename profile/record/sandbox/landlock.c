/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/landlock.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/landlock.h: LANDLOCK_ACCESS_FS_*; the comments name the ABI that introduced them. */
#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_REMOVE_DIR (1ull << 4)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_CHAR (1ull << 6)
#define FS_MAKE_DIR (1ull << 7)
#define FS_MAKE_REG (1ull << 8)
#define FS_MAKE_SOCK (1ull << 9)
#define FS_MAKE_FIFO (1ull << 10)
#define FS_MAKE_BLOCK (1ull << 11)
#define FS_MAKE_SYM (1ull << 12)
#define FS_ABI_1 ((1ull << 13) - 1)
#define FS_REFER (1ull << 13)	  /* 2 */
#define FS_TRUNCATE (1ull << 14)  /* 3 */
#define FS_IOCTL_DEV (1ull << 15) /* 5 */
#define NET_BIND_TCP (1ull << 0)  /* 4 */
#define NET_CONNECT_TCP (1ull << 1)
#define SCOPE_ABSTRACT_UNIX (1ull << 0) /* 6 */
#define SCOPE_SIGNAL (1ull << 1)

#define RULE_PATH_BENEATH 1
#define CREATE_RULESET_VERSION 1u
/* asm-generic/unistd.h: the same on each architecture. */
#define NR_CREATE_RULESET 444
#define NR_ADD_RULE 445
#define NR_RESTRICT_SELF 446

/* The rights that a file that is not a directory can have. */
#define FS_OF_FILE (FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE)
#define FS_READS (FS_READ_FILE | FS_READ_DIR)
#define FS_WRITES                                                                                \
	(FS_READS | FS_WRITE_FILE | FS_TRUNCATE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | \
	 FS_MAKE_REG | FS_MAKE_SYM | FS_MAKE_SOCK | FS_REFER)
/* Symbolic links may be renamed, too: FS_MAKE_SYM. */
#define FS_MOVES                                                                               \
	(FS_READS | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SYM | \
	 FS_REFER)
#define FS_OWN_DIR                                                                               \
	(FS_READS | FS_WRITE_FILE | FS_TRUNCATE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | \
	 FS_MAKE_REG)
#define FS_SHARES (FS_WRITES | FS_MAKE_FIFO)

/* struct landlock_ruleset_attr; a kernel takes a longer one whose rest is zero. */
struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};

/* struct landlock_path_beneath_attr is packed. */
struct path_attr {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

__attribute__((weak)) long landlock_host_abi(void)
{
	return syscall(NR_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
}

int landlock_probe(const char **why)
{
	long abi = landlock_host_abi();

	*why = NULL;
	if (abi >= LANDLOCK_LEAST_ABI)
		return (int)abi;
	if (abi > 0)
		*why = "the host's Landlock is of Linux 5.13 to 5.18, too old";
	else if (errno == EOPNOTSUPP)
		*why = "Landlock is not turned on (lsm= on the host's command line)";
	else
		*why = "the host's kernel has no Landlock (Linux 5.19 or later)";
	return 0;
}

static uint64_t landlock_handled_fs(int abi)
{
	uint64_t fs = FS_ABI_1 | FS_REFER;

	fs |= abi >= 3 ? FS_TRUNCATE : 0;
	fs |= abi >= 5 ? FS_IOCTL_DEV : 0;
	return fs & ~FS_EXECUTE; /* nothing is executed: execve(2) is in no list */
}

static int landlock_allow(int ruleset, const struct sandbox_path *p, uint64_t handled)
{
	static const uint64_t access[] = {
		[SANDBOX_READ] = FS_READS,	 [SANDBOX_WRITE] = FS_WRITES,
		[SANDBOX_OWN_DIR] = FS_OWN_DIR,	 [SANDBOX_MOVE] = FS_MOVES,
		[SANDBOX_RMDIR] = FS_REMOVE_DIR, [SANDBOX_SHARE] = FS_SHARES,
	};
	cleanup_close int fd = open(p->path, O_PATH | O_CLOEXEC);
	struct path_attr attr = { access[p->access] & handled, fd };
	struct stat st;

	if (fd < 0) /* it does not exist, or we cannot access it anyway */
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		attr.allowed &= FS_OF_FILE;
	if (syscall(NR_ADD_RULE, ruleset, RULE_PATH_BENEATH, &attr, 0) == 0)
		return 0;
	/* Pipes, sockets and other files without a path cannot be named, and need no rule. */
	return errno == EBADFD ? 0 : -errno;
}

int landlock_enter(const struct sandbox_plan *p, int abi, struct err *e)
{
	struct ruleset_attr attr = {
		.handled_fs = landlock_handled_fs(abi),
		.handled_net = abi >= 4 && !p->network ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
		.scoped = abi < 6      ? 0
			  : p->signals ? SCOPE_ABSTRACT_UNIX
				       : SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL,
	};
	cleanup_close int ruleset = (int)syscall(NR_CREATE_RULESET, &attr, sizeof(attr), 0);

	if (ruleset < 0)
		return err_set(e, errno, "sandbox: landlock_create_ruleset: %s", strerror(errno));
	for (unsigned int i = 0; i < p->npaths; i++) {
		int ret = landlock_allow(ruleset, &p->path[i], attr.handled_fs);

		if (ret)
			return err_set(e, -ret, "sandbox: Landlock cannot allow %s: %s",
				       p->path[i].path, strerror(-ret));
	}
	if (syscall(NR_RESTRICT_SELF, ruleset, 0) < 0)
		return err_set(e, errno, "sandbox: landlock_restrict_self: %s", strerror(errno));
	return 0;
}
