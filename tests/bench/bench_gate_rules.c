/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole gates with the default rules on simulated runs with known truth: how often identical
 * code fails, how often a function that grew is found, and whether the right one is named.
 *
 *   bench_gate_rules [GATES]        (default: 200 of each row)
 *
 * A run has 40 functions whose times differ from run to run by 2 % each (log-normal), and counts
 * 4000 samples of them. The second part takes the threshold for the change, and then what the report
 * of the same runs says would be seen 90 % of the time.
 */
#include "profile/gate/gate.h"
#include "profile/stats/power.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS 40u
#define SAMPLES 4000u
#define RUNS 10u
#define SPREAD 0.02
#define GROWS 3u /* which function */

static uint64_t state = 42;

static double uniform(void)
{
	return ((double)(runstats_random(&state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return gate_normal_quantile(uniform());
}

static struct gate_run *simulate(const struct grules *rules, double points)
{
	static char name[FUNCTIONS][16];
	struct stackset_func func[FUNCTIONS];
	struct stackset_frame frame[FUNCTIONS];
	struct stackset_stack stack[FUNCTIONS];
	struct stackset_task task = { .pid = 1, .tid = 1, .comm = "t" };
	static uint32_t number[FUNCTIONS];
	struct stackset_sample sample = { .time_ns = 1 };
	struct stackset s = { .func = func,
			      .frame = frame,
			      .task = &task,
			      .stack = stack,
			      .sample = &sample,
			      .nfuncs = FUNCTIONS,
			      .nframes = FUNCTIONS,
			      .ntasks = 1,
			      .nstacks = FUNCTIONS,
			      .event = "wall",
			      .weight_is_ns = true,
			      .osrelease = "",
			      .message = "" };
	double weight[FUNCTIONS], sum = 0, total = 0;
	struct gate_run *run = NULL;
	struct err e = { 0 };

	for (unsigned int i = 0; i < FUNCTIONS; i++)
		sum += 1.0 / (2 + i);
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		double share = 1.0 / (2 + i) / sum, more = points / 100;

		/* So much that its share of the longer run is `points' more. */
		if (i == GROWS)
			share += more / (1 - share - more);
		weight[i] = share * exp(SPREAD * normal());
		total += weight[i];
	}
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		double want = SAMPLES * weight[i] / total;
		double n = floor(fmax(0, want + sqrt(want) * normal()));

		snprintf(name[i], sizeof(name[i]), "f%u", i);
		number[i] = i;
		func[i] = (struct stackset_func){ .name = name[i],
						  .dso = "[kernel.kallsyms]",
						  .named = true,
						  .kind = STACKSET_KIND_KERNEL };
		frame[i] = (struct stackset_frame){ .func = i };
		stack[i] = (struct stackset_stack){ .frame = &number[i],
						    .n = 1,
						    .weight = (uint64_t)(n * 1e6),
						    .samples = (uint64_t)n };
	}
	/* What grew makes the run longer. */
	s.first_ns = 1000;
	s.last_ns = s.first_ns + (uint64_t)(total * 4e9);
	if (gate_run_make(&run, "simulated", &s, rules, &e)) {
		fprintf(stderr, "%s\n", e.text);
		exit(1);
	}
	return run;
}

struct tally {
	unsigned int status[4], named, wrong;
	double seen; /* of the function that grows, mean */
};

static void one_gate(const struct grules *rules, double points, struct tally *t)
{
	const struct gate_eval_options opt = { .seed = runstats_random(&state) | 1 };
	struct gate_report *r = NULL;
	struct gate *g = NULL;
	struct err e = { 0 };

	if (gate_create(&g, rules, &e))
		exit(1);
	for (unsigned int i = 0; i < RUNS; i++)
		if (gate_add_run(g, GATE_BASE, simulate(rules, 0), &e) ||
		    gate_add_run(g, GATE_HEAD, simulate(rules, points), &e))
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
		if (f->result.verdict == GATE_FAIL) {
			t->named += grew;
			t->wrong += !grew;
		}
	}
	gate_report_destroy(r);
	gate_destroy(g);
}

static double row(const struct grules *rules, double points, unsigned int gates)
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
	struct grules *rules = NULL;
	struct err e = { 0 };
	double seen;

	if (!gates || grules_load(&rules, NULL, &e)) {
		fprintf(stderr, "%s\n", gates ? e.text : "bad number of gates");
		return 2;
	}
	printf("default rules, %u functions, %u runs a side\n", FUNCTIONS, RUNS);
	printf("%8s %8s %10s %10s %10s %12s %8s %8s\n", "points", "gates", "fail", "pass", "unsure",
	       "f3 named", "others", "seen");
	seen = row(rules, 0, gates);
	row(rules, 1, gates);
	row(rules, seen, gates);
	grules_destroy(rules);
	return 0;
}
