/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exact_state: the state of an exact machine. It belongs to the consumer's thread, except for
 * atomic members and for `ended` and `wake_fd`, which any thread may signal.
 */
#ifndef KVMPROF_VMM_EXACT_EXACT_STATE_H
#define KVMPROF_VMM_EXACT_EXACT_STATE_H

#include "base/mmu.h"
#include "base/buf.h"
#include "vmm/exact/child.h"
#include "vmm/exact/exact.h"
#include "vmm/exact/monitor.h"
#include "vmm/exact/stop.h"
#include "vmm/machine.h"

#include <semaphore.h>

struct exact {
	struct vm *vm;
	struct exact_config cfg;
	struct child child;
	struct exact_facts facts;
	struct gmem mem;
	struct exact_cpus cpus;
	struct exact_stop stop; /* the last stop, where the vCPU is or was stopped */
	struct exact_expected expected;
	/*
	 * Page tables and RIP of the last sample in the kernel's 64-bit code. cr3 is 0 before the
	 * first one.
	 */
	struct mmu_root kernel_tables;
	uint64_t kernel_rip;
	struct kvm_run *run; /* registers of the stopped vCPU, in KVM's form */
	bool answered;	     /* the vCPU has been resumed */
	bool begun;	     /* samples are being collected; periods are counted from facts.begun */
	bool over;	     /* QEMU has ended */
	atomic_bool go;
	atomic_bool alone; /* the consumer's thread has crashed; its data must not be touched */
	atomic_uint_fast64_t now; /* virtual ns */
	struct monitor monitor;
	bool console_closed, errors_closed;
	/* CLOCK_MONOTONIC ns at which QEMU closed its connection; 0: it has not. */
	uint64_t broken_ns;
	unsigned int unanswered; /* consecutive queries of the halted state without an answer */
	struct buf kept;	 /* console bytes that wait for the next sample */
	/* the last count seen, and when it changed (CLOCK_MONOTONIC ns) */
	uint64_t seen_count, seen_ns;
	int wake_fd;
	sem_t ended;
	bool joined;
};

#endif
