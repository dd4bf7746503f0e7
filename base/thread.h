/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread: starts threads that block all signals except those that they unblock themselves, and that
 * have a declared purpose.
 */
#ifndef KVMPROF_BASE_THREAD_H
#define KVMPROF_BASE_THREAD_H

#include "base/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

/*
 * The purpose of a thread (of a process where noted). docs/architecture.md describes what each
 * does.
 */
enum thread_kind {
	THREAD_MAIN,
	THREAD_VCPU,
	THREAD_DISK,
	THREAD_DISK_POLL,
	THREAD_9P,
	THREAD_9P_FILES, /* a process */
	THREAD_KEEPER,	 /* a process */
	THREAD_IMAGE,	 /* a process */
	THREAD_REST,
	THREAD_NET_USER,
	THREAD_NET_SLIRP, /* a process */
	THREAD_NET_TAP,
	THREAD_PIT,
	THREAD_CONSUMER,
	THREAD_CONSOLE,
	THREAD_CONTROL,
	/* Threads for a machine that another program runs. */
	THREAD_TRACER,
	THREAD_GDB,
	THREAD_LIBVIRT,
	/*
	 * `attach` in two processes: the main thread of the tracing one, its other threads, and the
	 * thread of the first process that waits for the end of the tracing one.
	 */
	THREAD_ATTACH_MAIN,
	THREAD_ATTACH_SERVE,
	THREAD_ATTACH_LINK,
	THREAD_ATTACH_GUARD, /* a process */
	/* Thread for one ioctl while a machine is created (vmm/pvm). */
	THREAD_MSR_FILTER,
	/* Thread that closes the probe guest in the background (vmm/kvm.h). */
	THREAD_PROBE,
	THREAD_KINDS
};

/*
 * Returns the name of the kind, a static string of at most 15 bytes, which is also the thread's
 * name in /proc.
 */
const char *thread_kind_name(enum thread_kind kind);

/*
 * Starts a thread like pthread_create(). All signals are blocked from its first instruction on, so
 * that signals sent to the process reach the threads that wait for them. The thread gets its kind's
 * name. Returns 0 or a positive errno value, of pthread_create() or of prepare() (see
 * thread_set_entry()). Any thread may call it. The caller joins or detaches the thread.
 */
int thread_start(pthread_t *out, enum thread_kind kind, void *(*main)(void *), void *arg);
/*
 * Starts a thread like thread_start() whose crash ends only itself (base/fault.h). *f must stay
 * valid until the thread is joined.
 */
int thread_start_guarded(pthread_t *out, enum thread_kind kind, void *(*main)(void *), void *arg,
			 struct fault *f);

/*
 * Starts a thread like thread_start() that calls early(arg) before the enter() of
 * thread_set_entry(). early() opens the descriptors that the thread's list of system calls does not
 * allow it to open later.
 */
int thread_start_early(pthread_t *out, enum thread_kind kind, void (*early)(void *),
		       void *(*main)(void *), void *arg);

/* Initialises a condition variable that waits with timeouts of CLOCK_MONOTONIC. */
void thread_cond_init(pthread_cond_t *c);
/*
 * Waits on a condition of thread_cond_init() until this CLOCK_MONOTONIC time in ns. Returns 0, or
 * ETIMEDOUT, as pthread_cond_timedwait().
 */
int thread_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until_ns);

/*
 * Sets two functions for all later threads. thread_start() calls prepare() on the caller's thread
 * first; if it returns a positive errno value instead of 0, no thread is started. The new thread
 * calls enter() first of all. Called at most once, by the main thread, while no thread_start()
 * runs.
 */
void thread_set_entry(int (*prepare)(enum thread_kind kind), void (*enter)(enum thread_kind kind));

/*
 * Prepares the binding of a thread that was started before thread_set_entry(). Returns 0 or a
 * positive errno value. Called by another thread; then the thread itself calls thread_bind(). Does
 * nothing without thread_set_entry().
 */
int thread_bind_prepare(enum thread_kind kind);
/* Binds the calling thread as thread_bind_prepare() describes. */
void thread_bind(enum thread_kind kind);

#endif
