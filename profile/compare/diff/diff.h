/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diff: what changed between two groups of profiles, by symbol or by stack.
 *
 * A share is a part (0 to 1) of the weight of all samples of its run, so that runs of
 * different lengths compare. Functions are the same when mode, name and DSO are, see identity.h. One thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_DIFF_DIFF_H
#define KVMPROF_PROFILE_COMPARE_DIFF_DIFF_H

#include "profile/analyse/stacks/identity.h"
#include "profile/compare/diff/lineage.h"
#include "profile/compare/stats/verdict.h"

#define DIFF_UNNAMED IDENTITY_UNNAMED

struct diff_options {
	bool stacks;	  /* rows are stacks: their children are what they are themselves */
	bool by_children; /* what is tested and sorted by; else self */
	bool no_idle;	  /* shares of the time in which a vCPU ran */
	double min_share; /* rows below, in children's mean over all runs, are left out */
	uint64_t seed;
};

/* Indexed by run, those of the base first. */
struct diff_row {
	const char *mode; /* "kernel", "user", "idle" */
	const char *name; /* a stack's has its functions, outermost first, with ';' in between */
	const char *dso;  /* "" for a stack */
	const double *self, *children;
	double self_a, self_b, children_a, children_b; /* means */
	double noise; /* see share_noise(); for one sampled run a side, else 0 */
	struct stats_shift stat;
	double q; /* stat.p after correction for all rows that are not left out */
};

struct diff_run {
	uint64_t samples, weight; /* that count */
	bool counted;		  /* weights are exact: nothing was sampled */
	const char *guest;	  /* stackset.guest */
	uint64_t contents;	  /* comparable_contents() */
	/* The run of the same side, from 1 on, whose samples these are, too: no evidence. 0: none. Exact counts repeat. */
	unsigned int copy_of;
};

struct diff {
	struct diff_row *row; /* largest change first */
	size_t nrows, left_out;
	const struct diff_run *run; /* na + nb */
	/* By symbol: functions that were renamed, inlined or split, in shares. Their rows are those of the names. */
	struct lineage lineage;
	struct stats_design design;
	struct diff_private *priv;
};

/* Returns true if the weights of all runs are exact counts. */
bool diff_is_counted(const struct diff *d);
/*
 * Creates a comparison of na and nb runs; *opt is copied. The caller frees *out with
 * diff_destroy(). Returns 0, -EINVAL as stats_design_init(), or -ENOMEM.
 */
int diff_create(struct diff **out, unsigned int na, unsigned int nb, const struct diff_options *opt,
		struct err *e);
void diff_destroy(struct diff *d);

/*
 * Adds the next run, those of the base first; s is used during the call only. Returns 0, -ENODATA
 * if no sample counts, -EINVAL beyond na + nb runs, or -ENOMEM.
 */
int diff_add(struct diff *d, const struct stackset *s, struct err *e);

/*
 * Fills in the results after all na + nb runs. Returns 0, -EINVAL if runs are missing, or -ENOMEM.
 */
int diff_finish(struct diff *d, struct err *e);

#endif
