/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pvm_state: the state that vmm/pvm/ keeps in struct vm and struct vcpu. Only vmm/pvm/ uses it. */
#ifndef KVMPROF_VMM_PVM_STATE_H
#define KVMPROF_VMM_PVM_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct simd_place;

/* State of the SYSCALL work-around on one vCPU (pvm/syscall_assist.h). */
struct pvm_syscall {
	uint64_t lstar, fmask; /* as last written by the guest */
	uint64_t pf_handler;   /* breakpoint address; 0: not armed */
	bool know_lstar, know_fmask;
};

/* State of passing a breakpoint by a single step (pvm/step.h). */
struct pvm_step {
	/*
	 * An exception came between the instruction and its step, so the instruction will be
	 * reached again.
	 */
	bool again;
	unsigned int again_index;
	uint64_t again_rsp, again_cr3;
	bool trap_flag; /* the guest single-steps the instruction that is passed */
	uint64_t from;	/* address of that instruction */
};

/* State of one vCPU, used by its thread. All zero at first. */
struct pvm_vcpu {
	struct pvm_syscall syscall;
	bool asked; /* the MSRs were read once, in case they had been written before */
	struct pvm_step step;
	unsigned int again; /* how often in a row an instruction started again (pvm/complete.c) */
	/* pvm/simd_run.h, one for all vCPUs; NULL: SIMD instructions are not completed */
	struct simd_place *simd;
};

/* State of the machine. All zero at first. */
struct pvm_vm {
	pthread_t filter_thread; /* sets the MSR filter */
	bool filter_started;
	atomic_bool filter_done;
};

#endif
