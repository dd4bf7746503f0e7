/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counter: a perf_event counter of a thread, which signals that thread at the end of periods.
 *
 * Periods work as in trigger.h, with the counted quantity in place of time: each period has a
 * deadline at a random place, and the counter is programmed to overflow there. So weights add up
 * to the count, and nothing in the guest can run in step. If the kernel chooses the periods
 * (vm_counter.freq), a sample's weight is the count since the previous sample.
 *
 * An overflow stops the counter until counter_resume(). Otherwise the consequences of an overflow
 * (the signal, the return from its handler, the sample) could cause the next one, and nothing else
 * would ever run. So kvmprof's own work is not counted either.
 *
 * If others use the PMU too, a hardware counter runs only part of the time (multiplexing), and the
 * kernel stops one that overflows too often until its next tick or restart (throttling). Weights
 * are what was counted; struct vm_counter_stats records how much of the time that covers. The
 * kernel reports throttling only in a ring of at least one page (perf_event_open(2)).
 *
 * Thread: all functions on a counter are called by one thread: the counted one, whose signal
 * handler calls counter_signalled(), or the tracer of the counted thread (vmm/attach). The signal
 * arrives with si_fd, and si_code POLL_IN or POLL_HUP.
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
 * Opens a stopped counter on the calling thread, which receives signal signo. rule->period_ns is
 * the period in counts, or with what->freq the rate in Hz. Returns 0, or -errno of
 * perf_event_open(2) with the cause in *e, which may include a file's content
 * (perf_event_paranoid). The caller closes *c with counter_close(); after an error it is closed
 * already.
 */
int counter_open(struct counter *c, const struct vm_counter *what, const struct trigger_rule *rule,
		 int signo, struct err *e);
/* Does the same as counter_open() on thread tid of another process, which receives the signal. */
int counter_open_on(struct counter *c, pid_t tid, const struct vm_counter *what,
		    const struct trigger_rule *rule, int signo, struct err *e);
/* Starts counting, up to the next overflow. Returns 0, or -errno with *e set. */
int counter_start(struct counter *c, struct err *e);
/*
 * Stops the counter if that needs help of the program. Called in the handler of its signal;
 * async-signal-safe.
 */
void counter_signalled(const struct counter *c);
/* Closes c and its ring. A closed counter is accepted. */
void counter_close(struct counter *c);

/*
 * Handles a signal. Returns whether a period has ended. Then *weight is what its sample stands for,
 * *missed is the number of further periods that ended, and the next overflow is programmed.
 * Otherwise they are not meaningful. The caller must then call counter_resume() in either case.
 */
bool counter_handle_signal(struct counter *c, uint64_t *weight, uint32_t *missed);
/* Restarts a stopped counter until the next overflow. */
void counter_resume(struct counter *c);

/*
 * Returns whether the counter has overflowed since the last call. If so, c->fresh data (in_guest,
 * chain and chain_ns) describe the newest overflow. Only for counters with vm_counter.chain. Adds
 * throttled and lost records to *to.
 */
bool counter_chain(struct counter *c, struct vm_counter_stats *to);

/* Returns what it has counted so far, or 0 if that cannot be read. */
uint64_t counter_read(struct counter *c);

/*
 * Adds to *to what is new since the last call: times up to the last counter_handle_signal() or
 * counter_read(), and throttled and lost records.
 */
void counter_note(struct counter *c, struct vm_counter_stats *to);

/*
 * Tests whether counter_open() would work here. Returns 0, or -errno with *e set. A hardware
 * counter that should exclude the host but cannot be opened so is tried with the host's share: on
 * success what->exclude_host is then false. Main thread.
 */
int counter_probe(struct vm_counter *what, uint64_t period, struct err *e);

#endif
