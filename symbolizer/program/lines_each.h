/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lines_each: all that a file's debug information says: each run of instructions with the line that it was
 * made from, and each function with its own code.
 *
 * Strings belong to the struct lines. Split units are left out. One thread.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_LINES_EACH_H
#define KVMPROF_SYMBOLIZER_PROGRAM_LINES_EACH_H

#include "symbolizer/program/lines.h"

#define LINES_MAX_ROWS (64u << 20) /* of all units; the largest kernels have a sixth of that */

struct lines_row {
	uint64_t lo, hi; /* link-time addresses, [lo, hi) */
	const char *file;
	unsigned int line;
};

struct lines_function {
	const char *name; /* as it is written */
	const char *file;
	unsigned int line; /* where it is declared, from 1 on */
	uint64_t entry;
};

struct lines_visitor {
	void *ctx;
	/* 0 to go on, or -errno. */
	int (*row)(void *ctx, const struct lines_row *row);
	int (*function)(void *ctx, const struct lines_function *f); /* NULL: only rows are read */
};

/*
 * Of each unit first the rows, then the functions. *left_out: units whose lines or functions can't be
 * read. The visitor's error, or -EINVAL, -ENOMEM: no unit can be read.
 */
int lines_each(struct lines *l, const struct lines_visitor *v, uint64_t *left_out, struct err *e);

#endif
