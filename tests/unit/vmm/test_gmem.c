/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/gmem.h"

#include "vmm/layout.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static uint64_t host_ram(void)
{
	unsigned long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemTotal: %lu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return (uint64_t)kib << 10;
}

static void refuses_odd_sizes(void **state)
{
	static const uint64_t bad[] = {
		0, 1, 4096, MIB - 1, MIB + 4096, UINT64_MAX, UINT64_MAX / MIB * MIB
	};
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gmem m = { .n = 77 };
		struct err e = { 0 };

		assert_int_equal(gmem_alloc(&m, bad[i], &e), -EINVAL);
		assert_int_equal(e.code, EINVAL);
		assert_int_equal(m.n, 77); /* out-parameters are written on success only */
	}
}

static void is_zero_and_aligned(void **state)
{
	struct gmem m = { 0 };
	struct err e = { 0 };
	unsigned char in_core[1];
	uint64_t v = 1;

	(void)state;
	assert_int_equal(gmem_alloc(&m, 3 * MIB, &e), 0);
	assert_int_equal(m.n, 1);
	assert_int_equal(gmem_size(&m), 3 * MIB);
	assert_int_equal((uintptr_t)m.region[0].host % (2 * MIB), 0);
	assert_int_equal(mincore(m.region[0].host + MIB, 4096, in_core), 0);
	assert_int_equal(in_core[0] & 1, 0); /* allocation touches nothing */
	assert_int_equal(gmem_read(&m, 2 * MIB, &v, sizeof(v)), 0);
	assert_int_equal(v, 0);
	gmem_free(&m);
	assert_int_equal(m.n, 0);
	gmem_free(&m); /* harmless */
}

static void checks_every_range(void **state)
{
	struct gmem m = { 0 };
	struct err e = { 0 };
	uint8_t b[16] = { 1, 2, 3 };
	uint64_t end = 2 * MIB;

	(void)state;
	assert_int_equal(gmem_alloc(&m, end, &e), 0);
	assert_ptr_equal(gmem_ptr(&m, 0, 1), m.region[0].host);
	assert_ptr_equal(gmem_ptr(&m, end - 1, 1), m.region[0].host + end - 1);
	assert_ptr_equal(gmem_ptr(&m, 0, end), m.region[0].host);
	assert_null(gmem_ptr(&m, 0, 0));
	assert_null(gmem_ptr(&m, end - 1, 2));
	assert_null(gmem_ptr(&m, end, 1));
	assert_null(gmem_ptr(&m, 0, end + 1));
	assert_null(gmem_ptr(&m, UINT64_MAX, 1));
	assert_null(gmem_ptr(&m, UINT64_MAX, 2)); /* wraps to 0 */
	assert_null(gmem_ptr(&m, 1, UINT64_MAX));

	assert_int_equal(gmem_write(&m, end - 16, b, 16), 0);
	memset(b, 0xff, sizeof(b));
	assert_int_equal(gmem_read(&m, end - 15, b, 16), -EFAULT);
	assert_int_equal(b[0], 0xff); /* nothing copied */
	assert_int_equal(gmem_write(&m, end - 15, b, 16), -EFAULT);
	assert_int_equal(gmem_read(&m, end - 16, b, 16), 0);
	assert_int_equal(b[1], 2);
	assert_int_equal(b[15], 0);
	assert_int_equal(gmem_read(&m, UINT64_MAX, b, 0), 0);
	gmem_free(&m);
}

static void has_a_hole_below_4g(void **state)
{
	uint64_t size = GPA_PCI_HOLE + 5 * MIB;
	struct gmem m = { 0 };
	struct err e = { 0 };
	uint32_t v = 0xabcd;

	(void)state;
	if (host_ram() < size) {
		SKIP("the host has less than 3 GiB of memory");
	}
	assert_int_equal(gmem_alloc(&m, size, &e), 0);
	assert_int_equal(m.n, 2);
	assert_int_equal(gmem_size(&m), size);
	assert_null(gmem_ptr(&m, GPA_PCI_HOLE, 1));
	assert_null(gmem_ptr(&m, GPA_PCI_HOLE - 1, 2));
	assert_null(gmem_ptr(&m, GPA_HIGH_RAM - 1, 1));
	assert_null(gmem_ptr(&m, GPA_HIGH_RAM - 1, 2));
	assert_null(gmem_ptr(&m, GPA_LAPIC, 4));
	assert_non_null(gmem_ptr(&m, GPA_HIGH_RAM, 5 * MIB));
	assert_null(gmem_ptr(&m, GPA_HIGH_RAM, 5 * MIB + 1));
	assert_int_equal(gmem_write(&m, GPA_HIGH_RAM + 8, &v, 4), 0);
	v = 0;
	assert_int_equal(gmem_read(&m, 8, &v, 4), 0);
	assert_int_equal(v, 0); /* not an alias of low RAM */
	assert_int_equal(gmem_read(&m, GPA_HIGH_RAM + 8, &v, 4), 0);
	assert_int_equal(v, 0xabcd);
	gmem_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_odd_sizes),
		cmocka_unit_test(is_zero_and_aligned),
		cmocka_unit_test(checks_every_range),
		cmocka_unit_test(has_a_hole_below_4g),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
