/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exact_state: the state of an exact machine. It belongs to the consumer's thread, but for what is atomic. */
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
	struct exact_stop stop; /* the last one: what the vCPU stands at, or stood */
	struct exact_expected expected;
	/* Page tables and RIP of the last sample in a kernel's 64-bit code; cr3 0: there was none yet. */
	struct mmu_root kernel_tables;
	uint64_t kernel_rip;
	struct kvm_run *run; /* one: registers of the vCPU that stands */
	bool answered;	     /* the vCPU runs */
	bool begun;	     /* samples are collected; periods are counted from facts.begun on */
	bool over;	     /* QEMU has ended */
	atomic_bool go;
	atomic_bool alone; /* the consumer's thread has crashed: what it used is left as it is */
	atomic_uint_fast64_t now; /* virtual ns */
	struct monitor monitor;
	bool console_closed, errors_closed;
	uint64_t broken_ns;	      /* since then QEMU has closed its connection; 0: it has not */
	unsigned int unanswered;      /* questions whether it is halted, in a row */
	struct buf kept;	      /* bytes of the console, until the next sample */
	uint64_t seen_count, seen_ns; /* the count, and since when it is that */
	int wake_fd;
	sem_t ended;
	bool joined;
};

#endif
