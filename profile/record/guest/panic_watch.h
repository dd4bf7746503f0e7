/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * panic_watch: detects that a Linux kernel is in a panic while it runs, by its variables and by
 * samples.
 *
 * The consumer thread finds the variables. In a machine of this process any thread may then read
 * them; in another process's machine only the consumer thread reads memory.
 *
 * Source: kernel/panic.c. vpanic() sets panic_cpu. It waits for panic_timeout seconds and resets
 * the machine; with 0 it loops for ever. With kexec_crash_image it boots that kernel instead.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_PANIC_WATCH_H
#define KVMPROF_PROFILE_RECORD_GUEST_PANIC_WATCH_H

#include "profile/record/guest/guest.h"

#include <stdatomic.h>

/* All zero: nothing is known yet. Nothing has to be freed. */
struct panic_watch {
	/* Guest-physical addresses; 0: unknown. `cpu` is stored last. */
	_Atomic uint64_t cpu, timeout, image, banner;
	atomic_uint kernels; /* number of calls of panic_watch_reset() */
	/* time of the newest sample that was taken in panic(), in ns; 0: there was none */
	_Atomic uint64_t sampled_ns;
	/* panic_cpu was set in the last two reads; used for another process's machine only */
	atomic_bool seen;
	/* The following members belong to the consumer thread: */
	uint64_t tick_ns;
	bool once;	 /* panic_cpu was set in the last read */
	bool have_range; /* `start` and `end` are valid */
	uint64_t start[2],
		end[2]; /* run-time addresses of panic() and vpanic(); 0,0: the kernel has none */
};

struct panic_state {
	bool known;	   /* `panicked` is valid */
	bool panicked;	   /* a kernel with kexec also sets panic_cpu for a moment at each oops */
	bool have_timeout; /* `timeout` is valid */
	int timeout;	   /* seconds before the reset; 0: never; negative: immediately */
	bool crash_kernel; /* a crash kernel is loaded, which boots then */
};

/* Forgets the variables, because another kernel runs. Called by the consumer thread. */
void panic_watch_reset(struct panic_watch *w);
/*
 * Searches for the variables, or reads them, every 100 ms. Called by the consumer thread between
 * samples.
 */
void panic_watch_tick(struct panic_watch *w, struct guest *g, const struct gmem *mem);
/*
 * Stores the time of a sample if its stack contains panic(). time_ns is the sample's time. Called by
 * the consumer thread.
 */
void panic_watch_stack(struct panic_watch *w, const struct guest *g, const struct stack *s,
		       uint64_t time_ns);
/*
 * Returns the state that the variables show. mem is the memory of a machine of this process. Any
 * thread.
 */
struct panic_state panic_watch_read(const struct panic_watch *w, const struct gmem *mem);

#endif
