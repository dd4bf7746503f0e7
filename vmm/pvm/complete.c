/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/complete.h"

#include "base/clock.h"
#include "vmm/pvm/complete_bmi.h"
#include "vmm/pvm/complete_simd.h"
#include "vmm/pvm/guest_insn.h"
#include "vmm/machine.h"
#include "vmm/msr.h"
#include "vmm/pvm/xstate.h"

#include <capstone/capstone.h>
#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define RFLAGS_ARITH (RFLAGS_CF | RFLAGS_PF | RFLAGS_AF | RFLAGS_ZF | RFLAGS_SF | RFLAGS_OF)

#define CR4_CET (1u << 23)

#define VECTOR_BP 3
#define VECTOR_UD 6
#define VECTOR_PF 14
/*
 * An instruction whose memory another vCPU maps meanwhile is started again at most this many times
 * in a row.
 */
#define AGAIN_MAX 1000u

static int inject(struct guest_insn *g, uint8_t vector)
{
	struct kvm_vcpu_events ev;

	if (ioctl(g->v->fd, KVM_GET_VCPU_EVENTS, &ev) < 0)
		return -errno;
	ev.exception.injected = 1;
	ev.exception.nr = vector;
	ev.exception.has_error_code = 0;
	ev.exception.pending = 0;
	return ioctl(g->v->fd, KVM_SET_VCPU_EVENTS, &ev) < 0 ? -errno : 0;
}

/* The work of an instruction of the XSAVE family. */
enum xsave_kind { XSAVE_NONE, XSAVE_SAVE, XSAVE_SAVE_COMPACTED, XSAVE_RESTORE };

static enum xsave_kind xsave_kind_of(unsigned int id)
{
	switch (id) {
	case X86_INS_XSAVE:
	case X86_INS_XSAVE64:
	case X86_INS_XSAVEOPT:
	case X86_INS_XSAVEOPT64:
		return XSAVE_SAVE;
	case X86_INS_XSAVEC:
	case X86_INS_XSAVEC64:
	case X86_INS_XSAVES:
	case X86_INS_XSAVES64:
		return XSAVE_SAVE_COMPACTED;
	case X86_INS_XRSTOR:
	case X86_INS_XRSTOR64:
	case X86_INS_XRSTORS:
	case X86_INS_XRSTORS64:
		return XSAVE_RESTORE;
	}
	return XSAVE_NONE;
}

/*
 * Returns whether the instruction stores to operand i. The decoder knows this for few instructions:
 * for MOVBE, CMPXCHG16B, STMXCSR, MOVHPS and others it reports only a read.
 */
static bool stores_to(const struct guest_insn *g, unsigned int i)
{
	const unsigned int id = g->insn->id;
	const enum xsave_kind kind = xsave_kind_of(id);

	return g->insn->detail->x86.operands[i].access & CS_AC_WRITE || kind == XSAVE_SAVE ||
	       kind == XSAVE_SAVE_COMPACTED || id == X86_INS_CMPXCHG16B || id == X86_INS_STMXCSR ||
	       (id == X86_INS_MOVBE && i == 0) || complete_simd_stores(g);
}

/*
 * Finds the page of operand i that is not mapped for the instruction's access. Returns -EFAULT if
 * there is one, 0 if there is none, or -ENOTSUP for an operand that is not in RAM.
 */
static int find_fault(const struct guest_insn *g, unsigned int i, uint64_t *gva, uint32_t *code)
{
	size_t size = g->insn->detail->x86.operands[i].size;
	bool write = stores_to(g, i);
	int ret;

	/* The length of XSAVE's area depends on XCR0, but the decoder reports a fixed size. */
	if (xsave_kind_of(g->insn->id) != XSAVE_NONE)
		size = 0;
	if (guest_insn_address(g, i, gva) < 0)
		return 0;
	ret = guest_insn_check_access(g, *gva, write ? GUEST_WRITE : GUEST_READ, code);
	/* No operand is longer than a page. The decoder does not know the size of some. */
	if (ret || (size && (*gva & 4095) + size <= 4096))
		return ret;
	*gva = (*gva | 4095) + 1;
	return guest_insn_check_access(g, *gva, write ? GUEST_WRITE : GUEST_READ, code);
}

/*
 * Injects the page fault of an instruction whose memory is not mapped or not writable; the guest's
 * handler then repeats the instruction. (Linux saves a signal frame's state to a stack that a fork
 * has left read-only.) If there is no fault any more, another vCPU has mapped the page meanwhile,
 * and the instruction starts again.
 */
