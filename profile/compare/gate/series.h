/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_series: finds the entries of a history at which a metric changed.
 *
 * A rule's number is a series with one value for each entry that has it; so is the share of each
 * function that a rule `symbols` selects (with measure = share and without children). E-divisive
 * (profile/compare/stats/change.h) finds changes of level. A change that reaches the rule's
 * threshold is a step. Smaller changes add up: where the level has moved by the threshold since its
 * lowest or highest value, there is a step that crept. One thread uses a series at a time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_SERIES_H
#define KVMPROF_PROFILE_COMPARE_GATE_SERIES_H

#include "profile/compare/gate/history.h"
#include "profile/compare/stats/change.h"

#define GATE_SERIES_NEAR 2u	  /* maximum distance in entries of an acceptance and its step */
#define GATE_SERIES_FUNCTIONS 20u /* those with the largest mean shares */
#define GATE_SERIES_ALPHA 0.05	  /* probability that any function of a rule has a step by chance */
#define GATE_SERIES_LAST 200u	  /* default number of entries */
#define GATE_SERIES_RECENT 5u	  /* default of gate_series.recent */
/* values of the shortest series: a change between five and five can reach STATS_CHANGE_ALPHA */
#define GATE_SERIES_LEAST 10u
/* A step that was not detectable this number of entries ago is `fresh`. */
#define GATE_SERIES_LOOKS 2u

struct gate_step {
	const struct gate_rule *rule;
	const char *name, *dso, *mode; /* the function; NULL: the rule's number */
	size_t entry;		       /* the first one of the new level */
	double before, after, p;
	bool worse;
	bool crept;   /* the sum of several changes, each smaller than the threshold */
	size_t from;  /* crept: the first entry of the level `before` */
	bool gradual; /* the level drifts: `entry` is merely within the change */
	bool fresh;   /* not detectable GATE_SERIES_LOOKS entries ago */
	const struct gate_acceptance *accepted; /* NULL: not accepted */
	/* The function whose step caused this change, because shares add up to one; NULL: none. */
	const char *because;
};

/* One series, with all changes of its level, whatever their size. */
struct gate_line {
	const struct gate_rule *rule;
	const char *name, *dso, *mode; /* the function; NULL: the rule's number */
	double *value;
	size_t *entry; /* for each value: its entry of the history */
	size_t n;
	struct stats_change change[STATS_CHANGES_MAX];
	size_t nchanges;
	bool blind; /* too few values to detect a change of any size */
};

/* The result; texts belong to the history and the rules. */
struct gate_series {
	const struct gate_history *history;
	struct gate_line *line; /* nseries items */
	struct gate_step *step; /* newest first */
	size_t nsteps;
	size_t nseries, nblind; /* lines, and those of them that are blind */
	unsigned int recent;
	bool failed; /* gate_step_word() of some step is "fail" */
	bool unsure; /* a rule of level fail has a series that is blind */
};

/*
 * Finds the steps of all rules; the caller frees *out, which borrows h and rules, with
 * gate_series_destroy(). A worse step fails if it is fresh or among the last `recent` entries.
 * Returns 0 or -ENOMEM.
 */
int gate_series_find(struct gate_series **out, const struct gate_history *h,
		     const struct gate_rules *rules, unsigned int recent, uint64_t seed,
		     struct err *e);
void gate_series_destroy(struct gate_series *s);

/*
 * Returns 0; 1 if failed; 3 if a rule of level fail, or every series, has too few values to detect
 * a change.
 */
int gate_series_exit_status(const struct gate_series *s);

/* Returns "fail", "warn", "accepted", "older", "better" or "follows" (x->because), a constant. */
const char *gate_step_word(const struct gate_series *s, const struct gate_step *x);

#endif
