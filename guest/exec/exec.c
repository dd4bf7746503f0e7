// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /.kvmprof-init: runs one command, and ends the machine with its status.
 *
 * As process 1 it also reaps orphaned processes of the command. profile/record/rootfs/exec_files.h
 * describes its input, end.c how it reports the status.
 */
#include "exec.h"

#define PLAN "/.kvmprof-plan"
#define SELF "/.kvmprof-init"
#define WORDS_MAX 1024

#define TIOCSCTTY 0x540e
#define EINTR 4
#define ENOENT 2
#define ENOTDIR 20
#define EACCES 13
#define ENOEXEC 8

struct plan plan;

void exec_main(void);

__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	xorl %ebp, %ebp\n"
	"	andq $-16, %rsp\n"
	"	pushq $0\n"
	"	jmp exec_main\n"
	".size _start, . - _start\n");

const char *plan_next(const char *s)
{
	s = s ? s + text_length(s) + 1 : plan.text;
	return s < plan.text + plan.len && *s ? s : NULL;
}

static void read_plan(void)
{
	long fd = syscall3(NR_OPEN, PLAN, O_RDONLY, 0);
	long n = 1;

	while (fd >= 0 && n > 0 && plan.len < sizeof(plan.text) - 2) {
		n = syscall3(NR_READ, fd, plan.text + plan.len, sizeof(plan.text) - 2 - plan.len);
		plan.len += n > 0 ? (ulong_t)n : 0;
	}
	syscall1(NR_CLOSE, fd);
	for (const char *s = plan_next(NULL); s; s = plan_next(s)) {
		if (*s == 'x')
			plan.nonce = s + 1;
		if (*s == 'i')
			plan.interactive = 1;
	}
	/* Hides the format of our messages from the command. */
	syscall1(NR_UNLINK, PLAN);
	syscall1(NR_UNLINK, SELF);
	if (!plan.nonce)
		end_failed("cannot read ", PLAN, fd < 0 ? fd : 0);
}

static const char *find(char kind)
{
	for (const char *s = plan_next(NULL); s; s = plan_next(s))
		if (*s == kind)
			return s + 1;
	return NULL;
}

/* Collects the strings of one kind in `list`, NULL-terminated. Returns their number. */
static unsigned int collect(char kind, const char **list, unsigned int n)
{
	for (const char *s = plan_next(NULL); s && n < WORDS_MAX; s = plan_next(s))
		if (*s == kind)
			list[n++] = s + 1;
	list[n] = NULL;
	return n;
}

/* Ends with a status as shells have it, and the reason. */
static void __attribute__((noreturn)) cannot_run(const char *name, long error)
{
	struct line l = { .n = 0 };
	int missing = error == -ENOENT || error == -ENOTDIR;

	line_add(&l, "kvmprof: ");
	line_add(&l, name);
	line_add(&l, missing		 ? ": not found in the guest\n"
		     : error == -EACCES	 ? ": may not be executed\n"
		     : error == -ENOEXEC ? ": not a program that this kernel runs\n"
					 : ": cannot be executed\n");
	line_write(&l);
	for (;;)
		syscall1(NR_EXIT, missing ? 127 : 126);
}

static void __attribute__((noreturn)) execute(const char **argv, const char **envp)
{
	const char *path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	const char *name = argv[0];
	char file[4096];
	long error = -ENOENT, r;

	for (const char *s = name; *s; s++)
		if (*s == '/')
			cannot_run(name, syscall3(NR_EXECVE, name, argv, envp));
	for (const char **e = envp; *e; e++)
		if ((*e)[0] == 'P' && (*e)[1] == 'A' && (*e)[2] == 'T' && (*e)[3] == 'H' &&
		    (*e)[4] == '=')
			path = *e + 5;
	while (*path) {
		ulong_t n = 0;

		while (*path && *path != ':') {
			if (n < sizeof(file) / 2)
				file[n++] = *path;
			path++;
		}
		path += *path == ':';
		file[n++] = '/';
		for (const char *s = name; *s && n < sizeof(file) - 1; s++)
			file[n++] = *s;
		file[n] = 0;
		r = syscall3(NR_EXECVE, file, argv, envp);
		if (r != -ENOENT && r != -ENOTDIR)
			error = r;
	}
	cannot_run(name, error);
}

