/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvm_peek_ops: samples vCPUs of another process without stopping them, by BPF, on hosts where KVM
 * interprets ring 0 (attach/).
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

/* A vCPU: its thread, its descriptor in that process, and its number in KVM. */
struct pvm_peek_target {
	pid_t tid;
	unsigned int fd, id;
};

/* The process and the vCPUs to sample. */
struct pvm_peek_aim {
	pid_t pid;
	const struct gmem *mem; /* copied */
	const struct pvm_peek_target *target;
	unsigned int n; /* number of vCPUs in target[]; their indices are 0 to n - 1 */
};

/* The operations. The thread that takes the samples makes all calls. */
struct pvm_peek_ops {
	/*
	 * Loads the BPF programs, before a thread is seized because that takes time. Stores a new
	 * object in *out, which close() frees. Returns 0, or -errno (-EPERM, -ENOTSUP, ...) with
	 * the reason in *e.
	 */
	int (*open)(struct peek_capture **out, const struct vm_sampling *vm, struct err *e);
	/*
	 * Sets the threads and the memory, before all calls below. Returns 0, or -errno with *e
	 * recorded.
	 */
	int (*aim)(struct peek_capture *c, const struct pvm_peek_aim *at, struct err *e);
	/* The machine's memory lies elsewhere from now on. *mem is copied. */
	void (*see_memory)(struct peek_capture *c, const struct gmem *mem);
	void (*close)(struct peek_capture *c);
	/* Returns whether the records have agreed with KVM so far. */
	bool (*is_usable)(const struct peek_capture *c);
	/*
	 * Makes a record of v. Returns PEEK_TAKEN and stores the time that it took in *taken_ns, or
	 * returns why it failed.
	 */
	enum peek_status (*take)(struct peek_capture *c, const struct vcpu *v, uint64_t *taken_ns);
	/*
	 * Writes the record as a sample into v's ring. Returns false, with nothing done, if the
	 * record is incomplete.
	 */
	bool (*sample)(struct peek_capture *c, struct vcpu *v, const struct capture_cause *cause);
	/*
	 * Compares memory with the registers in *run, which KVM has stored while the vCPU's thread
	 * was stopped in KVM_RUN.
	 */
	void (*compare)(struct peek_capture *c, unsigned int vcpu, const struct kvm_run *run);
	/* Fills in the facts about BPF. */
	void (*facts)(const struct peek_capture *c, struct attach_facts *out);
};

/*
 * Returns the operations; NULL: this build has none. open() finds out whether the host supports
 * them.
 */
const struct pvm_peek_ops *pvm_peek_ops(void);

#endif
