/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * panic_watch: whether a Linux kernel is in a panic while it runs, by its variables and by samples.
 *
 * The consumer's thread finds the variables. In a machine of this process any thread may then read them; in another
 * process's machine only the consumer's thread reads memory.
 *
 * Source: kernel/panic.c. vpanic() sets panic_cpu. It waits for panic_timeout seconds and resets the machine; with 0
 * it loops for ever. With kexec_crash_image it boots that kernel instead.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_PANIC_WATCH_H
#define KVMPROF_PROFILE_RECORD_GUEST_PANIC_WATCH_H

#include "profile/record/guest/guest.h"

#include <stdatomic.h>

/* All zero is "nothing is known yet". */
struct panic_watch {
	/* Guest-physical addresses; 0 while they are unknown. `cpu` is stored last. */
	_Atomic uint64_t cpu, timeout, image, banner;
	atomic_uint kernels; /* how often panic_watch_reset() was called */
	atomic_bool sampled; /* a sample was taken in panic() */
	atomic_bool
		seen; /* panic_cpu was set in the last two reads; of another process's machine alone */
	/* The consumer's thread alone: */
	uint64_t tick_ns;
	bool once;	 /* panic_cpu was set in the last read */
	bool have_range; /* `start` and `end` are valid */
	uint64_t start[2],
		end[2]; /* run-time addresses of panic() and vpanic(); 0,0: the kernel has none */
};

struct panic_state {
	bool known;	   /* `panicked` is valid */
	bool panicked;	   /* a kernel with kexec sets panic_cpu for a moment at each oops, too */
	bool have_timeout; /* `timeout` is valid */
	int timeout;	   /* seconds before the reset; 0: never; negative: at once */
	bool crash_kernel; /* another kernel is loaded, which boots then */
};

/* Another kernel runs: its variables lie elsewhere. On the consumer's thread. */
void panic_watch_reset(struct panic_watch *w);
/* Between samples, on the consumer's thread; does something each 100 ms. */
void panic_watch_tick(struct panic_watch *w, struct guest *g, const struct gmem *mem);
/* A sample's stack, on the consumer's thread. */
void panic_watch_stack(struct panic_watch *w, const struct guest *g, const struct stack *s);
/* Reads the variables. mem is this process's. Any thread. */
struct panic_state panic_watch_read(const struct panic_watch *w, const struct gmem *mem);

#endif
