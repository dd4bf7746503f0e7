/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_insn: the instruction a vCPU stands at, its operands and its memory.
 *
 * Used only to finish instructions on hosts that refuse them (complete.c); the
 * decoder is kept for the thread's life.
 */
#ifndef KVMPROF_VMM_PVM_GUEST_INSN_H
#define KVMPROF_VMM_PVM_GUEST_INSN_H

#include "base/capstone.h"

#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* SDM vol. 1, 3.4.3. */
#define RFLAGS_CF 0x001u
#define RFLAGS_PF 0x004u
#define RFLAGS_AF 0x010u
#define RFLAGS_ZF 0x040u
#define RFLAGS_SF 0x080u
#define RFLAGS_OF 0x800u
#define RFLAGS_AC 0x40000u

struct guest_insn {
	struct vcpu *v;
	struct kvm_regs *regs; /* in kvm_run; the caller marks them dirty */
	const cs_insn *insn;   /* NULL when the bytes do not decode; thread-owned */
	uint8_t bytes[15];
	unsigned int nbytes;
	bool rip_done; /* rip has been set by the handler */
};

/* Read and decode at rip. -EFAULT: rip is not mapped; -EILSEQ: no x86 instruction. */
int guest_insn_decode(struct guest_insn *g, struct vcpu *v);

/* Size of operand i in bytes. */
unsigned int guest_insn_size(const struct guest_insn *g, unsigned int i);
/* Value of operand i, zero-extended. */
int guest_insn_get(const struct guest_insn *g, unsigned int i, uint64_t *value);
/* Write operand i; a 32-bit register write clears the upper half. */
int guest_insn_set(struct guest_insn *g, unsigned int i, uint64_t value);
/* Those flags of mask become as in value. */
static inline void guest_insn_set_flags(struct guest_insn *g, uint32_t mask, uint32_t value)
{
	g->regs->rflags = (g->regs->rflags & ~(uint64_t)mask) | value;
}
/* Effective guest-virtual address of memory operand i. -ENOTSUP when it is none. */
int guest_insn_address(const struct guest_insn *g, unsigned int i, uint64_t *gva);

/* Guest-virtual copies; -EFAULT unless the whole range is mapped (and writable). */
int guest_insn_read(const struct guest_insn *g, uint64_t gva, void *dst, size_t len);
int guest_insn_write(const struct guest_insn *g, uint64_t gva, const void *src, size_t len);
/* Bits of a page fault's error code (SDM vol. 3, 4.7). */
#define FAULT_PRESENT 1u
#define FAULT_WRITE 2u
#define FAULT_USER 4u

enum guest_access { GUEST_READ, GUEST_WRITE };
/*
 * Returns 0 if the byte at gva is in RAM and may be accessed so; -EFAULT if the access is a page fault, whose error code is then
 * *code; -ENOTSUP if it is a device's, or nothing's.
 */
int guest_insn_look(const struct guest_insn *g, uint64_t gva, enum guest_access access,
		    uint32_t *code);
/* Host address of [gva, gva+len) inside one page that may be accessed so, or NULL. */
void *guest_insn_host(const struct guest_insn *g, uint64_t gva, size_t len,
		      enum guest_access access);

#endif
