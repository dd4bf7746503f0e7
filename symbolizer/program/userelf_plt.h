/* SPDX-License-Identifier: GPL-2.0-or-later */
/* userelf_plt: names for a user file's procedure linkage table; for userelf_syms.c. */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_PLT_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_PLT_H

#include "symbolizer/program/userelf_syms.h"

/* Adds the entries of .plt, .plt.sec and .plt.got, by the slots that they jump through. */
void userelf_load_plt(struct userelf_load *l);

#endif
