/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/guest_insn.h"

#include "vmm/machine.h"
#include "vmm/capture/capture.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define PAGE 4096u
/* SDM vol. 3, 2.5: ring 0 must not write read-only pages. */
#define CR0_WP (UINT64_C(1) << 16)

/* The decoder of a vCPU thread, freed with it. */
struct decoder {
	const struct capstone *cs;
	csh handle;
	cs_insn *insn;
	cs_mode mode;
};

static pthread_key_t decoder_key;
static pthread_once_t decoder_once = PTHREAD_ONCE_INIT;

static void decoder_free(void *p)
{
	struct decoder *d = p;

	if (d->insn)
		d->cs->cs_free(d->insn, 1);
	if (d->handle)
		d->cs->cs_close(&d->handle);
	free(d);
}

static void decoder_make_key(void)
{
	(void)pthread_key_create(&decoder_key, decoder_free);
}

static struct decoder *decoder_get(void)
{
	struct decoder *d;

	pthread_once(&decoder_once, decoder_make_key);
	d = pthread_getspecific(decoder_key);
	if (d)
		return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->cs = capstone_get(NULL);
	if (!d->cs || d->cs->cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle) != CS_ERR_OK) {
		free(d);
		return NULL;
	}
	d->mode = CS_MODE_64;
	d->cs->cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->insn = d->cs->cs_malloc(d->handle);
	pthread_setspecific(decoder_key, d);
	return d;
}

/* Returns the mode in which the code segment makes the processor decode (SDM vol. 3, 3.4.5). */
static cs_mode decoder_mode(const struct vcpu *v)
{
	const struct kvm_segment *cs = &v->run->s.regs.sregs.cs;

	return cs->l ? CS_MODE_64 : cs->db ? CS_MODE_32 : CS_MODE_16;
}

int guest_insn_decode(struct guest_insn *g, struct vcpu *v)
{
	struct mmu_root root = capture_root(&v->run->s.regs.sregs);
	struct decoder *d = decoder_get();
	const uint8_t *code;
	uint64_t address;
	size_t left;

	memset(g, 0, sizeof(*g));
	g->v = v;
	g->regs = &v->run->s.regs.regs;
	g->nbytes = (unsigned int)mmu_read(&v->vm->mem, &root, g->regs->rip, g->bytes,
					   sizeof(g->bytes));
	if (!g->nbytes)
		return -EFAULT;
	if (!d || !d->insn)
		return -ENOMEM;
	if (d->mode != decoder_mode(v)) {
		d->mode = decoder_mode(v);
		d->cs->cs_option(d->handle, CS_OPT_MODE, d->mode);
	}
	code = g->bytes;
	left = g->nbytes;
	address = g->regs->rip;
	if (!d->cs->cs_disasm_iter(d->handle, &code, &left, &address, d->insn))
		return -EILSEQ;
	g->insn = d->insn;
	return 0;
}

struct gpr_ref {
	__u64 *full;
	unsigned int size, shift;
};

