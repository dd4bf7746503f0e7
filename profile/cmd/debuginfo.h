/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_debuginfo: what the commands that print source lines have in common for their
 * users: the text of the options, and the line that says how far a download is.
 */
#ifndef KVMPROF_PROFILE_CMD_DEBUGINFO_H
#define KVMPROF_PROFILE_CMD_DEBUGINFO_H

#include "profile/names/srcline.h"

/* Values of getopt_long, beyond those of a command itself. */
enum { OPT_DEBUGINFO = 512, OPT_BUILD_ID_MAP };

#define CMD_DEBUGINFO_OPTIONS                                             \
	{ "debuginfo", required_argument, NULL, OPT_DEBUGINFO },          \
	{                                                                 \
		"build-id-map", required_argument, NULL, OPT_BUILD_ID_MAP \
	}

#define CMD_DEBUGINFO_USAGE                                                                    \
	"      --debuginfo PATH   the kernel's debug file, or a directory to look for it in\n" \
	"      --build-id-map FILE  where files are, as `kvmprof scan` wrote it\n"

/* Takes the option; false when c is neither. */
bool cmd_debuginfo_option(struct debuginfo_places *places, int c, const char *arg);

/* places->progress, on a terminal: shows text on stderr, and wipes it with NULL. */
void cmd_debuginfo_progress(void *ctx, const char *text);

/*
 * Load, and say on stderr what is missing. 0 also when there is no debug information;
 * -errno, with the reason in e, when what the user gave can't be used.
 */
int cmd_debuginfo_load(struct srcline *s, struct err *e);

#endif
