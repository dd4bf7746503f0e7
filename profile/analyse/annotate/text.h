/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_text: reads the code of a function from the profile or from a file. Any thread may call
 * the functions, for one struct one at a time.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_TEXT_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_TEXT_H

#include "base/file.h"
#include "profile/analyse/annotate/find.h"

/* The code of a function, filled in by annotate_text(), which owns the memory. */
struct annotate_text {
	uint8_t *live, *image; /* image NULL: unknown */
	size_t len;
	const char *source; /* origin of live, for display */
	/* The program's file, if live is in it. */
	struct file_map file;
};

/*
 * Fills in *out; the caller frees it with annotate_text_deinit(). buildid_dir NULL means
 * $HOME/.debug. Returns 0, -ENOENT with a message about what is missing, or another -errno.
 */
int annotate_text(struct annotate_text *out, const struct annotate_function *fn,
		  const char *buildid_dir, struct err *e);
/* Frees the code and unmaps the file. */
void annotate_text_deinit(struct annotate_text *t);

#endif
