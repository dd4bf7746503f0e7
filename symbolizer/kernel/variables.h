/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * variables: finds the few variables of Linux that lead to its tasks, files and modules, in an
 * image whose kallsyms names only functions (no CONFIG_KALLSYMS_ALL). Any thread.
 *
 * They are recognised by their content before the kernel runs, and by how much code uses them:
 *
 *	init_task		its own parent and its group's leader, without brothers
 *	current_task		points to init_task; loaded more often than all other such words
 *	__per_cpu_offset	the array that most code takes a word of by an index
 *	page_offset_base,
 *	vmemmap_base		the addresses that these have before they are moved at random
 *	modules			a list that is empty, in functions which look through modules
 *
 * The kernel's version is not used. A variable with more than one candidate stays unknown.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_VARIABLES_H
#define KVMPROF_SYMBOLIZER_KERNEL_VARIABLES_H

#include "symbolizer/core/kimage.h"

/*
 * Replaces *symbols (a frozen table with link addresses) by one that also has those of these
 * variables that are found and missing in it. The old table is destroyed. Returns 0, also if
 * nothing was found, or -ENOMEM, with *symbols unchanged.
 */
int variables_add(const struct kimage *k, struct symtab **symbols, struct err *e);

#endif
