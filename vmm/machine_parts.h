/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine_parts: what the files above machine.h keep in struct vm and struct vcpu.
 *
 * The header that a comment names says what they are for and who reads and writes them.
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
	clockid_t clock; /* of all times in here */
	bool armed;	 /* the timer exists */
	bool jitter;
	uint64_t period_ns;
	uint64_t start_ns;  /* of period 0 */
	uint64_t period_no; /* the period that `deadline_ns` lies in */
	uint64_t deadline_ns;
	uint64_t rng; /* xorshift state, never 0 */
};

/* capture/counter.h. */
struct counter {
	int fd; /* -1 or 0: not open */
	bool freq;
	bool by_hand;			       /* a tracepoint: counter_signalled() stops it */
	uint64_t set;			       /* the period that was last asked for */
	uint64_t last;			       /* freq: the count at the last sample */
	struct trigger axis;		       /* deadlines as counts */
	uint64_t enabled_ns, running_ns;       /* as last read */
	uint64_t noted_enabled, noted_running; /* counter_note() */
	/* vm_counter.chain: the last overflow's, taken by counter_chain(). */
	bool with_chain, fresh, in_guest;
	uint16_t nchain;
	uint64_t chain[SAMPLE_MAX_HOST];
	uint64_t chain_ns; /* CLOCK_MONOTONIC */
	struct perf_ring ring;
};

/* capture/source.h: one event on one vCPU. */
struct source {
	volatile sig_atomic_t due;    /* a period has ended; set by the signal handler */
	volatile sig_atomic_t device; /* vcpu.device at that moment */
	bool armed;
	uint64_t period;	/* in use */
	struct trigger trigger; /* WALL, CPU by a timer; EXIT: its deadlines */
	struct counter
		counter; /* PERF, CPU, HOST; opened by source_open_all() and when it is armed again */
	uint64_t opened; /* the period that it was opened with */
	int open_error;	 /* positive errno of source_open_all(), reported when it is armed */
	char open_why[480];
	uint64_t exits;	    /* EXIT, IO: so far */
	uint8_t exit;	    /* EXIT: the one that is due: KVM_EXIT_*; HOST: that is worked for */
	uint64_t exit_addr; /* and its address, as in struct sample; IO: the token */
	uint64_t began_ns; /* EXIT: KVM_RUN returned with it; 0: it is handled, or there was none */
	uint64_t handled_ns; /* EXIT: and then it was handled */
	uint64_t exit_ns;    /* EXIT: as in struct sample */
	uint8_t span;	     /* HOST: enum account_span, when its period ended */
	struct account seen; /* HOST: as samples off its processor stand for it */
	uint64_t on_seen;    /* HOST: processor time that samples stand for already, and ... */
	uint64_t on_owed;    /* ... of periods whose sample was not to be taken */
	uint64_t halts_seen; /* HOST: KVM's halt_wait_ns then */
	uint64_t off[SAMPLE_WHERES]; /* HOST: ns off its processor that no sample stands for yet */
	uint64_t waits_since;	     /* HOST: CLOCK_MONOTONIC: off[SAMPLE_RUNNABLE] is since then */
	uint64_t owed;		     /* but for IO: weight of samples that found no room */
	unsigned int thinned;	     /* samples passed over in a row, as the ring is nearly full */
};

#define DEBUGREG_SLOTS 4u /* DR0 to DR3 */

/* debugreg.h. */
struct debugreg {
	uint64_t addr[DEBUGREG_SLOTS]; /* of an instruction; 0: not armed */
	bool stepping;		       /* one instruction runs, without `step_slot` */
	unsigned int step_slot;
};

/* control.h: what is asked for; each vCPU follows when `changes` has changed. */
struct vm_control {
	atomic_uint changes;
	atomic_bool collect;
	atomic_bool armed[VM_MAX_EVENTS];
	atomic_uint_fast64_t period[VM_MAX_EVENTS];
	atomic_uint stack_max;
};

/* control.h: where vCPUs stand still. machine_end() wakes them. */
struct pause {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	atomic_bool asked;
	unsigned int standing; /* vCPUs, under lock */
};

#endif
