/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvm_state: what vmm/pvm/ keeps in struct vm and struct vcpu. Nobody else reads or writes it.
 */
#ifndef KVMPROF_VMM_PVM_STATE_H
#define KVMPROF_VMM_PVM_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct simd_place;

/* What the SYSCALL work-around has learnt of a vCPU (pvm/syscall_assist.h). */
struct pvm_syscall {
	uint64_t lstar, fmask; /* as last written by the guest */
	uint64_t pf_handler;   /* breakpoint address, 0: not armed */
	bool know_lstar, know_fmask;
};

/* The way past a breakpoint by a single step (pvm/step.h). */
struct pvm_step {
	/* An exception came between the instruction and its step: it will be reached again. */
	bool again;
	unsigned int again_index;
	uint64_t again_rsp, again_cr3;
	bool trap_flag; /* the guest single-steps the instruction that is stepped over */
	uint64_t from;	/* address of that instruction */
};

/* Of one vCPU; on its thread. All zero in the beginning. */
struct pvm_vcpu {
	struct pvm_syscall syscall;
	bool asked; /* the MSRs were read once, in case they were written early */
	struct pvm_step step;
	unsigned int again; /* how often in a row an instruction began again (pvm/complete.c) */
	struct simd_place
		*simd; /* pvm/simd_run.h, one for all; NULL: SIMD instructions stay unfinished */
};

/* Of the machine. All zero in the beginning. */
struct pvm_vm {
	pthread_t filter_thread; /* sets the MSR filter */
	bool filter_started;
	atomic_bool filter_done;
};

#endif
