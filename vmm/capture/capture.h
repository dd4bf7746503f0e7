/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture: one sample of a vCPU that stands, as a value in its ring. */
#ifndef KVMPROF_VMM_CAPTURE_CAPTURE_H
#define KVMPROF_VMM_CAPTURE_CAPTURE_H

#include "base/gmem.h"
#include "base/mmu.h"
#include "base/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kvm_regs;
struct kvm_run;
struct kvm_sregs;
struct vcpu;

/*
 * The input of a sample: registers, and the memory that they point into. All
 * borrowed; none of it changes meanwhile but the bytes in guest memory.
 */
struct capture_view {
	const struct kvm_regs *regs;
	const struct kvm_sregs *sregs;
	const struct gmem *mem;
	struct mmu_root root; /* of sregs */
	uint16_t flags;	      /* KVM_RUN_X86_*, where vm->nested_flag and has_flags say so */
	bool has_flags;
	const struct mmu_tlb *tlb; /* of this sample; NULL: none */
};
struct mmu_root capture_root(const struct kvm_sregs *s);
struct capture_view capture_view_of(const struct kvm_regs *regs, const struct kvm_sregs *sregs,
				    const struct gmem *mem);
/* Returns the view of a vCPU that is stopped, with registers in its kvm_run. */
struct capture_view capture_view_of_run(const struct kvm_run *run, const struct gmem *mem);
/* Guest-virtual memory, as mmu_read(). */
static inline size_t capture_read(const struct capture_view *w, uint64_t gva, void *dst, size_t len)
{
	return w->tlb ? mmu_tlb_read(w->mem, &w->root, w->tlb, gva, dst, len)
		      : mmu_read(w->mem, &w->root, gva, dst, len);
}
void capture_regs(const struct kvm_regs *r, const struct kvm_sregs *s, struct sample_regs *out);
/*
 * Is the vCPU as after a reset or INIT, in front of its first instruction (SDM vol. 3, table
 * 9-1)? No guest's code stands there: kvmprof loads none at the reset vector.
 */
bool capture_is_reset(const struct kvm_regs *r, const struct kvm_sregs *s);
/* Why and for what a sample is taken. */
struct capture_cause {
	uint64_t now; /* CLOCK_MONOTONIC */
	enum sample_reason reason;
	uint8_t event;
	uint32_t missed; /* periods missed before it */
	uint64_t weight;
	uint8_t device;			/* as in struct sample */
	uint8_t exit;			/* EXIT */
	uint64_t exit_addr;		/* EXIT, IO */
	uint64_t exit_ns;		/* EXIT: as in struct sample */
	const struct sample_host *host; /* HOST */
};
/*
 * Of a vCPU of our own. While no samples are wanted it is only counted. false: there was no room
 * for it; nothing has changed then.
 */
bool capture_sample(struct vcpu *v, const struct capture_cause *cause);
/*
 * The same of what is in *w. false also where that is a record which lacks memory that the sample
 * needs (gmem_remote.lacking).
 */
bool capture_sample_of(struct vcpu *v, const struct capture_view *view,
		       const struct capture_cause *cause);
/* Returns whether the instruction in front of RIP is one at which a vCPU halts. */
bool capture_is_behind_hlt(const struct capture_view *w);
/* Are samples wanted of it now? */
bool capture_is_wanted(const struct vcpu *v);
/* Is it halted for good? Counts as so many looks of a sampler (dead_looks). */
void capture_watch(struct vcpu *v, unsigned int looks);

#endif
