/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pages that back memory here, compared with /proc/self/smaps. */
#include "profile/record/host/hostpages.h"
#include "profile/format/sink/memref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

/* 4 MiB from a multiple of 2 MiB on, not touched yet. */
static uint8_t *map_area(int advice)
{
	uint8_t *p =
		mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	p += -(uintptr_t)p & (2 * MIB - 1);
	madvise(p, 4 * MIB, advice);
	return p;
}

/* KiB in huge pages of the mapping at va. */
static unsigned long huge_kib(const void *va)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long a, b, kib = 0;
	bool inside = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &a, &b) == 2)
			inside = (uintptr_t)va >= a && (uintptr_t)va < b;
		else if (inside && sscanf(line, "AnonHugePages: %lu kB", &a) == 1)
			kib = a;
	}
	fclose(f);
	return kib;
}

static void small_pages(void **state)
{
	uint8_t *p = map_area(MADV_NOHUGEPAGE);
	struct hostpages *h = NULL;
	struct hostpage page;

	(void)state;
	assert_int_equal(hostpages_create(&h, 0, NULL), 0);
	p[5 * 4096] = 1;
	hostpages_find(h, (uintptr_t)(p + 5 * 4096 + 123), 1000, &page);
	assert_int_equal(page.why, MEM_HOST_OK);
	assert_int_equal(page.shift, 12);
	assert_true(page.node >= MEM_NO_NODE);
	hostpages_find(h, (uintptr_t)(p + 6 * 4096), 1000, &page);
	assert_int_equal(page.why, MEM_HOST_ABSENT);
	assert_int_equal(page.shift, 0);
	assert_int_equal(page.node, MEM_NO_NODE);
	/* Touched since: it is asked again. */
	p[6 * 4096] = 1;
	hostpages_find(h, (uintptr_t)(p + 6 * 4096), 2000, &page);
	assert_int_equal(page.shift, 12);
	hostpages_destroy(h);
	munmap(p, 4 * MIB);
}

static void huge_pages(void **state)
{
	uint8_t *p = map_area(MADV_HUGEPAGE);
	struct hostpages *h = NULL;
	struct hostpage page;
	unsigned long kib;

	(void)state;
	memset(p, 1, 4 * MIB);
	kib = huge_kib(p);
	assert_int_equal(hostpages_create(&h, 0, NULL), 0);
	hostpages_find(h, (uintptr_t)(p + 2 * MIB + 77), 1000, &page);
	print_message("%lu KiB of 4096 are in huge pages; 2^%u, %s\n", kib, page.shift,
		      memref_host_text(page.why));
	/* Not root, or no huge pages: then it must not claim any. */
	if (page.shift == 21)
		assert_true(kib > 0);
	else if (kib == 4096)
		assert_int_equal(page.why, MEM_HOST_NO_RIGHT);
	/* Broken up: noticed when it is read again. */
	if (page.shift == 21 && madvise(p + 2 * MIB, 4096, MADV_DONTNEED) == 0) {
		hostpages_find(h, (uintptr_t)(p + 2 * MIB + 8192), 2000 + 2 * HOSTPAGES_REFRESH_NS,
			       &page);
		assert_int_equal(page.shift, 12);
	}
	hostpages_destroy(h);
	munmap(p, 4 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_pages),
		cmocka_unit_test(huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
