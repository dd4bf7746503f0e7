/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gatestats_seq: may a series of A/B pairs stop here?
 *
 * Pairs of runs come one by one; at looks fixed beforehand the question of gatestats.h is asked.
 * The errors alpha (false fail) and miss (false pass) are budgets for all looks together, spent
 * as Lan and DeMets 1983 describe, as a function of the fraction of pairs that a look has. The
 * boundary is not that of a normal walk: each of `resamples` walks gets the signs of the same
 * pair differences by chance, and at a look so many of the walks that have not left before leave
 * as the budget allows; the true walk is decided if it leaves. When head and base could have been
 * exchanged in each pair it is one of these walks, so the error holds with few pairs too, with
 * any distribution, drift and autocorrelation that the coins of gate_order() make exchangeable.
 *
 * One thread per state. One seed gives one result.
 *
 *	gate_seq_init(&s, &opt, &e);
 *	do {
 *		run the pair (order: s.head_first[s.pairs]);
 *		gate_seq_add(&s, base, head, &decision, &e);
 *	} while (decision == GATE_SEQ_CONTINUE);
 *	gate_seq_result(&s, &result);
 *	gate_seq_deinit(&s);
 */
#ifndef KVMPROF_PROFILE_STATS_SEQUENTIAL_H
#define KVMPROF_PROFILE_STATS_SEQUENTIAL_H

#include "profile/stats/verdict.h"

#define GATE_SEQ_LOOKS 16u
#define GATE_SEQ_FUTILE 0.05

enum gate_seq_decision {
	GATE_SEQ_CONTINUE,
	GATE_SEQ_FAIL,
	GATE_SEQ_PASS,
	GATE_SEQ_INCONCLUSIVE, /* all pairs are used, or stopped as futile */
};

enum gate_spending {
	GATE_OBRIEN_FLEMING, /* 2 - 2 Phi(z(alpha/2) / sqrt(t)): little early */
	GATE_POCOCK, /* alpha log(1 + (e - 1) t): stops earlier, needs more pairs if it does not */
};

struct gate_seq_options {
	struct gate_rule rule; /* GATE_MEAN only; strict is respected */
	/* Pairs at each look, increasing, the last is the maximum. nlooks 0: gate_seq_looks(). */
	unsigned int look[GATE_SEQ_LOOKS];
	unsigned int nlooks;
	unsigned int max_pairs; /* for nlooks 0; 2 to GATE_MAX_RUNS */
	/*
	 * Stop as inconclusive when the probability of any other end has fallen below this
	 * (estimated from what was seen, from half of the pairs on). Costs no error. 0:
	 * GATE_SEQ_FUTILE; negative: never.
	 */
	double futile;
	enum gate_spending spend_fail, spend_pass;
	unsigned int resamples; /* 0: RUNSTATS_RESAMPLES; 99 to RUNSTATS_RESAMPLES_MAX */
	uint64_t seed;		/* 0: RUNSTATS_SEED */
};

struct gate_seq_walks;

struct gate_seq {
	struct gate_seq_options opt; /* with defaults filled in */
	unsigned int pairs;	     /* added so far */
	unsigned int looks;	     /* taken so far */
	bool head_first[GATE_MAX_RUNS];
	double base[GATE_MAX_RUNS], head[GATE_MAX_RUNS];
	enum gate_seq_decision decision;
	bool futile; /* why inconclusive */
	/* Of the two errors, what the looks so far were allowed to spend. */
	double spent_fail, spent_pass;
	/* Worse upwards and downwards; a change of D upwards and downwards is excluded. */
	struct gate_seq_walks *fail[2], *pass[2];
};

/* Fills look[] and nlooks: at about 40, 60, 80 and 100 % of max_pairs. */
void gate_seq_looks(struct gate_seq_options *opt, unsigned int max_pairs);

/* -EINVAL (rule, looks, limits), -ENOMEM. */
int gate_seq_init(struct gate_seq *s, const struct gate_seq_options *opt, struct err *e);
void gate_seq_deinit(struct gate_seq *s);

/*
 * -EINVAL for a value that is no number, for relative rules one that is negative, and after a
 * decision. *decision is written on success only.
 */
int gate_seq_add(struct gate_seq *s, double base, double head, enum gate_seq_decision *decision,
		 struct err *e);

/*
 * Is the next add a look? So that several metrics in step can be asked at once: a bench goes on
 * while any is GATE_SEQ_CONTINUE, and adds to those only.
 */
bool gate_seq_at_look(const struct gate_seq *s);

/*
 * What was seen so far, as gate_compare() reports it: effect, interval and p are those of a
 * fixed design and too optimistic after an early stop; verdict and reason are of the sequential
 * test (inconclusive while it continues). -EINVAL with less than two pairs; -ENOMEM.
 */
int gate_seq_result(const struct gate_seq *s, struct gate_result *out, struct err *e);

const char *gate_seq_decision_text(enum gate_seq_decision d);

#endif