/* Returns the place of a register operand in kvm_regs. */
static struct gpr_ref gpr(const struct guest_insn *g, x86_reg reg)
{
	struct kvm_regs *r = g->regs;

#define GPR(f, r64, r32, r16, r8)                       \
	case X86_REG_##r64:                             \
		return (struct gpr_ref){ &r->f, 8, 0 }; \
	case X86_REG_##r32:                             \
		return (struct gpr_ref){ &r->f, 4, 0 }; \
	case X86_REG_##r16:                             \
		return (struct gpr_ref){ &r->f, 2, 0 }; \
	case X86_REG_##r8:                              \
		return (struct gpr_ref){ &r->f, 1, 0 };
	switch (reg) {
		GPR(rax, RAX, EAX, AX, AL)
		GPR(rbx, RBX, EBX, BX, BL)
		GPR(rcx, RCX, ECX, CX, CL)
		GPR(rdx, RDX, EDX, DX, DL)
		GPR(rsi, RSI, ESI, SI, SIL)
		GPR(rdi, RDI, EDI, DI, DIL)
		GPR(rbp, RBP, EBP, BP, BPL)
		GPR(rsp, RSP, ESP, SP, SPL)
		GPR(r8, R8, R8D, R8W, R8B)
		GPR(r9, R9, R9D, R9W, R9B)
		GPR(r10, R10, R10D, R10W, R10B)
		GPR(r11, R11, R11D, R11W, R11B)
		GPR(r12, R12, R12D, R12W, R12B)
		GPR(r13, R13, R13D, R13W, R13B)
		GPR(r14, R14, R14D, R14W, R14B)
		GPR(r15, R15, R15D, R15W, R15B)
	case X86_REG_AH:
		return (struct gpr_ref){ &r->rax, 1, 8 };
	case X86_REG_BH:
		return (struct gpr_ref){ &r->rbx, 1, 8 };
	case X86_REG_CH:
		return (struct gpr_ref){ &r->rcx, 1, 8 };
	case X86_REG_DH:
		return (struct gpr_ref){ &r->rdx, 1, 8 };
	default:
		return (struct gpr_ref){ NULL, 0, 0 };
	}
#undef GPR
}

static uint64_t low_bytes(uint64_t v, unsigned int size)
{
	return size >= 8 ? v : v & ((1ull << (8 * size)) - 1);
}

static const cs_x86_op *operand(const struct guest_insn *g, unsigned int i)
{
	const cs_x86 *x = &g->insn->detail->x86;

	return i < x->op_count ? &x->operands[i] : NULL;
}

unsigned int guest_insn_size(const struct guest_insn *g, unsigned int i)
{
	const cs_x86_op *op = operand(g, i);

	return op ? op->size : 0;
}

int guest_insn_address(const struct guest_insn *g, unsigned int i, uint64_t *gva)
{
	const cs_x86_op *op = operand(g, i);
	const struct kvm_sregs *s = &g->v->run->s.regs.sregs;
	uint64_t a;

	if (!op || op->type != X86_OP_MEM)
		return -ENOTSUP;
	a = (uint64_t)op->mem.disp;
	if (op->mem.base == X86_REG_RIP) {
		a += g->regs->rip + g->insn->size;
	} else if (op->mem.base != X86_REG_INVALID) {
		struct gpr_ref base = gpr(g, op->mem.base);

		if (!base.full)
			return -ENOTSUP;
		a += low_bytes(*base.full, base.size);
	}
	if (op->mem.index != X86_REG_INVALID && op->mem.index != X86_REG_RIZ) {
		struct gpr_ref index = gpr(g, op->mem.index);

		if (!index.full)
			return -ENOTSUP;
		a += low_bytes(*index.full, index.size) * (uint64_t)op->mem.scale;
	}
	/* Prefix 67 truncates the sum, not the base. */
	a = low_bytes(a, g->insn->detail->x86.addr_size);
	if (op->mem.segment == X86_REG_GS)
		a += s->gs.base;
	else if (op->mem.segment == X86_REG_FS)
		a += s->fs.base;
	*gva = a;
	return 0;
}

int guest_insn_get(const struct guest_insn *g, unsigned int i, uint64_t *value)
{
	const cs_x86_op *op = operand(g, i);
	struct gpr_ref reg;
	uint64_t gva, v = 0;
	int ret;

	if (!op)
		return -ENOTSUP;
	if (op->type == X86_OP_MEM) {
		ret = guest_insn_address(g, i, &gva);
		ret = ret ? ret : op->size > 8 ? -ENOTSUP : guest_insn_read(g, gva, &v, op->size);
		if (ret)
			return ret;
		*value = v;
		return 0;
	}
	reg = gpr(g, op->type == X86_OP_REG ? op->reg : X86_REG_INVALID);
	if (!reg.full)
		return -ENOTSUP;
	*value = low_bytes(*reg.full >> reg.shift, reg.size);
	return 0;
}

