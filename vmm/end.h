/* SPDX-License-Identifier: GPL-2.0-or-later */
/* end: the reason for a machine's end, and the facts about it. */
#ifndef KVMPROF_VMM_END_H
#define KVMPROF_VMM_END_H

#include "base/err.h"
#include "base/sample.h"

#include <stdbool.h>
#include <stdint.h>

struct vm;

/* The reason why the machine stopped. */
enum vm_end_reason {
	VM_RUNNING = 0,
	VM_END_RESET,	    /* the guest requested a reset */
	VM_END_POWEROFF,    /* ACPI power off */
	VM_END_EXIT,	    /* the guest exited with a status: vm_result.exit_status */
	VM_END_HALTED,	    /* every vCPU is halted with interrupts off */
	VM_END_DURATION,    /* vm_end() by the caller: the duration has elapsed */
	VM_END_INTERRUPTED, /* vm_end() by the caller: Ctrl-C */
	VM_END_MARKER,	    /* a stop marker was reached */
	VM_END_SAMPLES,	    /* vm_end() by the caller: the number of samples is reached */
	VM_END_ASKED,	    /* vm_end() by the caller: requested through the control socket */
	/* vm_end() by the caller: a snapshot was saved, and that was all to do */
	VM_END_SAVED,
	VM_END_PANIC,	     /* vm_end() by the caller: the guest panicked and does nothing more */
	VM_END_HUNG,	     /* vm_end() by the caller: the guest makes no progress */
	VM_END_TRIPLE_FAULT, /* KVM_EXIT_SHUTDOWN */
	VM_END_GONE,	     /* attached: the process of the machine ended it */
	VM_END_STOPPED,	     /* attached: the machine was paused, moved away or ended by others */
	VM_END_ERROR,	     /* KVM or the VMM could not continue; see vm_result.err */
};

struct vm_result {
	enum vm_end_reason reason;
	unsigned int vcpu; /* vCPU that caused the end, else 0 */
	/*
	 * regs are valid: those of the vCPU at a crash, an error or a final halt. False if KVM has
	 * already reset the vCPU (TRIPLE_FAULT).
	 */
	bool have_regs;
	struct sample_regs regs;
	uint32_t exit_status; /* for EXIT */
	struct err err;	      /* its text is set for TRIPLE_FAULT and ERROR */
	uint64_t load_ns;     /* time spent writing the kernel into guest memory, in ns */
	/* Time of the end on the clock of vm_now_ns(). */
	uint64_t end_ns;
};

/* Returns a description of the reason, a static string. */
const char *vm_end_name(enum vm_end_reason reason);

/* Ends the machine; only the first reason counts. Does not wait. Any thread may call it. */
void vm_end(struct vm *vm, enum vm_end_reason reason);
/*
 * Ends the machine with VM_END_EXIT and the status that the guest reported. Any thread may call it.
 */
void vm_exit(struct vm *vm, uint32_t status);
/* Returns the result, which is final after vm_join(). It belongs to the machine. */
const struct vm_result *vm_result(const struct vm *vm);

#endif
