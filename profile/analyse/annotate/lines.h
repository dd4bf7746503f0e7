/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_lines: source lines for annotate, of the kernel and of programs, and their text.
 *
 * A program's come from its own file, when that has them, else from a debug file of its
 * build id. The text of a line is shown only where the source file is on this host under
 * the path that the debug information has. One thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_LINES_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_LINES_H

#include "profile/analyse/annotate/find.h"
#include "profile/analyse/annotate/text.h"
#include "profile/format/names/srcline.h"

#define ANNOTATE_MAX_SOURCE (16u << 20)

struct annotate_lines;

/*
 * 0 also when there are none: then why says what is missing, code 0 if nothing is.
 * -errno: what the user gave in srcline's places can't be used. All is borrowed; srcline: the
 * search for the kernel's lines, which has seen the profile's maps. A program's debug file is
 * searched for in the same places.
 */
int annotate_lines_open(struct annotate_lines **out, const struct annotate_function *fn,
			const struct annotate_text *text, struct srcline *srcline, struct err *why,
			struct err *e);
void annotate_lines_close(struct annotate_lines *l);

/* As annotate_input.line and annotate_style.source want them; ctx is the struct. */
bool annotate_lines_at(struct annotate_lines *l, uint64_t addr, struct annotate_line *out);
const char *annotate_lines_source(void *ctx, const char *file, unsigned int line);

#endif
