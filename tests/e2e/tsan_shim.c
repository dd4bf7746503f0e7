/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Part of a build with ThreadSanitizer, whose library does not know two calls of glibc 2.30 and 2.31 (gcc 12:
 * sanitizer_common_interceptors.inc): it would take the lock for never locked and the thread for never
 * joined. Here they are made of calls that it knows.
 */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000l

/* Converts a moment to the clock that the old calls take. */
static struct timespec on_realtime(clockid_t clock, const struct timespec *until)
{
	struct timespec now, real;
	int64_t ns;

	clock_gettime(clock, &now);
	clock_gettime(CLOCK_REALTIME, &real);
	ns = (int64_t)(until->tv_sec - now.tv_sec + real.tv_sec) * NSEC_PER_SEC + until->tv_nsec -
	     now.tv_nsec + real.tv_nsec;
	return (struct timespec){ .tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC };
}

int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	struct timespec ts = on_realtime(clock, until);

	return pthread_mutex_timedlock(m, &ts);
}

int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
			 const struct timespec *until)
{
	struct timespec ts = on_realtime(clock, until);

	return pthread_timedjoin_np(thread, value, &ts);
}
