/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek_capture: makes samples from the records of peek; implements pvm_peek_ops of pvm_peek_ops.h.
 *
 * The capture code gets the registers and the guest memory of the record. A sample that was taken
 * without stopping the thread is therefore made by the same code as any other, and belongs to one
 * moment. A sample for which the record lacks memory is discarded.
 *
 * One thread, the one that takes the samples, uses it.
 */
#ifndef KVMPROF_VMM_PVM_PEEK_CAPTURE_H
#define KVMPROF_VMM_PVM_PEEK_CAPTURE_H

#include "vmm/attach/process.h"
#include "base/gmem_remote.h"
#include "vmm/machine.h"
#include "vmm/pvm_peek_ops.h"
#include "vmm/pvm/peek.h"

struct peek_capture {
	struct peek peek;
	struct peek_vcpu eye[ATTACH_MAX_VCPUS]; /* by vcpu.index; set by peek_aim() */
	struct gmem_remote record;
	struct gmem mem; /* guest memory, read from the record */
};

/*
 * Initialises the part of pvm_peek_ops.open that needs no kernel: records are read from
 * c->peek.block.
 */
void peek_capture_init(struct peek_capture *c, const struct gmem *mem);
/*
 * Writes the record as a sample into v's ring. Returns false, with nothing done, if the record is
 * incomplete. Implements pvm_peek_ops.sample().
 */
bool peek_capture_sample(struct peek_capture *c, struct vcpu *v, const struct capture_cause *cause);

#endif
