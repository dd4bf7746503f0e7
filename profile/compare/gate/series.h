/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_series: at which entries of a history did a metric change?
 *
 * A rule's number is a series of one value for each entry that has it; each function that an
 * ordinary rule `symbols' is about (measure share, not children) is one as well. Steps are found by
 * E-divisive (profile/compare/stats/change.h); those smaller than the rule's threshold are left out.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_SERIES_H
#define KVMPROF_PROFILE_COMPARE_GATE_SERIES_H

#include "base/buf.h"
#include "profile/compare/gate/history.h"
#include "profile/compare/stats/change.h"

#define GATE_SERIES_NEAR 2u	  /* entries between an acceptance and the step that it is of */
#define GATE_SERIES_FUNCTIONS 20u /* with the largest shares on the average */
#define GATE_SERIES_ALPHA 0.05 /* that any function of a rule has a step by chance, of any size */
#define GATE_SERIES_LAST 200u  /* entries, by default */
#define GATE_SERIES_RECENT 5u

struct gate_step {
	const struct gate_rule *rule;
	const char *name, *dso, *mode; /* of a function; else NULL */
	size_t entry;		       /* the first one of the new level */
	double before, after, p;
	bool worse;
	const struct gate_acceptance *accepted; /* NULL: by nobody */
	/* Function whose step made this share larger or smaller, as shares add up to one; NULL: the change is its own. */
	const char *because;
};

struct gate_series {
	const struct gate_history *history;
	struct gate_step *step; /* newest first */
	size_t nsteps;
	size_t nseries, ntooshort; /* that were looked at; with too few values for any step */
	unsigned int recent;
	bool failed; /* a step for the worse of a rule of level fail begins in the last `recent` */
};

/* recent: entries. What is given is borrowed. -ENOMEM. */
int gate_series_find(struct gate_series **out, const struct gate_history *h,
		     const struct gate_rules *rules, unsigned int recent, uint64_t seed,
		     struct err *e);
void gate_series_destroy(struct gate_series *s);

/* 0; 1: failed; 3: no series is long enough. */
int gate_series_exit_status(const struct gate_series *s);

/* dir is how the history is called. -ENOMEM. */
int gate_series_write_text(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e);
int gate_series_write_json(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e);

#endif
