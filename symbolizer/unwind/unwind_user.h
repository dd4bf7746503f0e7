/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind_user: the frames of a guest's program. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_USER_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_USER_H

#include "symbolizer/unwind/walk.h"

/* All frames of a program, from its registers on; the first is pushed already. */
void walk_program(struct walk *w, struct scan_regs *r);

/*
 * Is the code at rip of a procedure linkage table: [endbr64] [bnd] jmp *slot(%rip)? In *slot is
 * the address of the function that its calls lead to.
 */
bool walk_linkage_stub(const struct walk *w, uint64_t rip, uint64_t *slot);

#endif
