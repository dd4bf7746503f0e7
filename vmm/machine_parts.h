/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine_parts: the state that other files of vmm/ keep in struct vm and struct vcpu.
 *
 * The header that is named above each struct states its purpose and who reads and writes it.
 */
#ifndef KVMPROF_VMM_MACHINE_PARTS_H
#define KVMPROF_VMM_MACHINE_PARTS_H

#include "base/account.h"
#include "base/event.h"
#include "base/perf_ring.h"
#include "base/sample.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* capture/trigger.h. */
struct trigger {
	timer_t timer;
	clockid_t clock; /* clock of all times in this struct */
	bool armed;	 /* the timer exists */
	bool jitter;
	uint64_t period_ns;
	uint64_t start_ns;  /* start of period 0 */
	uint64_t period_no; /* number of the period that contains deadline_ns */
	uint64_t deadline_ns;
	uint64_t rng; /* xorshift state, never 0 */
};

/* capture/counter.h. */
struct counter {
	int fd; /* -1 or 0: not open */
	bool freq;
	bool by_hand;			       /* a tracepoint, which counter_signalled() stops */
	uint64_t set;			       /* period that was last requested */
	uint64_t last;			       /* freq: the count at the last sample */
	struct trigger axis;		       /* deadlines as counts */
	uint64_t enabled_ns, running_ns;       /* as last read */
	uint64_t noted_enabled, noted_running; /* see counter_note() */
	/* vm_counter.chain: the call chain of the last overflow, read by counter_chain(). */
	bool with_chain, fresh, in_guest;
	uint16_t nchain;
	uint64_t chain[SAMPLE_MAX_HOST];
	uint64_t chain_ns; /* CLOCK_MONOTONIC */
	struct perf_ring ring;
};

/* capture/source.h: the state of one event on one vCPU. */
struct source {
	volatile sig_atomic_t due;    /* a period has ended; set by the signal handler */
	volatile sig_atomic_t device; /* vcpu.device at that moment */
	bool armed;
	uint64_t period;	/* period in use */
	struct trigger trigger; /* WALL, CPU by a timer; EXIT: its deadlines */
	/* PERF, CPU, HOST; opened by source_open_all() and when it is armed again */
	struct counter counter;
	uint64_t opened; /* period with which the counter was opened */
	int open_error;	 /* positive errno of source_open_all(), reported when it is armed */
	char open_why[480];
	uint64_t exits; /* EXIT, IO: number so far */
	/* EXIT: KVM_EXIT_* of the exit that is due; HOST: of the exit being handled */
	uint8_t exit;
	uint64_t exit_addr; /* its address, as in struct sample; IO: the token */
	/* EXIT: when KVM_RUN returned with it; 0: it is handled, or there was none */
	uint64_t began_ns;
	uint64_t handled_ns; /* EXIT: when it had been handled */
	uint64_t exit_ns;    /* EXIT: as in struct sample */
	uint8_t span;	     /* HOST: enum account_span when its period ended */
	/* HOST: the part of the account that samples off the processor represent already */
	struct account seen;
	uint64_t on_seen;    /* HOST: processor time that samples represent already, and ... */
	uint64_t on_owed;    /* ... that of periods whose sample was not to be taken */
	uint64_t halts_seen; /* HOST: KVM's halt_wait_ns at that time */
	uint64_t off[SAMPLE_WHERES]; /* HOST: ns off the processor that no sample represents yet */
	/* HOST: CLOCK_MONOTONIC since when off[SAMPLE_RUNNABLE] accumulates */
	uint64_t waits_since;
	uint64_t owed; /* weight of samples that found no room; not for IO */
	/* Number of samples skipped in a row because the ring is nearly full. */
	unsigned int thinned;
};

#define DEBUGREG_SLOTS 4u /* DR0 to DR3 */

/* debugreg.h. */
struct debugreg {
	uint64_t addr[DEBUGREG_SLOTS]; /* address of an instruction; 0: not armed */
	bool stepping;		       /* one instruction runs with `step_slot` disabled */
	unsigned int step_slot;
};

/* control.h: the requested settings. A vCPU applies them when `changes` has changed. */
struct vm_control {
	atomic_uint changes;
	atomic_bool collect;
	atomic_bool armed[VM_MAX_EVENTS];
	atomic_uint_fast64_t period[VM_MAX_EVENTS];
	atomic_uint stack_max;
};

/* control.h: where vCPUs wait during a pause. machine_end() wakes them. */
struct pause {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	atomic_bool asked;
	unsigned int standing; /* number of waiting vCPUs, protected by lock */
};

#endif
