/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/capture/mmu_tlb.h"

#include <string.h>

#define PAGE_BITS 12
#define PAGE_LEN ((size_t)1 << PAGE_BITS)

/* NULL: there is none. */
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
	/* A range that runs past the top of the address space ends there. */
	while (done < len && gva + done >= gva) {
		const uint8_t *page = tlb_page(m, root, tlb, gva + done);
		size_t off = (gva + done) % PAGE_LEN;
		size_t n = len - done < PAGE_LEN - off ? len - done : PAGE_LEN - off;

		if (!page)
			break;
		/* Mostly a word: that is one instruction. */
		if (n == 8)
			memcpy(to + done, page + off, 8);
		else
			memcpy(to + done, page + off, n);
		done += n;
	}
	return done;
}
