/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/mmu.h"

#include "vmm/gmem_alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)
#define RAM (64 * MIB)

#define P UINT64_C(0x001)
#define W UINT64_C(0x002)
#define U UINT64_C(0x004)
#define PS UINT64_C(0x080)
#define NX (UINT64_C(1) << 63)
#define IGNORED (UINT64_C(0x7ff) << 52 | 0xe00 | 0x60) /* software bits, protection key, A, D */

#define CR0_PG (UINT64_C(1) << 31)
#define CR4_PAE (UINT64_C(1) << 5)
#define CR4_LA57 (UINT64_C(1) << 12)
#define EFER_LMA (UINT64_C(1) << 10)
#define EFER_NXE (UINT64_C(1) << 11)

/* Where the tables of these tests are. */
#define PML5 UINT64_C(0x1000)
#define PML4 UINT64_C(0x2000)
#define PDPT UINT64_C(0x3000)
#define PD UINT64_C(0x4000)
#define PT UINT64_C(0x5000)

#define KVA UINT64_C(0xffffffff81234567)

static struct gmem mem;
static struct mmu_root root;

static void set(uint64_t table, unsigned int index, uint64_t v)
{
	assert_int_equal(gmem_write(&mem, table + index * 8, &v, 8), 0);
}

static unsigned int idx(uint64_t va, int level)
{
	return va >> (12 + 9 * (level - 1)) & 511;
}

/* Tables for va down to level 1; the entry of the last level is leaf. */
static void map(uint64_t va, int last, uint64_t leaf)
{
	set(PML5, idx(va, 5), PML4 | P | W | U);
	set(PML4, idx(va, 4), PDPT | P | W | U);
	if (last == 3) {
		set(PDPT, idx(va, 3), leaf);
		return;
	}
	set(PDPT, idx(va, 3), PD | P | W | U);
	if (last == 2) {
		set(PD, idx(va, 2), leaf);
		return;
	}
	set(PD, idx(va, 2), PT | P | W | U);
	set(PT, idx(va, 1), leaf);
}

static int setup(void **state)
{
	struct err e = { 0 };

	(void)state;
	root = (struct mmu_root){
		.cr0 = CR0_PG | 1, .cr3 = PML4, .cr4 = CR4_PAE, .efer = EFER_LMA | EFER_NXE
	};
	return gmem_alloc(&mem, &(struct gmem_config){ .size = RAM }, &e);
}

static int teardown(void **state)
{
	(void)state;
	gmem_alloc_free(&mem);
	return 0;
}

static void check(uint64_t va, uint64_t gpa, uint64_t size)
{
	struct mmu_page p = { 0 };

	assert_int_equal(mmu_walk(&mem, &root, va, &p), 0);
	assert_int_equal(p.gpa, gpa);
	assert_int_equal(p.size, size);
}

static void check_error(uint64_t va, int error)
{
	struct mmu_page p = { .gpa = 42 };

	assert_int_equal(mmu_walk(&mem, &root, va, &p), error);
	assert_int_equal(p.gpa, 42);
}

/* With and without a table of what was found: the same, also when it is asked again. */
static size_t read_all(uint64_t va, void *dst, size_t len)
{
	struct mmu_tlb_page page[4] = { 0 };
	const struct mmu_tlb tlb = { page, 4, 1 };
	uint8_t *again = malloc(len + 1);
	size_t n = mmu_read(&mem, &root, va, dst, len);

	assert_non_null(again);
	for (unsigned int i = 0; i < 2; i++) {
		memset(again, 0xcc, len + 1);
		assert_int_equal(mmu_tlb_read(&mem, &root, &tlb, va, again, len), n);
		assert_memory_equal(again, dst, n);
		assert_int_equal(again[n], 0xcc);
	}
	free(again);
	return n;
}

static void page_sizes(void **state)
{
	(void)state;
	map(KVA, 1, 0x7000 | P | W | IGNORED);
	check(KVA, 0x7567, 4096);
	map(KVA, 2, 0x600000 | P | W | PS | IGNORED);
	check(KVA, 0x600000 + (KVA & (2 * MIB - 1)), 2 * MIB);
	map(KVA, 2, 0x600000 | 1 << 12 | P | PS); /* PAT bit of a large page */
	check(KVA, 0x600000 + (KVA & (2 * MIB - 1)), 2 * MIB);
	map(KVA, 3, 0 | P | W | PS);
	check(KVA, KVA & (1024 * MIB - 1), 1024 * MIB);
	map(KVA, 3, UINT64_C(0x8040000000) | P | PS); /* a frame beyond RAM is still a frame */
	check(KVA, UINT64_C(0x8040000000) + (KVA & (1024 * MIB - 1)), 1024 * MIB);
}

