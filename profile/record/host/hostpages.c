/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/host/hostpages.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/idmap.h"
#include "base/proc.h"
#include "profile/format/sink/memref.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROC_PATH 32u
#define PAGE_SHIFT 12u
#define BLOCK_SHIFT 21u
#define BLOCK_PAGES 512u

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_PFN ((1ull << 55) - 1)
#define KPF_HUGE (1ull << 17)
#define KPF_THP (1ull << 22)

struct hostpages_block {
	uint64_t start; /* hva */
	uint64_t read_ns;
	uint64_t frame[BLOCK_PAGES]; /* as in pagemap */
	int16_t node[BLOCK_PAGES];
	uint8_t huge; /* log2 of the huge page that contains the block; 0: none */
	uint8_t why;  /* reason for the page sizes: enum mem_host */
};

struct hostpages {
	pid_t pid;	    /* 0: this process */
	int pagemap, flags; /* -1: unreadable */
	struct hostpages_block *block;
	size_t n, cap;
	struct idmap by_number; /* hva >> BLOCK_SHIFT modulo 2^32: index */
};

static void proc_path(const struct hostpages *h, const char *file, char path[PROC_PATH])
{
	if (h->pid)
		snprintf(path, PROC_PATH, "/proc/%d/%s", (int)h->pid, file);
	else
		snprintf(path, PROC_PATH, "/proc/self/%s", file);
}

int hostpages_create(struct hostpages **out, pid_t pid, struct err *e)
{
	struct hostpages *h = calloc(1, sizeof(*h));
	char path[PROC_PATH];

	if (!h)
		return err_nomem(e);
	h->pid = pid;
	proc_path(h, "pagemap", path);
	h->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	h->flags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	*out = h;
	return 0;
}

void hostpages_destroy(struct hostpages *h)
{
	if (!h)
		return;
	if (h->pagemap >= 0)
		close(h->pagemap);
	if (h->flags >= 0)
		close(h->flags);
	idmap_deinit(&h->by_number);
	free(h->block);
	free(h);
}

/* -- one block --------------------------------------------------------------------------- */

/* Reads from smaps the page size of the mapping around va, and its bytes in huge pages. */
static bool read_smaps(const struct hostpages *h, uint64_t va, uint64_t *page, uint64_t *huge)
{
	char path[PROC_PATH];
	cleanup_fclose FILE *f = NULL;
	bool inside = false;
	char line[512];

	proc_path(h, "smaps", path);
	f = proc_open(path);
	*page = *huge = 0;
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long a, b;

		if (sscanf(line, "%llx-%llx ", &a, &b) == 2) {
			if (inside)
				return true;
			inside = va >= a && va < b;
		} else if (inside && sscanf(line, "KernelPageSize: %llu kB", &a) == 1) {
			*page = a << 10;
		} else if (inside && (sscanf(line, "AnonHugePages: %llu kB", &a) == 1 ||
				      sscanf(line, "ShmemPmdMapped: %llu kB", &a) == 1 ||
				      sscanf(line, "FilePmdMapped: %llu kB", &a) == 1)) {
			*huge += a << 10;
		}
	}
	return inside;
}

static uint8_t log2_of(uint64_t size)
{
	return size ? (uint8_t)(63 - __builtin_clzll(size)) : 0;
}

/* Returns whether the frames are contiguous from a multiple of the size on, as in a huge page. */
static bool is_contiguous(const struct hostpages_block *b)
{
	uint64_t first = b->frame[0] & PAGEMAP_PFN;

	if (first % BLOCK_PAGES)
		return false;
	for (unsigned int i = 0; i < BLOCK_PAGES; i++)
		if (!(b->frame[i] & PAGEMAP_PRESENT) || (b->frame[i] & PAGEMAP_PFN) != first + i)
			return false;
	return true;
}

/* Returns whether frame numbers are readable: for users other than root they are 0. */
static bool has_frames(const struct hostpages_block *b)
{
	for (unsigned int i = 0; i < BLOCK_PAGES; i++)
		if (b->frame[i] & PAGEMAP_PRESENT && b->frame[i] & PAGEMAP_PFN)
			return true;
	return false;
}

