/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slots: where in another process guest-physical memory lies.
 *
 * KVM tells this only to the process itself; a BPF program may read it in the kernel (slots_kvm).
 * Where that can't be, it is guessed and then proven: each large mapping is tried as the RAM that begins at
 * guest-physical 0, whole or with the usual holes below 4 GiB, and has to stand up to what the vCPU's
 * registers say: the page tables that CR3 points at lead to an executable page for RIP, to a readable one for
 * RSP, and to the descriptor tables, whose gates lead to executable pages in turn. Only one candidate may pass.
 * Memory beyond 4 GiB that is a mapping of its own is found in the same way when tables lead there.
 *
 * Sources: SDM vol. 3, 4.5 and 6.14.1; the layouts of QEMU (hw/i386/pc_piix.c,
 * pc_q35.c, microvm.c), Firecracker, cloud-hypervisor, crosvm and kvmtool.
 */
#ifndef KVMPROF_VMM_ATTACH_SLOTS_H
#define KVMPROF_VMM_ATTACH_SLOTS_H

#include "base/err.h"
#include "base/sample.h"
#include "vmm/attach/process.h"
#include "base/gmem.h"

/* The registers of a stopped vCPU, with those that a sample does not have. */
struct slots_witness {
	struct sample_regs regs;
	uint64_t idt_base, gdt_base;
	uint16_t idt_limit;
};

struct slots_proof {
	bool text, stack, idt, handlers, gdt; /* what agreed */
	bool partial;			      /* not all RAM is known */
};

/*
 * Fill in mem->region; mem->remote is set and reads the process. *proof tells what it
 * rests on: three proofs at least. -EAGAIN: the vCPU has no 64-bit page tables yet, or
 * another witness is needed; -ENOENT: nothing fits; -ENOTUNIQ: several do.
 */
int slots_find(struct gmem *mem, const struct process *p, const struct slots_witness *w,
	       struct slots_proof *proof, struct err *e);
/* Proves regions that are known already. Returns 0, -EAGAIN, or -ENOENT if they cannot be right. */
int slots_prove(const struct gmem *mem, const struct slots_witness *w, struct slots_proof *proof,
		struct err *e);

#endif
