/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diff: compares two groups of profiles by symbol or by stack.
 *
 *	diff_create(); diff_add() for each run, those of the base first; diff_finish(); read *d
 *
 * A share is a part (0 to 1) of the weight of all samples of its run, so that runs of different
 * lengths compare. Functions that a run's selection does not choose (stackset_func.hidden) have no rows,
 * nor have stacks that are innermost in one. Functions are identical if mode, name and DSO are, see identity.h. One thread
 * uses a comparison at a time. All texts and arrays belong to struct diff.
 */
#ifndef KVMPROF_PROFILE_COMPARE_DIFF_DIFF_H
#define KVMPROF_PROFILE_COMPARE_DIFF_DIFF_H

#include "profile/analyse/stacks/identity.h"
#include "profile/compare/diff/calls.h"
#include "profile/compare/diff/lineage.h"
#include "profile/compare/stats/verdict.h"

#define DIFF_UNNAMED IDENTITY_UNNAMED

struct diff_options {
	bool stacks;	  /* rows are stacks, whose children equal self; else functions */
	bool by_children; /* test and sort by children; else by self */
	bool calls;	  /* keep all stacks, for diff_row_tree() */
	bool no_idle;	  /* shares are of the time in which a vCPU ran */
	double min_share; /* rows whose mean children of all runs is below are omitted */
	uint64_t seed;
};

/* A function or a stack. self and children are shares, indexed by run, those of the base first. */
struct diff_row {
	const char *mode; /* "kernel", "user", "idle" */
	const char *
		name; /* name of a function; or the functions of a stack, outermost first, separated by ';' */
	const char *dso; /* "" for a stack */
	const double *self, *children;
	double self_a, self_b, children_a, children_b; /* means of base (a) and head (b) */
	/*
	 * by run, and the sums of both sides: samples of the share that is compared, or for exact
	 * counts its weight
	 */
	const double *count;
	double count_a, count_b;
	uint8_t mode_id; /* identity.mode */
	double noise;	 /* share_noise() if each side has one sampled run, else 0 */
	struct stats_shift stat;
	double q; /* stat.p corrected for the number of rows */
};

struct diff_run {
	uint64_t samples, weight; /* sums over the samples that count, see no_idle */
	bool counted;		  /* weights are exact counts, not samples */
	const char *guest;	  /* stackset.guest */
	uint64_t contents;	  /* comparable_contents() */
	/*
	 * The run of the same side (1-based) that has the same samples, so that this one is no
	 * evidence; 0: none. Exact runs may repeat.
	 */
	unsigned int copy_of;
};

struct diff {
	struct diff_row *row;	    /* largest change first */
	size_t nrows, left_out;	    /* rows, and those omitted by min_share */
	const struct diff_run *run; /* na + nb */
	/* Functions that were renamed, inlined or split, in shares; empty for stacks. */
	struct lineage lineage;
	struct stats_design design;
	struct diff_private *priv;
};

/* Returns whether the weights of all runs are exact counts. Valid after all diff_add(). */
bool diff_is_counted(const struct diff *d);
/*
 * Creates a comparison of na and nb runs; *opt is copied. The caller frees *out with
 * diff_destroy(). Returns 0, -EINVAL as stats_design_init(), or -ENOMEM.
 */
int diff_create(struct diff **out, unsigned int na, unsigned int nb, const struct diff_options *opt,
		struct err *e);
void diff_destroy(struct diff *d);

/*
 * Adds the next run, those of the base first; *s is used during the call only. Returns 0, -ENODATA
 * if no sample counts, -EINVAL beyond na + nb runs, or -ENOMEM.
 */
int diff_add(struct diff *d, const struct stackset *s, struct err *e);

/*
 * Computes the rows and the lineage after all na + nb runs were added; called once. Returns 0,
 * -EINVAL if runs are missing, or -ENOMEM.
 */
int diff_finish(struct diff *d, struct err *e);

/* Returns, with diff_options.calls, whether any stack of the runs has callers. */
bool diff_has_chains(const struct diff *d);
/*
 * Builds the callers or callees of a row, after diff_finish() of a comparison of functions with
 * diff_options.calls. Nodes below min_share (0 to 1) on both sides are omitted. The caller frees *out
 * with diff_tree_deinit(). Returns 0 or -ENOMEM.
 */
int diff_row_tree(const struct diff *d, const struct diff_row *row, enum diff_direction way,
		  double min_share, struct diff_tree *out, struct err *e);

#endif
