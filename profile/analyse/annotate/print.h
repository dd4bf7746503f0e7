/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_print: formats the rows as text and as JSON. The functions append to the output;
 * out->failed is set if out of memory. The rules of annotate.h for threads apply.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_PRINT_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_PRINT_H

#include "base/buf.h"
#include "base/json.h"
#include "profile/analyse/annotate/annotate.h"

struct annotate_style {
	bool color;
	bool full_path; /* print whole paths of source files */
	bool counts;	/* print each instruction's weight beside its share */
	/* Returns a line of a source file, up to '\n', or NULL. May be NULL. */
	const char *(*source)(void *ctx, const char *file, unsigned int line);
	void *source_ctx;
};

/* Appends the instructions, one per line, without a heading. */
void annotate_print(struct buf *out, const struct annotate *a, const struct annotate_style *style);
/* Writes the array of instructions as member `key`. */
void annotate_json(struct json_writer *w, const char *key, const struct annotate *a);

#endif
