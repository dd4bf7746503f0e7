/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where QEMU puts NVDIMMs, and whether page tables map them: pages of each size, loops, tables outside of RAM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vmm/exact/nvdimm.h"

#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)
#define FROM (4 * GIB)
#define TO (FROM + GIB)

static uint64_t ram[8][512]; /* tables, the top one first */
static const struct gmem memory = { .region = { { 0, sizeof(ram), (uint8_t *)ram } }, .n = 1 };

static uint64_t table(unsigned int i)
{
	return i * sizeof(ram[0]) | 3;
}

/* Table 0 to 3 are of levels 4 to 1; the entry in each that leads on is `at`. */
static void chain(unsigned int at)
{
	memset(ram, 0, sizeof(ram));
	for (unsigned int i = 0; i < 3; i++)
		ram[i][at] = table(i + 1);
}

static bool mapped(void)
{
	return nvdimm_is_mapped(&memory, 0, FROM, TO);
}

static void a_mapping_is_found(void **state)
{
	(void)state;
	chain(511);
	assert_false(mapped());
	ram[3][0] = (FROM - 4096) | 3;
	ram[3][1] = TO | 3;
	assert_false(mapped());
	ram[3][511] = (TO - 4096) | UINT64_C(0x8000000000000063);
	assert_true(mapped());
	/* 2 MiB and 1 GiB; bit 12 of a large page is none of its address. */
	chain(300);
	ram[2][7] = (FROM + 2 * MIB) | 0x10e3;
	assert_true(mapped());
	ram[2][7] = (FROM - 2 * MIB) | 0x10e3;
	assert_false(mapped());
	ram[1][8] = FROM | 0xe3;
	assert_true(mapped());
	/* Not present; and in the half of programs. */
	ram[1][8] = FROM | 0xe2;
	assert_false(mapped());
	chain(255);
	ram[3][0] = FROM | 3;
	assert_false(mapped());
}

static void bad_tables_end(void **state)
{
	(void)state;
	/* Tables outside of RAM are no tables. */
	memset(ram, 0, sizeof(ram));
	ram[0][300] = UINT64_C(0x7f0000000003);
	assert_false(mapped());
	/* One that leads to itself by each entry, which is 512^3 ways. */
	for (unsigned int i = 0; i < 512; i++)
		ram[0][i] = table(0);
	assert_true(mapped());
	assert_false(nvdimm_is_mapped(&memory, 64 * GIB, FROM, TO));
}

static void the_range_is_that_of_qemu(void **state)
{
	const struct nvdimm two[] = { { .size = 4 * MIB }, { .size = 6 * MIB } };
	uint64_t from;

	(void)state;
	assert_true(nvdimm_range(two, 2, 0, &from) == 2 * GIB + 10 * MIB);
	assert_true(from == 4 * GIB);
	nvdimm_range(two, 1, 1 * MIB, &from);
	assert_true(from == 5 * GIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapping_is_found),
		cmocka_unit_test(bad_tables_end),
		cmocka_unit_test(the_range_is_that_of_qemu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
