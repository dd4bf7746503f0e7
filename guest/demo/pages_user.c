// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ring-3 part of mode=pages. Like user.c, it refers to nothing outside of the user's part and has
 * no data.
 */
#include "pages.h"

/* Number of accesses between two clock reads: so many that the reads have no effect. */
#define BLOCK 512
#define BLOCKS 64

typedef u64 (*leaf_fn)(volatile u64 *at, u64 budget);

demo_function u64 pages_read(volatile u64 *at, u64 budget);
demo_function u64 pages_read(volatile u64 *at, u64 budget)
{
	u64 start = rdtsc(), spent;

	demo_frame();
	do {
		u32 n = BLOCKS;

		__asm__ volatile("1:\n"
				 ".rept 512\n"
				 "movq (%1), %%rax\n"
				 ".endr\n"
				 "decl %0\n"
				 "jnz 1b"
				 : "+r"(n)
				 : "r"(at)
				 : "rax", "memory");
		spent = rdtsc() - start;
	} while (spent < budget);
	return spent;
}

demo_function u64 pages_write(volatile u64 *at, u64 budget);
demo_function u64 pages_write(volatile u64 *at, u64 budget)
{
	u64 start = rdtsc(), spent;

	demo_frame();
	do {
		u32 n = BLOCKS;

		__asm__ volatile("1:\n"
				 ".rept 512\n"
				 "movq %%rax, (%1)\n"
				 ".endr\n"
				 "decl %0\n"
				 "jnz 1b"
				 : "+r"(n)
				 : "r"(at)
				 : "rax", "memory");
		spent = rdtsc() - start;
	} while (spent < budget);
	return spent;
}

/* Returns the address of the same function in a page of another size. */
static leaf_fn alias(leaf_fn f, u64 map)
{
	return (leaf_fn)((u64)f - PAGES_USER_VA + PAGES_USER_PA + map);
}

/* Returns one of a few pages, so that there is more than one to count. */
static volatile u64 *place(u64 area, u64 random)
{
	return (volatile u64 *)(area + (random >> 40 & 7) * 4096 + (random >> 50 & 63) * 64);
}

/* pages.c has the table of these jobs. */
static u64 job_run(u32 job, u64 random, u64 budget, u64 map_1g)
{
	volatile u64 on_stack[8];

	switch (job) {
	case 0:
		return pages_read(place(PAGES_DATA_4K, random), budget);
	case 1:
		return pages_write(place(PAGES_DATA_2M, random), budget);
	case 2:
		return alias(pages_read, PAGES_2M)(place(PAGES_DATA_2M, random), budget);
	case 3:
		return alias(pages_read, PAGES_2M)(place(map_1g + PAGES_DATA_1G_PA, random),
						   budget);
	case 4:
		return alias(pages_write, map_1g)(place(map_1g + PAGES_DATA_1G_PA, random), budget);
	case 5:
		return alias(pages_write, map_1g)(place(PAGES_DATA_4K, random), budget);
	default:
		return pages_read(on_stack + (random >> 50 & 7), budget);
	}
}

/* Chooses a job with these percentages of the slices: 20, 15, 20, 10, 15, 10, 10. */
static u32 job_pick(u64 random)
{
	u64 lot = (random >> 20) % 100;

	return lot < 20	  ? 0
	       : lot < 35 ? 1
	       : lot < 55 ? 2
	       : lot < 65 ? 3
	       : lot < 80 ? 4
	       : lot < 90 ? 5
			  : 6;
}

demo_function u64 pages_user(u64 budget, u64 map_1g)
{
	volatile u64 *spent = (volatile u64 *)(PAGES_DATA_4K + PAGES_SPENT_OFF);
	u64 random = 0x9e3779b97f4a7c15ul, slice = budget / 20000, total = 0;

	while (total < budget) {
		u64 cycles;
		u32 job;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		job = job_pick(random);
		cycles = job_run(job, random, slice / 2 + (random >> 30) % slice, map_1g);
		spent[job] += cycles;
		total += cycles;
	}
	return total;
}
