/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exact_ftrace_init: /init of exact_ftrace.py: has Linux count the calls of its own functions (ftrace's
 * function profile, Documentation/trace/ftrace.rst) from before getppid() to behind getpgrp(), works TURNS
 * times in between, and prints what was counted. Without libc: gcc -static -nostdlib -ffreestanding -O2.
 */
#include "guest/reboot.h"
#include "guest/syscall.h"

#define NR_GETPGRP 111
#define PAGE 4096
#define PROFILE "/t/function_profile_enabled"

#ifndef TURNS
#define TURNS 5
#endif

volatile long turns = TURNS;
static char bytes[PAGE];

static void say(const char *text)
{
	long n = 0;

	while (text[n])
		n++;
	syscall3(NR_WRITE, 1, text, n);
}

static void set_profile(const char *to)
{
	long fd = syscall3(NR_OPEN, PROFILE, 1, 0);

	if (fd < 0 || syscall3(NR_WRITE, fd, to, 1) != 1)
		say("ftrace: no profile\n");
	syscall1(NR_CLOSE, fd);
}

static void work(void)
{
	/* PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS */
	char *p = (char *)syscall6(NR_MMAP, 0, 4 * PAGE, 3, 0x22, -1, 0);
	long fd = syscall3(NR_OPEN, "/proc/self/stat", 0, 0), child;
	int ends[2];

	for (int i = 0; i < 4; i++)
		*(volatile char *)(p + i * PAGE) = 1;
	syscall3(NR_READ, fd, bytes, sizeof(bytes));
	syscall1(NR_CLOSE, fd);
	syscall2(NR_MUNMAP, p, 4 * PAGE);
	syscall1(NR_PIPE, ends);
	child = syscall0(NR_FORK);
	if (!child) {
		syscall3(NR_WRITE, ends[1], "x", 1);
		syscall1(NR_EXIT, 0);
	}
	syscall3(NR_READ, ends[0], bytes, 1);
	syscall6(NR_WAIT4, child, 0, 0, 0, 0, 0);
	syscall1(NR_CLOSE, ends[0]);
	syscall1(NR_CLOSE, ends[1]);
	/* The fork's copy of this page is made here, not behind getpgrp(). */
	*(volatile int *)ends = 0;
}

static void print(const char *path)
{
	long fd = syscall3(NR_OPEN, path, 0, 0), n;

	if (fd < 0)
		return;
	say("ftrace: begin\n");
	while ((n = syscall3(NR_READ, fd, bytes, sizeof(bytes))) > 0)
		syscall3(NR_WRITE, 1, bytes, n);
	syscall1(NR_CLOSE, fd);
	say("ftrace: end\n");
}

void _start(void)
{
	syscall2(NR_MKDIR, "/t", 0755);
	syscall2(NR_MKDIR, "/proc", 0755);
	syscall6(NR_MOUNT, (long)"t", (long)"/t", (long)"tracefs", 0, 0, 0);
	syscall6(NR_MOUNT, (long)"p", (long)"/proc", (long)"proc", 0, 0, 0);
	set_profile("1");
	syscall0(NR_GETPPID);
	for (long i = turns; i; i--)
		work();
	syscall0(NR_GETPGRP);
	set_profile("0");
	print("/t/trace_stat/function0");
	print("/t/trace_stat/function1");
	syscall3(NR_REBOOT, REBOOT_MAGIC1, REBOOT_MAGIC2, REBOOT_RESTART);
	for (;;)
		;
}
