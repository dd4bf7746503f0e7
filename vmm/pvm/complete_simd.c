/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/complete_simd.h"

#include "vmm/machine.h"
#include "vmm/pvm/simd_form.h"
#include "vmm/pvm/simd_run.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#define RFLAGS_ARITH (RFLAGS_CF | RFLAGS_PF | RFLAGS_AF | RFLAGS_ZF | RFLAGS_SF | RFLAGS_OF)

static __u64 *guest_register(struct guest_insn *g, unsigned int n)
{
	struct kvm_regs *r = g->regs;
	__u64 *const all[GPR_COUNT] = { &r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp,
					&r->rsi, &r->rdi, &r->r8,  &r->r9,  &r->r10, &r->r11,
					&r->r12, &r->r13, &r->r14, &r->r15 };

	return all[n];
}

/* Finds the guest's memory operand. Returns -ENOTSUP if the decoder reports none. */
static int operand_address(const struct guest_insn *g, uint64_t *gva)
{
	const cs_x86 *x = &g->insn->detail->x86;

	for (unsigned int i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM)
			return guest_insn_address(g, i, gva);
	return -ENOTSUP;
}

/* Writes only bytes that differ, so that an instruction that stores nothing needs no access. */
static int store(const struct guest_insn *g, uint64_t gva, const uint8_t *old, const uint8_t *new,
		 size_t size)
{
	size_t first = 0, end = size;

	while (first < end && old[first] == new[first])
		first++;
	while (end > first && old[end - 1] == new[end - 1])
		end--;
	return first == end ? 0 : guest_insn_write(g, gva + first, new + first, end - first);
}

static void set_registers(struct guest_insn *g, const struct simd_form *f,
			  const struct simd_values *v)
{
	if (f->gpr_written != SIMD_NO_GPR)
		*guest_register(g, f->gpr_written) = v->rax;
	if (f->index)
		g->regs->rcx = v->rcx;
	if (f->flags)
		guest_insn_set_flags(g, RFLAGS_ARITH, (uint32_t)v->rflags & RFLAGS_ARITH);
}

bool complete_simd_stores(const struct guest_insn *g)
{
	struct simd_form f;

	return simd_form_parse(g->bytes, g->nbytes, &f) == 0 && f.source_len == g->insn->size &&
	       f.memory_size && f.stores;
}

int complete_simd(struct guest_insn *g)
{
	struct simd_place *place = g->v->pvm_state.simd;
	struct simd_values v = { .rflags = (g->regs->rflags & RFLAGS_ARITH) | 2 };
	uint8_t old[SIMD_OPERAND_MAX];
	struct simd_form f;
	uint64_t gva = 0;
	int ret = 0;

	if (!place || !g->v->run->s.regs.sregs.cs.l ||
	    simd_form_parse(g->bytes, g->nbytes, &f) < 0 || f.source_len != g->insn->size)
		return -ENOTSUP;
	if (f.memory_size) {
		ret = operand_address(g, &gva);
		ret = ret ? ret : guest_insn_read(g, gva, v.memory, f.memory_size);
		memcpy(old, v.memory, sizeof(old));
	}
	if (ret)
		return ret;
	if (ioctl(g->v->fd, KVM_GET_XSAVE, &v.vectors) < 0)
		return -errno;
	if (f.gpr_read != SIMD_NO_GPR)
		v.rax = *guest_register(g, f.gpr_read);
	if (f.lengths) {
		v.rax = g->regs->rax;
		v.rdx = g->regs->rdx;
	}
	ret = simd_run(place, &f, &v);
	ret = ret || !f.stores ? ret : store(g, gva, old, v.memory, f.memory_size);
	if (!ret && ioctl(g->v->fd, KVM_SET_XSAVE, &v.vectors) < 0)
		ret = -errno;
	if (!ret)
		set_registers(g, &f, &v);
	return ret;
}
