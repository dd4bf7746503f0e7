/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture: copies one sample of a stopped vCPU into its ring.
 *
 * All functions are called by the thread that has stopped the vCPU: its own thread between two
 * KVM_RUNs, or the sampling thread of a foreign or exact machine. They neither allocate nor block.
 */
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
 * The input of a sample: registers, and the memory that they point into. Everything is borrowed.
 * The registers must not change while the view is used; guest memory may.
 */
struct capture_view {
	const struct kvm_regs *regs;
	const struct kvm_sregs *sregs;
	const struct gmem *mem;
	struct mmu_root root; /* page-table root from sregs */
	uint16_t flags;	      /* KVM_RUN_X86_* flags; valid if has_flags and vm->nested_flag */
	bool has_flags;
	const struct mmu_tlb *tlb; /* cache of translations for this sample; NULL: none */
};
/* Returns the page-table root that these registers define. */
struct mmu_root capture_root(const struct kvm_sregs *s);
/* Returns a view of these registers and this memory, without flags and without a tlb. */
struct capture_view capture_view_of(const struct kvm_regs *regs, const struct kvm_sregs *sregs,
				    const struct gmem *mem);
/* Returns the view of a stopped vCPU whose registers are in its kvm_run. */
struct capture_view capture_view_of_run(const struct kvm_run *run, const struct gmem *mem);
/*
 * Copies guest-virtual memory through the view's page tables. Returns the number of bytes copied
 * before the first unmapped page, like mmu_read().
 */
static inline size_t capture_read(const struct capture_view *w, uint64_t gva, void *dst, size_t len)
{
	return w->tlb ? mmu_tlb_read(w->mem, &w->root, w->tlb, gva, dst, len)
		      : mmu_read(w->mem, &w->root, gva, dst, len);
}
/* Copies the registers into a sample's form. */
void capture_regs(const struct kvm_regs *r, const struct kvm_sregs *s, struct sample_regs *out);
/*
 * Returns whether the vCPU is in the state after a reset or INIT, before its first instruction
 * (SDM vol. 3, table 9-1). kvmprof loads no guest code at the reset vector, so no guest code can
 * be there.
 */
bool capture_is_reset(const struct kvm_regs *r, const struct kvm_sregs *s);
/* The reason for a sample, and what it represents. */
struct capture_cause {
	uint64_t now; /* CLOCK_MONOTONIC, ns */
	enum sample_reason reason;
	uint8_t event;	 /* index of the event whose period has ended */
	uint32_t missed; /* periods missed before this sample */
	uint64_t weight; /* what it represents, in the event's unit: ns or counts */
	uint8_t device;	 /* as in struct sample */
	uint8_t exit;	 /* EXIT: reason of the VM exit */
	/* EXIT: port, address or number; IO: token of the notification. */
	uint64_t exit_addr;
	uint64_t exit_ns;		/* EXIT: ns, as in struct sample */
	const struct sample_host *host; /* HOST only */
};
/*
 * Takes a sample of a vCPU of this process and writes it to v->ring. If samples are not wanted now,
 * it only counts the period. Returns false if the ring had no room for it; nothing has changed
 * then.
 */
bool capture_sample(struct vcpu *v, const struct capture_cause *cause);
/*
 * Takes a sample of the state in *view, in the same way. It also returns false if the view is a
 * record that lacks memory which the sample needs (gmem_remote.lacking).
 */
bool capture_sample_of(struct vcpu *v, const struct capture_view *view,
		       const struct capture_cause *cause);
/* Returns whether the instruction before RIP is one that halts a vCPU. */
bool capture_is_behind_hlt(const struct capture_view *w);
/* Returns whether samples of this vCPU are wanted now. Any thread. */
bool capture_is_wanted(const struct vcpu *v);
/*
 * Checks whether the vCPU is halted with interrupts off. If so, adds `looks` to v->dead_looks, as
 * that many checks of a sampler would; otherwise resets it. Only for vCPUs of this process.
 */
void capture_watch(struct vcpu *v, unsigned int looks);

#endif
