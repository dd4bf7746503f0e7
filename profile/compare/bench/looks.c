/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/bench/looks.h"

#include "profile/compare/stats/power.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LEAST 1e-9

/* Few pairs have fewer looks, each after two pairs or more. */
static void looks_place(struct bench_looks *l)
{
	for (unsigned int fifths = 2; fifths <= 5; fifths++) {
		unsigned int at = (l->pairs * fifths + 4) / 5;

		if (at >= 2 && (!l->nlooks || at > l->at[l->nlooks - 1]))
			l->at[l->nlooks++] = at;
	}
}

int bench_looks_init(struct bench_looks *l, const struct grules *rules, unsigned int pairs,
		     struct err *e)
{
	*l = (struct bench_looks){ .pairs = pairs, .nrules = rules->n };
	looks_place(l);
	l->alpha = calloc(rules->n + 1, sizeof(*l->alpha));
	l->power = calloc(rules->n + 1, sizeof(*l->power));
	if (!l->alpha || !l->power) {
		bench_looks_deinit(l);
		return err_set(e, ENOMEM, "out of memory");
	}
	l->error_rate = rules->error_rate;
	for (size_t i = 0; i < rules->n; i++) {
		l->alpha[i] = rules->rule[i].alpha;
		l->power[i] = rules->rule[i].power;
	}
	return 0;
}

void bench_looks_deinit(struct bench_looks *l)
{
	free(l->alpha);
	free(l->power);
	l->alpha = l->power = NULL;
}

bool bench_looks_due(const struct bench_looks *l, unsigned int pairs)
{
	for (unsigned int i = 0; i < l->nlooks; i++)
		if (l->at[i] == pairs)
			return true;
	return false;
}

/* What a look may spend of a budget; 0 would mean the default to those who read it. */
static double part(double budget, double before, double now)
{
	double spent = bench_looks_spent(budget, now) - bench_looks_spent(budget, before);

	return budget > 0 ? fmax(spent, LEAST) : 0;
}

double bench_looks_spent(double budget, double t)
{
	if (budget <= 0 || t <= 0)
		return 0;
	if (t >= 1 || budget >= 1)
		return budget;
	return 2 - 2 * gate_normal_cdf(gate_normal_quantile(1 - budget / 2) / sqrt(t));
}

void bench_looks_set(const struct bench_looks *l, unsigned int pairs, struct grules *rules)
{
	double before, now = (double)pairs / l->pairs;
	unsigned int last = 0;

	for (unsigned int i = 0; i < l->nlooks && l->at[i] < pairs; i++)
		last = l->at[i];
	before = (double)last / l->pairs;
	rules->error_rate = part(l->error_rate, before, now);
	for (size_t i = 0; i < l->nrules; i++) {
		rules->rule[i].alpha = part(l->alpha[i], before, now);
		rules->rule[i].power = 1 - part(1 - l->power[i], before, now);
	}
}
