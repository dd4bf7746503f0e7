/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/epoch.h"

#include "base/clock.h"
#include "base/gmem_remote.h"
#include "base/mmu.h"
#include "profile/record/guest/private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CR0_PG (UINT64_C(1) << 31)
/* The lower bits of CR3 choose a PCID. */
#define CR3_PCID UINT64_C(0xfff)
/* With page-table isolation a program runs on the second of two adjacent tables (Linux). */
#define CR3_USER_TABLE (UINT64_C(1) << 12)

/* How often the mark of a kernel that could not be read is tried. */
#define UNREAD_MARK_NS 1000000000u

static struct mmu_root root_of(const struct sample *s)
{
	return (struct mmu_root){
		.cr0 = s->regs.cr0,
		.cr3 = s->regs.cr3 & ~CR3_PCID,
		.cr4 = s->regs.cr4,
		.efer = s->regs.efer,
	};
}

enum where {
	IS_THERE,      /* the mark is where it was */
	IS_ELSEWHERE,  /* it is not */
	IS_UNREADABLE, /* the memory cannot be read now, which proves nothing */
};

/*
 * Reads len bytes at va with these page tables, and stores their physical address. Returns 0, or an
 * error of mmu_walk() or gmem_read().
 */
static int read_at(const struct gmem *mem, const struct mmu_root *root, uint64_t va, uint64_t *gpa,
		   void *bytes, size_t len)
{
	struct mmu_page page;
	int ret = mmu_walk(mem, root, va, &page);

	if (ret < 0)
		return ret;
	*gpa = page.gpa;
	return gmem_read(mem, page.gpa, bytes, len);
}

/* Returns where the mark is according to these page tables. */
static enum where where_is(const struct epoch_mark *m, const struct gmem *mem,
			   const struct mmu_root *root)
{
	uint8_t bytes[EPOCH_MARK_BYTES];
	uint64_t gpa;
	int ret = read_at(mem, root, m->va, &gpa, bytes, m->len);

	if (ret)
		return ret == -EFAULT || ret == -EINVAL ? IS_ELSEWHERE : IS_UNREADABLE;
	return (!m->gpa || gpa == m->gpa) && !memcmp(bytes, m->bytes, m->len) ? IS_THERE
									      : IS_ELSEWHERE;
}

/* Stores the bytes at m->va as these page tables map them. Returns 0, or an error of mmu_walk() or gmem_read(). */
static int store_mark(struct epoch_mark *m, const struct gmem *mem, const struct mmu_root *root)
{
	const uint64_t in_page = 4096 - m->va % 4096;
	const size_t len = in_page < EPOCH_MARK_BYTES ? in_page : EPOCH_MARK_BYTES;
	uint8_t bytes[EPOCH_MARK_BYTES];
	uint64_t gpa;
	int ret = read_at(mem, root, m->va, &gpa, bytes, len);

	if (ret < 0)
		return ret;
	memcpy(m->bytes, bytes, len);
	m->len = (uint32_t)len;
	m->gpa = gpa;
	return 0;
}

void epoch_set(struct epoch_mark *m, const struct gmem *mem, const struct sample *s, uint64_t va)
{
	const struct mmu_root root = root_of(s);

	*m = (struct epoch_mark){ .va = va };
	if (va && (root.cr0 & CR0_PG) && !store_mark(m, mem, &root))
		m->proven_ns = s->time_ns;
}

void epoch_expect(struct epoch_mark *m, uint64_t va, const char *text)
{
	const uint64_t in_page = 4096 - va % 4096;
	size_t len = strnlen(text, EPOCH_MARK_BYTES);

	len = len < in_page ? len : in_page;
	*m = (struct epoch_mark){ .va = va, .len = (uint32_t)len };
	memcpy(m->bytes, text, len);
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
	bool in_kernel = (s->regs.rip & KERNEL_HALF) && (s->regs.cs & 3) != 3;
	enum where where;
	uint64_t gpa;
	uint8_t byte;

	if (!m->len || is_proven(m, mem, s) || !has_registers(s))
		return EPOCH_SAME;
	if (!(root.cr0 & CR0_PG))
		return EPOCH_DOUBT;
	if (mem->remote)
		gmem_remote_invalidate(mem->remote);
	where = where_is(m, mem, &root);
	if (where == IS_ELSEWHERE && (root.cr3 & CR3_USER_TABLE)) {
		root.cr3 &= ~CR3_USER_TABLE;
		where = where_is(m, mem, &root);
	}
	if (where == IS_THERE && !m->gpa)
		(void)store_mark(m, mem, &root);
	if (where == IS_THERE) {
		m->proven_ns = s->time_ns;
		return EPOCH_SAME;
	}
	if (where == IS_UNREADABLE || !in_kernel)
		return EPOCH_DOUBT;
	root = root_of(s);
	/*
	 * The tables are in use if the code that ran can be read through them. Those of a program
	 * that has exited may contain anything, and nothing can be read of a machine that has ended
	 * or was reset since.
	 */
	return read_at(mem, &root, s->regs.rip, &gpa, &byte, 1) ? EPOCH_DOUBT : EPOCH_OTHER;
}

/* The banner is different in each build. Without its name, the first code is compared. */
static uint64_t mark_of(const struct guest *g)
{
	const struct symbol *banner = guest_function(g, "linux_banner");

	return banner ? banner->addr : g->target->kernel.text + g->target->slide;
}

void guest_expect_kernel(struct guest *g)
{
	const struct symbol *banner = guest_function(g, "linux_banner");
	char text[EPOCH_MARK_BYTES];

	/* linux_banner begins so (init/version-timestamp.c). */
	snprintf(text, sizeof(text), "Linux version %s ", g->target->osrelease);
	if (banner && g->target->osrelease[0])
		epoch_expect(&g->mark, banner->addr, text);
}

/*
 * Returns an address inside of a kernel that could not be read: that of its code for page faults.
 * 0: none is known yet.
 */
static uint64_t mark_of_unread(struct guest *g, const struct sample *s)
{
	if (!g->opt.runs || !g->failed_reads ||
	    !clock_is_due(s->time_ns, g->read_ns, UNREAD_MARK_NS))
		return 0;
	g->read_ns = s->time_ns;
	return guest_fault_handler(g, s);
}

enum epoch_state guest_epoch(struct guest *g, const struct sample *s)
{
	uint64_t va;

	if (!g->is_linux || !g->ready)
		return EPOCH_SAME;
	if (g->mark.len)
		return epoch_check(&g->mark, g->host.memory, s);
	/* Wait until the kernel runs with its own page tables. */
	if (!(s->regs.rip & KERNEL_HALF) || (s->regs.cs & 3) == 3)
		return EPOCH_SAME;
	va = g->known ? mark_of(g) : mark_of_unread(g, s);
	if (va)
		epoch_set(&g->mark, g->host.memory, s, va);
	return EPOCH_SAME;
}
