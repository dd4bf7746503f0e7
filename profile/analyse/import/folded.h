/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * import_folded: parser of folded stacks.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_IMPORT_FOLDED_H
#define KVMPROF_PROFILE_ANALYSE_IMPORT_FOLDED_H

#include "profile/analyse/import/parse.h"

/*
 * Parses folded stacks, as FlameGraph's stackcollapse scripts write them; arguments and result are
 * described in parse.h.
 *
 *	line  = frame *( ";" frame ) SP count NL	outermost first
 *	count = digits [ "." digits ]			rounded
 *	frame = any text without ";" that may end in "_[k]" (kernel), "_[i]" (inlined),
 *		"_[j]" (JIT) or "_[w]" (waker), one of which is taken off
 *	      / "#" any text NL				a comment
 *
 * IMPORT_FIRST_IS_COMM: the first frame is the task's name, as written by stackcollapse-perf.pl,
 * and may end in "-PID/TID". A name that begins with "#" has a blank in front.
 */
enum import_first { IMPORT_FIRST_IS_FRAME, IMPORT_FIRST_IS_COMM };
int import_folded(struct import_text text, enum import_first first, import_fn fn, void *ctx,
		  struct import_stats *stats, struct err *e);

#endif
