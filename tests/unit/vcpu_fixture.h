/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine with one vCPU that no KVM knows: guest RAM, page tables and the
 * shared register page are real, the descriptor is -1. Tests that need an
 * answer from KVM define ioctl() themselves.
 */
#ifndef KVMPROF_TESTS_VCPU_FIXTURE_H
#define KVMPROF_TESTS_VCPU_FIXTURE_H

#include "vmm/machine.h"
#include "vmm/capture/capture.h"
#include "vmm/gmem_alloc.h"

#include <stdlib.h>
#include <string.h>

#define FAKE_RAM (UINT64_C(4) << 20)

/* Guest-physical: the tables, then pages handed out one by one. */
#define FAKE_PML4 UINT64_C(0x1000)
#define FAKE_FIRST_PAGE UINT64_C(0x2000)

#define FAKE_P UINT64_C(0x1)
#define FAKE_W UINT64_C(0x2)
#define FAKE_U UINT64_C(0x4)

#define FAKE_CR0 UINT64_C(0x80050033)
#define FAKE_CR4 UINT64_C(0x20)
#define FAKE_LA57 UINT64_C(0x1000) /* in CR4: what is mapped from then on has five levels */
#define FAKE_EFER UINT64_C(0xd01)

struct fake {
	struct vm *vm;
	struct vcpu *v;
	uint64_t next_page;
};

static inline uint64_t fake_page(struct fake *f)
{
	uint64_t gpa = f->next_page;

	f->next_page += 4096;
	assert_true(f->next_page <= FAKE_RAM);
	return gpa;
}

/* Map the page of va with these flags; returns its guest-physical address. */
static inline uint64_t fake_map(struct fake *f, uint64_t va, uint64_t flags)
{
	uint64_t table = FAKE_PML4, gpa;
	int levels = f->v->run->s.regs.sregs.cr4 & FAKE_LA57 ? 5 : 4;

	for (int level = levels; level > 1; level--) {
		uint64_t at = table + (va >> (12 + 9 * (level - 1)) & 511) * 8, pte;

		assert_int_equal(gmem_read(&f->vm->mem, at, &pte, sizeof(pte)), 0);
		if (!pte) {
			pte = fake_page(f) | FAKE_P | FAKE_W | FAKE_U;
			assert_int_equal(gmem_write(&f->vm->mem, at, &pte, sizeof(pte)), 0);
		}
		table = pte & ~UINT64_C(0xfff);
	}
	gpa = fake_page(f);
	{
		uint64_t pte = gpa | flags;

		assert_int_equal(gmem_write(&f->vm->mem, table + (va >> 12 & 511) * 8, &pte,
					    sizeof(pte)),
				 0);
	}
	return gpa;
}

static inline void fake_map_range(struct fake *f, uint64_t va, uint64_t len)
{
	for (uint64_t at = va; at - va < len; at += 4096)
		fake_map(f, at, FAKE_P | FAKE_W | FAKE_U);
}

static inline struct mmu_root fake_root(const struct fake *f)
{
	return capture_root(&f->v->run->s.regs.sregs);
}

/* Host address of one guest byte, which must be mapped. */
static inline uint8_t *fake_host(const struct fake *f, uint64_t va)
{
	struct mmu_root root = fake_root(f);
	struct mmu_page page;

	assert_int_equal(mmu_walk(&f->vm->mem, &root, va, &page), 0);
	return gmem_ptr(&f->vm->mem, page.gpa, 1);
}

static inline void fake_put(const struct fake *f, uint64_t va, const void *src, size_t len)
{
	const uint8_t *p = src;

	for (size_t i = 0; i < len; i++)
		*fake_host(f, va + i) = p[i];
}

static inline void fake_get(const struct fake *f, uint64_t va, void *dst, size_t len)
{
	uint8_t *p = dst;

	for (size_t i = 0; i < len; i++)
		p[i] = *fake_host(f, va + i);
}

static inline void fake_put64(const struct fake *f, uint64_t va, uint64_t v)
{
	fake_put(f, va, &v, sizeof(v));
}

static inline uint64_t fake_get64(const struct fake *f, uint64_t va)
{
	uint64_t v;

	fake_get(f, va, &v, sizeof(v));
	return v;
}

static inline void fake_init(struct fake *f, size_t ring_size)
{
	struct err e = { 0 };
	size_t size = (sizeof(struct vm) + sizeof(struct vcpu) + 63) & ~(size_t)63;
	struct kvm_sregs *s;

	memset(f, 0, sizeof(*f));
	f->vm = aligned_alloc(64, size);
	assert_non_null(f->vm);
	memset(f->vm, 0, size);
	f->vm->ops = &machine_own;
	f->vm->nvcpus = f->vm->places = 1;
	f->vm->fd = f->vm->end_fd = -1;
	f->vm->cfg.plan.stack_max = 16384;
	f->vm->cfg.plan.stack_align = 16384;
	assert_int_equal(gmem_alloc(&f->vm->mem, &(struct gmem_config){ .size = FAKE_RAM }, &e), 0);
	f->next_page = FAKE_FIRST_PAGE;
	f->v = &f->vm->vcpu[0];
	f->v->vm = f->vm;
	f->v->fd = -1;
	f->v->regs_kept = true; /* as the test has put them */
	f->v->run = calloc(1, sizeof(*f->v->run));
	assert_non_null(f->v->run);
	assert_int_equal(ring_init(&f->v->ring, ring_size), 0);
	s = &f->v->run->s.regs.sregs;
	s->cr0 = FAKE_CR0;
	s->cr3 = FAKE_PML4;
	s->cs.l = 1;
	s->cr4 = FAKE_CR4;
	s->efer = FAKE_EFER;
	s->cs.selector = 0x10;
	s->ss.selector = 0x18;
}

static inline void fake_deinit(struct fake *f)
{
	ring_deinit(&f->v->ring);
	free(f->v->run);
	gmem_alloc_free(&f->vm->mem);
	free(f->vm);
}

#endif
