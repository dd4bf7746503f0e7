/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/mmu.h"

#include <errno.h>
#include <string.h>

/* SDM vol. 3, 2.5 "Control registers" and 2.2.1 "Extended feature enable register" */
#define CR0_PG (1ull << 31)
#define CR4_PAE (1ull << 5)
#define CR4_LA57 (1ull << 12)
#define EFER_LMA (1ull << 10)
#define EFER_NXE (1ull << 11)

/* SDM vol. 3, tables 4-14 to 4-20 */
#define PTE_PRESENT (1ull << 0)
#define PTE_WRITE (1ull << 1)
#define PTE_USER (1ull << 2)
#define PTE_LARGE (1ull << 7)
#define PTE_PAT_LARGE (1ull << 12)
#define PTE_NX (1ull << 63)

/*
 * Mask of bits 51:12 in table entries and in cr3. It drops PCID and PWT/PCD below, and LAM_U57,
 * LAM_U48 (62:61) and the PCID "no flush" bit above.
 */
#define PTE_ADDR 0x000ffffffffff000ull

#define LEVEL_BITS 9
#define PAGE_BITS 12
#define PAGE_LEN ((size_t)1 << PAGE_BITS)

/*
 * Reads one entry exactly once: the guest may change it at any time, and the checked value must be
 * the one that is used. Entries are naturally aligned, so the load is atomic.
 */
static int entry_read(const struct gmem *m, uint64_t gpa, uint64_t *out)
{
	const uint64_t *p = gmem_ptr(m, gpa, sizeof(*p));

	if (!p)
		return m->remote ? gmem_read(m, gpa, out, sizeof(*out)) : -EFAULT;
	*out = __atomic_load_n(p, __ATOMIC_RELAXED);
	return 0;
}

/*
 * Translates an address that the remote side translates itself. Returns -EFAULT in the lower half
 * of another address space than virtual_cr3. All address spaces share the kernel's half (except for
 * the tables of programs under page-table isolation).
 */
static int walk_virtual(const struct gmem *m, const struct mmu_root *root, uint64_t gva,
			struct mmu_page *out)
{
	if (!(gva >> 63) && ((root->cr3 ^ m->virtual_cr3) & PTE_ADDR))
		return -EFAULT;
	*out = (struct mmu_page){ .gpa = gva, .size = 1ull << PAGE_BITS, .exec = true };
	return 0;
}

/*
 * The number of levels bounds the walk: tables that refer to themselves, as recursive mappings do
 * on purpose, only use up levels.
 */
int mmu_walk(const struct gmem *m, const struct mmu_root *root, uint64_t gva, struct mmu_page *out)
{
	int levels = root->cr4 & CR4_LA57 ? 5 : 4;
	int sign = 64 - (PAGE_BITS + levels * LEVEL_BITS);
	struct mmu_page page = { .user = true, .write = true, .exec = true };
	uint64_t table = root->cr3 & PTE_ADDR;

	if (m->is_virtual)
		return walk_virtual(m, root, gva, out);
	if (!(root->cr0 & CR0_PG)) {
		if (gva >> 32)
			return -EINVAL;
		page.gpa = gva;
		page.size = 1ull << PAGE_BITS;
		*out = page;
		return 0;
	}
	if (!(root->efer & EFER_LMA) || !(root->cr4 & CR4_PAE))
		return -EOPNOTSUPP;
	if ((uint64_t)((int64_t)(gva << sign) >> sign) != gva)
		return -EINVAL;

	for (int level = levels; level >= 1; level--) {
		int shift = PAGE_BITS + (level - 1) * LEVEL_BITS;
		uint64_t index = gva >> shift & ((1u << LEVEL_BITS) - 1);
		uint64_t offset = (1ull << shift) - 1;
		uint64_t pte;
		int ret;

		ret = entry_read(m, table + index * sizeof(pte), &pte);
		if (ret || !(pte & PTE_PRESENT))
			return ret ? ret : -EFAULT;
		page.user = page.user && pte & PTE_USER;
		page.write = page.write && pte & PTE_WRITE;
		if (pte & PTE_NX && root->efer & EFER_NXE)
			page.exec = false;

		if (level == 1 || pte & PTE_LARGE) {
			uint64_t base = pte & PTE_ADDR;

			if (level > 3)
				return -EFAULT; /* bit 7 is reserved there: the processor faults */
			if (level > 1)
				base &= ~PTE_PAT_LARGE;
			if (base & offset)
				return -EFAULT; /* reserved bits of a large page */
			page.gpa = base | (gva & offset);
			page.size = offset + 1;
			*out = page;
			return 0;
		}
		table = pte & PTE_ADDR;
	}
	return -EFAULT;
}

size_t mmu_read(const struct gmem *m, const struct mmu_root *root, uint64_t gva, void *dst,
		size_t len)
{
	uint8_t *to = dst;
	size_t done = 0;

	while (done < len) {
		struct mmu_page page;
		size_t room, n;

		/* a range that passes the top of the address space ends there */
		if (done && gva + done < gva)
			break;
		if (mmu_walk(m, root, gva + done, &page))
			break;
		room = page.size - (page.gpa & (page.size - 1));
		n = len - done < room ? len - done : room;
		if (gmem_read(m, page.gpa, to + done, n)) {
			/*
			 * Only the beginning of a large page may be RAM; what counts is the 4 KiB
			 * page that the caller reads.
			 */
			room = (1u << PAGE_BITS) - (page.gpa & ((1u << PAGE_BITS) - 1));
			n = len - done < room ? len - done : room;
			if (gmem_read(m, page.gpa, to + done, n))
				break;
		}
		done += n;
	}
	return done;
}

/* -- cached translations ----------------------------------------------------------------------- */

/*
 * Returns the host address of the page at gva, from the cache or by a walk; NULL if it is not RAM.
 */
static const uint8_t *tlb_page(const struct gmem *m, const struct mmu_root *root,
			       const struct mmu_tlb *tlb, uint64_t gva)
{
	uint64_t page = gva >> PAGE_BITS;
	struct mmu_tlb_page *t = &tlb->page[(page ^ root->cr3 >> PAGE_BITS) & (tlb->n - 1)];
	struct mmu_page found;

	if (t->page == page && t->space == root->cr3 && t->era == tlb->era)
		return t->host;
	if (mmu_walk(m, root, page << PAGE_BITS, &found) < 0)
		return NULL;
	*t = (struct mmu_tlb_page){ page, root->cr3, tlb->era, gmem_ptr(m, found.gpa, PAGE_LEN) };
	return t->host;
}

size_t mmu_tlb_read(const struct gmem *m, const struct mmu_root *root, const struct mmu_tlb *tlb,
		    uint64_t gva, void *dst, size_t len)
{
	uint8_t *to = dst;
	size_t done = 0;

	if (m->remote || m->is_virtual)
		return mmu_read(m, root, gva, dst, len);
	/* A range that passes the top of the address space ends there. */
	while (done < len && gva + done >= gva) {
		const uint8_t *page = tlb_page(m, root, tlb, gva + done);
		size_t off = (gva + done) % PAGE_LEN;
		size_t n = len - done < PAGE_LEN - off ? len - done : PAGE_LEN - off;

		if (!page)
			break;
		/* Most reads are one word, for which this is a single instruction. */
		if (n == 8)
			memcpy(to + done, page + off, 8);
		else
			memcpy(to + done, page + off, n);
		done += n;
	}
	return done;
}
