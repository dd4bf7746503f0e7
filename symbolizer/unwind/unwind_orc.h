/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind_orc: unwinds by the kernel's ORC table. Only for files in this folder. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_ORC_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_ORC_H

#include "symbolizer/unwind/walk.h"

/*
 * Unwinds one frame of a kernel with ORC tables; the frame must be the kernel's. STEP_UNKNOWN: the
 * table does not know the code.
 */
enum step walk_step_orc(struct walk *w, struct scan_regs *r);
/* Searches the stack for the caller, as the last resort. Never returns STEP_UNKNOWN. */
enum step walk_step_scanned(struct walk *w, struct scan_regs *r);

#endif
