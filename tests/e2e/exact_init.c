/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exact_init: /init of exact_counts.py, which compiles it with one thing more at a time: PPIDS system
 * calls, TURNS of a loop, MAPS allocations, PIPES pipes, OPENS opened files. Each is there in each build, as a number, so that nothing
 * else moves. Without libc: gcc -static -nostdlib -ffreestanding -O2.
 */
#include "guest/reboot.h"
#include "guest/syscall.h"

#define PAGE 4096

#ifndef PPIDS
#define PPIDS 10
#endif
#ifndef TURNS
#define TURNS 100000
#endif
#ifndef MAPS
#define MAPS 10
#endif
#ifndef PIPES
#define PIPES 10
#endif
#ifndef OPENS
#define OPENS 10
#endif

volatile long ppids = PPIDS, turns = TURNS, maps = MAPS, pipes = PIPES, opens = OPENS;

__attribute__((noinline, noclone)) void turn(void)
{
	for (long i = turns; i; i--)
		__asm__ volatile("");
}

__attribute__((noinline, noclone)) void ask(void)
{
	syscall0(NR_GETPPID);
}

__attribute__((noinline, noclone)) void allocate(void)
{
	/* PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS */
	char *p = (char *)syscall6(NR_MMAP, 0, PAGE, 3, 0x22, -1, 0);

	*(volatile char *)p = 1;
}

__attribute__((noinline, noclone)) void pipe_of(void)
{
	int end[2] = { -1, -1 };

	syscall1(NR_PIPE, (long)end);
	syscall1(NR_CLOSE, end[0]);
	syscall1(NR_CLOSE, end[1]);
}

__attribute__((noinline, noclone)) void open_one(void)
{
	syscall1(NR_CLOSE, syscall3(NR_OPEN, (long)"/init", 0, 0));
}

void _start(void)
{
	for (long i = ppids; i; i--)
		ask();
	turn();
	for (long i = maps; i; i--)
		allocate();
	for (long i = pipes; i; i--)
		pipe_of();
	for (long i = opens; i; i--)
		open_one();
	syscall6(NR_REBOOT, REBOOT_MAGIC1, REBOOT_MAGIC2, REBOOT_RESTART, 0, 0, 0);
	for (;;)
		;
}
