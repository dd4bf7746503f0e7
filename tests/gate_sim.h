/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulated runs with known truth, for the gate's statistics: tests/bench/bench_gate_sim.c prints
 * tables of them, tests/unit/stats/test_gatestats_sim.c holds a few against their bounds. One
 * session is 2 n runs one after the other, of which the order says which are base's.
 */
#ifndef KVMPROF_TESTS_GATE_SIM_H
#define KVMPROF_TESTS_GATE_SIM_H

#include "profile/compare/bench/looks.h"
#include "profile/compare/stats/verdict.h"
#include "profile/compare/stats/power.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum sim_shape { SIM_NORMAL, SIM_LOGNORMAL, SIM_BIMODAL, SIM_DRIFT, SIM_AR1, SIM_SHAPES };
enum sim_order {
	SIM_COIN,     /* A/B pairs, gate_order() tells which run goes first */
	SIM_ABAB,     /* base always first */
	SIM_SEPARATE, /* all base runs, then all head runs */
};

static const char *const sim_shape_name[SIM_SHAPES] = { "normal", "lognormal", "bimodal",
							"drifting", "AR(1) 0.7" };

struct sim {
	enum sim_shape shape;
	enum sim_order order;
	double sd;     /* of a value about 100: 2 is 2 %; the modes are 12 sd apart */
	double effect; /* relative */
	uint64_t state;
};

