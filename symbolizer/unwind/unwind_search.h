/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind_search: frames of a kernel that has neither frame pointers nor tables. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_SEARCH_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_SEARCH_H

#include "symbolizer/unwind/walk.h"

/* One frame, by names; never STEP_UNKNOWN. */
enum step walk_step_searched(struct walk *w, struct scan_regs *r);

#endif
