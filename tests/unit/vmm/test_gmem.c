/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/gmem.h"
#include "vmm/gmem_alloc.h"

#include "vmm/layout.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

		assert_int_equal(gmem_alloc(&m, &(struct gmem_config){ .size = bad[i] }, &e),
				 -EINVAL);
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
	assert_int_equal(gmem_alloc(&m, &(struct gmem_config){ .size = 3 * MIB }, &e), 0);
	assert_int_equal(m.n, 1);
	assert_int_equal(gmem_size(&m), 3 * MIB);
	assert_int_equal((uintptr_t)m.region[0].host % (2 * MIB), 0);
	assert_int_equal(mincore(m.region[0].host + MIB, 4096, in_core), 0);
	assert_int_equal(in_core[0] & 1, 0); /* allocation touches nothing */
	assert_int_equal(gmem_read(&m, 2 * MIB, &v, sizeof(v)), 0);
	assert_int_equal(v, 0);
	gmem_alloc_free(&m);
	assert_int_equal(m.n, 0);
	gmem_alloc_free(&m); /* harmless */
}

static void checks_every_range(void **state)
{
	struct gmem m = { 0 };
	struct err e = { 0 };
	uint8_t b[16] = { 1, 2, 3 };
	uint64_t end = 2 * MIB;

	(void)state;
	assert_int_equal(gmem_alloc(&m, &(struct gmem_config){ .size = end }, &e), 0);
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
	gmem_alloc_free(&m);
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
	assert_int_equal(gmem_alloc(&m, &(struct gmem_config){ .size = size }, &e), 0);
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
	gmem_alloc_free(&m);
}

/* Returns whether a process that reads the byte is killed for it. */
static bool kills(const uint8_t *at)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(const volatile uint8_t *)at & 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void check_guards(const struct gmem *m)
{
	for (unsigned int i = 0; i < m->n; i++) {
		const struct gmem_region *r = &m->region[i];

		assert_true(kills(r->host - 1));
		assert_true(kills(r->host - GMEM_GUARD));
		assert_true(kills(r->host + r->size));
		assert_true(kills(r->host + r->size + GMEM_GUARD - 1));
		assert_false(kills(r->host));
		assert_false(kills(r->host + r->size - 1));
	}
}

static void has_guards(void **state)
{
	static const enum gmem_pages pages[] = { GMEM_PAGES_ANY, GMEM_PAGES_SMALL, GMEM_PAGES_THP,
						 GMEM_PAGES_2M };
	unsigned int made = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		struct gmem_config cfg = { .size = 4 * MIB, .pages = pages[i] };
		struct gmem m = { 0 };
		struct err e = { 0 };

		/* A host may have no huge pages of either kind. */
		if (gmem_alloc(&m, &cfg, &e) < 0) {
			assert_true(pages[i] == GMEM_PAGES_THP || pages[i] == GMEM_PAGES_2M);
			continue;
		}
		check_guards(&m);
		gmem_alloc_free(&m);
		made++;
	}
	assert_true(made >= 2);
}

static void has_guards_around_each_region(void **state)
{
	uint64_t size = GPA_PCI_HOLE + 5 * MIB;
	struct gmem m = { 0 };
	struct err e = { 0 };

	(void)state;
	if (host_ram() < size) {
		SKIP("the host has less than 3 GiB of memory");
	}
	assert_int_equal(gmem_alloc(&m, &(struct gmem_config){ .size = size }, &e), 0);
	assert_int_equal(m.n, 2);
	check_guards(&m);
	gmem_alloc_free(&m);
}

/* As the RAM of the exact engine's QEMU is mapped. */
static void reserves_room_for_a_file(void **state)
{
	int fd = memfd_create("ram", MFD_CLOEXEC);
	struct gmem m = { .n = 1 };
	uint8_t *p;

	(void)state;
	assert_int_equal(ftruncate(fd, 3 * 4096), 0);
	p = gmem_alloc_reserve(3 * 4096, 4096);
	assert_non_null(p);
	assert_true(kills(p));
	assert_ptr_equal(mmap(p, 3 * 4096, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), p);
	m.region[0] = (struct gmem_region){ .size = 3 * 4096, .host = p };
	check_guards(&m);
	gmem_alloc_unreserve(p, 3 * 4096);
	assert_true(kills(p));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_odd_sizes),
		cmocka_unit_test(is_zero_and_aligned),
		cmocka_unit_test(checks_every_range),
		cmocka_unit_test(has_a_hole_below_4g),
		cmocka_unit_test(has_guards),
		cmocka_unit_test(has_guards_around_each_region),
		cmocka_unit_test(reserves_room_for_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
