/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_looks: may a bench stop before its last pair (bench --sequential)?
 *
 * At looks fixed beforehand the gate's whole question is asked, all rules and functions at once.
 * What may go wrong is a budget for all looks together: look k gets the part that Lan and
 * DeMets' O'Brien-Fleming-like function 2 - 2 Phi(z(budget / 2) / sqrt(t)) adds at its
 * fraction t of pairs ("Discrete sequential boundaries for clinical trials", 1983). The errors
 * of all looks add up to the budget at most, whatever depends on what (Bonferroni), so the
 * promise holds for any rule. Early looks are strict and cost the last one little.
 */
#ifndef KVMPROF_PROFILE_COMPARE_BENCH_LOOKS_H
#define KVMPROF_PROFILE_COMPARE_BENCH_LOOKS_H

#include "profile/compare/gate/rules.h"

#define BENCH_LOOKS 4u /* at 40, 60, 80 and 100 % of the pairs */

struct bench_looks {
	unsigned int at[BENCH_LOOKS]; /* pairs made, increasing; the last is all of them */
	unsigned int nlooks;
	unsigned int pairs;
	double *alpha, *power; /* of each rule, for all looks together */
	double error_rate;
	size_t nrules;
};

/* -ENOMEM. rules: those to be changed by bench_looks_set(). */
int bench_looks_init(struct bench_looks *l, const struct grules *rules, unsigned int pairs,
		     struct err *e);
void bench_looks_deinit(struct bench_looks *l);

/* Is there a look after so many pairs? The last is always one. */
bool bench_looks_due(const struct bench_looks *l, unsigned int pairs);

/* Give the rules what the look after so many pairs may spend. */
void bench_looks_set(const struct bench_looks *l, unsigned int pairs, struct grules *rules);

/* What of a budget is spent up to the fraction t of pairs. 0 to budget. */
double bench_looks_spent(double budget, double t);

#endif
