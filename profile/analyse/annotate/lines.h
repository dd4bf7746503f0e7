/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_lines: source lines of the kernel and of programs for annotate, and their text.
 *
 * A program's lines come from its own file if that has them, otherwise from a debug file with its
 * build id. The text of a line is shown only if this host has the source file under the path in the
 * debug information. Not thread-safe: the caller serialises calls on one object.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_LINES_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_LINES_H

#include "profile/analyse/annotate/find.h"
#include "profile/analyse/annotate/text.h"
#include "profile/format/names/srcline.h"

#define ANNOTATE_MAX_SOURCE (16u << 20)

struct annotate_lines;

/*
 * Creates the source of lines for fn. Returns 0 also if there are none; *why then has the reason
 * (code 0 if nothing is missing). Returns -errno, with the reason in *e, if a place that the user
 * gave in srcline's places cannot be used, or -ENOMEM. All arguments are borrowed until
 * annotate_lines_close(); srcline has received the profile's maps. A program's debug file is
 * searched for in the same places.
 */
int annotate_lines_open(struct annotate_lines **out, const struct annotate_function *fn,
			const struct annotate_text *text, struct srcline *srcline, struct err *why,
			struct err *e);
/* Frees l; does nothing for NULL. */
void annotate_lines_close(struct annotate_lines *l);

/*
 * Implement annotate_input.line and annotate_style.source; ctx is the struct annotate_lines.
 * annotate_lines_at() returns false if the line is unknown. annotate_lines_source() returns the
 * text of a line, which ends at '\n' and is valid until the next call, or NULL.
 */
bool annotate_lines_at(struct annotate_lines *l, uint64_t addr, struct annotate_line *out);
const char *annotate_lines_source(void *ctx, const char *file, unsigned int line);

#endif
