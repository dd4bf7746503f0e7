/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind32: the frames of a kernel in 32-bit mode. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND32_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND32_H

#include "symbolizer/unwind/walk.h"

/* All frames of a kernel in 32-bit mode; the first is pushed already. */
void walk_32(struct walk *w);

#endif
