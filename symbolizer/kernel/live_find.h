/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live_find: finds a running kernel's names without reading all of its image.
 *
 * The addresses in kallsyms (kallsyms.h) are the longest part of a kernel's constant data in which numbers rise steadily. Single pages at
 * growing density show it. From there the tables are read outward, in both directions, until they decode.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_LIVE_FIND_H
#define KVMPROF_SYMBOLIZER_KERNEL_LIVE_FIND_H

#include "symbolizer/core/symtab.h"
#include "symbolizer/kernel/kallsyms.h"
#include "symbolizer/kernel/live_copy.h"

/*
 * inside: an address of the kernel's code, behind which its constant data lies. Returns whether the names were found. Then *out is theirs, which the caller frees with symtab_destroy(). Otherwise all of the image has to be
 * read.
 */
bool live_find(struct live_copy *c, uint64_t inside, struct symtab **out,
	       struct kallsyms_info *info);

#endif