static void __attribute__((noreturn)) run_command(void)
{
	static const char *argv[WORDS_MAX + 4], *envp[WORDS_MAX + 1];
	const char *command = find('c'), *dir = find('d');
	long fd;

	syscall0(NR_SETSID);
	if (plan.interactive) {
		syscall3(NR_IOCTL, 0, TIOCSCTTY, 0);
	} else {
		fd = syscall3(NR_OPEN, "/dev/null", O_RDWR, 0);
		if (fd >= 0) {
			syscall2(NR_DUP2, fd, 0);
			syscall1(NR_CLOSE, fd);
		}
	}
	collect('e', envp, 0);
	if (dir) {
		long r = syscall1(NR_CHDIR, dir);

		if (r)
			cannot_run(dir, r);
	}
	/* Uses a shell for the text, if there is one; else the words into which it was split. */
	if (command && syscall2(NR_ACCESS, "/bin/sh", 1) == 0) {
		argv[0] = "/bin/sh";
		argv[1] = "-c";
		argv[2] = command;
		execute(argv, envp);
	}
	if (!collect('a', argv, 0))
		cannot_run("/bin/sh", -ENOENT);
	execute(argv, envp);
}

#define CLOCK_MONOTONIC 1
#define NS_PER_S 1000000000ul
#define NS_PER_US 1000ul

static ulong_t now_ns(void)
{
	ulong_t time[2] = { 0, 0 };

	syscall2(NR_CLOCK_GETTIME, CLOCK_MONOTONIC, time);
	return time[0] * NS_PER_S + time[1];
}

/*
 * struct rusage begins with user and system time, as seconds and microseconds. The kernel adds up
 * the command and the descendants for which it has waited, as time(1) does.
 */
#define RUSAGE_WORDS 18

static void add_usage(const ulong_t *usage, struct spent *spent)
{
	spent->user = usage[0] * NS_PER_S + usage[1] * NS_PER_US;
	spent->system = usage[2] * NS_PER_S + usage[3] * NS_PER_US;
}

static unsigned int wait_for(long pid, struct spent *spent)
{
	ulong_t usage[RUSAGE_WORDS] = { 0 };
	int status = 0;

	for (;;) {
		long r = syscall6(NR_WAIT4, -1, (long)&status, 0, (long)usage, 0, 0);

		if (r == pid)
			add_usage(usage, spent);
		if (r == pid)
			return status & 0x7f ? 128 + (unsigned int)(status & 0x7f)
					     : (unsigned int)(status >> 8 & 0xff);
		if (r < 0 && r != -EINTR)
			end_failed("lost the command", "", r);
	}
}

static void follow_plan(void)
{
	for (char *s = (char *)plan_next(NULL); s; s = (char *)plan_next(s))
		if (*s == 'm')
			load_module(s + 1);
	for (char *s = (char *)plan_next(NULL); s; s = (char *)plan_next(s))
		if (*s == 'r') {
			switch_root("/dev/vda", s + 1);
			mount_basics();
			open_console();
		}
	/* TAG \n WHERE \n OPTIONS: three strings in one, cut in a copy. */
	for (const char *s = plan_next(NULL); s; s = plan_next(s))
		if (*s == 's') {
			char text[8192], *where, *options;
			ulong_t n = 0;

			for (; s[1 + n] && n < sizeof(text) - 1; n++)
				text[n] = s[1 + n];
			text[n] = 0;
			where = text_cut(text, '\n');
			options = where ? text_cut(where, '\n') : NULL;
			if (options)
				mount_share(text, where, options);
		}
}

__attribute__((noinline)) void exec_main(void)
{
	struct spent spent = { 0, 0, 0 };
	unsigned int status;
	ulong_t start;
	long pid;

	mount_basics();
	read_plan();
	open_console();
	follow_plan();
	raise_loopback();
	start = now_ns();
	pid = syscall0(NR_FORK);
	if (pid == 0)
		run_command();
	if (pid < 0)
		end_failed("cannot fork", "", pid);
	status = wait_for(pid, &spent);
	spent.real = now_ns() - start;
	end_with_status(status, &spent);
}
