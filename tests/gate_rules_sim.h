/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulated runs with known truth, for whole gates: a run has 40 functions whose times differ from
 * run to run by 2 % each (log-normal), and counts 4000 samples of them.
 * tests/bench/bench_gate_rules.c prints tables of such gates,
 * tests/unit/profile/compare/gate/test_gate_aa.c counts those that fail by chance.
 */
#ifndef KVMPROF_TESTS_GATE_RULES_SIM_H
#define KVMPROF_TESTS_GATE_RULES_SIM_H

#include "profile/compare/gate/gate.h"
#include "profile/compare/stats/power.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SIM_FUNCTIONS 40u
#define SIM_SAMPLES 4000u
#define SIM_SPREAD 0.02
#define SIM_GROWS 3u /* index of the function that grows */

static uint64_t sim_state = 42;

static double sim_uniform(void)
{
	return ((double)(stats_random(&sim_state) >> 11) + 0.5) / 9007199254740992.0;
}

static double sim_normal(void)
{
	return stats_t_quantile(sim_uniform(), 1e9);
}

/*
 * Returns a run in which the share of one function is larger by `points`. Ends the program on
 * failure.
 */
static struct gate_run *sim_run(const struct gate_rules *rules, double points)
{
	static char name[SIM_FUNCTIONS][16];
	struct stackset_func func[SIM_FUNCTIONS];
	struct stackset_frame frame[SIM_FUNCTIONS];
	struct stackset_stack stack[SIM_FUNCTIONS];
	struct stackset_task task = { .pid = 1, .tid = 1, .comm = "t" };
	static uint32_t number[SIM_FUNCTIONS];
	struct stackset_sample sample = { .time_ns = 1 };
	struct stackset s = { .func = func,
			      .frame = frame,
			      .task = &task,
			      .stack = stack,
			      .sample = &sample,
			      .nfuncs = SIM_FUNCTIONS,
			      .nframes = SIM_FUNCTIONS,
			      .ntasks = 1,
			      .nstacks = SIM_FUNCTIONS,
			      .event = "wall",
			      .weight_is_ns = true,
			      .osrelease = "",
			      .message = "" };
	double weight[SIM_FUNCTIONS], sum = 0, total = 0;
	struct gate_run *run = NULL;
	struct err e = { 0 };

	for (unsigned int i = 0; i < SIM_FUNCTIONS; i++)
		sum += 1.0 / (2 + i);
	for (unsigned int i = 0; i < SIM_FUNCTIONS; i++) {
		double share = 1.0 / (2 + i) / sum, more = points / 100;

		/* Enough for a share of the longer run that is `points' larger. */
		if (i == SIM_GROWS)
			share += more / (1 - share - more);
		weight[i] = share * exp(SIM_SPREAD * sim_normal());
		total += weight[i];
	}
	for (unsigned int i = 0; i < SIM_FUNCTIONS; i++) {
		double want = SIM_SAMPLES * weight[i] / total;
		double n = floor(fmax(0, want + sqrt(want) * sim_normal()));

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
	/* The growth makes the run longer. */
	s.first_ns = 1000;
	s.last_ns = s.first_ns + (uint64_t)(total * 4e9);
	if (gate_run_make(&run, "simulated", &s, rules, &e)) {
		fprintf(stderr, "%s\n", e.text);
		exit(1);
	}
	return run;
}

#endif
