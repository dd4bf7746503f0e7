/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind_user: unwinds a guest's program. Only for files in this folder. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_USER_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_USER_H

#include "symbolizer/unwind/walk.h"

/*
 * Pushes all frames of a program from its registers *r, and sets the end; the first frame is there
 * already.
 */
void walk_program(struct walk *w, struct scan_regs *r);

/*
 * Returns whether the code at rip is an entry of a procedure linkage table: [endbr64] [bnd] jmp
 * *slot(%rip). *slot receives the address of the word with the function's address.
 */
bool walk_linkage_stub(const struct walk *w, uint64_t rip, uint64_t *slot);

#endif
