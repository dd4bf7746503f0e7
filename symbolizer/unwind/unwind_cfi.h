/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind_cfi: frames of a program by its call frame information, and its registers. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_CFI_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_CFI_H

#include "symbolizer/unwind/walk.h"

/*
 * A program's registers, w->regs, as they were sampled, or as a struct pt_regs
 * has them, of which the first bytes were popped already; rip and rsp are the caller's.
 */
void walk_regs_of_sample(struct walk *w);
void walk_regs_of_pt_regs(struct walk *w, const uint8_t *b, uint64_t popped);
/* One frame of a program by its tables. STEP_UNKNOWN: they do not tell, w->regs are as before. */
enum step walk_cfi(struct walk *w);
/* Go on at an interrupted place, all of whose registers are known. STEP_UNKNOWN: it makes no sense. */
enum step walk_interrupted(struct walk *w, const struct cfi_regs *next);
/* Is w->regs' rip in a file, or in code made at run time, known to have no tables for it? */
bool walk_has_no_tables(struct walk *w);

#endif
