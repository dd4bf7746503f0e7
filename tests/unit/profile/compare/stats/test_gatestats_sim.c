/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: slow with sanitizers */
/*
 * The gate's errors on simulated runs, quickly; tests/bench/bench_gate_sim.c has all of it. A rate
 * is over its promise when the lower end of its 99.9 % interval is. Seeds are fixed: a failure
 * is a change of the code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/gate_sim.h"

static void between(const char *what, unsigned int k, unsigned int n, double least, double most)
{
	double lo, hi;

	sim_wilson(k, n, 0.999, &lo, &hi);
	if (lo > most || hi < least)
		fail_msg("%s: %u of %u, expected %g to %g", what, k, n, least, most);
}

static void test_identical(void **state)
{
	static const struct {
		enum sim_shape shape;
		unsigned int n;
		bool pairs;
	} kinds[] = { { SIM_NORMAL, 5, false }, { SIM_LOGNORMAL, 6, false },
		      { SIM_BIMODAL, 9, true }, { SIM_NORMAL, 10, true },
		      { SIM_DRIFT, 10, true },	{ SIM_AR1, 10, true },
		      { SIM_DRIFT, 5, true } };
	struct stats_rule r = { .unit = STATS_RELATIVE, .min_effect = 1e-6 };

	(void)state;
	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct sim s = { .shape = kinds[k].shape, .sd = 2, .state = 7 + k };
		struct sim_counts c;

		assert_int_equal(sim_gates(&s, &r, kinds[k].n, kinds[k].pairs, 2000, &c), 0);
		/* Pairs of ten have nearly 1 % for certain; joined blocks stay below. */
		between(sim_shape_name[kinds[k].shape], c.verdict[STATS_FAIL], 2000,
			kinds[k].n == 10 ? 0.008 : 0, STATS_ALPHA);
	}
}

/* This test can fail: a drift through runs that did not take turns is found every time. */
static void test_no_turns(void **state)
{
	struct stats_rule r = { .unit = STATS_RELATIVE, .min_effect = 1e-6 };
	struct sim s = { .shape = SIM_DRIFT, .order = SIM_SEPARATE, .sd = 2, .state = 1 };
	struct sim_counts c;

	(void)state;
	assert_int_equal(sim_gates(&s, &r, 5, false, 200, &c), 0);
	assert_true(c.verdict[STATS_FAIL] > 150);
}

static void test_margin(void **state)
{
	struct stats_rule r = { .unit = STATS_RELATIVE, .min_effect = 0.02 };
	struct stats_spread spread = { .base = 100, .sd = 1, .paired = true };
	struct sim s = { .sd = 1, .effect = 0.02, .state = 4 };
	struct sim_counts c;

	(void)state;
	assert_int_equal(sim_gates(&s, &r, 10, true, 2000, &c), 0);
	between("pass of a change that must not", c.verdict[STATS_PASS], 2000, 0.09, STATS_MISS);
	between("fail of just the minimum", c.verdict[STATS_FAIL], 2000, 0.4, 0.55);
	r.strict = true;
	assert_int_equal(sim_gates(&s, &r, 10, true, 2000, &c), 0);
	between("strict fail of just the minimum", c.verdict[STATS_FAIL], 2000, 0.008, STATS_ALPHA);
	/* And what can be seen with 80 % is seen in 80 %. */
	r.strict = false;
	r.min_effect = 0.01;
	s.effect = stats_detectable(&spread, &r, 10, 10, 0.8);
	assert_int_equal(sim_gates(&s, &r, 10, true, 2000, &c), 0);
	between("seen", c.verdict[STATS_FAIL], 2000, 0.77, 0.83);
}

/* `kvmprof diff`: any difference of means, dealt freely, with an interval of 95 %. */
static void test_means(void **state)
{
	static const struct {
		enum sim_shape shape;
		unsigned int n;
	} kinds[] = { { SIM_NORMAL, 5 }, { SIM_NORMAL, 10 }, { SIM_LOGNORMAL, 10 } };
	const unsigned int tests = 1000;

	(void)state;
	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct sim s = { .shape = kinds[k].shape, .sd = 2, .state = 90 + k };
		unsigned int significant = 0, covered = 0;
		double base[10], head[10];
		struct stats_design d;

		assert_int_equal(sim_design(&d, kinds[k].n, false), 0);
		for (unsigned int i = 0; i < tests; i++) {
			struct stats_shift o;

			sim_session(&s, kinds[k].n, base, head);
			stats_compare_means(&d, base, head, &o);
			significant += o.p <= 0.05;
			covered += o.lo <= 0 && o.hi >= 0;
		}
		stats_design_deinit(&d);
		between("difference of identical runs", significant, tests, 0.03, 0.05);
		between("interval without the truth", tests - covered, tests, 0, 0.05);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identical),
		cmocka_unit_test(test_no_turns),
		cmocka_unit_test(test_margin),
		cmocka_unit_test(test_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
