/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: slow with sanitizers */
/*
 * How often whole gates fail where base and head are the same code: at most as often as error-rate
 * says, over all rules and functions together. The thresholds are so small that only chance decides.
 *
 *   test_gate_aa [GATES RUNS SEED]      (default: 40 gates of 8 runs a side)
 *
 * 40 are enough to see a family that is not corrected: a third of them would fail. tests/e2e/gate_aa.py
 * makes the 2,000 that tell 1 % from 2 %. Seeds are fixed: a failure is a change of the code. The rate
 * is over its promise when the lower end of its 99.9 % interval is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/gate_rules_sim.h"

#include <string.h>

#define ERROR_RATE 0.01
#define HEADER "[gate]\nerror-rate = 0.01\n"
#define RULE(name, metric, more) \
	"[[rule]]\nname = \"" name "\"\nmetric = \"" metric "\"\n" more "\n"
#define FAMILY RULE("functions", "symbols", "threshold = \"0.0001 points\"\nmin-share = \"%s\"")
#define RULES                                                        \
	HEADER RULE("run time", "time", "threshold = \"0.0001 %%\"") \
		FAMILY RULE("new functions", "new-symbols", "threshold = \"0.0001 points\"")

static unsigned int gates = 40, runs = 8, seed = 42;

/* The interval of a rate of k in n, by Wilson. */
static void wilson(unsigned int k, double n, double confidence, double *lo, double *hi)
{
	double z = stats_t_quantile((1 + confidence) / 2, 1e9), p = k / n, z2 = z * z;
	double half = z * sqrt(p * (1 - p) / n + z2 / (4 * n * n));

	*lo = (p + z2 / (2 * n) - half) / (1 + z2 / n);
	*hi = (p + z2 / (2 * n) + half) / (1 + z2 / n);
}

/* Returns how many of n gates with these rules fail. */
static unsigned int failed_gates(const char *text, unsigned int n, double points)
{
	struct gate_rules *rules = NULL;
	struct err e = { 0 };
	unsigned int failed = 0;

	if (gate_rules_parse(&rules, "rules", text, strlen(text), &e) < 0)
		fail_msg("%s", e.text);
	sim_state = seed;
	for (unsigned int k = 0; k < n; k++) {
		const struct gate_eval_options opt = { .seed = stats_random(&sim_state) | 1 };
		struct gate_report *r = NULL;
		struct gate *g = NULL;

		assert_int_equal(gate_create(&g, rules, &e), 0);
		for (unsigned int i = 0; i < runs; i++) {
			assert_int_equal(gate_add_run(g, GATE_BASE, sim_run(rules, 0), &e), 0);
			assert_int_equal(gate_add_run(g, GATE_HEAD, sim_run(rules, points), &e), 0);
		}
		if (gate_evaluate(g, &opt, &r, &e) < 0)
			fail_msg("%s", e.text);
		failed += gate_exit_status(r) == 1;
		gate_report_destroy(r);
		gate_destroy(g);
	}
	gate_rules_destroy(rules);
	return failed;
}

static void identical_code_fails_no_more_often_than_promised(void **state)
{
	unsigned int failed;
	char text[1024];
	double lo, hi;

	(void)state;
	snprintf(text, sizeof(text), RULES, "0.5 %");
	failed = failed_gates(text, gates, 0);
	wilson(failed, gates, 0.95, &lo, &hi);
	print_message("%u of %u gates with %u runs a side failed: %.2f %%, 95 %% interval %.2f to "
		      "%.2f %%\n",
		      failed, gates, runs, 100.0 * failed / gates, 100 * lo, 100 * hi);
	wilson(failed, gates, 0.999, &lo, &hi);
	assert_true(lo <= ERROR_RATE);
}

/* These rules do fail where there is a reason. */
static void one_that_grew_is_found(void **state)
{
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text), RULES, "0.5 %");
	assert_true(failed_gates(text, 5, 3) == 5);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identical_code_fails_no_more_often_than_promised),
		cmocka_unit_test(one_that_grew_is_found),
	};

	if (argc == 4) {
		gates = (unsigned int)strtoul(argv[1], NULL, 10);
		runs = (unsigned int)strtoul(argv[2], NULL, 10);
		seed = (unsigned int)strtoul(argv[3], NULL, 10);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
