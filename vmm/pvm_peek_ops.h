/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvm_peek_ops: another process's vCPUs where KVM interprets ring 0, seen by BPF without a stop (attach/).
 */
#ifndef KVMPROF_VMM_PVM_PEEK_OPS_H
#define KVMPROF_VMM_PVM_PEEK_OPS_H

#include "base/err.h"
#include "vmm/attach/peek_status.h"
#include "vmm/machine.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct capture_cause;
struct attach_facts;
struct peek_capture;

/* A vCPU: its thread, its descriptor in that process, its number in KVM. */
struct pvm_peek_target {
	pid_t tid;
	unsigned int fd, id;
};

struct pvm_peek_aim {
	pid_t pid;
	const struct gmem *mem; /* copied */
	const struct pvm_peek_target *target;
	unsigned int n; /* vCPUs: those of the first n indices */
};

/* All calls by the thread that takes the samples. */
struct pvm_peek_ops {
	/*
	 * Load what it needs: before a thread is seized, as that takes its time. *out is for close.
	 * -EPERM, -ENOTSUP and others: it can't be, for the reason that *e gives.
	 */
	int (*open)(struct peek_capture **out, const struct vm_sampling *vm, struct err *e);
	/* Once the threads and the memory are known; before all that follows. */
	int (*aim)(struct peek_capture *c, const struct pvm_peek_aim *at, struct err *e);
	void (*close)(struct peek_capture *c);
	/* Never seen to disagree with KVM. */
	bool (*is_usable)(const struct peek_capture *c);
	/* Make a record of v: PEEK_TAKEN, and *taken_ns is how long that took. Else why not. */
	enum peek_status (*take)(struct peek_capture *c, const struct vcpu *v, uint64_t *taken_ns);
	/* The record into v's ring; false: the record lacks something, and nothing was done. */
	bool (*sample)(struct peek_capture *c, struct vcpu *v, const struct capture_cause *cause);
	/* A vCPU's thread is held in KVM_RUN, and KVM has stored its registers in *run: does memory
	 * say the same? */
	void (*compare)(struct peek_capture *c, unsigned int vcpu, const struct kvm_run *run);
	/* Fill in what was seen of BPF. */
	void (*facts)(const struct peek_capture *c, struct attach_facts *out);
};

/* NULL: this is a build without it. Whether the host has it is for open to find out. */
const struct pvm_peek_ops *pvm_peek_ops(void);

#endif
