/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind_orc: frames by the kernel's ORC table. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_ORC_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_ORC_H

#include "symbolizer/unwind/walk.h"

/* The kernel has ORC tables and the frame is the kernel's. */
enum step walk_step_orc(struct walk *w, struct scan_regs *r);
/* The last resort; never STEP_UNKNOWN. */
enum step walk_step_scanned(struct walk *w, struct scan_regs *r);

#endif
