/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mode=pages: ring 3 only accesses memory, in known shares of its time: data and code in pages of 4
 * KiB, 2 MiB and 1 GiB, reads and writes, on its stack and elsewhere. Then the kernel prints the
 * real shares in percent:
 *
 *   pages data 4K|2M|1G <percent>
 *   pages code 4K|2M|1G <percent>
 *   pages access read|write <percent>
 *   pages region stack|other <percent>
 *
 * The same physical memory is mapped three times (start.S), so the code is the same for each page
 * size. All accessed memory stays in the caches and TLBs, so an access takes the same time with
 * each page size, and shares of time are shares of accesses. This needs 32 MiB.
 *
 * If CPUID has no pages of 1 GiB (as with some KVMs), pages of 2 MiB are used instead, and 1G is
 * printed with 0 percent.
 */
#ifndef PAGES_H
#define PAGES_H

#include "demo.h"

#define PAGES_1G 0x8000000000ul /* physical 0 in a page of 1 GiB */
/* Physical 0 in pages of 2 MiB, of which 16 to 32 MiB are mapped. */
#define PAGES_2M 0x10000000000ul
#define PAGES_USER_VA 0x400000ul
#define PAGES_USER_PA 0x1200000ul

/* The memory accessed through each mapping; 4 KiB pages have an address of their own. */
#define PAGES_DATA_4K 0x500000ul
#define PAGES_DATA_4K_PA 0x1400000ul
#define PAGES_DATA_2M (PAGES_2M + 0x1600000ul)
#define PAGES_DATA_1G_PA 0x1800000ul

/* Offset of the cycles spent in each job, u64s in the last of the 4 KiB pages. */
#define PAGES_SPENT_OFF 0xff000ul

enum { PAGES_KIND_4K, PAGES_KIND_2M, PAGES_KIND_1G, PAGES_KINDS };
#define PAGES_JOBS 7u

/*
 * Runs in ring 3 until `budget` cycles are spent. map_1g is PAGES_1G, or the mapping used in its
 * place.
 */
u64 pages_user(u64 budget, u64 map_1g);
/* Runs the mode in ring 0, and prints the shares. */
void pages_run(u64 total);

#endif
