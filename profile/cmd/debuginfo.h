/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_debuginfo: what the commands that print source lines have in common for their
 * users: the text of the options, and the line that says how far a download is.
 */
#ifndef KVMPROF_PROFILE_CMD_DEBUGINFO_H
#define KVMPROF_PROFILE_CMD_DEBUGINFO_H

#include "base/option.h"
#include "profile/format/names/srcline.h"

/* debuginfo, build-id-map; about a struct debuginfo_places. */
extern const struct option_row cmd_debuginfo_rows[];

/* On a terminal: stderr shows how far a download is. */
void cmd_debuginfo_show_progress(struct debuginfo_places *places);

/*
 * Finds and loads the kernel's lines for a profile; says on stderr what is missing. 0 also when
 * there is no debug information; -errno, with the reason in e, when what the user gave can't be
 * used. *out is the caller's, to destroy, also then; NULL at first.
 */
int cmd_debuginfo_open(struct srcline **out, struct debuginfo_places *places,
		       const struct perfdata *p, struct err *e);

#endif
