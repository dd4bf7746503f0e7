/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slots: finds where guest-physical memory lies in another process.
 *
 * KVM reports this to the process itself only; a BPF program may read it in the kernel (slots_kvm).
 * If that is impossible, the location is guessed and then proven. Each large mapping is tried as
 * the RAM that begins at guest-physical 0, without a hole or with the usual holes below 4 GiB. It
 * must agree with the vCPU's registers: the page tables at CR3 lead to an executable page for RIP,
 * to a readable one for RSP, and to the descriptor tables, whose gates in turn lead to executable
 * pages. Only one candidate may pass. RAM beyond 4 GiB that is a separate mapping is found in the
 * same way if the page tables lead there.
 *
 * Sources: SDM vol. 3, 4.5 and 6.14.1; the layouts of QEMU (hw/i386/pc_piix.c, pc_q35.c,
 * microvm.c), Firecracker, cloud-hypervisor, crosvm and kvmtool.
 */
#ifndef KVMPROF_VMM_ATTACH_SLOTS_H
#define KVMPROF_VMM_ATTACH_SLOTS_H

#include "base/err.h"
#include "base/sample.h"
#include "vmm/attach/process.h"
#include "base/gmem.h"

/* The registers of a stopped vCPU, including those that a sample does not have. */
struct slots_witness {
	struct sample_regs regs;
	uint64_t idt_base, gdt_base;
	uint16_t idt_limit;
};

struct slots_proof {
	bool text, stack, idt, handlers, gdt; /* the checks that passed */
	bool partial;			      /* not all RAM is known */
};

/*
 * Finds the regions of mem->region among the mappings of p. mem->remote is set and reads that
 * process. *proof lists the checks that passed, at least three. Returns 0; -EAGAIN if the vCPU is
 * not in 64-bit mode yet; -ENOENT if no mapping passes; -ENOTUNIQ if several do.
 */
int slots_find(struct gmem *mem, const struct process *p, const struct slots_witness *w,
	       struct slots_proof *proof, struct err *e);
/*
 * Checks regions that are known already by the registers *w. Returns 0; -EAGAIN if the vCPU is not
 * in 64-bit mode yet; or -ENOENT if the regions cannot be right.
 */
int slots_prove(const struct gmem *mem, const struct slots_witness *w, struct slots_proof *proof,
		struct err *e);

#endif
