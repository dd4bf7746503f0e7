/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * import_kp: parser of stacks between '!', as SystemTap and DTrace scripts print them.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_IMPORT_KP_H
#define KVMPROF_PROFILE_ANALYSE_IMPORT_KP_H

#include "profile/analyse/import/parse.h"

/*
 * Parses the text that `kvmprof export --format kp` writes and that SystemTap and DTrace scripts
 * print; arguments and result are described in parse.h.
 *
 *	text   = *line 1*( "!" NL *frame [ count ] ) [ "!" ]	innermost first; lines before the first "!" are skipped
 *	frame  = [ "0x" addr " : " ] name [ "+0x" off [ "/0x" size ] ] [ " [" module "]" ]	SystemTap
 *	       | module "`" name [ "+0x" off ]	DTrace
 *	       | "0x" addr	without a name
 *	count  = digits; 1 if there is none
 *
 * If the first line has the mark of coded.h, names and modules are encoded. A frame is the kernel's
 * if its module is "kernel", or its address is in the upper half, or its module is DTrace's "unix"
 * or "genunix".
 */
int import_kp(struct import_text text, import_fn fn, void *ctx, struct import_stats *stats,
	      struct err *e);

#endif
