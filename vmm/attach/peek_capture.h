/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek_capture: capture's samples out of what peek has recorded.
 *
 * Capture reads registers and guest memory as ever; both are those of the record. So a sample that
 * was taken without stopping the thread is made by the same code as any other, and is of one
 * moment. What capture would read and the record has not makes the sample void.
 *
 * One thread, that which takes the samples.
 */
#ifndef KVMPROF_VMM_ATTACH_PEEK_CAPTURE_H
#define KVMPROF_VMM_ATTACH_PEEK_CAPTURE_H

#include "vmm/pvm/peek.h"
#include "vmm/attach/process.h"
#include "vmm/attach/regs_page.h"
#include "vmm/gmem_remote.h"
#include "vmm/machine.h"

struct peek_capture {
	struct peek peek;
	struct peek_vcpu eye[ATTACH_MAX_VCPUS]; /* by vcpu.index; filled in by peek_aim() */
	struct gmem_remote record;
	_Alignas(struct kvm_run) uint8_t run[REGS_PAGE_SIZE]; /* registers of the record */
};

/* Of vm, whose memory is known by now. Errors as peek_open(). */
int peek_capture_open(struct peek_capture *c, struct vm *vm, struct err *e);
/* The part of that without a kernel: records are read where c->peek.block is. */
void peek_capture_init(struct peek_capture *c);
/* Not open is fine. */
void peek_capture_close(struct peek_capture *c);

/* Make a record of it: PEEK_TAKEN. Else it can't be made, or must not be trusted. */
enum peek_status peek_capture_take(struct peek_capture *c, const struct vcpu *v);
/* The record into v's ring; false: the record lacks something, and nothing was done. */
bool peek_capture_sample(struct peek_capture *c, struct vcpu *v, const struct capture_cause *cause);
/* v's thread is held in KVM_RUN, and v->run is fresh. */
void peek_capture_compare(struct peek_capture *c, const struct vcpu *v);

#endif
