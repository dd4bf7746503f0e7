/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/peek_answer.h"

#include "base/gmem.h"

#include <errno.h>
#include <string.h>

_Static_assert(PEEK_REGIONS == GMEM_MAX_REGIONS, "all of guest memory has to fit");

void peek_regs_to_kvm(const struct peek_regs *r, struct kvm_regs *regs, struct kvm_sregs *s)
{
	*regs = (struct kvm_regs){
		.rax = r->gpr[0],
		.rcx = r->gpr[1],
		.rdx = r->gpr[2],
		.rbx = r->gpr[3],
		.rsp = r->gpr[4],
		.rbp = r->gpr[5],
		.rsi = r->gpr[6],
		.rdi = r->gpr[7],
		.r8 = r->gpr[8],
		.r9 = r->gpr[9],
		.r10 = r->gpr[10],
		.r11 = r->gpr[11],
		.r12 = r->gpr[12],
		.r13 = r->gpr[13],
		.r14 = r->gpr[14],
		.r15 = r->gpr[15],
		.rip = r->rip,
		.rflags = r->rflags,
	};
	memset(s, 0, sizeof(*s));
	s->cr0 = r->cr0;
	s->cr2 = r->cr2;
	s->cr3 = r->cr3;
	s->cr4 = r->cr4;
	s->efer = r->efer;
	s->idt.base = r->idt_base;
	s->cs.selector = (__u16)r->cs;
	s->cs.dpl = r->cpl & 3;
	s->ss.selector = (__u16)r->ss;
}

const char *peek_regs_differ(const struct peek_regs *r, const struct kvm_run *run)
{
	const struct kvm_sregs *s = &run->s.regs.sregs;
	struct kvm_sregs ignored;
	struct kvm_regs ours;

	peek_regs_to_kvm(r, &ours, &ignored);
	if (memcmp(&ours, &run->s.regs.regs, 16 * sizeof(__u64)))
		return "general registers";
	if (r->rip != run->s.regs.regs.rip)
		return "RIP";
	if (r->rflags != run->s.regs.regs.rflags)
		return "RFLAGS";
	if (r->cr0 != s->cr0 || r->cr2 != s->cr2 || r->cr3 != s->cr3 || r->cr4 != s->cr4)
		return "control registers";
	if (r->efer != s->efer)
		return "EFER";
	if (r->idt_base != s->idt.base)
		return "IDTR";
	if (r->cpl != s->cs.dpl || r->cs != s->cs.selector || r->ss != s->ss.selector)
		return "CS and SS";
	return NULL;
}

/* Returns how many bytes this piece has from `host` on, and stores their place; 0: none. */
static size_t in_piece(const struct peek_answer *a, const struct peek_piece *p, uint64_t host,
		       const uint8_t **at)
{
	uint32_t off = p->off, len = p->len;

	if (host < p->host || host - p->host >= len || len > PEEK_CHUNK || off > PEEK_DATA)
		return 0;
	*at = a->data + off + (host - p->host);
	return len - (size_t)(host - p->host);
}

int peek_record_read(const struct peek_answer *a, uint64_t host, void *dst, size_t len)
{
	unsigned int n = a->npieces < PEEK_PIECES ? a->npieces : PEEK_PIECES;
	uint8_t *to = dst;

	while (len) {
		const uint8_t *at = NULL;
		size_t got = 0;

		for (unsigned int i = 0; !got && i < n; i++)
			got = in_piece(a, &a->piece[i], host, &at);
		if (!got)
			return -ENODATA;
		got = got < len ? got : len;
		memcpy(to, at, got);
		to += got;
		host += got;
		len -= got;
	}
	return 0;
}