static void read_sizes(struct hostpages *h, struct hostpages_block *b)
{
	uint64_t page, huge, first = b->frame[0] & PAGEMAP_PFN, flags = 0;
	bool smaps;

	b->huge = 0;
	b->why = MEM_HOST_OK;
	if (h->flags >= 0 && has_frames(b)) {
		if (!is_contiguous(b))
			return;
		if (pread(h->flags, &flags, sizeof(flags), (off_t)(first * sizeof(flags))) !=
		    sizeof(flags)) {
			b->why = MEM_HOST_NO_RIGHT;
			return;
		}
		if (flags & KPF_HUGE && read_smaps(h, b->start, &page, &huge) && page)
			b->huge = log2_of(page);
		else if (flags & KPF_THP)
			b->huge = BLOCK_SHIFT;
		return;
	}
	smaps = read_smaps(h, b->start, &page, &huge);
	if (smaps && page > 1u << PAGE_SHIFT)
		b->huge = log2_of(page);
	else if (!smaps || huge)
		b->why = MEM_HOST_NO_RIGHT;
}

/* Uses the system call itself: libnuma's wrapper would be its only function that is used. */
static void read_nodes(const struct hostpages *h, struct hostpages_block *b)
{
	void *page[BLOCK_PAGES];
	int status[BLOCK_PAGES];
	long ret;

	for (unsigned int i = 0; i < BLOCK_PAGES; i++)
		page[i] = (void *)(uintptr_t)(b->start + ((uint64_t)i << PAGE_SHIFT));
	ret = syscall(SYS_move_pages, h->pid, (unsigned long)BLOCK_PAGES, page, NULL, status, 0);
	for (unsigned int i = 0; i < BLOCK_PAGES; i++)
		b->node[i] = ret == 0 && status[i] >= 0 ? (int16_t)status[i] : MEM_NO_NODE;
}

static void read_block(struct hostpages *h, struct hostpages_block *b, uint64_t now_ns)
{
	const ssize_t want = sizeof(b->frame);
	off_t off = (off_t)((b->start >> PAGE_SHIFT) * sizeof(b->frame[0]));

	b->read_ns = now_ns;
	memset(b->frame, 0, sizeof(b->frame));
	if (h->pagemap < 0 || pread(h->pagemap, b->frame, sizeof(b->frame), off) != want)
		b->why = MEM_HOST_NO_FILE;
	else
		read_sizes(h, b);
	read_nodes(h, b);
}

/* -- all blocks --------------------------------------------------------------------------- */

/* Returns NULL if out of memory. */
static struct hostpages_block *block_of(struct hostpages *h, uint64_t start, uint64_t now_ns)
{
	uint32_t number = (uint32_t)(start >> BLOCK_SHIFT), at;

	if (idmap_get(&h->by_number, number, &at) && h->block[at].start == start) {
		if (clock_is_due(now_ns, h->block[at].read_ns, HOSTPAGES_REFRESH_NS))
			read_block(h, &h->block[at], now_ns);
		return &h->block[at];
	}
	if (h->n >= HOSTPAGES_MAX_BLOCKS) {
		idmap_deinit(&h->by_number);
		h->n = 0;
	}
	if (ARRAY_ROOM(h->block, h->n, h->cap))
		return NULL;
	if (idmap_set(&h->by_number, number, (uint32_t)h->n) < 0)
		return NULL;
	h->block[h->n] = (struct hostpages_block){ .start = start };
	read_block(h, &h->block[h->n], now_ns);
	return &h->block[h->n++];
}

void hostpages_find(struct hostpages *h, uint64_t hva, uint64_t now_ns, struct hostpage *out)
{
	uint64_t va = hva, start = va & ~((1ull << BLOCK_SHIFT) - 1);
	struct hostpages_block *b = block_of(h, start, now_ns);
	unsigned int i = (unsigned int)((va - start) >> PAGE_SHIFT);

	*out = (struct hostpage){ .node = MEM_NO_NODE, .why = MEM_HOST_ABSENT };
	if (!b)
		return;
	/* The guest touched the page after the block was read. */
	if (b->why != MEM_HOST_NO_FILE && !(b->frame[i] & PAGEMAP_PRESENT) && b->read_ns != now_ns)
		read_block(h, b, now_ns);
	out->node = b->node[i];
	out->why = b->why;
	if (b->why == MEM_HOST_NO_FILE)
		return;
	if (!(b->frame[i] & PAGEMAP_PRESENT))
		out->why = MEM_HOST_ABSENT;
	else if (b->why == MEM_HOST_OK)
		out->shift = b->huge ? b->huge : PAGE_SHIFT;
}
