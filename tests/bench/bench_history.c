/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests what `kvmprof gate --history` finds in simulated histories whose truth is known, and reports when nothing
 * changed.
 *
 *	make build/bench/bench_history && build/bench/bench_history [--quick | --series | --changes] [WORDS]
 *
 * A history has one rule, a time with a threshold of 2 %. `worse` are histories in which a step for the worse is reported;
 * with a true step, `near` are those that have one at most three entries away from it. --series prints the histories
 * instead, a line each (scenario, first entry of the change, -1 without one or -2 for several, values), for bench_history.py. --changes reads series, a
 * line of values each, and prints where their levels change at once: a drift has no such place. WORDS: only the histories that are called so.
 */
#include "profile/compare/gate/series.h"
#include "tests/gate_sim.h"

#include <string.h>

#define ENTRIES_MOST 200u

enum kind { STILL, STEP, STEPS, DRIFT, NOISY_LATER };

struct scenario {
	const char *name;
	enum sim_shape shape;
	enum kind kind;
	unsigned int n;	 /* entries */
	double sd, phi;	 /* percent; of an AR(1) */
	double size;	 /* percent, of each step, or of the whole drift */
	unsigned int at; /* the first entry of the change */
	double promised; /* percent of histories with a false alarm at most; < 0: nothing is */
};

static const struct scenario scenarios[] = {
	{ "A/A, normal, sd 0.2 %", SIM_NORMAL, STILL, 100, 0.2, 0, 0, 0, 1 },
	{ "A/A, normal, sd 1 %", SIM_NORMAL, STILL, 100, 1, 0, 0, 0, 1 },
	{ "A/A, normal, sd 5 %", SIM_NORMAL, STILL, 100, 5, 0, 0, 0, 1 },
	{ "A/A, normal, sd 5 %, 30 entries", SIM_NORMAL, STILL, 30, 5, 0, 0, 0, 1 },
	{ "A/A, normal, sd 5 %, 12 entries", SIM_NORMAL, STILL, 12, 5, 0, 0, 0, 1 },
	{ "A/A, lognormal, sd 5 %", SIM_LOGNORMAL, STILL, 100, 5, 0, 0, 0, 1 },
	{ "A/A, two groups 12 % apart", SIM_BIMODAL, STILL, 100, 1, 0, 0, 0, 1 },
	{ "A/A, AR(1) 0.3, sd 1 %", SIM_NORMAL, STILL, 100, 1, 0.3, 0, 0, 5 },
	{ "A/A, AR(1) 0.5, sd 1 %", SIM_NORMAL, STILL, 100, 1, 0.5, 0, 0, 5 },
	{ "A/A, AR(1) 0.8, sd 1 %", SIM_NORMAL, STILL, 100, 1, 0.8, 0, 0, 5 },
	{ "A/A, AR(1) 0.8, sd 1 %, 60 entries", SIM_NORMAL, STILL, 60, 1, 0.8, 0, 0, 5 },
	{ "A/A, AR(1) 0.5, sd 5 %", SIM_NORMAL, STILL, 100, 5, 0.5, 0, 0, 5 },
	{ "A/A, AR(1) 0.8, sd 5 %", SIM_NORMAL, STILL, 100, 5, 0.8, 0, 0, 5 },
	{ "A/A, AR(1) 0.8, sd 5 %, 60 entries", SIM_NORMAL, STILL, 60, 5, 0.8, 0, 0, 5 },
	{ "A/A, AR(1) 0.8, sd 5 %, 30 entries", SIM_NORMAL, STILL, 30, 5, 0.8, 0, 0, 5 },
	{ "A/A, AR(1) 0.95, sd 5 %", SIM_NORMAL, STILL, 100, 5, 0.95, 0, 0, 5 },
	{ "a noisy host from 60 on, 0.1 to 15 %", SIM_NORMAL, NOISY_LATER, 100, 0.1, 0, 0, 0, 5 },
	{ "3 % at 60, sd 0.2 %", SIM_NORMAL, STEP, 100, 0.2, 0, 3, 60, -1 },
	{ "3 % at 60, sd 1 %", SIM_NORMAL, STEP, 100, 1, 0, 3, 60, -1 },
	{ "3 % at 60, sd 3 %", SIM_NORMAL, STEP, 100, 3, 0, 3, 60, -1 },
	{ "3 % at 60, AR(1) 0.5, sd 1 %", SIM_NORMAL, STEP, 100, 1, 0.5, 3, 60, -1 },
	{ "5 % at 60, AR(1) 0.8, sd 1 %", SIM_NORMAL, STEP, 100, 1, 0.8, 5, 60, -1 },
	{ "3 %, the newest 3 of 100, sd 0.2 %", SIM_NORMAL, STEP, 100, 0.2, 0, 3, 97, -1 },
	{ "5 %, the newest 3 of 100, sd 1 %", SIM_NORMAL, STEP, 100, 1, 0, 5, 97, -1 },
	{ "3 %, the newest 5 of 30, sd 0.5 %", SIM_NORMAL, STEP, 30, 0.5, 0, 3, 25, -1 },
	{ "30 % at 5 of 10, sd 1 %", SIM_NORMAL, STEP, 10, 1, 0, 30, 5, -1 },
	{ "30 % at 9 of 12, sd 1 %", SIM_NORMAL, STEP, 12, 1, 0, 30, 9, -1 },
	{ "four steps of 1.2 %, sd 0.2 %", SIM_NORMAL, STEPS, 100, 0.2, 0, 1.2, 20, -1 },
	{ "four steps of 1.2 %, sd 0.5 %", SIM_NORMAL, STEPS, 100, 0.5, 0, 1.2, 20, -1 },
	{ "drift of 6 % over 60, sd 0.2 %", SIM_NORMAL, DRIFT, 60, 0.2, 0, 6, 0, -1 },
	{ "drift of 6 % over 60, sd 1 %", SIM_NORMAL, DRIFT, 60, 1, 0, 6, 0, -1 },
	{ "drift of 3 % over 100, sd 0.2 %", SIM_NORMAL, DRIFT, 100, 0.2, 0, 3, 0, -1 },
	{ "3 % at 30, noise 0.1 to 15 % from 60 on", SIM_NORMAL, NOISY_LATER, 100, 0.1, 0, 3, 30,
	  -1 },
};

