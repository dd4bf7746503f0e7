/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a command of which one system call fails:
 *
 *	faults_inject REPORT count COMMAND ARG...		none fails
 *	faults_inject REPORT fail:NAME:K:ERRNO COMMAND ARG...	the K-th call of that name
 *	faults_inject REPORT storm:SEED:PERCENT COMMAND ARG...	calls that can be interrupted are,
 *								at random
 *
 * REPORT gets a line "NAME COUNT ERRNO,ERRNO..." for each name that was called, with the numbers of
 * the errors that it may fail with, and "hit N": so many calls failed. An ioctl is named by its request.
 * The status is the command's, or 128 and its signal. All is by seccomp's user notification (seccomp(2)): a
 * call that is to succeed is the kernel's, unchanged. Calls of the dynamic linker are left alone: they
 * end with its first munmap(), of the linker's cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/kvm.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_KINDS 256u
#define MAX_ERRORS 3u
#define NO_LISTENER (-1)

static const struct call {
	long nr;
	const char *name;
	int error[MAX_ERRORS]; /* 0: no more */
} calls[] = {
	{ SYS_mmap, "mmap", { ENOMEM } },
	{ SYS_mremap, "mremap", { ENOMEM } },
	{ SYS_mprotect, "mprotect", { ENOMEM } },
	{ SYS_munmap, "munmap", { 0 } },
	{ SYS_madvise, "madvise", { EINVAL } },
	{ SYS_memfd_create, "memfd_create", { EMFILE } },
	{ SYS_openat, "openat", { EMFILE, EIO } },
	{ SYS_openat2, "openat2", { EMFILE } },
	{ SYS_read, "read", { EIO, EINTR } },
	{ SYS_pread64, "pread64", { EIO, EINTR } },
	{ SYS_readv, "readv", { EIO, EINTR } },
	{ SYS_preadv2, "preadv2", { EIO, EINTR } },
	{ SYS_write, "write", { ENOSPC, EINTR, EIO } },
	{ SYS_writev, "writev", { ENOSPC, EINTR } },
	{ SYS_pwrite64, "pwrite64", { ENOSPC, EINTR } },
	{ SYS_pwritev, "pwritev", { ENOSPC, EINTR } },
	{ SYS_copy_file_range, "copy_file_range", { ENOSPC } },
	{ SYS_ftruncate, "ftruncate", { ENOSPC } },
	{ SYS_fallocate, "fallocate", { ENOSPC } },
	{ SYS_fsync, "fsync", { EIO } },
	{ SYS_fdatasync, "fdatasync", { EIO } },
	{ SYS_close, "close", { EIO } },
	{ SYS_fstat, "fstat", { EIO } },
	{ SYS_newfstatat, "newfstatat", { EIO } },
	{ SYS_statfs, "statfs", { EIO } },
	{ SYS_lseek, "lseek", { EINVAL } },
	{ SYS_getdents64, "getdents64", { EIO } },
	{ SYS_readlink, "readlink", { EIO } },
	{ SYS_rename, "rename", { EIO, ENOSPC } },
	{ SYS_renameat, "renameat", { EIO, ENOSPC } },
	{ SYS_renameat2, "renameat2", { EIO, ENOSPC } },
	{ SYS_mkdir, "mkdir", { ENOSPC } },
	{ SYS_mkdirat, "mkdirat", { ENOSPC } },
	{ SYS_linkat, "linkat", { EIO } },
	{ SYS_unlink, "unlink", { EIO } },
	{ SYS_unlinkat, "unlinkat", { EIO } },
	{ SYS_fchmod, "fchmod", { EPERM } },
	{ SYS_fcntl, "fcntl", { EINVAL } },
	{ SYS_dup, "dup", { EMFILE } },
	{ SYS_dup3, "dup3", { EMFILE } },
	{ SYS_pipe2, "pipe2", { EMFILE } },
	{ SYS_socket, "socket", { EMFILE } },
	{ SYS_eventfd2, "eventfd2", { EMFILE } },
	{ SYS_signalfd4, "signalfd4", { EMFILE } },
	{ SYS_timerfd_create, "timerfd_create", { EMFILE } },
	{ SYS_timerfd_settime, "timerfd_settime", { EINVAL } },
	{ SYS_timer_create, "timer_create", { EAGAIN } },
	{ SYS_timer_settime, "timer_settime", { EINVAL } },
	{ SYS_poll, "poll", { EINTR, ENOMEM } },
	{ SYS_ppoll, "ppoll", { EINTR } },
	{ SYS_epoll_wait, "epoll_wait", { EINTR } },
	{ SYS_wait4, "wait4", { EINTR } },
	{ SYS_clone, "clone", { EAGAIN } },
	{ SYS_clone3, "clone3", { EAGAIN } },
	{ SYS_ptrace, "ptrace", { ESRCH, EPERM } },
	{ SYS_process_vm_readv, "process_vm_readv", { EFAULT, EPERM } },
	{ SYS_pidfd_open, "pidfd_open", { EMFILE } },
	{ SYS_pidfd_getfd, "pidfd_getfd", { EPERM } },
	{ SYS_bpf, "bpf", { EPERM } },
	{ SYS_tgkill, "tgkill", { EAGAIN } },
	{ SYS_perf_event_open, "perf_event_open", { EACCES } },
	{ SYS_getrandom, "getrandom", { EINTR } },
	{ SYS_prctl, "prctl", { EINVAL } },
	{ SYS_prlimit64, "prlimit64", { EPERM } },
	{ SYS_sched_getaffinity, "sched_getaffinity", { EINVAL } },
	{ SYS_sched_setaffinity, "sched_setaffinity", { EINVAL } },
	{ SYS_sysinfo, "sysinfo", { EFAULT } },
	{ SYS_uname, "uname", { EFAULT } },
	/* brk() tells of failures by its result, which is not an error; malloc() then uses mmap(). */
	{ SYS_ioctl, "ioctl", { EIO, ENOMEM } },
};
#define NCALLS (sizeof(calls) / sizeof(calls[0]))

