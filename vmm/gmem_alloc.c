/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/gmem_alloc.h"

#include "vmm/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/mempolicy.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Host huge pages can back the guest only if host and guest addresses are equal modulo 2 MiB. */
#define GMEM_HOST_ALIGN (UINT64_C(2) << 20)

static uint64_t huge_size(enum gmem_pages pages)
{
	return pages == GMEM_PAGES_2M ? 2 * GPA_MIB : pages == GMEM_PAGES_1G ? 1024 * GPA_MIB : 0;
}

static int no_space(uint64_t size, struct err *e)
{
	return err_set(e, errno, "cannot map %" PRIu64 " MiB of guest RAM: %s", size / GPA_MIB,
		       strerror(errno));
}

void *gmem_alloc_reserve(uint64_t size, uint64_t align)
{
	size_t want = size + 2 * GMEM_GUARD + align;
	uint8_t *all =
		mmap(NULL, want, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *p, *end;

	if (all == MAP_FAILED)
		return NULL;
	p = all + GMEM_GUARD;
	p += -(uintptr_t)p & (align - 1);
	end = p + size + GMEM_GUARD;
	if (p - GMEM_GUARD > all)
		munmap(all, (size_t)(p - GMEM_GUARD - all));
	if (end < all + want)
		munmap(end, (size_t)(all + want - end));
	return p;
}

void gmem_alloc_unreserve(void *p, uint64_t size)
{
	munmap((uint8_t *)p - GMEM_GUARD, size + 2 * GMEM_GUARD);
}

static int map_huge(const struct gmem_config *cfg, uint64_t size, uint8_t **out, struct err *e)
{
	uint64_t page = huge_size(cfg->pages);
	int shift = __builtin_ctzll(page), error;
	void *p, *at;

	if (size % page)
		return err_set(e, EINVAL,
			       "guest RAM of %" PRIu64
			       " MiB in one piece can't be made of pages of "
			       "%" PRIu64 " MiB; give a multiple of that",
			       size / GPA_MIB, page / GPA_MIB);
	at = gmem_alloc_reserve(size, page);
	if (!at)
		return no_space(size, e);
	/* Without MAP_NORESERVE, so that a lack of pages fails here and not with a SIGBUS later. */
	p = mmap(at, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_HUGETLB | shift << MAP_HUGE_SHIFT,
		 -1, 0);
	if (p == MAP_FAILED) {
		error = errno;
		gmem_alloc_unreserve(at, size);
		return err_set(e, error,
			       "%" PRIu64 " huge pages of %" PRIu64
			       " MiB are not free (%s); write a "
			       "number to /sys/kernel/mm/hugepages/hugepages-%" PRIu64
			       "kB/nr_hugepages, or use --hugepages=thp",
			       size / page, page / GPA_MIB, strerror(error), page >> 10);
	}
	*out = p;
	return 0;
}

static int map_small(uint64_t size, uint8_t **out, struct err *e)
{
	void *at = gmem_alloc_reserve(size, GMEM_HOST_ALIGN);
	int ret;

	if (!at)
		return no_space(size, e);
	if (mmap(at, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
		ret = no_space(size, e);
		gmem_alloc_unreserve(at, size);
		return ret;
	}
	*out = at;
	return 0;
}

static int bind_node(uint8_t *p, uint64_t size, unsigned int node, struct err *e)
{
	unsigned long mask[(GMEM_MAX_NODE + 1) / (8 * sizeof(unsigned long))] = { 0 };
	unsigned int bits = 8 * sizeof(mask[0]);

	if (node > GMEM_MAX_NODE)
		return err_set(e, EINVAL, "host node %u: expected 0 to %u", node, GMEM_MAX_NODE);
	mask[node / bits] = 1ul << node % bits;
	if (syscall(SYS_mbind, p, size, MPOL_BIND, mask, GMEM_MAX_NODE + 2ul, 0) < 0)
		return err_set(e, errno,
			       "guest memory cannot be bound to host node %u: %s; `cat "
			       "/sys/devices/system/node/has_memory` lists the valid ones",
			       node, strerror(errno));
	return 0;
}

static int region_map(struct gmem *m, const struct gmem_config *cfg, uint64_t gpa, uint64_t size,
		      struct err *e)
{
	uint8_t *p = NULL;
	int r = huge_size(cfg->pages) ? map_huge(cfg, size, &p, e) : map_small(size, &p, e);

	if (r)
		return r;
	/*
	 * A core dump of kvmprof should not contain the guest. This is advice only: failure is
	 * harmless.
	 */
	(void)madvise(p, size, MADV_DONTDUMP);
	m->region[m->n++] = (struct gmem_region){ .gpa = gpa, .size = size, .host = p };
	if (!huge_size(cfg->pages) &&
	    madvise(p, size, cfg->pages == GMEM_PAGES_SMALL ? MADV_NOHUGEPAGE : MADV_HUGEPAGE) <
		    0 &&
	    cfg->pages == GMEM_PAGES_THP)
		return err_set(e, errno, "this host has no transparent huge pages: %s",
			       strerror(errno));
	return cfg->bind ? bind_node(p, size, cfg->node, e) : 0;
}

int gmem_alloc(struct gmem *m, const struct gmem_config *cfg, struct err *e)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	uint64_t host = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
	uint64_t size = cfg->size, low;
	struct gmem tmp = { 0 };
	int r;

	if (!size || size % GPA_MIB)
		return err_set(e, EINVAL,
			       "guest memory must be a multiple of 1 MiB and not 0 (found %" PRIu64
			       " bytes)",
			       size);
	if (size > host)
		return err_set(e, EINVAL,
			       "guest memory of %" PRIu64
			       " MiB is more than this host has (%" PRIu64 " MiB); ask for less",
			       size / GPA_MIB, host / GPA_MIB);

	low = size < GPA_PCI_HOLE ? size : GPA_PCI_HOLE;
	r = region_map(&tmp, cfg, 0, low, e);
	if (!r && size > low)
		r = region_map(&tmp, cfg, GPA_HIGH_RAM, size - low, e);
	if (r) {
		gmem_alloc_free(&tmp);
		return r;
	}
	*m = tmp;
	return 0;
}

void gmem_alloc_dont_fork(const struct gmem *m)
{
	for (unsigned int i = 0; !m->remote && i < m->n; i++)
		(void)madvise(m->region[i].host, m->region[i].size, MADV_DONTFORK);
}

void gmem_alloc_free(struct gmem *m)
{
	for (unsigned int i = 0; !m->remote && i < m->n; i++)
		gmem_alloc_unreserve(m->region[i].host, m->region[i].size);
	memset(m, 0, sizeof(*m));
}