static int inject_fault(struct guest_insn *g)
{
	struct kvm_vcpu_events ev;
	uint64_t gva = 0;
	uint32_t code = 0;
	int ret = 0;

	for (unsigned int i = 0; !ret && i < g->insn->detail->x86.op_count; i++)
		if (g->insn->detail->x86.operands[i].type == X86_OP_MEM)
			ret = find_fault(g, i, &gva, &code);
	if (!ret) {
		g->rip_done = true;
		return g->v->pvm_state.again++ < AGAIN_MAX ? 0 : -EFAULT;
	}
	if (ret != -EFAULT)
		return ret;
	g->v->pvm_state.again = 0;
	if (ioctl(g->v->fd, KVM_GET_VCPU_EVENTS, &ev) < 0)
		return -errno;
	ev.exception.injected = 1;
	ev.exception.nr = VECTOR_PF;
	ev.exception.has_error_code = 1;
	ev.exception.error_code = code;
	ev.exception.pending = 0;
	g->v->run->s.regs.sregs.cr2 = gva;
	g->v->run->kvm_dirty_regs |= KVM_SYNC_X86_SREGS;
	g->rip_done = true;
	return ioctl(g->v->fd, KVM_SET_VCPU_EVENTS, &ev) < 0 ? -errno : 0;
}

/* Executes a bit count: the source is operand 1, the destination operand 0. */
static int bit_count(struct guest_insn *g, unsigned int id)
{
	unsigned int bits = guest_insn_size(g, 0) * 8;
	uint64_t src, dst;
	int ret = guest_insn_get(g, 1, &src);

	if (ret)
		return ret;
	switch (id) {
	case X86_INS_POPCNT:
		dst = (uint64_t)__builtin_popcountll(src);
		guest_insn_set_flags(g, RFLAGS_ARITH, src ? 0 : RFLAGS_ZF);
		break;
	case X86_INS_TZCNT:
		dst = src ? (uint64_t)__builtin_ctzll(src) : bits;
		guest_insn_set_flags(g, RFLAGS_CF | RFLAGS_ZF,
				     (src ? 0 : RFLAGS_CF) | (dst ? 0 : RFLAGS_ZF));
		break;
	default: /* LZCNT */
		dst = src ? (uint64_t)__builtin_clzll(src) - (64 - bits) : bits;
		guest_insn_set_flags(g, RFLAGS_CF | RFLAGS_ZF,
				     (src ? 0 : RFLAGS_CF) | (dst ? 0 : RFLAGS_ZF));
	}
	return guest_insn_set(g, 0, dst);
}

static int crc32c(struct guest_insn *g)
{
	unsigned int bytes = guest_insn_size(g, 1);
	uint64_t src, dst;
	int ret = guest_insn_get(g, 1, &src);

	ret = ret ? ret : guest_insn_get(g, 0, &dst);
	if (ret)
		return ret;
	/* Polynomial of SDM vol. 2 CRC32, bit-reflected. */
	dst = (uint32_t)dst;
	for (unsigned int i = 0; i < bytes; i++) {
		dst ^= src >> (8 * i) & 0xff;
		for (unsigned int k = 0; k < 8; k++)
			dst = dst >> 1 ^ (dst & 1 ? 0x82f63b78u : 0);
	}
	return guest_insn_set(g, 0, dst);
}

static int movbe(struct guest_insn *g)
{
	unsigned int size = guest_insn_size(g, 0);
	uint64_t v;
	int ret = guest_insn_get(g, 1, &v);

	return ret ? ret : guest_insn_set(g, 0, __builtin_bswap64(v) >> (64 - size * 8));
}

static int random_number(struct guest_insn *g)
{
	uint64_t v = clock_mono_ns() * 0x9e3779b97f4a7c15ull;
	unsigned long long hw;
	unsigned int a, b, c, d;

	/* Uses the host's instruction; if the host has none, reports "not ready" (CF = 0). */
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_RDRND)) {
		guest_insn_set_flags(g, RFLAGS_ARITH, 0);
		return guest_insn_set(g, 0, 0);
	}
	__asm__ volatile("rdrand %0" : "=r"(hw) : : "cc");
	v = hw;
	guest_insn_set_flags(g, RFLAGS_ARITH, RFLAGS_CF);
	return guest_insn_set(g, 0, v);
}

static int rdtscp(struct guest_insn *g)
{
	struct kvm_msr_entry tsc = { .index = MSR_IA32_TSC }, aux = { .index = MSR_TSC_AUX };

	if (!msr_read(g->v->fd, &tsc) || !msr_read(g->v->fd, &aux))
		return -EIO;
	g->regs->rax = (uint32_t)tsc.data;
	g->regs->rdx = tsc.data >> 32;
	g->regs->rcx = (uint32_t)aux.data;
	return 0;
}

