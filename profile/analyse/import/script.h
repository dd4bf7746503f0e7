/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * import_script: the parser of what `perf script` prints.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_IMPORT_SCRIPT_H
#define KVMPROF_PROFILE_ANALYSE_IMPORT_SCRIPT_H

#include "profile/analyse/import/parse.h"

/*
 * Parses the output of `perf script` and `kvmprof script`.
 *
 *	sample = head NL *( frame NL ) NL
 *	head   = comm [ pid "/" ] tid [ "[" cpu "]" ] seconds "." fraction ":"
 *		 [ period ] [ event ":" ] [ frame ]	comm may have spaces
 *	frame  = address SP ( symbol [ "+0x" offset ] | "[unknown]" ) [ SP "(" dso ")" ]
 *
 * Source: tools/perf/builtin-script.c and perf-script(1). Frames whose DSO is
 * "inlined" belong to that of the next one out.
 */
int import_script(struct import_text text, import_fn fn, void *ctx, struct import_stats *stats,
		  struct err *e);

#endif
