/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/epoch.h"

#include "base/gmem_remote.h"
#include "base/mmu.h"
#include "profile/record/guest/private.h"

#include <string.h>

#define CR0_PG (UINT64_C(1) << 31)
/* The lower bits of CR3 choose a PCID. */
#define CR3_PCID UINT64_C(0xfff)
/* With page-table isolation a program runs on the second of two adjacent tables (Linux). */
#define CR3_USER_TABLE (UINT64_C(1) << 12)

static struct mmu_root root_of(const struct sample *s)
{
	return (struct mmu_root){
		.cr0 = s->regs.cr0,
		.cr3 = s->regs.cr3 & ~CR3_PCID,
		.cr4 = s->regs.cr4,
		.efer = s->regs.efer,
	};
}

static bool is_mapped(const struct gmem *mem, const struct mmu_root *root, uint64_t va,
		      uint64_t *gpa)
{
	struct mmu_page page;

	if (mmu_walk(mem, root, va, &page) < 0)
		return false;
	*gpa = page.gpa;
	return true;
}

/* Returns whether the mark lies where it was, by these page tables. */
static bool is_there(const struct epoch_mark *m, const struct gmem *mem,
		     const struct mmu_root *root)
{
	uint8_t bytes[EPOCH_MARK_BYTES];
	uint64_t gpa;

	return is_mapped(mem, root, m->va, &gpa) && gpa == m->gpa &&
	       gmem_read(mem, gpa, bytes, m->len) == 0 && !memcmp(bytes, m->bytes, m->len);
}

void epoch_set(struct epoch_mark *m, const struct gmem *mem, const struct sample *s, uint64_t va)
{
	const struct mmu_root root = root_of(s);
	const uint64_t in_page = 4096 - va % 4096;

	*m = (struct epoch_mark){ .va = va };
	if (!va || !(root.cr0 & CR0_PG) || !is_mapped(mem, &root, va, &m->gpa))
		return;
	m->len = (uint32_t)(in_page < EPOCH_MARK_BYTES ? in_page : EPOCH_MARK_BYTES);
	if (gmem_read(mem, m->gpa, m->bytes, m->len) < 0)
		m->len = 0;
	else
		m->proven_ns = s->time_ns;
}

/* A guest of the guest, or a thread of the host, has no registers. */
static bool has_registers(const struct sample *s)
{
	return s->regs.cr0 != 0 && s->device < SAMPLE_PERHAPS_NESTED;
}

static bool is_proven(const struct epoch_mark *m, const struct gmem *mem, const struct sample *s)
{
	uint64_t holds = mem->is_virtual ? EPOCH_PROOF_SLOW_NS : EPOCH_PROOF_NS;

	return s->time_ns < m->proven_ns || s->time_ns - m->proven_ns < holds;
}

enum epoch_state epoch_check(struct epoch_mark *m, const struct gmem *mem, const struct sample *s)
{
	struct mmu_root root = root_of(s);
	bool in_kernel = (s->regs.rip & KERNEL_HALF) && (s->regs.cs & 3) != 3, there;
	uint64_t gpa;

	if (!m->len || is_proven(m, mem, s) || !has_registers(s))
		return EPOCH_SAME;
	if (!(root.cr0 & CR0_PG))
		return EPOCH_DOUBT;
	if (mem->remote)
		gmem_remote_forget(mem->remote);
	there = is_there(m, mem, &root);
	if (!there && (root.cr3 & CR3_USER_TABLE)) {
		root.cr3 &= ~CR3_USER_TABLE;
		there = is_there(m, mem, &root);
	}
	if (there) {
		m->proven_ns = s->time_ns;
		return EPOCH_SAME;
	}
	root = root_of(s);
	/* The tables are alive if they map the code that ran. Those of a program that has exited may be anything. */
	return in_kernel && is_mapped(mem, &root, s->regs.rip, &gpa) ? EPOCH_OTHER : EPOCH_DOUBT;
}

/* The banner is different in each build. Without its name, the first code is compared. */
static uint64_t mark_of(const struct guest *g)
{
	const struct symbol *banner = guest_function(g, "linux_banner");

	return banner ? banner->addr : g->target->kernel.text + g->target->slide;
}

enum epoch_state guest_epoch(struct guest *g, const struct sample *s)
{
	if (!g->is_linux || !g->ready || !g->known)
		return EPOCH_SAME;
	if (g->mark.len)
		return epoch_check(&g->mark, g->host.memory, s);
	/* Until the kernel runs by tables of its own. */
	if ((s->regs.rip & KERNEL_HALF) && (s->regs.cs & 3) != 3)
		epoch_set(&g->mark, g->host.memory, s, mark_of(g));
	return EPOCH_SAME;
}
