/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * selection: which part of a profile a command reads: the options for it, and the decision for each
 * sample and each function. All commands that read profiles use it, so that an option has the same
 * name and the same meaning in each of them. The names are those of perf.
 *
 * Two kinds of options exist:
 *
 *   selection_sample_rows    comms, pid, tid, cpu, time, phase, parent, kernel-only, user-only: they
 *                            select samples; a command behaves as if it had no other samples.
 *   selection_function_rows  dsos, symbols, symbol-filter: they choose functions. A table shows the
 *                            rows of these functions only, and its percentages are still of all
 *                            samples. Output without such a table (stacks, pictures, text) has the
 *                            samples whose innermost function is chosen.
 *
 * A command embeds a zeroed struct selection in its options, includes the rows in its table, and
 * calls selection_check() after it has parsed the command line:
 *
 *	struct my_options { struct selection selection; ... };
 *	#define OPTION_STRUCT struct my_options
 *	SELECTION_ROWS(selection),	(or OPTION_ROWS(selection_sample_rows, selection))
 *
 * Code that reads a profile through a stackset sets stackset_options.selection, and nothing else.
 * Code that reads samples itself, through a struct reader, uses a struct selection_use:
 *
 *	selection_set_window(f, in.p, input, buildid_dir, e)	after reader_open(): time and phase
 *	selection_use_init(&u, f, in.names, in.tasks, &display)
 *	selection_sample(&u, &record)				for each sample
 *	selection_chain(&u, &chain, exact)			if selection_needs_chain(f)
 *	selection_missed(&u, e)					after the last sample
 *	selection_use_deinit(&u)
 *
 * A struct selection is const after it was parsed: any thread may read it. A struct selection_use
 * belongs to one thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_SELECTION_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_SELECTION_H

#include "base/option.h"
#include "base/table.h"
#include "profile/format/names/chain.h"
#include "profile/format/names/names.h"
#include "profile/format/names/tasks.h"
#include "profile/format/perfdata/read.h"
#include "symbolizer/core/demangle.h"

#include <regex.h>

#define SELECTION_MAX_RANGES 256u
#define SELECTION_MAX_TEXTS 256u

/* Lists of accepted values; an empty list accepts all. */
struct selection_numbers {
	struct {
		uint32_t from, to; /* both inclusive */
	} range[SELECTION_MAX_RANGES];
	unsigned int n;
};
struct selection_texts {
	const char *text[SELECTION_MAX_TEXTS]; /* borrowed */
	unsigned int n;
};

/* One end of --time. */
struct selection_moment {
	bool given, percent;
	double value; /* seconds since the first sample, or percent of the whole time */
};

enum selection_mode { SELECTION_ANY_MODE, SELECTION_KERNEL, SELECTION_USER };

struct selection {
	/* Selection of samples. */
	struct selection_numbers pid, tid, cpu;
	struct selection_texts comm;
	struct selection_moment from, to; /* as in perf, samples at both ends count */
	const char *phase;		  /* borrowed; see slices_choose(); NULL: all */
	bool phases;			  /* --phase without a name, which lists the phases */
	/* the mode of the innermost frame; only frames of this mode count */
	enum selection_mode mode;
	const regex_t *parent; /* some function of the stack matches; NULL: all */
	/* Choice of functions. */
	struct selection_texts dso; /* paths, their last components, or modules */
	const regex_t *symbol;	    /* the name as displayed, or an alias, matches; NULL: all */
	const char *symbols;	    /* the text of --symbols, for messages; borrowed; NULL: none */
	/* what `parent` and `symbol` point to after selection_parse_*() */
	regex_t parent_regex, symbol_regex;
};

/* Their values set a struct selection. */
extern const struct option_row selection_sample_rows[];
extern const struct option_row selection_function_rows[];
/* Includes both tables in that of a command; m is the member that is a struct selection. */
#define SELECTION_ROWS(m) \
	OPTION_ROWS(selection_sample_rows, m), OPTION_ROWS(selection_function_rows, m)

/* Frees the regular expressions that options have set. A zeroed selection is allowed. */
void selection_deinit(struct selection *f);

