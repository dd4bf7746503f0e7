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
#include "symbolizer/core/demangle.h"
#include "profile/format/names/function.h"
#include "profile/format/names/reader.h"
#include "profile/format/perfdata/textstore.h"

#include "base/table.h"

#define ANNOTATE_MAX_FUNCTIONS (4u << 20)

struct annotate_function {
	const struct symbol *symbol;
	const struct symtab *symbols; /* that it is of */
	const char *dso;	      /* "[kernel.kallsyms]", "[ext4]", a path */
	bool kernel, wanted;	      /* kernel: a module's, too */
	uint64_t addr, size;
	uint64_t bias;		     /* added to addr: where it was sampled first */
	struct names_view view;	     /* and what was mapped then */
	const struct perfdata *from; /* and the profile of the kernel that ran then */
	uint64_t shift;		     /* as in struct name */
	bool other_kernel;
	uint8_t id_len;	      /* 0: not known */
	uint8_t build_id[20]; /* the program's build id: its first id_len bytes */
	uint64_t weight, samples;
	struct annotate_hit *at; /* of a wanted one: for each byte; then packed */
	size_t nhits;
};

struct annotate_query {
	/* A function as in profile/format/names/function.h, by its name as it is shown or in the file; or an address. */
	const char *text;
	const char *dso; /* NULL: any */
};

struct annotate_find {
	struct reader *in; /* borrowed */
	struct display_names *display;
	struct annotate_query query;
	bool by_address;
	uint64_t address;
	struct function_name parts; /* the parts of query.text */
	struct err why; /* why a function of the name is not wanted; code 0: for no other reason */
	struct table functions;		    /* struct annotate_function */
	struct annotate_function *function; /* the same, at last */
	size_t count;
	size_t nwanted;
};

/* *f is zero but for in and display. wanted are those that the query means. */
int annotate_find(struct annotate_find *f, const struct annotate_query *q, struct err *e);
void annotate_find_deinit(struct annotate_find *f);

/*
 * Writes which function of its name fn is, "#2 FILE", as far as that is known: the number only if its file has
 * several of the name.
 */
#define ANNOTATE_WHICH_LEN 128u
void annotate_find_which(struct annotate_find *f, const struct annotate_function *fn,
			 char out[ANNOTATE_WHICH_LEN]);

#endif
