/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of x86-64 Linux for programs without libc. */
#ifndef GUEST_SYSCALL_H
#define GUEST_SYSCALL_H

typedef unsigned long ulong_t;

/* x86-64 system call numbers (arch/x86/entry/syscalls/syscall_64.tbl) */
enum {
	NR_READ = 0,
	NR_WRITE = 1,
	NR_OPEN = 2,
	NR_CLOSE = 3,
	NR_MMAP = 9,
	NR_MUNMAP = 11,
	NR_RT_SIGACTION = 13,
	NR_IOCTL = 16,
	NR_PWRITE64 = 18,
	NR_ACCESS = 21,
	NR_PIPE = 22,
	NR_DUP2 = 33,
	NR_NANOSLEEP = 35,
	NR_GETPID = 39,
	NR_SOCKET = 41,
	NR_FORK = 57,
	NR_EXECVE = 59,
	NR_EXIT = 60,
	NR_WAIT4 = 61,
	NR_KILL = 62,
	NR_CHDIR = 80,
	NR_MKDIR = 83,
	NR_RMDIR = 84,
	NR_UNLINK = 87,
	NR_SYSLOG = 103,
	NR_GETPPID = 110,
	NR_SETSID = 112,
	NR_CHROOT = 161,
	NR_SYNC = 162,
	NR_MOUNT = 165,
	NR_REBOOT = 169,
	NR_IOPERM = 173,
	NR_INIT_MODULE = 175,
	NR_CLOCK_GETTIME = 228,
	NR_FINIT_MODULE = 313,
};

enum { O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 0100, O_TRUNC = 01000 };

static inline long syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define syscall0(nr) syscall6(nr, 0, 0, 0, 0, 0, 0)
#define syscall1(nr, a) syscall6(nr, (long)(a), 0, 0, 0, 0, 0)
#define syscall2(nr, a, b) syscall6(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define syscall3(nr, a, b, c) syscall6(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)

#endif
