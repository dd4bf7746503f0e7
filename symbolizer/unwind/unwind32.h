/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind32: unwinds a kernel in 32-bit mode. Only for files in this folder. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND32_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND32_H

#include "symbolizer/unwind/walk.h"

/*
 * Pushes all frames of a kernel in 32-bit mode and sets out->end; the first frame is there
 * already.
 */
void walk_32(struct walk *w);

#endif