int guest_insn_set(struct guest_insn *g, unsigned int i, uint64_t value)
{
	const cs_x86_op *op = operand(g, i);
	struct gpr_ref reg;
	uint64_t gva, mask;
	int ret;

	if (!op)
		return -ENOTSUP;
	if (op->type == X86_OP_MEM) {
		ret = guest_insn_address(g, i, &gva);
		return ret	      ? ret
		       : op->size > 8 ? -ENOTSUP
				      : guest_insn_write(g, gva, &value, op->size);
	}
	reg = gpr(g, op->type == X86_OP_REG ? op->reg : X86_REG_INVALID);
	if (!reg.full)
		return -ENOTSUP;
	if (reg.size >= 4) {
		*reg.full = low_bytes(value, reg.size);
	} else {
		mask = low_bytes(UINT64_MAX, reg.size) << reg.shift;
		*reg.full = (*reg.full & ~mask) | (value << reg.shift & mask);
	}
	return 0;
}

/* Returns whether the instruction may access this page (SDM vol. 3, 4.6.1). */
static bool may_access(const struct guest_insn *g, const struct mmu_page *page,
		       enum guest_access access)
{
	const struct kvm_sregs *s = &g->v->run->s.regs.sregs;

	if ((s->cs.selector & 3) == 3)
		return page->user && (access == GUEST_READ || page->write);
	return access == GUEST_READ || page->write || !(s->cr0 & CR0_WP);
}

void *guest_insn_host(const struct guest_insn *g, uint64_t gva, size_t len,
		      enum guest_access access)
{
	struct mmu_root root = capture_root(&g->v->run->s.regs.sregs);
	struct mmu_page page;

	if ((gva & (PAGE - 1)) + len > PAGE || mmu_walk(&g->v->vm->mem, &root, gva, &page) < 0)
		return NULL;
	if (!may_access(g, &page, access))
		return NULL;
	return gmem_ptr(&g->v->vm->mem, page.gpa, len);
}

int guest_insn_check_access(const struct guest_insn *g, uint64_t gva, enum guest_access access,
			    uint32_t *code)
{
	struct mmu_root root = capture_root(&g->v->run->s.regs.sregs);
	bool user = (g->v->run->s.regs.sregs.cs.selector & 3) == 3;
	bool write = access == GUEST_WRITE;
	struct mmu_page page;
	bool present = mmu_walk(&g->v->vm->mem, &root, gva, &page) == 0;

	if (!present || !may_access(g, &page, access)) {
		*code = (write ? FAULT_WRITE : 0) | (present ? FAULT_PRESENT : 0) |
			(user ? FAULT_USER : 0);
		return -EFAULT;
	}
	return gmem_ptr(&g->v->vm->mem, page.gpa, 1) ? 0 : -ENOTSUP;
}

static int guest_insn_copy(const struct guest_insn *g, uint64_t gva, uint8_t *out,
			   const uint8_t *in, size_t len)
{
	while (len) {
		size_t n = PAGE - (gva & (PAGE - 1));
		void *host;

		n = n < len ? n : len;
		host = guest_insn_host(g, gva, n, in ? GUEST_WRITE : GUEST_READ);
		if (!host)
			return -EFAULT;
		if (in) {
			memcpy(host, in, n);
			in += n;
		} else {
			memcpy(out, host, n);
			out += n;
		}
		gva += n;
		len -= n;
	}
	return 0;
}

int guest_insn_read(const struct guest_insn *g, uint64_t gva, void *dst, size_t len)
{
	return guest_insn_copy(g, gva, dst, NULL, len);
}

int guest_insn_write(const struct guest_insn *g, uint64_t gva, const void *src, size_t len)
{
	/* All of it or nothing, as on a processor. */
	for (size_t at = PAGE - (gva & (PAGE - 1)); at < len; at += PAGE)
		if (!guest_insn_host(g, gva + at, 1, GUEST_WRITE))
			return -EFAULT;
	return guest_insn_copy(g, gva, NULL, src, len);
}