/* The calls of one system call; each request of ioctl is a kind of its own. */
struct kind {
	const struct call *call;
	char name[48];
	unsigned int count;
};
static struct kind kinds[MAX_KINDS];
static unsigned int nkinds, hits;

static struct {
	enum { COUNT, FAIL, STORM } how;
	char name[48];
	unsigned int nth, percent;
	int error;
	uint64_t seed;
} plan;

static const struct call *call_of(long nr)
{
	for (size_t i = 0; i < NCALLS; i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

static struct kind *kind_of(const struct seccomp_data *d)
{
	const struct call *call = call_of(d->nr);
	char name[48];

	if (d->nr == SYS_ioctl)
		snprintf(name, sizeof(name), "ioctl-%x", (unsigned int)d->args[1]);
	else
		snprintf(name, sizeof(name), "%s", call ? call->name : "?");
	for (unsigned int i = 0; i < nkinds; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	if (nkinds == MAX_KINDS)
		return NULL;
	kinds[nkinds] = (struct kind){ .call = call };
	snprintf(kinds[nkinds].name, sizeof(kinds[nkinds].name), "%s", name);
	return &kinds[nkinds++];
}

static bool can_be_interrupted(const struct seccomp_data *d, const struct call *call)
{
	/* KVM has only these two requests here. */
	if (d->nr == SYS_ioctl)
		return d->args[1] == KVM_RUN || d->args[1] == KVM_CREATE_VM;
	/* Output of a command is written with its signals blocked. */
	if (d->nr == SYS_write && d->args[0] <= 2)
		return false;
	for (unsigned int i = 0; call && i < MAX_ERRORS; i++)
		if (call->error[i] == EINTR)
			return true;
	return false;
}

/* splitmix64 */
static uint64_t random_next(void)
{
	uint64_t z = plan.seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* The error that this call has, or 0. */
static int decide(const struct seccomp_data *d)
{
	static bool armed;
	struct kind *k;

	if (!armed) {
		armed = d->nr == SYS_munmap;
		return 0;
	}
	k = kind_of(d);
	if (!k)
		return 0;
	k->count++;
	if (plan.how == FAIL && k->count == plan.nth && !strcmp(k->name, plan.name))
		return plan.error;
	if (plan.how == STORM && can_be_interrupted(d, k->call) &&
	    random_next() % 100 < plan.percent)
		return EINTR;
	return 0;
}

/* -- the command's side ------------------------------------------------------------------------ */

static int install_filter(void)
{
	struct sock_filter f[2 * NCALLS + 4];
	struct sock_fprog prog = { .filter = f };
	unsigned short n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < NCALLS; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (uint32_t)calls[i].nr, 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return NO_LISTENER;
	/* The second flag: a signal does not undo a notification that was received (5.19). */
	return (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);
}

struct child {
	char **argv;
	volatile int *listener; /* its number is the same here: files are shared until exec */
};

static int child_main(void *arg)
{
	struct child *c = arg;
	int fd;

	/* A command that hangs ends with us. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = install_filter();

	/* Neither of these is in the filter. */
	__atomic_store_n(c->listener, fd < 0 ? -2 : fd, __ATOMIC_RELEASE);
	if (fd >= 0)
		execv(c->argv[0], c->argv);
	_exit(126);
}

/* -- the supervisor's side --------------------------------------------------------------------------- */

/* One notification; false when there is nobody left. */
static bool serve(int listener)
{
	struct seccomp_notif req = { 0 };
	struct seccomp_notif_resp resp = { 0 };
	struct pollfd p = { .fd = listener, .events = POLLIN };

	if (poll(&p, 1, -1) < 0)
		return errno == EINTR;
	if (!(p.revents & POLLIN))
		return false;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req))
		return errno == EINTR || errno == ENOENT;
	resp.id = req.id;
	resp.error = -decide(&req.data);
	if (resp.error)
		hits++;
	else
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	/* ENOENT: it is gone. */
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	return true;
}

static void write_report(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		exit(125);
	for (unsigned int i = 0; i < nkinds; i++) {
		fprintf(f, "%s %u ", kinds[i].name, kinds[i].count);
		for (unsigned int k = 0; kinds[i].call && k < MAX_ERRORS && kinds[i].call->error[k];
		     k++)
			fprintf(f, "%s%d", k ? "," : "", kinds[i].call->error[k]);
		fprintf(f, "\n");
	}
	fprintf(f, "hit %u\n", hits);
	fclose(f);
}

static bool parse_plan(const char *text)
{
	if (!strcmp(text, "count"))
		return true;
	if (sscanf(text, "fail:%47[^:]:%u:%d", plan.name, &plan.nth, &plan.error) == 3)
		plan.how = FAIL;
	else if (sscanf(text, "storm:%lu:%u", &plan.seed, &plan.percent) == 2)
		plan.how = STORM;
	return plan.how != COUNT;
}

int main(int argc, char **argv)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct child c = { .argv = argv + 3 };
	int status = 0;
	pid_t pid;

	if (argc < 4 || !parse_plan(argv[2])) {
		fprintf(stderr, "usage: faults_inject REPORT PLAN COMMAND ARG...\n");
		return 125;
	}
	c.listener = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c.listener == MAP_FAILED)
		return 125;
	*c.listener = NO_LISTENER;
	pid = clone(child_main, stack + sizeof(stack), CLONE_FILES | SIGCHLD, &c);
	if (pid < 0)
		return 125;
	while (__atomic_load_n(c.listener, __ATOMIC_ACQUIRE) == NO_LISTENER)
		usleep(100);
	if (*c.listener < 0) {
		fprintf(stderr, "faults_inject: this kernel has no seccomp notification\n");
		return 125;
	}
	while (serve(*c.listener))
		;
	write_report(argv[1]);
	if (waitpid(pid, &status, 0) != pid)
		return 125;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
