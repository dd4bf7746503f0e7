/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_cfi: unwinds a program by its call frame information, and tracks its registers. Only for
 * files in this folder.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_CFI_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_CFI_H

#include "symbolizer/unwind/walk.h"

/*
 * Set the program's registers, w->regs: to the sampled ones, or to those of a struct pt_regs b, of
 * which the first `popped` bytes have been popped already. In the second case the caller sets rip
 * and rsp.
 */
void walk_regs_of_sample(struct walk *w);
void walk_regs_of_pt_regs(struct walk *w, const uint8_t *b, uint64_t popped);
/*
 * Unwinds one frame of a program by its tables. Returns STEP_UNKNOWN, with w->regs unchanged, if
 * they do not describe it.
 */
enum step walk_cfi(struct walk *w);
/*
 * Continues at an interrupted place, all of whose registers are in *next. Returns STEP_UNKNOWN if
 * that is not valid.
 */
enum step walk_interrupted(struct walk *w, const struct cfi_regs *next);
/*
 * Returns whether the rip in w->regs is in a file, or in code generated at run time, that is known
 * to have no tables for it.
 */
bool walk_lacks_tables(struct walk *w);

#endif
