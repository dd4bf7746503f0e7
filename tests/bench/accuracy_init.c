/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * accuracy_init: /init of bench_accuracy.py's workloads, one in each build: -DWORK=0 to 4, ROUNDS times, then
 * the machine ends. Without libc: gcc -static -nostdlib -ffreestanding -O2.
 */
#include "guest/reboot.h"
#include "guest/syscall.h"

#define NR_LSEEK 8
#define NR_MPROTECT 10
#define NR_SOCKETPAIR 53
#define PAGE 4096
#define PAGES 16
#define ITEMS 512

#ifndef WORK
#define WORK 0
#endif
#ifndef ROUNDS
#define ROUNDS 100
#endif

static char bytes[PAGE];
static unsigned int items[ITEMS];

/* Processes: fork, a message by a pipe, wait. */
static void processes(void)
{
	int ends[2];
	long child;

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
}

/* Files of the root file system: made, written, read again, removed. */
static void files(void)
{
	long fd = syscall3(NR_OPEN, "/file", O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (int i = 0; i < PAGES; i++)
		syscall3(NR_WRITE, fd, bytes, sizeof(bytes));
	syscall3(NR_LSEEK, fd, 0, 0);
	while (syscall3(NR_READ, fd, bytes, sizeof(bytes)) > 0)
		;
	syscall1(NR_CLOSE, fd);
	syscall1(NR_UNLINK, "/file");
}

/* Memory: mapped, touched page by page, made read-only, unmapped. */
static void memory(void)
{
	/* PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS */
	char *p = (char *)syscall6(NR_MMAP, 0, PAGES * PAGE, 3, 0x22, -1, 0);

	for (int i = 0; i < PAGES; i++)
		*(volatile char *)(p + i * PAGE) = 1;
	syscall3(NR_MPROTECT, p, PAGES * PAGE / 2, 1);
	syscall2(NR_MUNMAP, p, PAGES * PAGE);
}

/* Messages over a pair of sockets. */
static void sockets(void)
{
	int ends[2];

	/* AF_UNIX, SOCK_STREAM */
	if (syscall6(NR_SOCKETPAIR, 1, 1, 0, (long)ends, 0, 0))
		return;
	for (int i = 0; i < PAGES; i++) {
		syscall3(NR_WRITE, ends[0], bytes, 1000);
		syscall3(NR_READ, ends[1], bytes, sizeof(bytes));
	}
	syscall1(NR_CLOSE, ends[0]);
	syscall1(NR_CLOSE, ends[1]);
}

__attribute__((noinline, noclone)) static void sift(unsigned int from, unsigned int n)
{
	for (unsigned int i = from, k; (k = 2 * i + 1) < n; i = k) {
		unsigned int t = items[i];

		if (k + 1 < n && items[k + 1] > items[k])
			k++;
		if (t >= items[k])
			return;
		items[i] = items[k];
		items[k] = t;
	}
}

/* A program that does without the kernel: numbers, sorted. */
static void numbers(void)
{
	static unsigned int x = 1;

	for (unsigned int i = 0; i < ITEMS; i++)
		items[i] = x = x * 1664525 + 1013904223;
	for (unsigned int i = ITEMS / 2; i-- > 0;)
		sift(i, ITEMS);
	for (unsigned int n = ITEMS; n-- > 1;) {
		unsigned int t = items[0];

		items[0] = items[n];
		items[n] = t;
		sift(0, n);
	}
}

void _start(void)
{
	static void (*const work[])(void) = { processes, files, memory, sockets, numbers };

	for (long i = 0; i < ROUNDS; i++)
		work[WORK]();
	end_machine();
}
