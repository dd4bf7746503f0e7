/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_search: unwinds a kernel that has neither frame pointers nor tables. Only for files in
 * this folder.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_SEARCH_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_SEARCH_H

#include "symbolizer/unwind/walk.h"

/* Unwinds one frame using the symbols' names. Never returns STEP_UNKNOWN. */
enum step walk_step_searched(struct walk *w, struct scan_regs *r);

#endif
