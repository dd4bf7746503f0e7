/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regs_page: the kvm_run page of another process's vCPU, shared with it.
 *
 * With kvm_valid_regs set, KVM stores the registers there at each return of KVM_RUN
 * (KVM_CAP_SYNC_REGS, Documentation/virt/kvm/api.rst 5). kvm_dirty_regs is never
 * touched, so nothing is ever loaded from it. A sentinel tells whether KVM has stored
 * since: RFLAGS 0 does not exist (bit 1 is always set, SDM vol. 1, 3.4.3).
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

/* Map the page of descriptor fd of process pid. Errors name what the host does not allow. */
int regs_page_map(struct kvm_run **out, pid_t pid, int fd, struct err *e);
/* The process that requests the registers from KVM. */
enum regs_page_owner {
	REGS_PAGE_OURS,	   /* we do, from now on */
	REGS_PAGE_THEIRS,  /* the VMM does, and for all that we need */
	REGS_PAGE_PARTIAL, /* the VMM does, for less than we need: the page is of no use */
};
/*
 * Ask for registers from now on, where the page is free. Where the VMM uses it, it is its own:
 * nothing in it may be touched, neither by mark nor by end. A page of REGS_PAGE_THEIRS is always
 * fresh. What a kvmprof that was killed has left behind is known by a tag in bytes that nobody
 * uses, and is taken over.
 */
enum regs_page_owner regs_page_begin(struct kvm_run *run);
/* Stop asking, of a page that is REGS_PAGE_OURS. */
void regs_page_end(struct kvm_run *run);
/* NULL is fine. */
void regs_page_unmap(struct kvm_run *run);

/*
 * Put the sentinel there and return what it hides; and see later whether KVM has stored
 * over it. While it has not, the guest has not run either (KVM stores at each return), so
 * that with what was hidden the page is still right: regs_page_unmark().
 */
uint64_t regs_page_mark(struct kvm_run *run);
bool regs_page_is_fresh(const struct kvm_run *run);
void regs_page_unmark(struct kvm_run *run, uint64_t hidden);

#endif
