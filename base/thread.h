/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread: threads that take no signals but those that they ask for, and that say what they are
 * for before they begin.
 */
#ifndef KVMPROF_BASE_THREAD_H
#define KVMPROF_BASE_THREAD_H

#include "base/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

/* What a thread is for. docs/architecture.md says what each does. */
enum thread_kind {
	THREAD_MAIN,
	THREAD_VCPU,
	THREAD_DISK,
	THREAD_DISK_POLL,
	THREAD_9P,
	THREAD_9P_FILES, /* a process */
	THREAD_KEEPER,	 /* a process */
	THREAD_REST,
	THREAD_NET_USER,
	THREAD_NET_SLIRP, /* a process */
	THREAD_NET_TAP,
	THREAD_PIT,
	THREAD_CONSUMER,
	THREAD_CONSOLE,
	THREAD_CONTROL,
	/* Of a machine that others run. */
	THREAD_TRACER,
	THREAD_GDB,
	THREAD_LIBVIRT,
	/* attach in two processes: the one that traces; the other one's that hears of the end. */
	THREAD_ATTACH_MAIN,
	THREAD_ATTACH_SERVE,
	THREAD_ATTACH_LINK,
	THREAD_ATTACH_GUARD, /* a process */
	/* One ioctl while a machine is made (vmm/pvm). */
	THREAD_MSR_FILTER,
	/* Closes the probe guest meanwhile (vmm/kvm.h). */
	THREAD_PROBE,
	THREAD_KINDS
};

/* At most 15 bytes: it is also the thread's name in /proc. */
const char *thread_kind_name(enum thread_kind kind);

/*
 * pthread_create() with every signal blocked from its first instruction on, so that what
 * is sent to the process comes to the threads that wait for it. The thread has its kind's name.
 * Returns 0 or a positive errno value, as pthread_create(), or what `prepare` says. Any thread.
 */
int thread_start(pthread_t *out, enum thread_kind kind, void *(*main)(void *), void *arg);
/* The same of a thread whose crash is its own end (fault.h). f stays until it is joined. */
int thread_start_guarded(pthread_t *out, enum thread_kind kind, void *(*main)(void *), void *arg,
			 struct fault *f);

/*
 * Starts a thread that calls early(arg) before the entry of thread_set_entry(). early() opens the
 * descriptors that the thread's list of system calls does not let it open later.
 */
int thread_start_early(pthread_t *out, enum thread_kind kind, void (*early)(void *),
		       void *(*main)(void *), void *arg);

/* Initializes a condition for waits until a time of CLOCK_MONOTONIC. */
void thread_cond_init(pthread_cond_t *c);
/* Waits on a condition of thread_cond_init() until this time of CLOCK_MONOTONIC. Returns as pthread_cond_timedwait(). */
int thread_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until_ns);

/*
 * From now on, thread_start() calls prepare() before there is a thread, on the caller's: 0, or a
 * positive errno value, and none is started. enter() is what the new thread does first, on itself.
 * Called by the main thread, at most once, while thread_start() is not called.
 */
void thread_set_entry(int (*prepare)(enum thread_kind kind), void (*enter)(enum thread_kind kind));

/*
 * For a thread that was started before thread_set_entry(): one thread calls thread_bind_prepare() (0, or a positive
 * errno value), then the thread itself calls thread_bind(). Without thread_set_entry() they do nothing.
 */
int thread_bind_prepare(enum thread_kind kind);
void thread_bind(enum thread_kind kind);

#endif
