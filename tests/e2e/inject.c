/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inject TID CALL...: system calls in a thread that waits in one, as if a guest had taken it over. CALL is
 * NAME|ARGUMENT|..., where an argument is a number or a path. A line for each: 0 or more, or -errno; `refused` where
 * seccomp ends the process. (Debuggers
 * that call functions restore extended state, which gdb 13 cannot where the processor has AMX.)
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#define MAX_ARGS 6
#define MAX_PATH 512u
#define BELOW_STACK 8192u /* the strings lie there; the red zone has 128 bytes */

static const struct {
	const char *name;
	long number;
} calls[] = {
	{ "openat", SYS_openat }, { "unlink", SYS_unlink }, { "mkdir", SYS_mkdir },
	{ "rename", SYS_rename }, { "linkat", SYS_linkat }, { "symlink", SYS_symlink },
	{ "rmdir", SYS_rmdir },	  { "socket", SYS_socket },
};

static void fail(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void wait_for_stop(pid_t tid)
{
	int status;

	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status)) {
		fprintf(stderr, "inject: the thread has ended: status 0x%x\n",
			(unsigned int)status);
		exit(1);
	}
}

static void put(pid_t tid, uint64_t at, const char *text)
{
	struct iovec from = { (void *)(uintptr_t)text, strlen(text) + 1 },
		     to = { (void *)at, from.iov_len };

	if (from.iov_len > MAX_PATH ||
	    process_vm_writev(tid, &from, 1, &to, 1, 0) != (ssize_t)from.iov_len)
		fail("cannot write to the thread's memory");
}

/* Sets the registers to those of a call, behind whose instruction the thread stands. */
static void set_call(pid_t tid, struct user_regs_struct *r, char *text)
{
	unsigned long long *arg[MAX_ARGS] = { &r->rdi, &r->rsi, &r->rdx, &r->r10, &r->r8, &r->r9 };
	char *rest = NULL, *name = strtok_r(text, "|", &rest), *word;
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (name && !strcmp(calls[i].name, name))
			break;
	if (i == sizeof(calls) / sizeof(*calls)) {
		errno = EINVAL;
		fail(name ? name : "no call");
	}
	r->rax = (unsigned long long)calls[i].number;
	for (i = 0; i < MAX_ARGS && (word = strtok_r(NULL, "|", &rest)); i++) {
		char *end;

		*arg[i] = (unsigned long long)strtoll(word, &end, 0);
		if (end != word && !*end)
			continue;
		*arg[i] = r->rsp - BELOW_STACK + i * MAX_PATH;
		put(tid, *arg[i], word);
	}
}

int main(int argc, char **argv)
{
	pid_t tid = argc > 2 ? (pid_t)atoi(argv[1]) : 0;
	struct user_regs_struct before, now;
	uint64_t code;

	if (!tid)
		return 2;
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		fail("cannot trace");
	wait_for_stop(tid);
	if (ptrace(PTRACE_GETREGS, tid, 0, &before))
		fail("no registers");
	errno = 0;
	code = (uint64_t)ptrace(PTRACE_PEEKTEXT, tid, before.rip - 2, 0);
	if (errno || (code & 0xffff) != 0x050f) {
		fprintf(stderr, "inject: the thread is in no system call\n");
		return 1;
	}
	for (int i = 2; i < argc; i++) {
		now = before;
		now.rip = before.rip - 2;
		now.orig_rax = (unsigned long long)-1;
		set_call(tid, &now, argv[i]);
		if (ptrace(PTRACE_SETREGS, tid, 0, &now))
			fail("cannot set registers");
		for (unsigned int stop = 0; stop < 2; stop++) { /* before the call, and behind it */
			if (ptrace(PTRACE_SYSCALL, tid, 0, 0))
				fail("cannot go on");
			wait_for_stop(tid);
		}
		if (ptrace(PTRACE_GETREGS, tid, 0, &now))
			fail("no registers");
		if (now.rax ==
		    now.orig_rax) { /* as SECCOMP_RET_TRAP leaves it; SIGSYS is pending */
			puts("refused");
			break;
		}
		printf("%lld\n", (long long)now.rax);
	}
	/* The kernel restarts the call in which the thread was: its result says so. */
	if (ptrace(PTRACE_SETREGS, tid, 0, &before) || ptrace(PTRACE_DETACH, tid, 0, 0))
		fail("cannot let it go");
	return 0;
}
