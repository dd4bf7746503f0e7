/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_print: the rows as text and as JSON.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_PRINT_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_PRINT_H

#include "base/buf.h"
#include "base/json.h"
#include "profile/analyse/annotate/annotate.h"

struct annotate_style {
	bool color;
	bool full_path; /* show whole paths of source files */
	bool counts;	/* each instruction's weight, beside its share */
	/* A line of a source file, or NULL. May be NULL. */
	const char *(*source)(void *ctx, const char *file, unsigned int line);
	void *source_ctx;
};

/* The instructions, a line each, without a heading. */
void annotate_print(struct buf *out, const struct annotate *a, const struct annotate_style *style);
/* Writes the array of instructions. */
void annotate_json(struct json_writer *w, const char *key, const struct annotate *a);

#endif
