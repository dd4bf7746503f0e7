/* SPDX-License-Identifier: GPL-2.0-or-later */
/* userelf_dynamic: a user file's dynamic symbols without section headers; for userelf_syms.c. */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_DYNAMIC_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_DYNAMIC_H

#include "symbolizer/program/userelf_syms.h"

/* Sets l->dyn by PT_DYNAMIC and what it leads to; l->n.dynsym says how far. */
void userelf_find_dynamic(struct userelf_load *l);

#endif
