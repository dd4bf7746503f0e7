/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole gates with the default rules on simulated runs with known truth: how often identical
 * code fails, how often a function that grew is found, and whether the right one is named.
 *
 *   bench_gate_rules [GATES]        (default: 200 of each row)
 *
 * The runs are those of tests/gate_rules_sim.h. The second part takes the threshold for the change, and then what the report
 * of the same runs says would be seen 90 % of the time.
 */
#include "tests/gate_rules_sim.h"

#include <string.h>

#define RUNS 10u

struct tally {
	unsigned int status[4], named, wrong;
	double seen; /* mean for the function that grows */
};

static void one_gate(const struct gate_rules *rules, double points, struct tally *t)
{
	const struct gate_eval_options opt = { .seed = stats_random(&sim_state) | 1 };
	struct gate_report *r = NULL;
	struct gate *g = NULL;
	struct err e = { 0 };

	if (gate_create(&g, rules, &e))
		exit(1);
	for (unsigned int i = 0; i < RUNS; i++)
		if (gate_add_run(g, GATE_BASE, sim_run(rules, 0), &e) ||
		    gate_add_run(g, GATE_HEAD, sim_run(rules, points), &e))
			exit(1);
	if (gate_evaluate(g, &opt, &r, &e)) {
		fprintf(stderr, "%s\n", e.text);
		exit(1);
	}
	t->status[gate_exit_status(r)]++;
	for (size_t i = 0; i < r->outcome[1].nfindings; i++) {
		const struct gate_finding *f = &r->outcome[1].finding[i];
		bool grew = !strcmp(f->name, "f3");

		if (grew)
			t->seen += f->seen;
		if (f->result.verdict == STATS_FAIL) {
			t->named += grew;
			t->wrong += !grew;
		}
	}
	gate_report_destroy(r);
	gate_destroy(g);
}

static double row(const struct gate_rules *rules, double points, unsigned int gates)
{
	struct tally t = { 0 };

	for (unsigned int i = 0; i < gates; i++)
		one_gate(rules, points, &t);
	printf("%8.2f %8u %8.1f %% %8.1f %% %8.1f %% %10.1f %% %8u %8.2f\n", points, gates,
	       100.0 * t.status[1] / gates, 100.0 * t.status[0] / gates,
	       100.0 * t.status[3] / gates, 100.0 * t.named / gates, t.wrong, t.seen / gates);
	fflush(stdout);
	return t.seen / gates;
}

int main(int argc, char **argv)
{
	unsigned int gates = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 200;
	struct gate_rules *rules = NULL;
	struct err e = { 0 };
	double seen;

	if (!gates || gate_rules_load(&rules, NULL, &e)) {
		fprintf(stderr, "%s\n", gates ? e.text : "bad number of gates");
		return 2;
	}
	printf("default rules, %u functions, %u runs a side\n", SIM_FUNCTIONS, RUNS);
	printf("%8s %8s %10s %10s %10s %12s %8s %8s\n", "points", "gates", "fail", "pass", "unsure",
	       "f3 named", "others", "seen");
	seen = row(rules, 0, gates);
	row(rules, 1, gates);
	row(rules, seen, gates);
	gate_rules_destroy(rules);
	return 0;
}
