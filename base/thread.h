/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread: threads that take no signals but those that they ask for.
 */
#ifndef KVMPROF_BASE_THREAD_H
#define KVMPROF_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * pthread_create() with every signal blocked from its first instruction on, so that what
 * is sent to the process comes to the threads that wait for it. Returns 0 or a positive
 * errno value, as pthread_create().
 */
static inline int thread_start(pthread_t *out, void *(*main)(void *), void *arg)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(out, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

#endif
