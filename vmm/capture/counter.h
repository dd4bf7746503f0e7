/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counter: a perf_event counter of a thread that signals it at the end of periods.
 *
 * Periods are as in trigger.h, on the axis of what is counted: a deadline at a random place of
 * each, and the counter is asked to overflow there. So weights add up to what it counted, and
 * nothing in the guest can run in step. Where the kernel chooses the periods (vm_counter.freq) a
 * sample's weight is what was counted since the last one.
 *
 * An overflow stops the counter until counter_go_on(). Otherwise what follows an overflow (the
 * signal, the return from its handler, the sample) could bring about the next one, and nothing
 * else would ever run. So kvmprof's own work is not counted, either.
 *
 * With others on the PMU a hardware counter counts for a part of the time only (multiplexing), and
 * the kernel stops one that overflows too often until its next tick, or until it is started again
 * (throttling). Weights are what was counted; struct vm_counter_stats says how much of the time
 * that was. The kernel writes of throttling to a ring of one page alone, perf_event_open(2).
 *
 * All calls come from one thread: the one that is counted, whose signal handler calls counter_signalled(), or the tracer of that
 * one (vmm/attach). The signal comes with si_fd, and si_code POLL_IN or POLL_HUP.
 */
#ifndef KVMPROF_VMM_CAPTURE_COUNTER_H
#define KVMPROF_VMM_CAPTURE_COUNTER_H

#include "base/err.h"
#include "vmm/capture/trigger.h"
#include "vmm/machine_parts.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct vm_counter;
struct vm_counter_stats;

/*
 * Open it on the calling thread, or on thread tid of another process, not counting yet. err has a text for people with the cause,
 * which may be a file's content (perf_event_paranoid). Returns 0 or -errno of perf_event_open.
 */
int counter_open(struct counter *c, const struct vm_counter *what, const struct trigger_rule *rule,
		 int signo, struct err *e);
int counter_open_on(struct counter *c, pid_t tid, const struct vm_counter *what,
		    const struct trigger_rule *rule, int signo, struct err *e);
/* Count from now on, up to the next overflow. */
int counter_start(struct counter *c, struct err *e);
/* In the handler of its signal. */
void counter_signalled(const struct counter *c);
/* Closed ones are fine. */
void counter_close(struct counter *c);

/*
 * A signal has come: has a period ended? Then *weight is what its sample stands for, *missed how
 * many more periods have ended with it, and the next overflow is asked for. counter_go_on() has
 * to follow, whatever is returned.
 */
bool counter_take(struct counter *c, uint64_t *weight, uint32_t *missed);
void counter_go_on(struct counter *c);

/*
 * Has it overflowed since the last call? Then fresh, in_guest, chain and chain_ns are of that. Of one that was opened with
 * vm_counter.chain.
 */
bool counter_chain(struct counter *c, struct vm_counter_stats *to);

/* What it has counted so far; 0 when that can't be read. */
uint64_t counter_read(struct counter *c);

/* Add what is new since the last call: times up to the last counter_take() or _read(). */
void counter_note(struct counter *c, struct vm_counter_stats *to);

/*
 * Would counter_open() work here? Hardware counters that are to leave the host out but can't be
 * opened so are tried with the host's share: then what->exclude_host is false afterwards.
 */
int counter_probe(struct vm_counter *what, uint64_t period, struct err *e);

#endif
