/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userelf_dynamic: finds a user file's dynamic symbols without section headers; for
 * userelf_syms.c. Called by the thread that loads the names.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_DYNAMIC_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_DYNAMIC_H

#include "symbolizer/program/userelf_syms.h"

/*
 * Sets l->dyn from PT_DYNAMIC and what it refers to, and l->n.dynsym to how far that succeeded.
 * l->dyn owns its pieces.
 */
void userelf_find_dynamic(struct userelf_load *l);

#endif
