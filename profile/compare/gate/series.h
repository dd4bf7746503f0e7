/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_series: at which entries of a history did a metric change?
 *
 * A rule's number is a series of one value for each entry that has it; each function that an
 * ordinary rule `symbols' is about (measure share, not children) is one as well. Changes of level are found by
 * E-divisive (profile/compare/stats/change.h). One that reaches the rule's threshold is a step. Smaller ones add up: where
 * the level has moved by the threshold since its lowest or highest one, that is a step, too, which crept.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_SERIES_H
#define KVMPROF_PROFILE_COMPARE_GATE_SERIES_H

#include "profile/compare/gate/history.h"
#include "profile/compare/stats/change.h"

#define GATE_SERIES_NEAR 2u	  /* entries between an acceptance and the step that it is of */
#define GATE_SERIES_FUNCTIONS 20u /* with the largest shares on the average */
#define GATE_SERIES_ALPHA 0.05 /* that any function of a rule has a step by chance, of any size */
#define GATE_SERIES_LAST 200u  /* entries, by default */
#define GATE_SERIES_RECENT 5u
/* values, of which five and five can be told apart (STATS_CHANGE_ALPHA) */
#define GATE_SERIES_LEAST 10u
/* A step that could not be seen so many entries ago is new, however old it is. */
#define GATE_SERIES_LOOKS 2u

struct gate_step {
	const struct gate_rule *rule;
	const char *name, *dso, *mode; /* the function; NULL: the rule's number */
	size_t entry;		       /* the first one of the new level */
	double before, after, p;
	bool worse;
	bool crept;  /* by several changes, each smaller than the threshold */
	size_t from; /* crept: the first entry of the level `before` */
	bool fresh;  /* it could not be seen GATE_SERIES_LOOKS entries ago */
	const struct gate_acceptance *accepted; /* NULL: by nobody */
	/* Function whose step made this share larger or smaller, as shares add up to one; NULL: the change is its own. */
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
	bool blind; /* so few values that no change of any size could be found */
};

struct gate_series {
	const struct gate_history *history;
	struct gate_line *line;
	struct gate_step *step; /* newest first */
	size_t nsteps;
	size_t nseries, nblind; /* lines, and those of them that are blind */
	unsigned int recent;
	bool failed; /* a step for the worse of a rule of level fail is fresh, or begins in the last `recent` */
	bool unsure; /* a rule of level fail has a series that is blind */
};

/* recent: entries. What is given is borrowed. -ENOMEM. */
int gate_series_find(struct gate_series **out, const struct gate_history *h,
		     const struct gate_rules *rules, unsigned int recent, uint64_t seed,
		     struct err *e);
void gate_series_destroy(struct gate_series *s);

/*
 * Returns 0; 1 if failed; 3 if a rule of level fail, or every rule, has so few values that no
 * change could be found.
 */
int gate_series_exit_status(const struct gate_series *s);

/* "fail", "warn", "accepted", "older", "better" or "follows" */
const char *gate_step_word(const struct gate_series *s, const struct gate_step *x);

#endif
