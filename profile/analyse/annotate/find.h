/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_find: finds the functions of a profile that a user's text selects, with their samples.
 *
 * It reads the file once. Only innermost addresses count, unless annotate_query.children is set.
 * Addresses of kernel functions are
 * run-time addresses, those of programs are addresses in their file. Not thread-safe: the caller
 * serialises calls on one object.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_FIND_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_FIND_H

#include "profile/analyse/annotate/annotate.h"
#include "profile/analyse/stacks/selection.h"
#include "symbolizer/core/demangle.h"
#include "profile/format/names/function.h"
#include "profile/format/names/reader.h"
#include "profile/format/perfdata/textstore.h"

#include "base/table.h"

#define ANNOTATE_MAX_FUNCTIONS (4u << 20)

struct annotate_function {
	const struct symbol *symbol;
	const struct symtab *symbols; /* the table that contains symbol; borrowed */
	const char *dso;	      /* "[kernel.kallsyms]", "[ext4]", a path */
	/* kernel: the kernel's or a module's; wanted: selected by the query */
	bool kernel, wanted;
	uint64_t addr, size;
	uint64_t bias;		     /* run-time address minus addr, at the first sample */
	struct names_view view;	     /* the mappings at that time */
	const struct perfdata *from; /* the profile of the kernel that ran then */
	uint64_t shift;		     /* see struct name */
	bool other_kernel;
	uint8_t id_len;	      /* bytes of build_id; 0: unknown */
	uint8_t build_id[20]; /* the program's build id: its first id_len bytes */
	uint64_t weight, samples;
	/*
	 * owned; for a wanted function: one entry per byte during the search, then only those with
	 * samples
	 */
	struct annotate_hit *at;
	size_t nhits;
	/*
	 * The same with query.children for the samples whose stacks pass through a call instruction:
	 * each sample counts once for an instruction. The functions' own samples are not included.
	 */
	struct annotate_hit *below;
	size_t nbelow;
	/* with query.children: all samples with the function in their stack, each once */
	uint64_t children, children_samples;
	uint64_t stamp; /* number of the last sample that was counted there */
};

struct annotate_query {
	/*
	 * A function as in profile/format/names/function.h, by its name as displayed or as in the
	 * file; or an address.
	 */
	const char *text;
	/* samples that it refuses do not count, functions of other DSOs do not match; NULL: all */
	const struct selection *selection;
	bool children; /* find functions and call instructions anywhere in stacks, too */
};

struct annotate_find {
	struct reader *in; /* set by the caller; borrowed */
	/* set by the caller; borrowed */
	struct display_names *display;
	struct annotate_query query;
	struct selection_use selection;
	bool by_address;
	uint64_t address;
	struct function_name parts; /* query.text, parsed */
	struct err why; /* why no function of the name was selected; code 0: no special reason */
	uint64_t weight, samples;	    /* sums of all samples that the selection passes */
	bool chains;			    /* with query.children: some stack has callers */
	struct table functions;		    /* struct annotate_function */
	struct annotate_function *function; /* the items of `functions`, set at the end */
	/* number of functions */
	size_t count;
	/* number of functions that the query selects */
	size_t nwanted;
};

/*
 * Reads all samples and fills in the lists; functions that the query selects have `wanted` set. *f
 * must be zero except for in and display. q's strings are borrowed until annotate_find_deinit(),
 * which the caller calls also after a failure. Returns 0, -E2BIG beyond ANNOTATE_MAX_FUNCTIONS, or
 * another -errno.
 */
int annotate_find(struct annotate_find *f, const struct annotate_query *q, struct err *e);
/*
 * Moves the call instructions and the sums with callees of `from` to the same functions of f that the
 * query selects. For exact counts, which have stacks in another event than the instructions.
 */
void annotate_find_take_calls(struct annotate_find *f, struct annotate_find *from);
/* Frees all that the search allocated. */
void annotate_find_deinit(struct annotate_find *f);

/*
 * Writes which function of its name fn is, as "#2 FILE", as far as that is known; the number only
 * if the file has several functions of the name.
 */
#define ANNOTATE_WHICH_LEN 128u
void annotate_find_describe(struct annotate_find *f, const struct annotate_function *fn,
			    char out[ANNOTATE_WHICH_LEN]);

#endif
