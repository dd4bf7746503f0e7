/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_maple: walks a Linux maple tree (6.1 and later) in a guest's memory.
 *
 * The format is described in symbolizer/linux/mm.h. No state: any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MAPLE_H
#define KVMPROF_SYMBOLIZER_LINUX_MAPLE_H

#include "symbolizer/linux/mm.h"

#define LINUX_MAPLE_NODE 256u /* bytes of a node, and its alignment */

/* The layouts of nodes that 64-bit kernels have used since 6.1. */
extern const struct linux_maple linux_maple_range_64, linux_maple_arange_64;

/*
 * Receives an entry that covers indexes first to last. A result other than LINUX_OK ends the walk.
 */
typedef enum linux_why (*linux_maple_entry)(void *ctx, uint64_t first, uint64_t last,
					    uint64_t entry);

/*
 * Calls `each` for all entries, in ascending order, of the tree whose ma_root is `root`; uses
 * l->range and l->arange. Returns LINUX_OK, or the first other reason.
 */
enum linux_why linux_maple_walk(const struct linux_mm_layout *l, const struct memory *m,
				uint64_t root, linux_maple_entry each, void *ctx);

/*
 * Stores the entry that covers index. Returns LINUX_OK, LINUX_NOT_THERE if none does, or another
 * reason.
 */
enum linux_why linux_maple_find(const struct linux_mm_layout *l, const struct memory *m,
				uint64_t root, uint64_t index, uint64_t *entry);

#endif
