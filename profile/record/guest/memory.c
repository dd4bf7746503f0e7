/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/memory.h"

#include "base/clock.h"
#include "base/gmem_remote.h"

#include <string.h>

#define KERNEL_HALF (UINT64_C(1) << 63)
#define CR0_PG (UINT64_C(1) << 31)
/* The lower bits of CR3 choose a PCID. */
#define CR3_PCID UINT64_C(0xfff)

void guest_memory_init(struct guest_memory *g, const struct gmem *mem)
{
	memset(g, 0, sizeof(*g));
	g->mem = mem;
	guest_memory_renew(g);
}

void guest_memory_renew(struct guest_memory *g)
{
	g->kernel_era = ++g->eras;
	g->sample_era = ++g->eras;
	g->era_ns = clock_mono_ns();
}

void guest_memory_read_anew(struct guest_memory *g)
{
	guest_memory_renew(g);
	if (g->mem->remote)
		gmem_remote_invalidate(g->mem->remote);
}

/*
 * A translation that was looked up after a sample was taken is as good for it as one that is looked
 * up now, and is closer to the sample's time.
 */
static void memory_next_sample(struct guest_memory *g, uint64_t time_ns)
{
	uint64_t now = clock_mono_ns();

	if (g->stands || time_ns > g->era_ns || now - g->era_ns > GUEST_MEMORY_ERA_NS)
		guest_memory_renew(g);
	else
		g->sample_era = ++g->eras;
}

void guest_memory_set_tables(struct guest_memory *g, uint64_t init_tables)
{
	g->init_tables = init_tables;
}

bool guest_memory_walk(const struct guest_memory *g, uint64_t va, uint64_t *gpa)
{
	struct mmu_page page;

	if (!g->root.cr3 || mmu_walk(g->mem, &g->root, va, &page) < 0)
		return false;
	*gpa = page.gpa;
	return true;
}

void guest_memory_begin_sample(struct guest_memory *g, const struct sample *s)
{
	struct mmu_root root = {
		.cr0 = s->regs.cr0,
		.cr3 = s->regs.cr3,
		.cr4 = s->regs.cr4,
		.efer = s->regs.efer,
	};
	uint64_t gpa;

	/* The following reads must not be older than the sample. */
	if (g->mem->remote)
		gmem_remote_invalidate(g->mem->remote);
	memory_next_sample(g, s->time_ns);
	if (g->settled || !(root.cr0 & CR0_PG) || !(s->regs.rip & KERNEL_HALF) ||
	    (s->regs.cs & 3) == 3)
		return;
	/*
	 * With page-table isolation the first instructions of an entry still run on the
	 * program's table, which lacks most of the kernel: the next sample replaces it.
	 */
	root.cr3 &= ~CR3_PCID;
	/* The CR3 alone does not determine how the tables are to be read. */
	if (memcmp(&root, &g->root, sizeof(root)) != 0)
		guest_memory_renew(g);
	g->root = root;
	if (g->init_tables && guest_memory_walk(g, g->init_tables, &gpa) && gpa) {
		g->root.cr3 = gpa & ~CR3_PCID;
		/* Early in boot it is not filled in yet. */
		if (guest_memory_walk(g, g->init_tables, &gpa) && gpa == g->root.cr3 &&
		    guest_memory_walk(g, s->regs.rip, &gpa))
			g->settled = true;
		else
			g->root = root;
	}
}

static size_t read_memory(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct guest_memory *g = ctx;
	struct mmu_tlb tlb = { g->tlb, GUEST_MEMORY_TLB, 0 };
	struct mmu_root root = g->root;

	/* All spaces share the control registers that Linux sets once. */
	if (!root.cr3)
		return 0;
	if (space != MEMORY_KERNEL)
		root.cr3 = space;
	tlb.era = space == MEMORY_KERNEL ? g->kernel_era : g->sample_era;
	return mmu_tlb_read(g->mem, &root, &tlb, va, dst, len);
}

struct memory guest_memory_reader(struct guest_memory *g)
{
	return (struct memory){ .read = read_memory, .ctx = g };
}