/* Executes CMPXCHG16B. It is atomic against other vCPUs because guest RAM is mapped here, too. */
static int cmpxchg16b(struct guest_insn *g)
{
	unsigned __int128 expected = (unsigned __int128)g->regs->rdx << 64 | g->regs->rax;
	unsigned __int128 desired = (unsigned __int128)g->regs->rcx << 64 | g->regs->rbx;
	uint64_t gva;
	void *host;
	bool ok;

	if (guest_insn_address(g, 0, &gva) < 0)
		return -ENOTSUP;
	/* The processor raises #GP, not a page fault. */
	if (gva & 15)
		return -ENOTSUP;
	host = guest_insn_host(g, gva, 16, GUEST_WRITE);
	if (!host)
		return -EFAULT;
	/*
	 * Assembly, because the compiler would call libatomic, whose lock the guest does not take.
	 */
	{
		uint64_t lo = (uint64_t)expected, hi = (uint64_t)(expected >> 64);

		__asm__ volatile("lock cmpxchg16b %1\n\tsetz %0"
				 : "=q"(ok), "+m"(*(unsigned __int128 *)host), "+a"(lo), "+d"(hi)
				 : "b"((uint64_t)desired), "c"((uint64_t)(desired >> 64))
				 : "cc", "memory");
		g->regs->rax = lo;
		g->regs->rdx = hi;
	}
	guest_insn_set_flags(g, RFLAGS_ZF, ok ? RFLAGS_ZF : 0);
	return 0;
}

/*
 * Returns whether LSL accepts descriptors of this kind in 64-bit mode. SDM vol. 2, table "LSL:
 * segment types".
 */
static bool has_limit(uint64_t desc)
{
	unsigned int type = desc >> 40 & 15;

	/* code or data; LDT; TSS, available or busy */
	return desc >> 44 & 1 || type == 2 || type == 9 || type == 11;
}

/*
 * Executes LSL: the segment limit of a selector in the GDT. Only ring 0 gets here, so no privilege
 * is checked.
 */
static int lsl(struct guest_insn *g)
{
	const struct kvm_dtable *gdt = &g->v->run->s.regs.sregs.gdt;
	uint64_t selector, desc;
	uint32_t limit;
	int ret = guest_insn_get(g, 1, &selector);

	if (ret)
		return ret;
	selector &= 0xffff;
	if (selector < 8 || selector & 4 || (selector | 7) > gdt->limit ||
	    guest_insn_read(g, gdt->base + (selector & ~7ull), &desc, sizeof(desc)) < 0 ||
	    !has_limit(desc)) {
		guest_insn_set_flags(g, RFLAGS_ZF, 0);
		return 0;
	}
	limit = (uint32_t)((desc & 0xffff) | (desc >> 32 & 0xf0000));
	if (desc >> 55 & 1)
		limit = limit << 12 | 0xfff;
	guest_insn_set_flags(g, RFLAGS_ZF, RFLAGS_ZF);
	return guest_insn_set(g, 0, limit);
}

static int xgetbv(struct guest_insn *g)
{
	struct kvm_xcrs x;

	if (ioctl(g->v->fd, KVM_GET_XCRS, &x) < 0)
		return -errno;
	if (g->regs->rcx & 0xffffffff || !x.nr_xcrs)
		return -ENOTSUP;
	g->regs->rax = (uint32_t)x.xcrs[0].value;
	g->regs->rdx = x.xcrs[0].value >> 32;
	return 0;
}

static int xsetbv(struct guest_insn *g)
{
	struct kvm_xcrs x = { .nr_xcrs = 1 };

	x.xcrs[0].value = (g->regs->rdx & 0xffffffff) << 32 | (g->regs->rax & 0xffffffff);
	if (g->regs->rcx & 0xffffffff)
		return -ENOTSUP;
	return ioctl(g->v->fd, KVM_SET_XCRS, &x) < 0 ? -errno : 0;
}

/*
 * Executes one instruction. Sets rip itself only if it does not continue at the next instruction.
 */
