/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault: a thread whose crash is its own end, and not the process's.
 *
 * A thread that reads what others wrote may have a defect that they know of. Where it is guarded, the
 * signal of a crash (SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE) ends that thread alone, at once: locks
 * that it held stay held, and what it was changing stays half changed. So after fault_happened() nobody
 * may use, free or wait for what was the thread's; pthread_join() returns. Stacks that overflow are such
 * a crash, too. In other threads these signals do what they did before fault_prepare().
 */
#ifndef KVMPROF_BASE_FAULT_H
#define KVMPROF_BASE_FAULT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_STACK 65536u /* bytes: the kernel's frame has all registers, up to 11 KiB of them */

struct fault {
	_Atomic int signal;    /* 0: none. Written last */
	int call;	       /* of SIGSYS: the system call's number */
	const char *call_name; /* ... static; NULL: not known */
	bool sent;	       /* by kill(2) and the like, or by abort(3): no instruction's fault */
	uintptr_t ip, addr;
	/* The last thing that the thread does: only what a signal handler may. NULL: nothing. */
	void (*ended)(struct fault *f);
	uint8_t stack[FAULT_STACK]; /* the handler's */
};

/* Handlers for all of the process. Any thread; from the second time on nothing happens. -errno. */
int fault_prepare(void);

/* On the thread itself, first of all; f is zero but for ended(), and stays as long as the thread. -errno. */
int fault_guard(struct fault *f);

/*
 * In a handler: ends this thread where it is guarded, else returns. context: of SA_SIGINFO;
 * call_name: of SIGSYS, else NULL.
 */
void fault_end_thread(int signo, const siginfo_t *info, const void *context, const char *call_name);

/* Any thread. */
bool fault_happened(const struct fault *f);
/* "SIGSEGV at address 0x0, in kvmprof+0x1234"; after fault_happened(). */
void fault_describe(const struct fault *f, char *out, size_t size);

#endif
