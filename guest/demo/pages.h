/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mode=pages: ring 3 does nothing but access memory, in known shares of its time: data
 * and code in pages of 4 KiB, 2 MiB and 1 GiB, reads and writes, on its stack and
 * elsewhere. Then the kernel prints what the shares really were, in percent:
 *
 *   pages data 4K|2M|1G <percent>
 *   pages code 4K|2M|1G <percent>
 *   pages access read|write <percent>
 *   pages region stack|other <percent>
 *
 * One physical memory is mapped three times (start.S), so the code is the same whatever
 * its page. All that is touched stays in the caches and TLBs, so that an access takes the
 * same time in each kind of page: shares of time are shares of accesses. Needs 32 MiB.
 *
 * Where CPUID has no pages of 1 GiB (some KVMs don't), those of 2 MiB are used instead, and
 * the truth says so: 1G has 0 percent.
 */
#ifndef PAGES_H
#define PAGES_H

#include "demo.h"

#define PAGES_1G 0x8000000000ul	 /* physical 0 in a page of 1 GiB */
#define PAGES_2M 0x10000000000ul /* physical 0, if 16 to 32 MiB were all there is, in 2 MiB */
#define PAGES_USER_VA 0x400000ul
#define PAGES_USER_PA 0x1200000ul

/* What is touched through each; 4 KiB pages have an address of their own. */
#define PAGES_DATA_4K 0x500000ul
#define PAGES_DATA_4K_PA 0x1400000ul
#define PAGES_DATA_2M (PAGES_2M + 0x1600000ul)
#define PAGES_DATA_1G_PA 0x1800000ul

/* Cycles spent in each job, as u64s in the last of the 4 KiB pages. */
#define PAGES_SPENT_OFF 0xff000ul

enum { PAGES_KIND_4K, PAGES_KIND_2M, PAGES_KIND_1G, PAGES_KINDS };
#define PAGES_JOBS 7u

/* In ring 3: until so many cycles are spent. map_1g: PAGES_1G, or what serves in its place. */
u64 pages_user(u64 budget, u64 map_1g);
/* In ring 0: all of it, and the truth. */
void pages_run(u64 total);

#endif
