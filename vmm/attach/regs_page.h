/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regs_page: the kvm_run page of another process's vCPU, mapped in this process, too.
 *
 * If kvm_valid_regs is set, KVM stores the registers there at each return of KVM_RUN
 * (KVM_CAP_SYNC_REGS, Documentation/virt/kvm/api.rst 5). kvm_dirty_regs is never changed, so KVM
 * never loads registers from the page. A sentinel shows whether KVM has stored registers since it
 * was written: RFLAGS is never 0, because bit 1 is always set (SDM vol. 1, 3.4.3).
 */
#ifndef KVMPROF_VMM_ATTACH_REGS_PAGE_H
#define KVMPROF_VMM_ATTACH_REGS_PAGE_H

#include "base/err.h"

#include <linux/kvm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Its part of the mapping of a vCPU's descriptor; what follows belongs to I/O. */
#define REGS_PAGE_SIZE 4096u

/*
 * Maps the page of descriptor fd of process pid; the caller unmaps it with regs_page_unmap(). e
 * must not be NULL. Returns 0 or -errno.
 */
int regs_page_map(struct kvm_run **out, pid_t pid, int fd, struct err *e);
/* The process that requests the registers from KVM. */
enum regs_page_owner {
	REGS_PAGE_OURS,	   /* kvmprof, from now on */
	REGS_PAGE_THEIRS,  /* the VMM, including all registers that kvmprof needs */
	REGS_PAGE_PARTIAL, /* the VMM, but not all registers that kvmprof needs */
};
/*
 * Requests registers from now on if the page is unused. If the VMM uses it, the caller must not
 * change it by regs_page_mark() or regs_page_end(); a page of REGS_PAGE_THEIRS is always fresh. A
 * tag in unused bytes identifies a request that a killed kvmprof has left behind, which is reused.
 */
enum regs_page_owner regs_page_begin(struct kvm_run *run);
/* Ends the request; the page must be REGS_PAGE_OURS. */
void regs_page_end(struct kvm_run *run);
/* Unmaps the page; NULL is allowed. */
void regs_page_unmap(struct kvm_run *run);

/* Stores the sentinel and returns the RFLAGS that it replaced. */
uint64_t regs_page_mark(struct kvm_run *run);
/*
 * Returns whether KVM has stored registers since regs_page_mark(). If it has not, the guest has not
 * run either, because KVM stores them at each return.
 */
bool regs_page_is_fresh(const struct kvm_run *run);
/*
 * Replaces the sentinel by `hidden`, the result of regs_page_mark(), unless KVM has stored
 * registers.
 */
void regs_page_unmark(struct kvm_run *run, uint64_t hidden);

#endif
