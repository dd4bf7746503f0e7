/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads in the sandbox of profile/record/sandbox, without a machine.
 *
 *   sandbox_thread list                     the table: kind, call, argument ("-": any), a line each
 *   sandbox_thread call MODE KIND CALL      a thread of the kind makes one system call; MODE: on, log
 *   sandbox_thread try KIND DIR OUTSIDE     each call that takes a path or a process, outside of what is permitted
 *   sandbox_thread write DIR FILE           the consumer's thread may write in DIR: makes FILE
 *
 * SANDBOX_TEST_ABI in the environment makes Landlock as old as that. kvmprof itself has no such switch: this program
 * brings its own landlock_host_abi().
 *
 * Prints "done ERRNO" when the call has returned, or the file is made. tests/e2e/sandbox.py
 */
#include "base/thread.h"
#include "profile/record/sandbox/calls.h"
#include "profile/record/sandbox/landlock.h"
#include "profile/record/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <asm/ioctls.h>
#include <asm/sockios.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static const char *what;

static void tell(long ret)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "done %d\n", ret < 0 ? errno : 0);

	(void)!write(STDOUT_FILENO, text, (size_t)n);
}

/* Arguments with which none of them does anything, should it be made. */
static void *make_call(void *arg)
{
	long ret = -1;

	(void)arg;
	if (!strcmp(what, "execve"))
		ret = syscall(SYS_execve, NULL, NULL, NULL);
	else if (!strcmp(what, "ptrace"))
		ret = syscall(SYS_ptrace, -1, 0, NULL, NULL);
	else if (!strcmp(what, "socket"))
		ret = syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
	else if (!strcmp(what, "ioctl"))
		ret = syscall(SYS_ioctl, -1, TIOCSTI, NULL);
	else if (!strcmp(what, "KVM_CREATE_VM"))
		ret = syscall(SYS_ioctl, -1, KVM_CREATE_VM, 0);
	else if (!strcmp(what, "mprotect"))
		ret = syscall(SYS_mprotect, NULL, 0, PROT_READ | PROT_EXEC);
	else if (!strcmp(what, "mmap"))
		ret = syscall(SYS_mmap, NULL, 0, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else if (!strcmp(what, "rt_sigaction"))
		ret = syscall(SYS_rt_sigaction, -1, NULL, NULL, 8);
	else if (!strcmp(what, "tgkill"))
		ret = syscall(SYS_tgkill, 1, 1, 0);
	else if (!strcmp(what, "getppid"))
		ret = syscall(SYS_getppid);
	else if (!strcmp(what, "futex"))
		ret = syscall(SYS_futex, NULL, -1, 0, NULL, NULL, 0);
	tell(ret);
	return NULL;
}

static void *make_file(void *arg)
{
	int fd = open(arg, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	tell(fd);
	return NULL;
}

long landlock_host_abi(void)
{
	const char *forced = getenv("SANDBOX_TEST_ABI");
	long abi = syscall(444, NULL, 0, 1u); /* landlock_create_ruleset */

	if (forced && atol(forced) < abi)
		abi = atol(forced);
	if (!abi)
		errno = EOPNOTSUPP;
	return abi ? abi : -1;
}

/* -- attempts ------------------------------------------------------------------------------- */

static const char *outside; /* a file that no plan permits */
static pid_t victim;	    /* a process that is not ours */
static int victim_fd, own_fd;
static char victim_byte = 1; /* at the same address in the victim */

static long attempt_path(const char *name)
{
	static const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	static const uint64_t how[3] = { O_RDONLY, 0, 0 };
	char other[512];
	struct stat st;

	snprintf(other, sizeof(other), "%s.new", outside);
	if (!strcmp(name, "openat:read"))
		return syscall(SYS_openat, AT_FDCWD, outside, O_RDONLY);
	if (!strcmp(name, "openat:write"))
		return syscall(SYS_openat, AT_FDCWD, outside, O_RDWR);
	if (!strcmp(name, "openat:make"))
		return syscall(SYS_openat, AT_FDCWD, other, O_WRONLY | O_CREAT, 0600);
	if (!strcmp(name, "openat:mem"))
		return syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR);
	if (!strcmp(name, "openat:victim-mem")) {
		snprintf(other, sizeof(other), "/proc/%d/mem", (int)victim);
		return syscall(SYS_openat, AT_FDCWD, other, O_RDONLY);
	}
	if (!strcmp(name, "openat2"))
		return syscall(SYS_openat2, AT_FDCWD, outside, how, sizeof(how));
	if (!strcmp(name, "newfstatat"))
		return syscall(SYS_newfstatat, AT_FDCWD, outside, &st, 0);
	if (!strcmp(name, "access"))
		return syscall(SYS_access, outside, R_OK);
	if (!strcmp(name, "readlink"))
		return syscall(SYS_readlink, "/proc/self/exe", other, sizeof(other));
	if (!strcmp(name, "mkdir"))
		return syscall(SYS_mkdir, other, 0700);
	if (!strcmp(name, "rename"))
		return syscall(SYS_rename, outside, other);
	if (!strcmp(name, "unlink"))
		return syscall(SYS_unlink, outside);
	if (!strcmp(name, "linkat"))
		return syscall(SYS_linkat, AT_FDCWD, outside, AT_FDCWD, other, 0);
	if (!strcmp(name, "symlink"))
		return syscall(SYS_symlink, "x", other);
	if (!strcmp(name, "chmod"))
		return syscall(SYS_chmod, outside, 04777);
	if (!strcmp(name, "truncate"))
		return syscall(SYS_truncate, outside, 0);
	if (!strcmp(name, "utimensat"))
		return syscall(SYS_utimensat, AT_FDCWD, outside, times, 0);
	return -2;
}

static long attempt_process(const char *name)
{
	struct {
		int type, pid;
	} owner = { 1 /* F_OWNER_PID */, victim };
	char byte;
	struct iovec here = { &byte, 1 }, there = { &victim_byte, 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (!strcmp(name, "kill"))
		return syscall(SYS_kill, victim, SIGKILL);
	if (!strcmp(name, "tgkill"))
		return syscall(SYS_tgkill, victim, victim, SIGKILL);
	if (!strcmp(name, "tkill"))
		return syscall(SYS_tkill, victim, SIGKILL);
	if (!strcmp(name, "pidfd_send_signal"))
		return syscall(SYS_pidfd_send_signal, victim_fd, SIGKILL, NULL, 0);
	if (!strcmp(name, "fcntl:F_SETOWN"))
		return syscall(SYS_fcntl, own_fd, F_SETOWN, victim);
	if (!strcmp(name, "fcntl:F_SETOWN_EX"))
		return syscall(SYS_fcntl, own_fd, F_SETOWN_EX, &owner);
	if (!strcmp(name, "fcntl:F_SETSIG"))
		return syscall(SYS_fcntl, own_fd, F_SETSIG, SIGKILL);
	if (!strcmp(name, "fcntl:O_ASYNC"))
		return syscall(SYS_fcntl, own_fd, F_SETFL, O_ASYNC);
	if (!strcmp(name, "ioctl:FIOSETOWN"))
		return syscall(SYS_ioctl, own_fd, FIOSETOWN, &victim);
	if (!strcmp(name, "sched_setaffinity"))
		return syscall(SYS_sched_setaffinity, victim, sizeof(set), &set);
	if (!strcmp(name, "move_pages"))
		return syscall(SYS_move_pages, victim, 0ul, NULL, NULL, NULL, 0);
	if (!strcmp(name, "perf_event_open"))
		return syscall(SYS_perf_event_open, NULL, victim, -1, -1, 0);
	if (!strcmp(name, "ptrace"))
		return syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, victim, NULL, NULL);
	if (!strcmp(name, "process_vm_readv"))
		return syscall(SYS_process_vm_readv, victim, &here, 1ul, &there, 1ul, 0ul);
	if (!strcmp(name, "process_vm_writev"))
		return syscall(SYS_process_vm_writev, victim, &here, 1ul, &there, 1ul, 0ul);
	if (!strcmp(name, "ptrace:seize"))
		return syscall(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, victim, NULL, NULL);
	if (!strcmp(name, "pidfd_getfd"))
		return syscall(SYS_pidfd_getfd, victim_fd, 0, 0);
	if (!strcmp(name, "wait4"))
		return syscall(SYS_wait4, victim, NULL, 0, NULL);
	if (!strcmp(name, "clone"))
		return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0ul);
	return -2;
}

