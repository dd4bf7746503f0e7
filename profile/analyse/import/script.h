/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * import_script: parser of the output of `perf script`.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_IMPORT_SCRIPT_H
#define KVMPROF_PROFILE_ANALYSE_IMPORT_SCRIPT_H

#include "profile/analyse/import/parse.h"

/*
 * Parses the output of `perf script` and `kvmprof script`; arguments and result are described in
 * parse.h.
 *
 *	sample = head NL *( frame NL ) NL
 *	head   = comm [ pid "/" ] tid [ "[" cpu "]" ] seconds "." fraction ":"
 *		 [ period ] [ event ":" ] [ frame ]	comm may have spaces
 *	frame  = address SP ( symbol [ "+0x" offset ] | "[unknown]" ) [ SP "(" dso ")" ]
 *
 * Source: tools/perf/builtin-script.c and perf-script(1). Frames with the DSO "inlined" belong to
 * the DSO of the next outer frame.
 */
int import_script(struct import_text text, import_fn fn, void *ctx, struct import_stats *stats,
		  struct err *e);

#endif
