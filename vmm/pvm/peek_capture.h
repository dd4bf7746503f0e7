/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek_capture: capture's samples out of what peek has recorded; pvm_peek_ops of pvm_peek_ops.h.
 *
 * The registers and the guest memory that capture is given are those of the record. So a sample
 * that was taken without stopping the thread is made by the same code as any other, and is of one
 * moment. A sample for which the record lacks memory is discarded.
 *
 * One thread, that which takes the samples.
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
	struct peek_vcpu eye[ATTACH_MAX_VCPUS]; /* by vcpu.index; filled in by peek_aim() */
	struct gmem_remote record;
	struct gmem mem; /* the guest's, out of the record */
};

/* The part of pvm_peek_ops.open without a kernel: records are read where c->peek.block is. */
void peek_capture_init(struct peek_capture *c, const struct gmem *mem);
/* pvm_peek_ops.sample */
bool peek_capture_sample(struct peek_capture *c, struct vcpu *v, const struct capture_cause *cause);

#endif
