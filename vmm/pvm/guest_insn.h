/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_insn: the instruction at a vCPU's rip, its operands and its memory.
 *
 * It is used only to execute instructions on hosts that refuse them (complete.c). The vCPU's thread
 * calls all functions. Each thread has one decoder, which is freed when the thread ends. Functions
 * that return int return 0 or -errno, and -ENOTSUP for an operand of another kind.
 */
#ifndef KVMPROF_VMM_PVM_GUEST_INSN_H
#define KVMPROF_VMM_PVM_GUEST_INSN_H

#include "base/capstone.h"

#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* Bits of RFLAGS, SDM vol. 1, 3.4.3. */
#define RFLAGS_CF 0x001u
#define RFLAGS_PF 0x004u
#define RFLAGS_AF 0x010u
#define RFLAGS_ZF 0x040u
#define RFLAGS_SF 0x080u
#define RFLAGS_OF 0x800u
#define RFLAGS_AC 0x40000u

struct guest_insn {
	struct vcpu *v;
	struct kvm_regs *regs; /* in kvm_run; the caller marks them as changed */
	/* NULL if the bytes do not decode; belongs to the thread's decoder */
	const cs_insn *insn;
	uint8_t bytes[15];
	unsigned int nbytes;
	bool rip_done; /* the handler has set rip itself */
};

/*
 * Reads and decodes the instruction at rip. Returns 0; -EFAULT if rip is not mapped; -EILSEQ if it
 * is no x86 instruction; -ENOMEM if there is no decoder.
 */
int guest_insn_decode(struct guest_insn *g, struct vcpu *v);

/* Returns the size of operand i in bytes; 0 if there is none. */
unsigned int guest_insn_size(const struct guest_insn *g, unsigned int i);
/* Reads operand i, zero-extended. */
int guest_insn_get(const struct guest_insn *g, unsigned int i, uint64_t *value);
/* Writes operand i; writing a 32-bit register clears its upper half. */
int guest_insn_set(struct guest_insn *g, unsigned int i, uint64_t value);
/* Sets the flags in `mask` to their values in `value`. */
static inline void guest_insn_set_flags(struct guest_insn *g, uint32_t mask, uint32_t value)
{
	g->regs->rflags = (g->regs->rflags & ~(uint64_t)mask) | value;
}
/*
 * Computes the effective guest-virtual address of memory operand i. Returns -ENOTSUP if it is no
 * memory operand.
 */
int guest_insn_address(const struct guest_insn *g, unsigned int i, uint64_t *gva);

/*
 * Copies len bytes of guest-virtual memory at gva to dst. Returns 0, or -EFAULT unless the whole
 * range is mapped.
 */
int guest_insn_read(const struct guest_insn *g, uint64_t gva, void *dst, size_t len);
/*
 * Copies len bytes at src to guest-virtual memory at gva. Returns 0, or -EFAULT, with nothing
 * changed, unless the whole range is mapped and writable.
 */
int guest_insn_write(const struct guest_insn *g, uint64_t gva, const void *src, size_t len);
/* Bits of a page fault's error code (SDM vol. 3, 4.7). */
#define FAULT_PRESENT 1u
#define FAULT_WRITE 2u
#define FAULT_USER 4u

enum guest_access { GUEST_READ, GUEST_WRITE };
/*
 * Checks whether this access to the byte at gva is possible. Returns 0 if the byte is in RAM;
 * -EFAULT if the access is a page fault, with its error code in *code; -ENOTSUP if the address
 * belongs to a device or to nothing.
 */
int guest_insn_check_access(const struct guest_insn *g, uint64_t gva, enum guest_access access,
			    uint32_t *code);
/*
 * Returns the host address of [gva, gva + len), which lies within one page that allows this access,
 * or NULL.
 */
void *guest_insn_host(const struct guest_insn *g, uint64_t gva, size_t len,
		      enum guest_access access);

#endif
