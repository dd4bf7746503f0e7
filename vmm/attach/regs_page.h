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
/*
 * Ask for registers from now on. False: the VMM asks for them itself. Then the page is
 * its own, is always fresh, and nothing in it may be touched: neither mark nor end. What a
 * kvmprof that was killed has left behind is known by a tag in bytes that nobody uses, and
 * is taken over.
 */
bool regs_page_begin(struct kvm_run *run);
/* Stop asking, where regs_page_begin() began it. */
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
