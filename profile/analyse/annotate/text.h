/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_text: the code of a function, out of the profile or of a file.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_TEXT_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_TEXT_H

#include "base/file.h"
#include "profile/analyse/annotate/find.h"

/* The code of a function. annotate_text() fills it in; it owns its memory. */
struct annotate_text {
	uint8_t *live, *image; /* image NULL: not known */
	size_t len;
	const char *source; /* for people: where live is from */
	/* The program's file, if live is from there. */
	struct file_map file;
};

/* buildid_dir NULL: $HOME/.debug. -ENOENT: the message says what is missing. */
int annotate_text(struct annotate_text *out, const struct annotate_function *fn,
		  const char *buildid_dir, struct err *e);
void annotate_text_deinit(struct annotate_text *t);

#endif