static const char *const attempts[] = { "openat:read",
					"openat:write",
					"openat:make",
					"openat:mem",
					"openat:victim-mem",
					"openat2",
					"newfstatat",
					"access",
					"readlink",
					"mkdir",
					"rename",
					"unlink",
					"linkat",
					"symlink",
					"chmod",
					"truncate",
					"utimensat",
					"kill",
					"tgkill",
					"tkill",
					"pidfd_send_signal",
					"fcntl:F_SETOWN",
					"fcntl:F_SETOWN_EX",
					"fcntl:F_SETSIG",
					"fcntl:O_ASYNC",
					"ioctl:FIOSETOWN",
					"sched_setaffinity",
					"move_pages",
					"perf_event_open",
					"ptrace",
					"ptrace:seize",
					"process_vm_readv",
					"process_vm_writev",
					"pidfd_getfd",
					"wait4",
					"clone",
					NULL };

static void *attempt(void *arg)
{
	long ret = attempt_path(arg);

	tell(ret == -2 ? attempt_process(arg) : ret);
	syscall(SYS_exit_group, 0);
	return NULL;
}

static int list(void)
{
	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		for (int kind = 0; kind < THREAD_KINDS; kind++)
			/* Threads have the calls for a gdbstub in runs that use one, and in no other. */
			if (c->kinds & SANDBOX_KIND(kind) && c->when != SANDBOX_GDB)
				printf("%s %s %s\n", thread_kind_name((enum thread_kind)kind),
				       c->name, c->value_name ? c->value_name : "-");
	return 0;
}

