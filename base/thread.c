/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>

struct thread_begin {
	enum thread_kind kind;
	void *(*main)(void *);
	void *arg;
	struct fault *fault; /* NULL: it is not guarded */
};

/* Written by the main thread before those exist that read it. */
static int (*thread_prepare)(enum thread_kind kind);
static void (*thread_enter)(enum thread_kind kind);

const char *thread_kind_name(enum thread_kind kind)
{
	static const char *const name[THREAD_KINDS] = {
		[THREAD_MAIN] = "main",
		[THREAD_VCPU] = "vcpu",
		[THREAD_DISK] = "disk",
		[THREAD_DISK_POLL] = "disk-poll",
		[THREAD_9P] = "9p",
		[THREAD_9P_FILES] = "9p-files",
		[THREAD_REST] = "virtio-rest",
		[THREAD_NET_USER] = "net-user",
		[THREAD_NET_TAP] = "net-tap",
		[THREAD_PIT] = "pit",
		[THREAD_CONSUMER] = "consumer",
		[THREAD_CONSOLE] = "console",
		[THREAD_CONTROL] = "control",
		[THREAD_TRACER] = "tracer",
		[THREAD_GDB] = "gdb",
		[THREAD_LIBVIRT] = "libvirt",
		[THREAD_MSR_FILTER] = "msr-filter",
	};

	return name[kind];
}

void thread_set_entry(int (*prepare)(enum thread_kind kind), void (*enter)(enum thread_kind kind))
{
	thread_prepare = prepare;
	thread_enter = enter;
}

static void *thread_main(void *arg)
{
	struct thread_begin begin = *(struct thread_begin *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), thread_kind_name(begin.kind));
	/* Fails for no reason that is known; a crash then ends the process. */
	if (begin.fault)
		(void)fault_guard(begin.fault);
	if (thread_enter)
		thread_enter(begin.kind);
	return begin.main(begin.arg);
}

int thread_start(pthread_t *out, enum thread_kind kind, void *(*main)(void *), void *arg)
{
	return thread_start_guarded(out, kind, main, arg, NULL);
}

int thread_start_guarded(pthread_t *out, enum thread_kind kind, void *(*main)(void *), void *arg,
			 struct fault *f)
{
	int ret = thread_prepare ? thread_prepare(kind) : 0;
	struct thread_begin *begin;
	sigset_t all, old;

	ret = ret || !f ? ret : -fault_prepare();
	if (ret)
		return ret;
	begin = malloc(sizeof(*begin));
	if (!begin)
		return ENOMEM;
	*begin = (struct thread_begin){ kind, main, arg, f };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(out, NULL, thread_main, begin);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		free(begin);
	return ret;
}
