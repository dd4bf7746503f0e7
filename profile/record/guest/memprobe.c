/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/memprobe.h"

#include "profile/record/host/hostpages.h"
#include "base/gmem_remote.h"
#include "base/mmu.h"

#include <errno.h>
#include <stdlib.h>

#define KERNEL_HALF (UINT64_C(1) << 63)
#define CR4_LA57 (UINT64_C(1) << 12)

struct memprobe {
	const struct gmem *mem;
	struct memop_decoder *decoder;
	struct hostpages *host;
	struct mem_layout layout;
	struct mem_refs refs;
	struct memprobe_stats stats;
};

int memprobe_create(struct memprobe **out, const struct gmem *mem, struct err *e)
{
	struct memprobe *m = calloc(1, sizeof(*m));
	int ret;

	if (!m)
		return err_nomem(e);
	m->mem = mem;
	ret = memop_open(&m->decoder, e);
	ret = ret ? ret : hostpages_create(&m->host, mem->remote ? mem->remote->pid : 0, e);
	if (ret)
		memprobe_destroy(m);
	else
		*out = m;
	return ret;
}

void memprobe_destroy(struct memprobe *m)
{
	if (!m)
		return;
	memop_close(m->decoder);
	hostpages_destroy(m->host);
	free(m);
}

struct mem_layout *memprobe_layout(struct memprobe *m)
{
	return &m->layout;
}

const struct memprobe_stats *memprobe_stats(const struct memprobe *m)
{
	return &m->stats;
}

static void look_at_host(struct memprobe *m, const struct sample *s, struct mem_ref *r)
{
	uint64_t hva = gmem_host(m->mem, r->gpa);
	struct hostpage page;

	if (!hva) {
		r->flags |= MEM_FLAG_DEVICE;
		r->host = MEM_HOST_DEVICE;
		return;
	}
	/* The machine behind a gdbstub may be on another host. */
	if (m->mem->remote && !m->mem->remote->pid) {
		r->host = MEM_HOST_NO_FILE;
		return;
	}
	hostpages_find(m->host, hva, s->time_ns, &page);
	r->host = page.why;
	r->host_shift = page.shift;
	r->node = page.node;
}

static void look_up(struct memprobe *m, const struct sample *s, struct mem_ref *r)
{
	const struct mmu_root root = {
		.cr0 = s->regs.cr0,
		.cr3 = s->regs.cr3,
		.cr4 = s->regs.cr4,
		.efer = s->regs.efer,
	};
	struct mmu_page page;

	r->node = MEM_NO_NODE;
	switch (mmu_walk(m->mem, &root, r->va, &page)) {
	case 0:
		break;
	case -EINVAL:
		r->status = MEM_NOT_CANONICAL;
		return;
	case -EOPNOTSUPP:
		r->status = MEM_NO_PAGING;
		return;
	default:
		r->status = MEM_GONE;
		return;
	}
	r->status = MEM_OK;
	r->gpa = page.gpa;
	r->guest_shift = (uint8_t)__builtin_ctzll(page.size);
	if (page.user)
		r->flags |= MEM_FLAG_USER;
	look_at_host(m, s, r);
}

static uint8_t region_of(struct memprobe *m, const struct sample *s, struct guest_vmas *vmas,
			 struct guest_owner *owner, const struct memop *op, const struct mem_ref *r)
{
	const struct mem_process *p = NULL;
	uint64_t va = r->va;

	if (r->status == MEM_NOT_CANONICAL)
		return MEM_REGION_UNKNOWN;
	/*
	 * The lower half without the user bit is not a program's: an identity mapping, as a kernel
	 * has when it begins.
	 */
	if (!(va & KERNEL_HALF) && r->status == MEM_OK && !(r->flags & MEM_FLAG_USER))
		return MEM_KERNEL_OTHER;
	if (vmas && owner && owner->task && !(va & KERNEL_HALF))
		p = guest_vmas_find(vmas, owner, va, s->time_ns);
	return memregion_of(&m->layout, s, p, op, va);
}

const struct mem_refs *memprobe_sample(struct memprobe *m, const struct sample *s,
				       const struct memory *kernel, struct guest_vmas *vmas,
				       struct guest_owner *owner)
{
	const struct memop_insn *insn;
	struct mem_refs *out = &m->refs;

	*out = (struct mem_refs){ .code = { .va = s->regs.rip } };
	m->stats.samples++;
	memregion_layout_read(&m->layout, kernel, s->regs.cr4 & CR4_LA57 ? 5 : 4);
	look_up(m, s, &out->code);
	out->code.region = region_of(m, s, vmas, owner, NULL, &out->code);
	if (s->mode == SAMPLE_IDLE) {
		m->stats.idle++;
		return out;
	}
	insn = memop_decode(m->decoder, s->insn, s->insn_len);
	out->why = insn->why;
	m->stats.why[insn->why]++;
	if (insn->why != MEMOP_OK)
		return out;
	if (!memop_touches(insn, &s->regs)) {
		m->stats.without++;
		return out;
	}
	for (unsigned int i = 0; i < insn->n; i++) {
		const struct memop *op = &insn->op[i];
		struct mem_ref *r = &out->ref[out->n++];

		*r = (struct mem_ref){
			.va = memop_address(insn, op, &s->regs),
			.size = op->size,
			.access = op->access,
			.flags = (op->implicit ? MEM_FLAG_IMPLICIT : 0) |
				 (insn->locked ? MEM_FLAG_LOCKED : 0),
		};
		look_up(m, s, r);
		r->region = region_of(m, s, vmas, owner, op, r);
		m->stats.operands++;
		m->stats.status[r->status]++;
	}
	return out;
}
