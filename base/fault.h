/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault: threads whose crash ends only themselves and not the process.
 *
 * A thread that parses input from others may crash because of a defect that such input triggers. On
 * a guarded thread, the signal of a crash (SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE) ends only that
 * thread, at once. Locks that it held stay locked, and data that it was changing stays half
 * changed. After fault_happened() returns true, no thread may use, free or wait for what belonged
 * to it; pthread_join() still returns. A stack overflow is such a crash, too. On other threads a
 * crash writes one line to standard error, and then the signal has the effect that it had before
 * fault_prepare().
 */
#ifndef KVMPROF_BASE_FAULT_H
#define KVMPROF_BASE_FAULT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_STACK 65536u /* bytes; the kernel's signal frame holds all registers, up to 11 KiB */

struct fault {
	_Atomic int signal;    /* 0: no crash; written last */
	int call;	       /* SIGSYS: number of the system call */
	const char *call_name; /* SIGSYS: its name, static; NULL: not known */
	/* Sent by kill(2), abort(3) or the like, not caused by an instruction. */
	bool sent;
	/* Addresses of the instruction and of the access that failed. */
	uintptr_t ip, addr;
	/*
	 * Called last on the thread that crashed; must be async-signal-safe. NULL: nothing is
	 * called.
	 */
	void (*ended)(struct fault *f);
	uint8_t stack[FAULT_STACK]; /* alternate signal stack of the handler */
};

/*
 * Installs the signal handlers of the process. Returns 0 or -errno. Any thread may call it; only
 * the first call has an effect.
 */
int fault_prepare(void);

/*
 * Guards the calling thread, which must call this first. *f is zero except for ended(), and must
 * stay valid as long as the thread runs. Returns 0 or -errno. fault_prepare() must have been
 * called.
 */
int fault_guard(struct fault *f);

/*
 * Ends the calling thread if it is guarded, else returns. Called in a signal handler with the
 * handler's arguments (SA_SIGINFO). call_name is the name of the system call for SIGSYS, else NULL.
 */
void fault_end_thread(int signo, const siginfo_t *info, const void *context, const char *call_name);

/* Returns whether the guarded thread of *f has crashed. Any thread may call it. */
bool fault_happened(const struct fault *f);
/*
 * Writes a description such as "SIGSEGV at address 0x0, in kvmprof+0x1234" to out, which has `size`
 * bytes. Any thread may call it after fault_happened() has returned true.
 */
void fault_describe(const struct fault *f, char *out, size_t size);

#endif
