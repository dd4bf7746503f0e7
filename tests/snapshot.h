/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot: a guest that stands still, from the files of tests/e2e/snapshot.c, as
 * the symbolizer's struct memory.
 */
#ifndef KVMPROF_TESTS_SNAPSHOT_H
#define KVMPROF_TESTS_SNAPSHOT_H

#include "base/file.h"
#include "symbolizer/core/memory.h"
#include "vmm/mmu.h"

#include <inttypes.h>
#include <stdio.h>

#define SNAPSHOT_MAX_VCPUS 8

struct snapshot_vcpu {
	uint64_t rip, rsp, gs_base, kernel_gs_base, lstar, idt_base;
	struct mmu_root root;
	unsigned int cpl;
	/* What its per-CPU variables are relative to, whichever of the two is the kernel's. */
	uint64_t percpu;
};

struct snapshot {
	struct file_map file;
	struct gmem mem;
	struct snapshot_vcpu vcpu[SNAPSHOT_MAX_VCPUS];
	unsigned int nvcpus;
};

static size_t snapshot_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	const struct snapshot *s = ctx;
	struct mmu_root root = s->vcpu[0].root;

	if (space != MEMORY_KERNEL)
		root.cr3 = space;
	return mmu_read(&s->mem, &root, va, dst, len);
}

/* prefix.mem and prefix.vcpus; false when they are not there. */
static bool snapshot_open(struct snapshot *s, const char *prefix, struct memory *out)
{
	char name[512], line[512];
	FILE *f;

	memset(s, 0, sizeof(*s));
	snprintf(name, sizeof(name), "%s.vcpus", prefix);
	f = fopen(name, "r");
	while (f && s->nvcpus < SNAPSHOT_MAX_VCPUS && fgets(line, sizeof(line), f)) {
		struct snapshot_vcpu *v = &s->vcpu[s->nvcpus];

		if (sscanf(line,
			   "%" SCNx64 "%" SCNx64 "%" SCNx64 "%" SCNx64 "%" SCNx64 "%" SCNx64
			   "%" SCNx64 "%" SCNx64 "%" SCNx64 "%" SCNx64 "%x",
			   &v->rip, &v->rsp, &v->root.cr0, &v->root.cr3, &v->root.cr4,
			   &v->root.efer, &v->gs_base, &v->kernel_gs_base, &v->lstar, &v->idt_base,
			   &v->cpl) != 11)
			break;
		v->percpu = v->cpl == 3 || !(v->gs_base >> 63) ? v->kernel_gs_base : v->gs_base;
		s->nvcpus++;
	}
	if (f)
		fclose(f);
	snprintf(name, sizeof(name), "%s.mem", prefix);
	if (!s->nvcpus || file_map_open(&s->file, name, 16ull << 30, NULL) < 0)
		return false;
	/* Only ever read. */
	s->mem.region[0] =
		(struct gmem_region){ 0, s->file.len, (uint8_t *)(uintptr_t)s->file.data };
	s->mem.n = 1;
	*out = (struct memory){ snapshot_read, s };
	return true;
}

static void snapshot_close(struct snapshot *s)
{
	file_map_close(&s->file);
}

#endif
