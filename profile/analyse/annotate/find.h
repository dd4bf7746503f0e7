/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_find: the functions of a profile that a user may mean, with their samples.
 *
 * One pass over the file. Only innermost addresses count. Kernel functions are at
 * run-time addresses, those of programs at their file's. One thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_FIND_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_FIND_H

#include "profile/analyse/annotate/annotate.h"
#include "symbolizer/core/display_name.h"
#include "profile/format/names/reader.h"
#include "profile/format/perfdata/textstore.h"

#include "base/file.h"
#include "base/table.h"

#define ANNOTATE_MAX_FUNCTIONS (4u << 20)

struct annotate_function {
	const struct symbol *symbol;
	const char *dso;     /* "[kernel.kallsyms]", "[ext4]", a path */
	bool kernel, wanted; /* kernel: a module's, too */
	uint64_t addr, size;
	uint64_t bias;		/* added to addr: where it was sampled first */
	struct names_view view; /* and what was mapped then */
	bool has_id;
	uint8_t build_id[20]; /* of a program */
	uint64_t weight, samples;
	struct annotate_hit *at; /* of a wanted one: for each byte; then packed */
	size_t nhits;
};

struct annotate_query {
	const char *text; /* a symbol as it is shown or as it is in the file; or an address */
	const char *dso;  /* NULL: any */
};

struct annotate_find {
	struct reader *in; /* borrowed */
	struct display_names *display;
	struct annotate_query query;
	bool by_address;
	uint64_t address;
	struct table functions;		    /* struct annotate_function */
	struct annotate_function *function; /* the same, at last */
	size_t count;
	size_t nwanted;
};

/* *f is zero but for in and display. wanted are those that the query means. */
int annotate_find(struct annotate_find *f, const struct annotate_query *q, struct err *e);
void annotate_find_deinit(struct annotate_find *f);

/* What a function's code is: filled in by annotate_text(), owned. */
struct annotate_text {
	uint8_t *live, *image; /* image NULL: not known */
	size_t len;
	const char *source; /* for people: where live is from */
	/* The program's file, if live is from there. */
	struct file_map file;
};

/* text.c. buildid_dir NULL: $HOME/.debug. -ENOENT: the message says what is missing. */
int annotate_text(struct annotate_text *out, const struct annotate_find *f,
		  const struct annotate_function *fn, const char *buildid_dir, struct err *e);
void annotate_text_deinit(struct annotate_text *t);

#endif