static void reserved_bits_fault(void **state)
{
	(void)state;
	map(KVA, 2, 0x602000 | P | PS);
	check_error(KVA, -EFAULT);
	map(KVA, 3, 0x200000 | P | PS);
	check_error(KVA, -EFAULT);
	map(KVA, 3, P | PS);
	set(PML4, idx(KVA, 4), PDPT | P | PS);
	check_error(KVA, -EFAULT);
}

static void rights_add_up(void **state)
{
	struct mmu_page p;

	(void)state;
	map(KVA, 1, 0x7000 | P | W | U);
	assert_int_equal(mmu_walk(&mem, &root, KVA, &p), 0);
	assert_true(p.user && p.write && p.exec);
	set(PDPT, idx(KVA, 3), PD | P | U);
	assert_int_equal(mmu_walk(&mem, &root, KVA, &p), 0);
	assert_true(p.user && !p.write && p.exec);
	set(PML4, idx(KVA, 4), PDPT | P | W);
	assert_int_equal(mmu_walk(&mem, &root, KVA, &p), 0);
	assert_false(p.user);
	set(PD, idx(KVA, 2), PT | P | W | U | NX);
	assert_int_equal(mmu_walk(&mem, &root, KVA, &p), 0);
	assert_false(p.exec);
	root.efer &= ~EFER_NXE;
	assert_int_equal(mmu_walk(&mem, &root, KVA, &p), 0);
	assert_true(p.exec);
}

static void five_levels(void **state)
{
	uint64_t va = UINT64_C(0x00a5123456789abc); /* canonical with 57 bits only */

	(void)state;
	check_error(va, -EINVAL);
	root.cr4 |= CR4_LA57;
	root.cr3 = PML5;
	map(va, 1, 0x9000 | P);
	check(va, 0x9abc, 4096);
	map(KVA, 2, 0x400000 | P | PS);
	check(KVA, 0x400000 + (KVA & (2 * MIB - 1)), 2 * MIB);
	check_error(UINT64_C(0x0100000000000000), -EINVAL);
	check_error(UINT64_C(0xfe00000000000000), -EINVAL);
}

static void cr3_bits_are_masked(void **state)
{
	(void)state;
	map(KVA, 1, 0x7000 | P);
	/* PCID, PWT and PCD, LAM_U48 and LAM_U57, no-flush */
	root.cr3 = PML4 | 0xabc | 0x18 | UINT64_C(3) << 61 | UINT64_C(1) << 63;
	check(KVA, 0x7567, 4096);
}