/*
 * Parse the values of --parent, --symbol-filter (POSIX extended regular expressions) and --symbols
 * (names, separated by commas). `text` is borrowed. Return 0, -EINVAL with the reason, or -ENOMEM.
 */
int selection_parse_parent(struct selection *f, const char *text, struct err *e);
int selection_parse_symbol(struct selection *f, const char *text, struct err *e);
int selection_parse_symbols(struct selection *f, const char *text, struct err *e);
/*
 * Parses "NAME,..." of --comms or --dsos and appends nothing to what was there before. The list is
 * cut in place and borrowed. Returns 0 or -EINVAL.
 */
int selection_parse_texts(struct selection_texts *l, char *list);

/*
 * Refuses options that exclude each other, and --phase without a name, which only the command that
 * lists phases may accept (it checks f->phases itself). Returns 0 or -EINVAL.
 */
int selection_check(const struct selection *f, struct err *e);
/* Return whether f selects samples, or chooses functions; false for NULL. */
bool selection_selects(const struct selection *f);
bool selection_chooses(const struct selection *f);

/* Times of samples, from_ns <= time < to_ns. */
struct selection_window {
	uint64_t from_ns, to_ns;
};
/*
 * Restricts the samples that p returns from now on to the selection's time or phase, and stores the
 * limits in *out (0 and UINT64_MAX without one). input and buildid_dir are those of p. f may be
 * NULL. Returns 0, or -errno, e.g. -ENOENT for an unknown phase.
 */
int selection_set_window(const struct selection *f, struct perfdata *p, const char *input,
			 const char *buildid_dir, struct selection_window *out, struct err *e);

/* What a selection decided about a function. */
enum selection_bit {
	SELECTION_CHOSEN = 1, /* --dsos, --symbols and --symbol-filter choose it */
	SELECTION_PARENT = 2, /* --parent matches */
};

/* A selection at work on one profile. */
struct selection_use {
	const struct selection *f;
	struct names *names;
	struct tasks *tasks;
	struct display_names *display;
	struct tasks_seen seen;
	struct table functions; /* struct selection_function of selection.c: each is decided once */
	unsigned int met;	/* bits of enum selection_bit that some function had */
	bool sampled;		/* some sample was seen */
};

/*
 * Begins to use f, which may be NULL (all samples pass, all functions are chosen). All pointers are
 * borrowed; display NULL: names are not demangled. The caller frees *u with selection_use_deinit().
 */
void selection_use_init(struct selection_use *u, const struct selection *f, struct names *names,
			struct tasks *tasks, struct display_names *display);
/* Frees the table; a zeroed object is allowed. */
void selection_use_deinit(struct selection_use *u);

/* Returns whether a sample passes by its task, vCPU and mode. */
bool selection_sample(struct selection_use *u, const struct perfdata_record *r);
/* Returns whether a frame counts. */
bool selection_frame(const struct selection *f, const struct perfdata_frame *frame);
/*
 * Stores the bits of a function: that of `name`, which was looked up for the address addr. Returns 0
 * or -ENOMEM.
 */
int selection_function(struct selection_use *u, const struct name *name, uint64_t addr, bool kernel,
		       unsigned int *bits);
/* Returns whether selection_chain() can refuse a stack. */
bool selection_needs_chain(const struct selection *f);
/*
 * Returns 1 if a stack passes by the functions in it (its innermost one is chosen, and --parent
 * matches one of them), 0 if not, or -ENOMEM. exact: see names_lookup_frame().
 */
int selection_chain(struct selection_use *u, const struct chain *c, bool exact);
/* Does the same for --parent alone, for code that chooses functions itself. */
int selection_has_parent(struct selection_use *u, const struct chain *c, bool exact);
/* Returns whether --dsos chooses a DSO; f must not be NULL. */
bool selection_dso(const struct selection *f, const char *dso);
/*
 * Checks, after the last sample, that each of the options has met something: a task of that name, a
 * function of that name and so on. Returns 0, or -ENODATA with what the profile has instead.
 */
int selection_missed(struct selection_use *u, struct err *e);

#endif
