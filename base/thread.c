/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>

struct thread_begin {
	enum thread_kind kind;
	void *(*main)(void *);
	void *arg;
};

/* Written by the main thread before those exist that read it. */
static void (*thread_entry)(enum thread_kind kind);

const char *thread_kind_name(enum thread_kind kind)
{
	static const char *const name[THREAD_KINDS] = {
		[THREAD_MAIN] = "main",
		[THREAD_VCPU] = "vcpu",
		[THREAD_DISK] = "disk",
		[THREAD_DISK_POLL] = "disk-poll",
		[THREAD_9P] = "9p",
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

void thread_set_entry(void (*enter)(enum thread_kind kind))
{
	thread_entry = enter;
}

static void *thread_main(void *arg)
{
	struct thread_begin begin = *(struct thread_begin *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), thread_kind_name(begin.kind));
	if (thread_entry)
		thread_entry(begin.kind);
	return begin.main(begin.arg);
}

int thread_start(pthread_t *out, enum thread_kind kind, void *(*main)(void *), void *arg)
{
	struct thread_begin *begin = malloc(sizeof(*begin));
	sigset_t all, old;
	int ret;

	if (!begin)
		return ENOMEM;
	*begin = (struct thread_begin){ kind, main, arg };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(out, NULL, thread_main, begin);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		free(begin);
	return ret;
}
