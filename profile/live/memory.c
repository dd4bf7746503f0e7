/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/live/memory.h"

#include "vmm/gmem_remote.h"

#define KERNEL_HALF (UINT64_C(1) << 63)
#define CR0_PG (UINT64_C(1) << 31)
/* The lower bits of CR3 choose a PCID. */
#define CR3_PCID UINT64_C(0xfff)

void guest_memory_init(struct guest_memory *g, const struct gmem *mem)
{
	*g = (struct guest_memory){ .mem = mem };
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

void guest_memory_see(struct guest_memory *g, const struct sample *s)
{
	struct mmu_root root = {
		.cr0 = s->regs.cr0,
		.cr3 = s->regs.cr3,
		.cr4 = s->regs.cr4,
		.efer = s->regs.efer,
	};
	uint64_t gpa;

	/* What is read next shall be as new as the sample. */
	if (g->mem->remote)
		gmem_remote_forget(g->mem->remote);
	if (g->settled || !(root.cr0 & CR0_PG) || !(s->regs.rip & KERNEL_HALF) ||
	    (s->regs.cs & 3) == 3)
		return;
	/*
	 * With page-table isolation the first instructions of an entry still run on the
	 * program's table, which lacks most of the kernel: the next sample replaces it.
	 */
	root.cr3 &= ~CR3_PCID;
	g->root = root;
	if (g->init_tables && guest_memory_walk(g, g->init_tables, &gpa) && gpa) {
		g->root.cr3 = gpa & ~CR3_PCID;
		/* Early in boot it isn't filled yet. */
		if (guest_memory_walk(g, g->init_tables, &gpa) && gpa == g->root.cr3 &&
		    guest_memory_walk(g, s->regs.rip, &gpa))
			g->settled = true;
		else
			g->root = root;
	}
}

static size_t read_memory(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	const struct guest_memory *g = ctx;
	struct mmu_root root = g->root;

	/* All spaces share the control registers that Linux sets once. */
	if (!root.cr3)
		return 0;
	if (space != MEMORY_KERNEL)
		root.cr3 = space;
	return mmu_read(g->mem, &root, va, dst, len);
}

struct memory guest_memory_reader(struct guest_memory *g)
{
	return (struct memory){ .read = read_memory, .ctx = g };
}
