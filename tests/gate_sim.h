/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulated runs with known truth, for the gate's statistics: tests/bench/bench_gate_sim.c prints
 * tables of them, tests/unit/profile/compare/stats/test_gatestats_sim.c compares some with their
 * bounds. One session is 2 n consecutive runs, and the order determines which of them are base
 * runs.
 */
#ifndef KVMPROF_TESTS_GATE_SIM_H
#define KVMPROF_TESTS_GATE_SIM_H

#include "profile/compare/stats/verdict.h"
#include "profile/compare/stats/power.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum sim_shape { SIM_NORMAL, SIM_LOGNORMAL, SIM_BIMODAL, SIM_DRIFT, SIM_AR1, SIM_SHAPES };
enum sim_order {
	SIM_COIN,     /* A/B pairs, stats_order() decides which run goes first */
	SIM_ABAB,     /* base always first */
	SIM_SEPARATE, /* all base runs, then all head runs */
};

static const char *const sim_shape_name[SIM_SHAPES] = { "normal", "lognormal", "bimodal",
							"drifting", "AR(1) 0.7" };

struct sim {
	enum sim_shape shape;
	enum sim_order order;
	/* Standard deviation of a value about 100: 2 is 2 %; the modes are 12 sd apart. */
	double sd;
	double effect; /* relative */
	uint64_t state;
};

static double sim_uniform(struct sim *s)
{
	return ((double)(stats_random(&s->state) >> 11) + 0.5) * 0x1p-53;
}

/* Returns a normally distributed value (Box and Muller). */
static double sim_normal(struct sim *s)
{
	double r = sqrt(-2 * log(sim_uniform(s)));

	return r * cos(2 * M_PI * sim_uniform(s));
}

/* Stores the noise of 2 n runs in order. */
static void sim_series(struct sim *s, unsigned int n, double *v)
{
	double last = sim_normal(s);

	for (unsigned int i = 0; i < n; i++) {
		double z = sim_normal(s);

		switch (s->shape) {
		case SIM_LOGNORMAL: /* skewness 6: exp(z) - its mean */
			v[i] = 100 + s->sd / 2.1612 * (exp(z) - exp(0.5));
			break;
		case SIM_BIMODAL: /* a third of all runs is slow */
			v[i] = 100 + s->sd * z + (sim_uniform(s) < 1 / 3.0 ? 12 * s->sd : 0);
			break;
		case SIM_DRIFT: /* by eight sd during the session */
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

/* Simulates a session of n pairs. */
static void sim_session(struct sim *s, unsigned int n, double *base, double *head)
{
	double v[2 * STATS_MAX_RUNS];
	bool head_first[STATS_MAX_RUNS] = { 0 };

	sim_series(s, 2 * n, v);
	if (s->order == SIM_COIN)
		stats_order(n, stats_random(&s->state), head_first);
	for (unsigned int i = 0; i < n; i++) {
		base[i] = s->order == SIM_SEPARATE ? v[i] : v[2 * i + head_first[i]];
		head[i] = s->order == SIM_SEPARATE ? v[n + i] : v[2 * i + !head_first[i]];
		head[i] *= 1 + s->effect;
	}
}

/*
 * Makes the design, with pairs or free; whether values follow the order is not examined (no
 * STATS_DRIFTING).
 */
static int sim_design(struct stats_design *d, unsigned int n, bool pairs)
{
	uint64_t base_at[STATS_MAX_RUNS], head_at[STATS_MAX_RUNS];
	struct stats_layout l = { .nbase = n, .nhead = n };
	struct err e = { 0 };

	for (unsigned int i = 0; i < n; i++) {
		base_at[i] = 2 * i;
		head_at[i] = 2 * i + 1;
	}
	if (pairs) {
		l.base_at = base_at;
		l.head_at = head_at;
	}
	if (stats_design_init(d, &l, &e) < 0) {
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

/* Runs the gates. Returns 0, or -1 for a failure, which is printed. */
static inline int sim_gates(struct sim *s, const struct stats_rule *rule, unsigned int n,
			    bool pairs, unsigned int gates, struct sim_counts *out)
{
	double base[STATS_MAX_RUNS], head[STATS_MAX_RUNS];
	struct stats_rule r = *rule;
	struct stats_design d;
	struct err e = { 0 };

	r.confidence = -1;
	*out = (struct sim_counts){ .gates = gates };
	if (sim_design(&d, n, pairs) < 0)
		return -1;
	for (unsigned int k = 0; k < gates; k++) {
		struct stats_result o;

		sim_session(s, n, base, head);
		if (stats_compare(&d, &r, base, head, &o, &e) < 0) {
			fprintf(stderr, "%s\n", e.text);
			stats_design_deinit(&d);
			return -1;
		}
		out->significant += o.p_fail <= (r.alpha > 0 ? r.alpha : STATS_ALPHA);
		out->verdict[o.verdict]++;
	}
	stats_design_deinit(&d);
	return 0;
}

/* Computes Wilson's interval of k of n at a confidence of 0 to 1. */
static inline void sim_wilson(double k, double n, double confidence, double *lo, double *hi)
{
	double z = stats_t_quantile((1 + confidence) / 2, 1e9), p = k / n;
	double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
	double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));

	*lo = k > 0 ? centre - half : 0;
	*hi = k < n ? centre + half : 1;
}

#endif
