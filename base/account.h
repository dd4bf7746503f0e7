/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * account: accounts for the time of one vCPU's thread, as the thread itself measures it around
 * KVM_RUN.
 *
 * The thread's time is divided into spans that follow each other without a gap, so the wall times
 * add up to the time since account_begin(). Each change of span costs one clock reading, which a
 * vCPU needs at each exit anyway. The thread also reads its processor time from the host, but only
 * after a span that was long enough to hide the price (1.3 us measured on the machine of
 * docs/hosts.md). A thread that was off its processor makes a long span, so this shows in
 * which kind of span it was. Time off the processor in short spans is attributed to KVM_RUN as far
 * as the other spans were too short to contain it; the rest is `elsewhere`.
 *
 * Not thread-safe: the vCPU's thread calls all functions. Another thread may copy a struct account
 * with count_copy() meanwhile (base/count.h).
 */
#ifndef KVMPROF_BASE_ACCOUNT_H
#define KVMPROF_BASE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

enum account_span {
	ACCOUNT_RUN,	 /* in KVM_RUN */
	ACCOUNT_VMM,	 /* outside of KVM_RUN, working for the guest */
	ACCOUNT_STOPPED, /* outside of KVM_RUN, taking a sample or stopped by kvmprof */
	ACCOUNT_SPANS
};

/*
 * The thread reads its processor time after a span of ACCOUNT_LONG_NS or more, and otherwise every
 * ACCOUNT_LOOK_NS.
 */
#define ACCOUNT_LONG_NS UINT64_C(100000)
#define ACCOUNT_LOOK_NS UINT64_C(1000000)

/* Sums in ns. All members have 64 bits because another thread copies them while they change. */
struct account {
	/* CLOCK_MONOTONIC of the first and the last change; 0: not begun */
	uint64_t begun_ns, now_ns;
	/* Total time by kind of span. */
	uint64_t wall[ACCOUNT_SPANS];
	/*
	 * Parts of wall[] up to the last account_update(): waiting for a processor, and blocked on
	 * something else.
	 */
	uint64_t delay[ACCOUNT_SPANS], blocked[ACCOUNT_SPANS];
	uint64_t elsewhere; /* time off the processor whose kind of span is not known */
	/* State for the next account_update(). */
	uint64_t span;			 /* enum account_span of the current span */
	uint64_t pending[ACCOUNT_SPANS]; /* part of wall[] since the last account_update() */
	uint64_t looked_ns;		 /* CLOCK_MONOTONIC of the last account_update() */
	/* Processor time and waiting time of the thread at that moment. */
	uint64_t cpu_ns, delay_ns;
};

/* A thread's times as the host counts them, in ns since the thread began. */
struct account_thread {
	/* delay_ns is known; else it is 0 and all time off a processor counts as blocked */
	bool have_delay;
	/* Processor time, and time that the thread was runnable but waited for a processor. */
	uint64_t cpu_ns, delay_ns;
};

/*
 * Starts the account at now_ns (CLOCK_MONOTONIC) with the span ACCOUNT_VMM. *t is the thread's time
 * at that moment.
 */
void account_begin(struct account *a, uint64_t now_ns, const struct account_thread *t);
/* Ends the current span at now_ns (CLOCK_MONOTONIC) and begins a span of the kind `next`. */
void account_next(struct account *a, enum account_span next, uint64_t now_ns);
/*
 * Divides the time since the last call into time on a processor, delay and blocked time, using *t.
 * Called at the end of a span of the kind `span` that took len_ns.
 */
void account_update(struct account *a, const struct account_thread *t, enum account_span span,
		    uint64_t len_ns);

/*
 * Stores the times of the calling thread in *out. fd is from account_open(); if it is negative or
 * cannot be read, only cpu_ns is set.
 */
void account_read_thread(int fd, struct account_thread *out);
/*
 * Opens the schedstat file of the calling thread. Returns a descriptor that the caller closes, or a
 * negative value if this host has no schedstat.
 */
int account_open(void);

/* Returns the processor time in spans of this kind, in ns. */
static inline uint64_t account_ran(const struct account *a, enum account_span span)
{
	return a->wall[span] - a->delay[span] - a->blocked[span];
}

#endif
