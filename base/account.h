/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * account: where the time of one vCPU's thread went, by what it measures itself around KVM_RUN.
 *
 * The thread says when one span ends and the next begins: that costs a clock, which a vCPU reads at
 * each exit anyway. At the end of a span that was long enough for its price to vanish it also asks what
 * it had of a processor meanwhile (1.3 us measured on the machine of docs/host-quirks.md). A thread that was
 * off its processor makes a long span, so that this says in which kind of span it was; of short ones
 * it is known to have been in KVM_RUN where the others were not long enough, else it is `elsewhere`.
 *
 * Spans follow each other without a gap: walls add up to the time since account_begin().
 */
#ifndef KVMPROF_BASE_ACCOUNT_H
#define KVMPROF_BASE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

enum account_span {
	ACCOUNT_RUN,	 /* in KVM_RUN */
	ACCOUNT_VMM,	 /* between two of them, for the guest */
	ACCOUNT_STOPPED, /* the same, as we take a sample or hold it */
	ACCOUNT_SPANS
};

/* A thread is asked for its processor time after a span of so many ns, and else that often. */
#define ACCOUNT_LONG_NS UINT64_C(100000)
#define ACCOUNT_LOOK_NS UINT64_C(1000000)

/* Sums in ns. All members have 64 bits, as they are copied while they change. */
struct account {
	uint64_t begun_ns, now_ns; /* CLOCK_MONOTONIC: first and last moment; 0: not begun */
	uint64_t wall[ACCOUNT_SPANS];
	/* Of it, as of the last look: waited for a processor; waited for something else. */
	uint64_t delay[ACCOUNT_SPANS], blocked[ACCOUNT_SPANS];
	uint64_t elsewhere; /* off its processor, in which kind of span is not known */
	/* What the next look goes by. */
	uint64_t span;			 /* enum account_span: the one that goes on */
	uint64_t pending[ACCOUNT_SPANS]; /* wall since the last look */
	uint64_t looked_ns;		 /* CLOCK_MONOTONIC of it */
	uint64_t cpu_ns, delay_ns;	 /* of the thread, then */
};

/* What the host says of the thread, in ns since it began: CPU time, and time waited for a processor. */
struct account_thread {
	bool have_delay; /* else delay_ns is 0: all time off a processor counts as blocked */
	uint64_t cpu_ns, delay_ns;
};

/* Pure: the first moment; the next span begins. */
void account_begin(struct account *a, uint64_t now_ns, const struct account_thread *t);
void account_next(struct account *a, enum account_span next, uint64_t now_ns);
/* What it had of a processor since the last look, at the end of a span of that kind and length. */
void account_look(struct account *a, const struct account_thread *t, enum account_span span,
		  uint64_t len_ns);

/* Of this thread. fd: its schedstat (account_open()), or negative. */
void account_ask(int fd, struct account_thread *out);
/* Descriptor for account_ask(), the caller's; negative: this host has no schedstat. */
int account_open(void);

/* Processor time in spans of this kind. */
static inline uint64_t account_ran(const struct account *a, enum account_span span)
{
	return a->wall[span] - a->delay[span] - a->blocked[span];
}

#endif
