/* SPDX-License-Identifier: GPL-2.0-or-later */
/* end: why a machine stopped, and what is known of its end. */
#ifndef KVMPROF_VMM_END_H
#define KVMPROF_VMM_END_H

#include "base/err.h"
#include "base/sample.h"

#include <stdbool.h>
#include <stdint.h>

struct vm;

/* Why the machine stopped. */
enum vm_end_reason {
	VM_RUNNING = 0,
	VM_END_RESET,	     /* the guest asked for a reset */
	VM_END_POWEROFF,     /* ACPI power off */
	VM_END_EXIT,	     /* the guest said with what: vm_result.exit_status */
	VM_END_HALTED,	     /* every vCPU halted with interrupts off */
	VM_END_DURATION,     /* vm_end() by the caller: time is up */
	VM_END_INTERRUPTED,  /* vm_end() by the caller: Ctrl-C */
	VM_END_MARKER,	     /* a stop marker was reached */
	VM_END_SAMPLES,	     /* vm_end() by the caller: there are enough */
	VM_END_ASKED,	     /* vm_end() by the caller: through the control socket */
	VM_END_SAVED,	     /* vm_end() by the caller: a snapshot was what it ran for */
	VM_END_PANIC,	     /* vm_end() by the caller: after a panic the guest does nothing more */
	VM_END_TRIPLE_FAULT, /* KVM_EXIT_SHUTDOWN */
	VM_END_GONE,	     /* attached to: its process ended it */
	VM_END_STOPPED,	     /* attached to: it was paused, moved away or ended by others */
	VM_END_ERROR,	     /* KVM or the VMM could not go on; see vm_result.err */
};

struct vm_result {
	enum vm_end_reason reason;
	unsigned int vcpu; /* that ended it, where one did */
	/*
	 * regs are those of the vCPU at a crash, error or halt for good. false at TRIPLE_FAULT: KVM
	 * has reset it.
	 */
	bool have_regs;
	struct sample_regs regs;
	uint32_t exit_status; /* of EXIT */
	struct err err;	      /* text for TRIPLE_FAULT and ERROR */
	uint64_t load_ns;     /* spent writing the kernel into guest memory */
	uint64_t end_ns;
};

const char *vm_end_name(enum vm_end_reason reason);

/* Ask for an end; the first reason counts. Any thread. */
void vm_end(struct vm *vm, enum vm_end_reason reason);
/* Ends the machine with VM_END_EXIT: the guest has said how it went. */
void vm_exit(struct vm *vm, uint32_t status);
const struct vm_result *vm_result(const struct vm *vm);

#endif
