/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * variables: the few variables of Linux that lead to its tasks, files and modules, in an
 * image whose kallsyms names functions only (no CONFIG_KALLSYMS_ALL).
 *
 * They are known by what they contain before the kernel runs, and by how much code uses them:
 *
 *	init_task		its own parent and its group's leader, without brothers
 *	current_task		points to init_task; loaded more often than all other such words
 *	__per_cpu_offset	the array that most code takes a word of by an index
 *	page_offset_base,
 *	vmemmap_base		the addresses that these have before they are moved at random
 *	modules			a list that is empty, in functions which look through modules
 *
 * Never by a version. What more than one place fits stays unknown.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_VARIABLES_H
#define KVMPROF_SYMBOLIZER_KERNEL_VARIABLES_H

#include "symbolizer/core/kimage.h"

/*
 * Puts a table in place of *symbols (frozen; as linked) which has these variables, too, those
 * that are found and that it does not have. 0, also when there are none; -ENOMEM leaves it.
 */
int variables_add(const struct kimage *k, struct symtab **symbols, struct err *e);

#endif
