/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes as registers and page tables: cr0 cr3 cr4 efer gva (8 bytes each), then
 * guest RAM from address 0 on. mmu_read() must agree with single mmu_walk()s.
 */
#include "tests/fuzz/fuzz.h"

#include "base/mmu.h"

#include <stdlib.h>
#include <string.h>

#define FUZZ_RAM 0x10000u
#define FUZZ_READ 4200u /* always leaves the first 4 KiB page */

static void require(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gmem m = { .n = 1 };
	struct mmu_root root;
	uint64_t word[5] = { 0 }, gva;
	uint8_t *ram = aligned_alloc(4096, FUZZ_RAM), got[FUZZ_READ];
	size_t n = size < sizeof(word) ? size : sizeof(word), done, expect = 0;

	require(ram != NULL);
	memset(ram, 0, FUZZ_RAM);
	if (n)
		memcpy(word, data, n);
	if (size > n)
		memcpy(ram, data + n, size - n < FUZZ_RAM ? size - n : FUZZ_RAM);
	m.region[0] = (struct gmem_region){ .gpa = 0, .size = FUZZ_RAM, .host = ram };
	root = (struct mmu_root){ .cr0 = word[0], .cr3 = word[1], .cr4 = word[2], .efer = word[3] };
	gva = word[4];

	memset(got, 0, sizeof(got));
	done = mmu_read(&m, &root, gva, got, sizeof(got));
	require(done <= sizeof(got));
	/* one address in each page and around their edges is enough to agree on */
	while (expect < sizeof(got) && gva + expect >= gva) {
		size_t step = 4096 - ((gva + expect) & 4095);
		struct mmu_page p;
		uint8_t b;

		if (mmu_walk(&m, &root, gva + expect, &p))
			break;
		require(p.size == 4096 || p.size == 2u << 20 || p.size == 1u << 30);
		require((p.gpa & (p.size - 1)) == ((gva + expect) & (p.size - 1)));
		if (gmem_read(&m, p.gpa, &b, 1))
			break;
		require(expect < done && got[expect] == b);
		expect += step < sizeof(got) - expect ? step : sizeof(got) - expect;
	}
	require(done == expect);
	free(ram);
	return 0;
}
