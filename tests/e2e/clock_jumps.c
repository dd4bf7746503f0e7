/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library to be preloaded: clocks that jump, as at the end of a host's suspend, or of a pause of the
 * machine that the host is itself.
 *
 *	CLOCK_JUMP="AFTER_MS EVERY_MS MONOTONIC_S REALTIME_S"
 *
 * So long after the first look, and then every so often (0: once), clock_gettime(2) and time(2) go on from so
 * much later. CLOCK_MONOTONIC never goes back; CLOCK_REALTIME may, with a negative number. Timers that are
 * armed for a moment of CLOCK_MONOTONIC go off when it is that moment, as the kernel's clock did not jump.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int (*real_gettime)(clockid_t, struct timespec *);
static long after_ms = -1, every_ms, monotonic_s, realtime_s;
static int64_t begin_ms;

static int64_t now_ms(void)
{
	struct timespec t;

	real_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((constructor)) static void begin(void)
{
	const char *plan = getenv("CLOCK_JUMP");

	*(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	begin_ms = now_ms();
	if (plan &&
	    sscanf(plan, "%ld %ld %ld %ld", &after_ms, &every_ms, &monotonic_s, &realtime_s) != 4)
		abort();
}

static int64_t jumps(void)
{
	int64_t past = now_ms() - begin_ms - after_ms;

	if (after_ms < 0 || past < 0)
		return 0;
	return every_ms ? 1 + past / every_ms : 1;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int ret;

	if (!real_gettime) /* called by another library's constructor */
		begin();
	ret = real_gettime(id, t);
	if (ret)
		return ret;
	if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_RAW || id == CLOCK_BOOTTIME)
		t->tv_sec += jumps() * monotonic_s;
	else if (id == CLOCK_REALTIME)
		t->tv_sec += jumps() * realtime_s;
	return 0;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *old)
{
	static int (*real)(timer_t, int, const struct itimerspec *, struct itimerspec *);
	struct itimerspec v = *value;
	int64_t ahead = jumps() * monotonic_s;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "timer_settime");
	/* Those of a thread's processor time have small numbers. */
	if (flags & TIMER_ABSTIME && v.it_value.tv_sec >= ahead)
		v.it_value.tv_sec -= ahead;
	return real(timer, flags, &v, old);
}

time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}
