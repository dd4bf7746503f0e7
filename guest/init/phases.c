// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The work of /init, one function per kind, so that a profile of the guest shows which kernel path
 * belongs to which.
 *
 * The amounts suit the slowest known host: where KVM interprets the guest's kernel, a system call
 * takes 0.25 ms, a page fault 1.5 ms and a fork 56 ms. There all phases together take less than 3
 * s; elsewhere they are short.
 */
#include "init.h"

#define CPU_ROUNDS 60000000ul
#define GETPID_CALLS 400ul
#define NULL_WRITES 300ul
#define FILES 15ul
#define FILE_BLOCKS 4ul
#define FAULT_PAGES 120ul
#define FORKS 4ul
#define SLEEPS 4ul
#define SLEEP_NS 20000000l

#define PAGE 4096ul
#define PROT_READ_WRITE 3
#define MAP_PRIVATE_ANONYMOUS 0x22

/* Appears under its own name in each profile: not inlined, and no ".constprop.0". */
#define phase_function __attribute__((noinline)) GUEST_NOIPA

/*
 * gcc omits the frame of leaf functions despite -fno-omit-frame-pointer, and then the caller is
 * missing in the stack.
 */
#define keep_frame() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

phase_function ulong_t cpu_mix(ulong_t rounds);
phase_function ulong_t cpu_mix(ulong_t rounds)
{
	ulong_t x = 1;

	keep_frame();
	while (rounds--)
		x = x * 6364136223846793005ul + 1442695040888963407ul;
	return x;
}

static phase_function ulong_t phase_cpu(ulong_t work)
{
	ulong_t x = cpu_mix(CPU_ROUNDS * work);

	__asm__ volatile("" : : "r"(x));
	return 0;
}

static phase_function ulong_t phase_getpid(ulong_t work)
{
	ulong_t failed = 0;

	for (ulong_t i = 0; i < GETPID_CALLS * work; i++)
		failed += syscall0(NR_GETPID) <= 0;
	return failed;
}

static phase_function ulong_t phase_null_write(ulong_t work)
{
	static const char byte = 'x';
	ulong_t failed = 0;
	long fd = syscall3(NR_OPEN, "/dev/null", O_WRONLY, 0);

	if (fd < 0)
		return 1;
	for (ulong_t i = 0; i < NULL_WRITES * work; i++)
		failed += syscall3(NR_WRITE, fd, &byte, 1) != 1;
	syscall1(NR_CLOSE, fd);
	return failed;
}

static phase_function ulong_t file_cycle(const char *path)
{
	static const char block[1024];
	ulong_t failed = 0;
	long fd = syscall3(NR_OPEN, path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		return 1;
	for (ulong_t i = 0; i < FILE_BLOCKS; i++)
		failed += syscall3(NR_WRITE, fd, block, sizeof(block)) != sizeof(block);
	syscall1(NR_CLOSE, fd);
	failed += syscall1(NR_UNLINK, path) != 0;
	return failed;
}

static phase_function ulong_t phase_files(ulong_t work)
{
	ulong_t failed = 0;

	for (ulong_t i = 0; i < FILES * work; i++)
		failed += file_cycle("/kvmprof-file");
	return failed;
}

static phase_function void touch_pages(volatile char *area, ulong_t size)
{
	keep_frame();
	for (ulong_t at = 0; at < size; at += PAGE)
		area[at] = 1;
}

static phase_function ulong_t phase_page_faults(ulong_t work)
{
	for (ulong_t i = 0; i < work; i++) {
		ulong_t size = FAULT_PAGES * PAGE;
		long area = syscall6(NR_MMAP, 0, (long)size, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS,
				     -1, 0);

		if (area < 0 && area > -4096)
			return 1;
		touch_pages((volatile char *)area, size);
		if (syscall2(NR_MUNMAP, area, size) != 0)
			return 1;
	}
	return 0;
}

static phase_function ulong_t phase_fork(ulong_t work)
{
	ulong_t failed = 0;

	for (ulong_t i = 0; i < FORKS * work; i++) {
		int status = -1;
		long pid = syscall0(NR_FORK);

		if (pid == 0) {
			for (;;)
				syscall1(NR_EXIT, 7);
		}
		failed += pid < 0 || syscall6(NR_WAIT4, pid, (long)&status, 0, 0, 0, 0) != pid ||
			  status != 7 << 8;
	}
	return failed;
}

static phase_function ulong_t phase_sleep(ulong_t work)
{
	struct {
		long sec, nsec;
	} pause = { 0, SLEEP_NS };
	ulong_t failed = 0;

	for (ulong_t i = 0; i < SLEEPS * work; i++)
		failed += syscall2(NR_NANOSLEEP, &pause, 0) != 0;
	return failed;
}

const struct phase phases[] = {
	{ "cpu", phase_cpu },
	{ "getpid", phase_getpid },
	{ "null-write", phase_null_write },
	{ "files", phase_files },
	{ "page-faults", phase_page_faults },
	{ "fork", phase_fork },
	{ "sleep", phase_sleep },
};

const unsigned int nr_phases = sizeof(phases) / sizeof(phases[0]);