/* Writes one history about 100. */
static void simulate(struct sim *s, const struct scenario *x, double *v)
{
	double last = sim_normal(s);

	s->shape = x->shape;
	s->sd = x->sd;
	sim_series(s, x->n, v);
	for (unsigned int i = 0; i < x->n; i++) {
		if (x->phi > 0) {
			last = x->phi * last + sqrt(1 - x->phi * x->phi) * sim_normal(s);
			v[i] = 100 + x->sd * last;
		}
		if (x->kind == NOISY_LATER && i >= 60)
			v[i] = 100 + 15 * sim_normal(s);
		if ((x->kind == STEP || x->kind == NOISY_LATER) && i >= x->at)
			v[i] *= 1 + x->size / 100;
		for (unsigned int k = 1; x->kind == STEPS && k <= 4; k++)
			v[i] *= i >= k * x->at ? 1 + x->size / 100 : 1;
		if (x->kind == DRIFT)
			v[i] *= 1 + x->size / 100 * i / (x->n - 1);
	}
}

/* -- a history in memory ------------------------------------------------------------------------ */

static struct gate_history_entry entries[ENTRIES_MOST];
static struct gate_history_entry *pointers[ENTRIES_MOST];
static struct gate_history_value values[ENTRIES_MOST];

static struct gate_series *judge(const double *v, const struct scenario *x,
				 const struct gate_rules *rules)
{
	static struct gate_history h;
	struct gate_series *s = NULL;
	struct err e = { 0 };

	for (unsigned int i = 0; i < x->n; i++) {
		/* A time in ns. */
		values[i] = (struct gate_history_value){ .name = "time",
							 .mean = v[i] * 1e7,
							 .runs = 1 };
		entries[i].value = &values[i];
		entries[i].nvalues = 1;
		entries[i].runs = 1;
		pointers[i] = &entries[i];
	}
	h = (struct gate_history){ .entry = pointers, .n = x->n };
	if (gate_series_find(&s, &h, rules, GATE_SERIES_RECENT, 0, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		exit(1);
	}
	return s;
}

static bool near_truth(const struct scenario *x, size_t at)
{
	if (x->kind == DRIFT || x->kind == STEPS)
		return true;
	return at + 3 >= x->at && at <= x->at + 3u;
}

/* Returns whether what is promised was kept. */
static bool row(const struct scenario *x, const struct gate_rules *rules, unsigned int times)
{
	const bool still = x->size == 0;
	struct sim s = { .state = 7 };
	unsigned int worse = 0, near = 0, failed = 0;
	double v[ENTRIES_MOST], lo, hi;
	char close[16] = "";

	for (unsigned int k = 0; k < times; k++) {
		struct gate_series *g;
		bool any = false, found = false;

		simulate(&s, x, v);
		g = judge(v, x, rules);
		for (size_t i = 0; i < g->nsteps; i++) {
			any |= still || g->step[i].worse;
			found |= g->step[i].worse && near_truth(x, g->step[i].entry);
		}
		worse += any;
		near += found;
		failed += gate_series_exit_status(g) == 1;
		gate_series_destroy(g);
	}
	sim_wilson(still ? worse : near, times, 0.999, &lo, &hi);
	if (!still)
		snprintf(close, sizeof(close), "%.1f %%", 100.0 * near / times);
	printf("%-40s %5u %7.1f %% %9s %7.1f %%%s\n", x->name, times, 100.0 * worse / times, close,
	       100.0 * failed / times, x->promised >= 0 && 100 * lo > x->promised ? "  above" : "");
	fflush(stdout);
	return !(x->promised >= 0 && 100 * lo > x->promised);
}

static void print_series(const struct scenario *x, unsigned int times)
{
	struct sim s = { .state = 7 };
	double v[ENTRIES_MOST];

	for (unsigned int k = 0; k < times; k++) {
		simulate(&s, x, v);
		printf("%s;%d", x->name,
		       x->size == 0			      ? -1
		       : x->kind == DRIFT || x->kind == STEPS ? -2
							      : (int)x->at);
		for (unsigned int i = 0; i < x->n; i++)
			printf(";%.10g", v[i]);
		printf("\n");
	}
}

static int print_changes(void)
{
	const struct stats_change_options opt = { .levels = true, .dependent = true };
	static struct stats_change c[STATS_CHANGES_MAX];
	static double v[STATS_HISTORY_MAX];
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	while (!ret && getline(&line, &room, stdin) > 0) {
		size_t n = 0, found = 0;
		struct err e = { 0 };

		for (char *at = line, *end; n < STATS_HISTORY_MAX; at = end + (*end == ';')) {
			v[n] = strtod(at, &end);
			if (end == at)
				break;
			n++;
		}
		ret = stats_changes(v, n, &opt, c, &found, &e);
		for (size_t i = 0, n_at = 0; i < found; i++)
			if (!c[i].gradual)
				printf("%s%zu", n_at++ ? ";" : "", c[i].at);
		printf("%s\n", e.text);
	}
	free(line);
	return ret ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const char text[] = "[[rule]]\nmetric = \"time\"\nthreshold = \"2 %\"\n";
	const char *how = argc > 1 ? argv[1] : "", *words = argc > 2 ? argv[2] : "";
	const unsigned int times = !strcmp(how, "--quick")    ? 60
				   : !strcmp(how, "--series") ? 200
							      : 1000;
	struct gate_rules *rules = NULL;
	struct err e = { 0 };
	bool kept = true;

	if (!strcmp(how, "--changes"))
		return print_changes();
	if (gate_rules_parse(&rules, "rules", text, strlen(text), &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	if (strcmp(how, "--series"))
		printf("%-40s %5s %9s %9s %9s\n", "history", "times", "worse", "near", "exit 1");
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (!strstr(scenarios[i].name, words))
			continue;
		if (!strcmp(how, "--series"))
			print_series(&scenarios[i], times);
		else
			kept &= row(&scenarios[i], rules, times);
	}
	gate_rules_destroy(rules);
	return kept ? 0 : 1;
}