static double sim_uniform(struct sim *s)
{
	return ((double)(runstats_random(&s->state) >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller. */
static double sim_normal(struct sim *s)
{
	double r = sqrt(-2 * log(sim_uniform(s)));

	return r * cos(2 * M_PI * sim_uniform(s));
}

/* The noise of 2 n runs in order. */
static void sim_series(struct sim *s, unsigned int n, double *v)
{
	double last = sim_normal(s);

	for (unsigned int i = 0; i < n; i++) {
		double z = sim_normal(s);

		switch (s->shape) {
		case SIM_LOGNORMAL: /* skewness 6: exp(z) - its mean */
			v[i] = 100 + s->sd / 2.1612 * (exp(z) - exp(0.5));
			break;
		case SIM_BIMODAL: /* a third of all runs are slow ones */
			v[i] = 100 + s->sd * z + (sim_uniform(s) < 1 / 3.0 ? 12 * s->sd : 0);
			break;
		case SIM_DRIFT: /* by eight sd through the session */
			v[i] = 100 + s->sd * (z + 8.0 * i / n);
			break;
		case SIM_AR1:
			last = 0.7 * last + sqrt(1 - 0.49) * z;
			v[i] = 100 + s->sd * last;
			break;
		default:
			v[i] = 100 + s->sd * z;
		}
	}
}

/* n pairs. */
static void sim_session(struct sim *s, unsigned int n, double *base, double *head)
{
	double v[2 * GATE_MAX_RUNS];
	bool head_first[GATE_MAX_RUNS] = { 0 };

	sim_series(s, 2 * n, v);
	if (s->order == SIM_COIN)
		gate_order(n, runstats_random(&s->state), head_first);
	for (unsigned int i = 0; i < n; i++) {
		base[i] = s->order == SIM_SEPARATE ? v[i] : v[2 * i + head_first[i]];
		head[i] = s->order == SIM_SEPARATE ? v[n + i] : v[2 * i + !head_first[i]];
		head[i] *= 1 + s->effect;
	}
}

/* Pairs or free; the order itself is not looked at (no GATE_DRIFT and so on). */
static int sim_design(struct gate_design *d, unsigned int n, bool pairs)
{
	uint64_t base_at[GATE_MAX_RUNS], head_at[GATE_MAX_RUNS];
	struct gate_layout l = { .nbase = n, .nhead = n };
	struct err e = { 0 };

	for (unsigned int i = 0; i < n; i++) {
		base_at[i] = 2 * i;
		head_at[i] = 2 * i + 1;
	}
	if (pairs) {
		l.base_at = base_at;
		l.head_at = head_at;
	}
	if (gate_design_init(d, &l, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return -1;
	}
	d->ordered = false;
	return 0;
}

struct sim_counts {
	unsigned int gates;
	unsigned int significant; /* p_fail <= alpha, whatever the effect */
	unsigned int verdict[3];
};

/* -1 for a failure, which is printed. */
static int sim_gates(struct sim *s, const struct gate_rule *rule, unsigned int n, bool pairs,
		     unsigned int gates, struct sim_counts *out)
{
	double base[GATE_MAX_RUNS], head[GATE_MAX_RUNS];
	struct gate_rule r = *rule;
	struct gate_design d;
	struct err e = { 0 };

	r.confidence = -1;
	*out = (struct sim_counts){ .gates = gates };
	if (sim_design(&d, n, pairs) < 0)
		return -1;
	for (unsigned int k = 0; k < gates; k++) {
		struct gate_result o;

		sim_session(s, n, base, head);
		if (gate_compare(&d, &r, base, head, &o, &e) < 0) {
			fprintf(stderr, "%s\n", e.text);
			gate_design_deinit(&d);
			return -1;
		}
		out->significant += o.p_fail <= (r.alpha > 0 ? r.alpha : GATE_ALPHA);
		out->verdict[o.verdict]++;
	}
	gate_design_deinit(&d);
	return 0;
}

/* Wilson's interval of k of n at a confidence of 0 to 1. */
static void sim_wilson(double k, double n, double confidence, double *lo, double *hi)
{
	double z = gate_normal_quantile((1 + confidence) / 2), p = k / n;
	double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
	double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));

	*lo = k > 0 ? centre - half : 0;
	*hi = k < n ? centre + half : 1;
}

struct sim_looks {
	struct sim *runs;
	struct gate_rule rule;
	double error_rate; /* of all looks together; miss likewise is rule.miss */
	unsigned int pairs;
};

struct sim_looks_counts {
	unsigned int tests, verdict[3];
	double pairs; /* used, on average */
};

/* One `bench --sequential` with one rule: the pairs that it used, or -1. */
static int sim_bench(const struct sim_looks *o, struct gate_design *design,
		     const struct bench_looks *looks, struct grules *rules,
		     enum gate_verdict *verdict)
{
	double base[GATE_MAX_RUNS], head[GATE_MAX_RUNS];
	struct gate_rule r = o->rule;
	struct gate_result out;

	sim_session(o->runs, o->pairs, base, head);
	for (unsigned int n = 1; n <= o->pairs; n++) {
		if (!bench_looks_due(looks, n))
			continue;
		bench_looks_set(looks, n, rules);
		r.alpha = rules->error_rate;
		r.miss = 1 - rules->rule[0].power;
		if (gate_compare(&design[n], &r, base, head, &out, NULL) < 0)
			return -1;
		*verdict = out.verdict;
		if (out.verdict != GATE_INCONCLUSIVE)
			return (int)n;
	}
	return (int)o->pairs;
}

/* `bench --sequential`, tests times. -1 for a failure. */
static int sim_looks(const struct sim_looks *o, unsigned int tests, struct sim_looks_counts *out)
{
	struct grule rule = { .power = 1 - (o->rule.miss > 0 ? o->rule.miss : GATE_MISS) };
	struct grules rules = { .rule = &rule, .n = 1, .error_rate = o->error_rate };
	struct gate_design design[GATE_MAX_RUNS + 1];
	struct sim_looks with = *o;
	struct bench_looks looks;
	int used = 0;

	*out = (struct sim_looks_counts){ .tests = tests };
	with.rule.confidence = -1;
	if (bench_looks_init(&looks, &rules, o->pairs, NULL) < 0)
		return -1;
	for (unsigned int n = 1; n <= o->pairs; n++) {
		if (bench_looks_due(&looks, n) && sim_design(&design[n], n, true) < 0)
			return -1;
	}
	for (unsigned int k = 0; k < tests && used >= 0; k++) {
		enum gate_verdict v = GATE_INCONCLUSIVE;

		used = sim_bench(&with, design, &looks, &rules, &v);
		out->verdict[v]++;
		out->pairs += (double)used / tests;
	}
	for (unsigned int n = 1; n <= o->pairs; n++) {
		if (bench_looks_due(&looks, n))
			gate_design_deinit(&design[n]);
	}
	bench_looks_deinit(&looks);
	return used < 0 ? -1 : 0;
}

#endif