static int begin(const struct sandbox_plan *p)
{
	struct err e = { 0 };
	struct buf said;
	int ret;

	buf_init(&said);
	ret = sandbox_begin(p, &said, &e);
	if (said.len)
		fprintf(stderr, "%.*s\n", (int)said.len, (const char *)said.data);
	buf_deinit(&said);
	if (ret)
		fprintf(stderr, "%s\n", e.text);
	return ret;
}

static int run_thread(int kind, void *(*main_of)(void *), void *arg)
{
	struct err e = { 0 };
	pthread_t thread;

	if (kind == THREAD_MAIN) {
		if (sandbox_begin_main(&e)) {
			fprintf(stderr, "%s\n", e.text);
			return 2;
		}
		main_of(arg);
		return 0;
	}
	return thread_start(&thread, (enum thread_kind)kind, main_of, arg) ||
	       pthread_join(thread, NULL);
}

static int try_one(int kind, const char *name, char *dir)
{
	struct sandbox_plan p = { .scope = SANDBOX_OWN };

	printf("%s %s ", thread_kind_name((enum thread_kind)kind), name);
	fflush(stdout);
	if (fork() == 0) {
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		sandbox_plan_add(&p, dir, SANDBOX_WRITE);
		sandbox_plan_add(&p, "/proc", SANDBOX_READ);
		_exit(begin(&p) ? 3 : run_thread(kind, attempt, (void *)name) ? 4 : 0);
	}
	return 0;
}

/* A file is made anew before each attempt, and a process. */
static int try_all(int kind, char *dir, const char *file)
{
	char made[512];

	outside = file;
	for (const char *const *name = attempts; *name; name++) {
		int status;

		snprintf(made, sizeof(made), "%s.new", file);
		remove(made);
		close(open(file, O_WRONLY | O_CREAT, 0600));
		victim = fork();
		if (victim == 0) {
			pause();
			_exit(0);
		}
		victim_fd = (int)syscall(SYS_pidfd_open, victim, 0);
		own_fd = dup(STDIN_FILENO);
		try_one(kind, *name, dir);
		/* The attempt's own process is the other child. */
		for (pid_t pid; (pid = wait(&status)) > 0 && pid == victim;)
			printf("[victim has ended] ");
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			printf("refused %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
		fflush(stdout);
		kill(victim, SIGKILL);
		while (wait(NULL) > 0)
			;
		close(victim_fd);
		close(own_fd);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sandbox_plan p = { .scope = SANDBOX_OWN };
	int kind = 0;

	if (argc == 2 && !strcmp(argv[1], "list"))
		return list();
	if (argc == 4 && !strcmp(argv[1], "write")) {
		sandbox_plan_add(&p, argv[2], SANDBOX_WRITE);
		return begin(&p) ? 2 : run_thread(THREAD_CONSUMER, make_file, argv[3]);
	}
	if (argc == 5 && !strcmp(argv[1], "try")) {
		while (kind < THREAD_KINDS &&
		       strcmp(thread_kind_name((enum thread_kind)kind), argv[2]))
			kind++;
		return kind == THREAD_KINDS ? 2 : try_all(kind, argv[3], argv[4]);
	}
	if (argc != 5 || strcmp(argv[1], "call"))
		return 2;
	p.mode = !strcmp(argv[2], "log") ? SANDBOX_LOG : SANDBOX_ON;
	while (kind < THREAD_KINDS && strcmp(thread_kind_name((enum thread_kind)kind), argv[3]))
		kind++;
	what = argv[4];
	return kind == THREAD_KINDS || begin(&p) ? 2 : run_thread(kind, make_call, NULL);
}
