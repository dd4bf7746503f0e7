/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userelf_plt: finds names for a user file's procedure linkage table; for userelf_syms.c. Called
 * by the thread that loads the names.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_PLT_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_PLT_H

#include "symbolizer/program/userelf_syms.h"

/*
 * Adds a symbol for each entry of .plt, .plt.sec and .plt.got, identified by the slot through
 * which it jumps. Results and errors are recorded in *l.
 */
void userelf_load_plt(struct userelf_load *l);

#endif
