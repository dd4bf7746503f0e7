/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_maple: the entries of a Linux maple tree (6.1 and later) in a guest's memory.
 *
 * What a tree looks like is said in symbolizer/linux/mm.h. No state: any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MAPLE_H
#define KVMPROF_SYMBOLIZER_LINUX_MAPLE_H

#include "symbolizer/linux/mm.h"

#define LINUX_MAPLE_NODE 256u /* bytes, and how nodes are aligned */

/* What 64-bit kernels have had from 6.1 on. */
extern const struct linux_maple linux_maple_range_64, linux_maple_arange_64;

/* An entry that covers first..last. Other than LINUX_OK ends the walk. */
typedef enum linux_why (*linux_maple_entry)(void *ctx, uint64_t first, uint64_t last,
					    uint64_t entry);

/* All entries in ascending order, of the tree whose ma_root is `root`; l->range and l->arange. */
enum linux_why linux_maple_walk(const struct linux_mm_layout *l, const struct memory *m,
				uint64_t root, linux_maple_entry each, void *ctx);

/* The entry that covers index. LINUX_NOT_THERE: none does. */
enum linux_why linux_maple_find(const struct linux_mm_layout *l, const struct memory *m,
				uint64_t root, uint64_t index, uint64_t *entry);

#endif