static void canonical_addresses_only(void **state)
{
	static const uint64_t bad[] = {
		UINT64_C(0x0000800000000000), UINT64_C(0xffff7fffffffffff),
		UINT64_C(0x8000000000000000), UINT64_C(0x7fffffffffffffff),
		UINT64_C(0xff00000000000000),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_error(bad[i], -EINVAL);
	check_error(UINT64_C(0x00007fffffffffff), -EFAULT);
	check_error(UINT64_C(0xffff800000000000), -EFAULT);
	check_error(UINT64_MAX, -EFAULT);
	check_error(0, -EFAULT);
}

static void other_modes(void **state)
{
	struct mmu_page p;

	(void)state;
	root.cr0 = 1;
	check(0x12345, 0x12345, 4096);
	assert_int_equal(mmu_walk(&mem, &root, 0xffffffff, &p), 0);
	check_error(UINT64_C(0x100000000), -EINVAL);
	root.cr0 |= CR0_PG;
	root.efer = 0;
	check_error(0x1000, -EOPNOTSUPP);
	root.efer = EFER_LMA;
	root.cr4 = 0;
	check_error(0x1000, -EOPNOTSUPP);
}

static void hostile_tables_end(void **state)
{
	uint8_t buf[64];

	(void)state;
	/* every entry of the top table is the top table: the walk runs out of levels */
	for (unsigned int i = 0; i < 512; i++)
		set(PML4, i, PML4 | P | W | U);
	check(KVA, PML4 | (KVA & 0xfff), 4096);
	assert_int_equal(read_all(KVA, buf, sizeof(buf)), sizeof(buf));
	/* tables outside of RAM, right behind it, and as far away as an entry can say */
	set(PML4, idx(KVA, 4), RAM | P);
	check_error(KVA, -EFAULT);
	set(PML4, idx(KVA, 4), UINT64_C(0x000ffffffffff000) | P);
	check_error(KVA, -EFAULT);
	root.cr3 = RAM;
	check_error(KVA, -EFAULT);
	root.cr3 = UINT64_MAX;
	check_error(KVA, -EFAULT);
	assert_int_equal(read_all(KVA, buf, sizeof(buf)), 0);
}

static void reads_cross_pages(void **state)
{
	uint64_t va = UINT64_C(0xffffc90000003ff8);
	uint8_t buf[64];

	(void)state;
	memset(buf, 0xee, sizeof(buf));
	map(va, 1, 0x10000 | P);
	map(va + 16, 1, 0x20000 | P); /* neighbours in virtual memory only */
	assert_int_equal(gmem_write(&mem, 0x10ff8, "12345678", 8), 0);
	assert_int_equal(gmem_write(&mem, 0x20000, "abcdefgh", 8), 0);
	assert_int_equal(read_all(va, buf, 16), 16);
	assert_memory_equal(buf, "12345678abcdefgh", 16);
	assert_int_equal(buf[16], 0xee);

	/* the third page is not there: what was before it counts */
	memset(buf, 0, sizeof(buf));
	assert_int_equal(read_all(va + 4096, buf, 64), 8);
	assert_int_equal(read_all(va + 2 * 4096, buf, 64), 0);
	assert_int_equal(read_all(va, buf, 0), 0);
}

static void reads_end_with_ram_and_address_space(void **state)
{
	uint8_t buf[8192];

	(void)state;
	/* a 1 GiB page of which 64 MiB are RAM */
	map(KVA, 3, P | PS);
	assert_int_equal(gmem_write(&mem, RAM - 8, "lastword", 8), 0);
	assert_int_equal(read_all(UINT64_C(0xffffffff80000000) + RAM - 8, buf, 8), 8);
	assert_memory_equal(buf, "lastword", 8);
	assert_int_equal(read_all(UINT64_C(0xffffffff80000000) + RAM - 4096, buf, 8192), 4096);

	/* the last page of all, and then address 0, which is mapped too */
	map(UINT64_MAX, 1, 0x7000 | P);
	set(PML4, 0, PDPT | P);
	set(PDPT, 0, PD | P);
	set(PD, 0, PT | P);
	set(PT, 0, 0x8000 | P);
	assert_int_equal(read_all(UINT64_MAX - 9, buf, 64), 10);
}

/* A cached translation is valid in one era and one space; two pages may share a slot. */
static void remembered_for_an_era(void **state)
{
	const uint64_t va = UINT64_C(0xffffc90000003000), same = va + 4 * 4096;
	struct mmu_tlb_page page[4] = { 0 };
	struct mmu_tlb tlb = { page, 4, 1 };
	struct mmu_root other = root;
	char got;

	(void)state;
	map(va, 1, 0x10000 | P);
	map(same, 1, 0x20000 | P);
	assert_int_equal(gmem_write(&mem, 0x10000, "a", 1), 0);
	assert_int_equal(gmem_write(&mem, 0x20000, "b", 1), 0);
	assert_int_equal(mmu_tlb_read(&mem, &root, &tlb, va, &got, 1), 1);
	assert_int_equal(got, 'a');
	map(va, 1, 0x20000 | P);
	assert_int_equal(mmu_tlb_read(&mem, &root, &tlb, va, &got, 1), 1);
	assert_int_equal(got, 'a');
	assert_int_equal(gmem_write(&mem, 0x10000, "A", 1), 0);
	assert_int_equal(mmu_tlb_read(&mem, &root, &tlb, va, &got, 1), 1);
	assert_int_equal(got, 'A');
	/* another space */
	other.cr3 |= 1; /* a PCID: as good as another */
	assert_int_equal(mmu_tlb_read(&mem, &other, &tlb, va, &got, 1), 1);
	assert_int_equal(got, 'b');
	/* another era */
	tlb.era = 2;
	map(va, 1, 0x10000 | P);
	assert_int_equal(mmu_tlb_read(&mem, &root, &tlb, va, &got, 1), 1);
	assert_int_equal(got, 'A');
	/* another page in its place, and back */
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(mmu_tlb_read(&mem, &root, &tlb, i % 2 ? va : same, &got, 1), 1);
		assert_int_equal(got, i % 2 ? 'A' : 'b');
	}
	/* what is not there is asked for each time */
	map(va, 1, 0);
	tlb.era = 3;
	assert_int_equal(mmu_tlb_read(&mem, &root, &tlb, va, &got, 1), 0);
	map(va, 1, 0x10000 | P);
	assert_int_equal(mmu_tlb_read(&mem, &root, &tlb, va, &got, 1), 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(page_sizes),
		T(reserved_bits_fault),
		T(rights_add_up),
		T(five_levels),
		T(cr3_bits_are_masked),
		T(canonical_addresses_only),
		T(other_modes),
		T(hostile_tables_end),
		T(reads_cross_pages),
		T(reads_end_with_ram_and_address_space),
		T(remembered_for_an_era),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
