/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads in the sandbox of profile/sandbox, without a machine.
 *
 *   sandbox_thread list                     the table: kind, call, argument ("-": any), a line each
 *   sandbox_thread call MODE KIND CALL      a thread of the kind makes one system call; MODE: on, log, code
 *   sandbox_thread write DIR FILE           the consumer's thread may write in DIR: makes FILE
 *
 * Prints "done ERRNO" when the call has returned, or the file is made. tests/e2e/sandbox.py
 */
#include "base/thread.h"
#include "profile/record/sandbox/calls.h"
#include "profile/record/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

static int list(void)
{
	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		for (int kind = 0; kind < THREAD_KINDS; kind++)
			if (c->kinds & SANDBOX_KIND(kind))
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
	if (argc != 5 || strcmp(argv[1], "call"))
		return 2;
	p.mode = !strcmp(argv[2], "log") ? SANDBOX_LOG : SANDBOX_ON;
	p.makes_code = !strcmp(argv[2], "code");
	while (kind < THREAD_KINDS && strcmp(thread_kind_name((enum thread_kind)kind), argv[3]))
		kind++;
	what = argv[4];
	return kind == THREAD_KINDS || begin(&p) ? 2 : run_thread(kind, make_call, NULL);
}
