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

enum annotate_count { ANNOTATE_NO_COUNT, ANNOTATE_SAMPLES, ANNOTATE_WEIGHTS };

struct annotate_style {
	bool color;
	bool full_path;		    /* print whole paths of source files */
	enum annotate_count counts; /* what is printed beside each share */
	bool children; /* print shares with callees (annotate_input.below) before the own ones */
	/* Returns a line of a source file, up to '\n', or NULL. May be NULL. */
	const char *(*source)(void *ctx, const char *file, unsigned int line);
	void *source_ctx;
};

/* Appends one instruction of a, e.g. "call ffffffff81000000 <name>". */
void annotate_put_insn(struct buf *out, const struct annotate *a, const struct disasm_insn *i);
/* Appends the instructions, one per line, without a heading. */
void annotate_print(struct buf *out, const struct annotate *a, const struct annotate_style *style);
/*
 * Appends the heading of the columns that annotate_print() prints before the address.
 */
void annotate_print_columns(struct buf *out, const struct annotate_style *style);
/*
 * Writes the array of instructions as member `key`. `children`: with the shares of
 * annotate_input.below.
 */
void annotate_json(struct json_writer *w, const char *key, const struct annotate *a, bool children);

#endif