static int execute(struct guest_insn *g)
{
	unsigned int id = g->insn->id;
	int ret;

	switch (xsave_kind_of(id)) {
	case XSAVE_SAVE:
		return xstate_save(g, XSTATE_STANDARD);
	case XSAVE_SAVE_COMPACTED:
		return xstate_save(g, XSTATE_COMPACTED);
	case XSAVE_RESTORE:
		return xstate_restore(g);
	case XSAVE_NONE:
		break;
	}
	switch (id) {
	case X86_INS_INT3:
		g->regs->rip += g->insn->size;
		g->rip_done = true;
		return inject(g, VECTOR_BP);
	case X86_INS_UD2:
		g->rip_done = true;
		return inject(g, VECTOR_UD);
	case X86_INS_WAIT:
	case X86_INS_EMMS:
	case X86_INS_FNCLEX:
	case X86_INS_VERW: /* kernels only want its side effect on CPU buffers */
	case X86_INS_PAUSE:
	case X86_INS_NOP:
		return 0;
	case X86_INS_FILD:
		/* Linux loads a constant after fnclex/emms to overwrite the leaked FPU pointers. */
		return 0;
	case X86_INS_CLAC:
		guest_insn_set_flags(g, RFLAGS_AC, 0);
		return 0;
	case X86_INS_STAC:
		guest_insn_set_flags(g, RFLAGS_AC, RFLAGS_AC);
		return 0;
	case X86_INS_POPCNT:
	case X86_INS_TZCNT:
	case X86_INS_LZCNT:
		return bit_count(g, id);
	case X86_INS_CRC32:
		return crc32c(g);
	case X86_INS_MOVBE:
		return movbe(g);
	case X86_INS_RDRAND:
	case X86_INS_RDSEED:
		return random_number(g);
	case X86_INS_RDTSCP:
		return rdtscp(g);
	case X86_INS_CMPXCHG16B:
		/* Capstone 5 gives CMPORDPS and related instructions (0F C2 /r 07) this id, too. */
		return g->insn->detail->x86.opcode[1] == 0xc7 ? cmpxchg16b(g) : complete_simd(g);
	case X86_INS_LSL:
		return lsl(g);
	case X86_INS_XGETBV:
		return xgetbv(g);
	case X86_INS_XSETBV:
		return xsetbv(g);
	case X86_INS_LDMXCSR:
		return xstate_load_mxcsr(g);
	case X86_INS_STMXCSR:
		return xstate_store_mxcsr(g);
	}
	ret = complete_bmi(g);
	return ret == -ENOTSUP ? complete_simd(g) : ret;
}

/*
 * Returns the length of an instruction that once was a NOP and that capstone does not know, or 0:
 * RDSSP (F3 [REX] 0F 1E /1) does nothing without shadow stacks (SDM vol. 2), and ENDBR (F3 0F 1E
 * FA, FB) never does anything.
 */
static unsigned int hint_length(const struct guest_insn *g)
{
	const struct kvm_sregs *s = &g->v->run->s.regs.sregs;
	unsigned int at = 1;
	uint8_t modrm;

	if (g->nbytes < 5 || g->bytes[0] != 0xf3 || s->cr4 & CR4_CET)
		return 0;
	if (s->cs.l && (g->bytes[at] & 0xf0) == 0x40)
		at++;
	modrm = g->bytes[at + 2];
	if (g->bytes[at] != 0x0f || g->bytes[at + 1] != 0x1e || modrm >> 6 != 3)
		return 0;
	return (modrm & 0x38) == 0x08 || modrm == 0xfa || modrm == 0xfb ? at + 3 : 0;
}

int complete_instruction(struct vcpu *v, struct err *e)
{
	struct guest_insn g;
	char hex[3 * 15 + 1] = "";
	int ret = guest_insn_decode(&g, v);

	if (g.nbytes && hint_length(&g)) {
		g.regs->rip += hint_length(&g);
		v->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
		return 0;
	}
	if (ret == 0) {
		ret = execute(&g);
		if (ret == -EFAULT)
			ret = inject_fault(&g);
		else
			v->pvm_state.again = 0;
		if (ret == 0) {
			if (!g.rip_done)
				g.regs->rip += g.insn->size;
			v->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
			return 0;
		}
	}
	if (!g.nbytes)
		return err_set(
			e, ENOTSUP,
			"vCPU %u: this host's KVM stopped at an instruction that is not mapped, "
			"rip 0x%llx",
			v->index, (unsigned long long)v->run->s.regs.regs.rip);
	for (unsigned int i = 0; i < g.nbytes && i < 15; i++)
		snprintf(hex + 3 * i, sizeof(hex) - 3 * i, "%02x ", g.bytes[i]);
	return err_set(
		e, ENOTSUP,
		"vCPU %u: this host's KVM cannot run `%s %s` (%s) at rip 0x%llx, and kvmprof "
		"cannot finish it either; try clearcpuid= for that feature (--append)",
		v->index, g.insn ? g.insn->mnemonic : "?", g.insn ? g.insn->op_str : "", hex,
		(unsigned long long)v->run->s.regs.regs.rip);
}
