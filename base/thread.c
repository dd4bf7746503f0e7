/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/thread.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

struct thread_begin {
	enum thread_kind kind;
	void *(*main)(void *);
	void *arg;
	struct fault *fault; /* NULL: the thread is not guarded */
	void (*early)(void *arg);
	void (*enter)(enum thread_kind kind); /* value of thread_enter when prepare() was called */
};

/* Written by the main thread before other threads that read them exist. */
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
		[THREAD_KEEPER] = "keeper",
		[THREAD_IMAGE] = "disk-image",
		[THREAD_REST] = "virtio-rest",
		[THREAD_NET_USER] = "net-user",
		[THREAD_NET_SLIRP] = "net-slirp",
		[THREAD_NET_TAP] = "net-tap",
		[THREAD_PIT] = "pit",
		[THREAD_CONSUMER] = "consumer",
		[THREAD_CONSOLE] = "console",
		[THREAD_CONTROL] = "control",
		[THREAD_TRACER] = "tracer",
		[THREAD_GDB] = "gdb",
		[THREAD_LIBVIRT] = "libvirt",
		[THREAD_ATTACH_MAIN] = "attach-main",
		[THREAD_ATTACH_SERVE] = "attach-serve",
		[THREAD_ATTACH_LINK] = "attach-link",
		[THREAD_ATTACH_GUARD] = "attach-guard",
		[THREAD_MSR_FILTER] = "msr-filter",
		[THREAD_PROBE] = "probe",
	};

	return name[kind];
}

void thread_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

int thread_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until_ns)
{
	const struct timespec until = clock_timespec(until_ns);

	return pthread_cond_timedwait(c, lock, &until);
}

void thread_set_entry(int (*prepare)(enum thread_kind kind), void (*enter)(enum thread_kind kind))
{
	thread_prepare = prepare;
	thread_enter = enter;
}

int thread_bind_prepare(enum thread_kind kind)
{
	return thread_prepare ? thread_prepare(kind) : 0;
}

void thread_bind(enum thread_kind kind)
{
	if (thread_enter)
		thread_enter(kind);
}

/*
 * The stack has guard pages on both sides; the kernel's signal frame holds all registers, up to 11
 * KiB.
 */
#define GUARD 4096u
#define SIGNAL_STACK (FAULT_STACK + 2 * GUARD)

/*
 * Gives the calling thread a stack for its signal handlers, so that they run even after a crash
 * with a bad stack pointer. Returns NULL if out of memory; then the thread has none.
 */
static void *signal_stack_create(void)
{
	void *p = mmap(NULL, SIGNAL_STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t own = { .ss_sp = (char *)p + GUARD, .ss_size = FAULT_STACK };

	if (p == MAP_FAILED)
		return NULL;
	if (mprotect(own.ss_sp, FAULT_STACK, PROT_READ | PROT_WRITE) < 0 ||
	    sigaltstack(&own, NULL) < 0) {
		munmap(p, SIGNAL_STACK);
		return NULL;
	}
	return p;
}

/*
 * Unmaps the stack of a thread that is about to end. All signals are blocked first, because their
 * stack is gone.
 */
static void signal_stack_destroy(void *p)
{
	sigset_t all;

	if (!p)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	munmap(p, SIGNAL_STACK);
}

static void *thread_main(void *arg)
{
	struct thread_begin begin = *(struct thread_begin *)arg;
	void *stack = NULL, *ret;

	free(arg);
	pthread_setname_np(pthread_self(), thread_kind_name(begin.kind));
	/* This has no known reason to fail. If it fails, a crash ends the process. */
	if (begin.fault)
		(void)fault_guard(begin.fault);
	else if (begin.kind == THREAD_VCPU)
		stack = signal_stack_create();
	if (begin.early)
		begin.early(begin.arg);
	if (begin.enter)
		begin.enter(begin.kind);
	ret = begin.main(begin.arg);
	signal_stack_destroy(stack);
	return ret;
}

static int thread_begin(pthread_t *out, const struct thread_begin *how)
{
	int ret = thread_prepare ? thread_prepare(how->kind) : 0;
	struct thread_begin *begin;
	sigset_t all, old;

	ret = ret || !how->fault ? ret : -fault_prepare();
	if (ret)
		return ret;
	begin = malloc(sizeof(*begin));
	if (!begin)
		return ENOMEM;
	*begin = *how;
	begin->enter = thread_enter;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(out, NULL, thread_main, begin);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		free(begin);
	return ret;
}

int thread_start(pthread_t *out, enum thread_kind kind, void *(*main)(void *), void *arg)
{
	return thread_begin(
		out,
		&(struct thread_begin){
			.kind = kind, .main = main, .arg = arg, .fault = NULL, .early = NULL });
}

int thread_start_guarded(pthread_t *out, enum thread_kind kind, void *(*main)(void *), void *arg,
			 struct fault *f)
{
	return thread_begin(
		out, &(struct thread_begin){
			     .kind = kind, .main = main, .arg = arg, .fault = f, .early = NULL });
}

int thread_start_early(pthread_t *out, enum thread_kind kind, void (*early)(void *),
		       void *(*main)(void *), void *arg)
{
	return thread_begin(
		out,
		&(struct thread_begin){
			.kind = kind, .main = main, .arg = arg, .fault = NULL, .early = early });
}
