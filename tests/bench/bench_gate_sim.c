/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests the gate's statistics on simulated runs whose truth is known: how often identical
 * code fails, how often a change passes, what is seen, whether intervals cover.
 *
 *	make build/bench/bench_gate_sim && build/bench/bench_gate_sim [--quick]
 *
 * 10,000 gates in each row of the first tables (--quick: 1,000), some minutes of one processor.
 * Rates have Wilson's 95 % interval. `above` marks one whose 99.9 % interval (there are some 40 of
 * them) is over what docs/gate-statistics.md promises; then the program fails.
 */
#include "profile/compare/stats/change.h"
#include "profile/compare/stats/interval.h"
#include "tests/gate_sim.h"

#include <string.h>
#include <time.h>

static unsigned int gates = 10000;
static bool broken;

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int ret)
{
	if (ret < 0)
		exit(1);
}

/* k of n, beside what is promised; promised < 0: nothing is. */
static void put_rate(unsigned int k, unsigned int n, double promised)
{
	double lo, hi;

	sim_wilson(k, n, 0.95, &lo, &hi);
	printf(" %6u %7.2f %% [%5.2f, %5.2f]", k, 100.0 * k / n, 100 * lo, 100 * hi);
	sim_wilson(k, n, 0.999, &lo, &hi);
	if (promised >= 0)
		printf(lo > promised ? "  above" : "  ok   ");
	broken = broken || (promised >= 0 && lo > promised);
}

/* -- 1: identical code ------------------------------------------------------------------------ */

static void identical(enum sim_shape shape, enum sim_order order, bool pairs, unsigned int n,
		      double promised)
{
	static const char *const order_name[] = { "A/B coin", "A/B fixed", "A..A B..B" };
	struct sim s = { .shape = shape, .order = order, .sd = 2, .state = 1000u * shape + n };
	struct stats_rule r = { .unit = STATS_RELATIVE, .min_effect = 1e-6 };
	struct sim_counts c;

	must(sim_gates(&s, &r, n, pairs, gates, &c));
	printf("%-11s %-10s %-6s %3u ", sim_shape_name[shape], order_name[order],
	       pairs ? "pairs" : "free", n);
	put_rate(c.verdict[STATS_FAIL], gates, promised);
	/* The minimum effect is as large as the spread. */
	r.min_effect = 0.02;
	must(sim_gates(&s, &r, n, pairs, gates / 5, &c));
	printf("   %6.2f %%  %5.1f %% %5.1f %%\n", 100.0 * c.verdict[STATS_FAIL] / c.gates,
	       100.0 * c.verdict[STATS_PASS] / c.gates,
	       100.0 * c.verdict[STATS_INCONCLUSIVE] / c.gates);
}

static void table_identical(void)
{
	static const unsigned int runs[] = { 5, 10, 20 };

	printf("1. Identical code, alpha 1 %%, %u gates a row; left with no minimum effect to "
	       "help, right "
	       "with one of 2 %% = 1 sd\n",
	       gates);
	printf("shape       order      deals    n   fails    rate   Wilson 95 %%             fail  "
	       "   pass  "
	       "inconcl.\n");
	for (enum sim_shape shape = 0; shape < SIM_SHAPES; shape++) {
		for (unsigned int k = 0; k < 3; k++)
			identical(shape, SIM_COIN, shape >= SIM_DRIFT, runs[k], STATS_ALPHA);
	}
	for (enum sim_shape shape = 0; shape < SIM_DRIFT; shape++)
		identical(shape, SIM_COIN, true, 10, STATS_ALPHA);
	printf("for comparison, orders that promise nothing:\n");
	identical(SIM_DRIFT, SIM_ABAB, true, 10, -1);
	identical(SIM_AR1, SIM_ABAB, true, 10, -1);
	identical(SIM_DRIFT, SIM_SEPARATE, false, 10, -1);
	identical(SIM_AR1, SIM_SEPARATE, false, 10, -1);
}

/* The order is given to the gate, which may refuse to judge. */
static void told(enum sim_shape shape, bool turns)
{
	const unsigned int n = 20;
	uint64_t base_at[20], head_at[20];
	struct stats_layout l = { .nbase = n, .nhead = n, .base_at = base_at, .head_at = head_at };
	struct stats_rule r = { .unit = STATS_RELATIVE, .min_effect = 1e-6, .confidence = -1 };
	struct sim s = { .shape = shape, .order = turns ? SIM_ABAB : SIM_SEPARATE, .sd = 2 };
	unsigned int fails = 0, refused = 0, tests = gates / 10;
	struct stats_design d;

	for (unsigned int i = 0; i < n; i++) {
		base_at[i] = turns ? 2 * i : i;
		head_at[i] = turns ? 2 * i + 1 : n + i;
	}
	must(stats_design_init(&d, &l, NULL));
	for (unsigned int i = 0; i < tests; i++) {
		double base[20], head[20];
		struct stats_result o;

		sim_session(&s, n, base, head);
		must(stats_compare(&d, &r, base, head, &o, NULL));
		fails += o.verdict == STATS_FAIL;
		refused += o.reason == STATS_DRIFTING;
	}
	stats_design_deinit(&d);
	printf("   %-11s %-10s fail %5.1f %%, refused as drifting %5.1f %%\n",
	       sim_shape_name[shape], turns ? "A/B fixed" : "A..A B..B", 100.0 * fails / tests,
	       100.0 * refused / tests);
}

static void table_told(void)
{
	static const enum sim_shape shapes[] = { SIM_NORMAL, SIM_DRIFT, SIM_AR1 };

	printf("\n   Identical code, the order told to the gate, 20 runs a side, no minimum "
	       "effect:\n");
	for (unsigned int k = 0; k < 6; k++)
		told(shapes[k % 3], k < 3);
}

/* -- 2: a change of just D --------------------------------------------------------------------- */

static void table_margin(void)
{
	printf("\n2. A change of just the minimum effect (2 %% = 1 sd): false pass (miss 10 %%), "
	       "and "
	       "fails of a strict rule (alpha 1 %%)\n");
	printf("shape         n    pass    rate   Wilson 95 %%            strict fails\n");
	for (enum sim_shape shape = 0; shape < SIM_SHAPES; shape++) {
		struct sim s = { .shape = shape, .sd = 2, .effect = 0.02, .state = 77u + shape };
		struct stats_rule r = { .unit = STATS_RELATIVE, .min_effect = 0.02 };
		struct sim_counts c;

		must(sim_gates(&s, &r, 10, shape >= SIM_DRIFT, gates, &c));
		printf("%-11s %3u ", sim_shape_name[shape], 10);
		put_rate(c.verdict[STATS_PASS], gates, STATS_MISS);
		r.strict = true;
		must(sim_gates(&s, &r, 10, shape >= SIM_DRIFT, gates / 2, &c));
		put_rate(c.verdict[STATS_FAIL], gates / 2, STATS_ALPHA);
		putchar('\n');
	}
}

/* -- 3: what is seen ---------------------------------------------------------------------------- */

static void table_power(void)
{
	double effect[5] = { 0.005, 0.01, 0.02, 0.05 };
	static const unsigned int runs[] = { 5, 10, 20 };
	static const struct {
		enum sim_shape shape;
		bool pairs;
	} kinds[] = { { SIM_NORMAL, false }, { SIM_NORMAL, true }, { SIM_LOGNORMAL, false } };
	unsigned int tests = gates / 5;

	printf("\n3. Gates that fail for a real change; minimum effect 1 %%, sd 1 %%; then the "
	       "change that stats_detectable() calls seen at 90 %%, and how often it was\n");
	printf("shape       deals    n   0.5 %%     1 %%     2 %%     5 %%      change    seen\n");
	for (unsigned int k = 0; k < 3; k++) {
		for (unsigned int j = 0; j < 3; j++) {
			struct stats_rule r = { .unit = STATS_RELATIVE, .min_effect = 0.01 };
			struct stats_spread spread = { .base = 100,
						       .sd = 1,
						       .paired = kinds[k].pairs };

			printf("%-11s %-6s %3u", sim_shape_name[kinds[k].shape],
			       kinds[k].pairs ? "pairs" : "free", runs[j]);
			effect[4] = stats_detectable(&spread, &r, runs[j], runs[j], STATS_POWER);
			for (unsigned int i = 0; i < 5; i++) {
				struct sim s = { .shape = kinds[k].shape,
						 .sd = 1,
						 .effect = effect[i],
						 .state = 5 + i };
				struct sim_counts c;

				must(sim_gates(&s, &r, runs[j], kinds[k].pairs, tests, &c));
				if (i == 4)
					printf("   %6.2f %%", 100 * effect[4]);
				printf("  %5.1f%s", 100.0 * c.verdict[STATS_FAIL] / tests,
				       i == 4 ? " %\n" : " ");
			}
		}
	}
}

/* -- 4: intervals ------------------------------------------------------------------------------- */

static void table_cover(void)
{
	static const unsigned int runs[] = { 5, 10, 30 };
	unsigned int tests = gates / 5;

	printf("\n4. Intervals of 95 %% that cover a change of 2 %% (below it, above it), %u "
	       "each\n",
	       tests);
	for (enum sim_shape shape = 0; shape <= SIM_BIMODAL; shape++) {
		for (unsigned int j = 0; j < 3; j++) {
			unsigned int below = 0, above = 0;
			struct sim s = { .shape = shape, .sd = 2, .effect = 0.02, .state = 90 + j };
			struct stats_design d;

			must(sim_design(&d, runs[j], false));
			for (unsigned int k = 0; k < tests; k++) {
				double base[30], head[30], lo, hi;
				const struct stats_sides sides = { &d, base, head, true, 0.95 };

				sim_session(&s, runs[j], base, head);
				stats_interval_means(&sides, &lo, &hi);
				below += hi < 0.02;
				above += lo > 0.02;
			}
			stats_design_deinit(&d);
			printf("%-11s %3u   %5.1f (%4.1f, %4.1f)\n", sim_shape_name[shape], runs[j],
			       100 - 100.0 * (below + above) / tests, 100.0 * below / tests,
			       100.0 * above / tests);
		}
	}
}

/* -- 5: many symbols ------------------------------------------------------------------------------ */

#define SYMBOLS 40u
#define SYMBOL_RUNS 10u

/* Shares of 20,000 samples, which runs differ in by 3 % of each symbol; that sum to 1. */
static void shares_of_run(struct sim *s, double moved, double *share)
{
	double all = 0;

	for (unsigned int k = 0; k < SYMBOLS; k++) {
		double p = pow(0.9, k) * exp(0.03 * sim_normal(s));

		share[k] = p + (k == 8 ? moved : 0);
		all += share[k];
	}
	for (unsigned int k = 0; k < SYMBOLS; k++) {
		double p = share[k] / all;

		share[k] = fmax(0, p + sqrt(p * (1 - p) / 20000) * sim_normal(s));
	}
}

static void symbols(double moved, unsigned int sets, enum stats_family family, unsigned int *any,
		    unsigned int *found)
{
	struct stats_rule r = { .unit = STATS_POINTS, .min_effect = 1e-6, .confidence = -1 };
	struct sim s = { .state = 4711 };
	struct stats_design d;

	must(sim_design(&d, SYMBOL_RUNS, false));
	*any = *found = 0;
	for (unsigned int set = 0; set < sets; set++) {
		double v[2 * SYMBOL_RUNS][SYMBOLS], x[SYMBOL_RUNS], y[SYMBOL_RUNS];
		struct stats_result o[SYMBOLS], *all[SYMBOLS];
		bool other = false;

		for (unsigned int i = 0; i < 2 * SYMBOL_RUNS; i++)
			shares_of_run(&s, i < SYMBOL_RUNS ? 0 : moved, v[i]);
		for (unsigned int k = 0; k < SYMBOLS; k++) {
			for (unsigned int i = 0; i < SYMBOL_RUNS; i++) {
				x[i] = v[i][k];
				y[i] = v[SYMBOL_RUNS + i][k];
			}
			all[k] = &o[k];
			must(stats_compare(&d, &r, x, y, &o[k], NULL));
		}
		must(stats_adjust(all, SYMBOLS, STATS_ALPHA, family));
		for (unsigned int k = 0; k < SYMBOLS; k++)
			other = other || (k != 8 && o[k].verdict == STATS_FAIL);
		*found += o[8].verdict == STATS_FAIL;
		*any += other || (moved == 0 && o[8].verdict == STATS_FAIL);
	}
	stats_design_deinit(&d);
}

static void table_symbols(void)
{
	unsigned int sets = gates / 5, any, found;

	printf("\n5. %u symbols of one profile, %u runs a side, %u sets: any false fail among them "
	       "(alpha "
	       "1 %%)\n",
	       SYMBOLS, SYMBOL_RUNS, sets);
	symbols(0, sets, STATS_FDR, &any, &found);
	printf("identical, Benjamini-Hochberg:   ");
	put_rate(any, sets, STATS_ALPHA);
	symbols(0, sets / 4, STATS_HOLM, &any, &found);
	printf("\nidentical, Holm:                 ");
	put_rate(any, sets / 4, STATS_ALPHA);
	symbols(0.05, sets / 4, STATS_FDR, &any, &found);
	printf("\none symbol of 4.3 %% grows by about 0.5 points: found in %.1f %%, another fails "
	       "in %.1f %%\n",
	       400.0 * found / sets, 400.0 * any / sets);
}

/* -- 6: changes ----------------------------------------------------------------------------------- */

static void change_row(enum sim_shape shape, double step, double promised)
{
	const struct stats_change_options o = { 0 };
	struct sim s = { .shape = shape, .sd = 1, .state = 12 };
	unsigned int tests = gates / 10, any = 0, near = 0;

	for (unsigned int k = 0; k < tests; k++) {
		struct stats_change c[STATS_CHANGES_MAX];
		bool close = false;
		double v[100];
		size_t n;

		sim_series(&s, 100, v);
		for (unsigned int i = 60; i < 100; i++)
			v[i] += step;
		must(stats_changes(v, 100, &o, c, &n, NULL));
		for (size_t i = 0; i < n; i++)
			close = close || (c[i].at >= 57 && c[i].at <= 63);
		any += n > 0;
		near += close;
	}
	printf("   %-11s step %.0f sd:", sim_shape_name[shape], step);
	put_rate(any, tests, promised);
	if (step > 0)
		printf("  within 3 of the truth: %.1f %%", 100.0 * near / tests);
	putchar('\n');
}

static void table_changes(void)
{
	printf("\n6. A history of 100 values: any change found (alpha 1 %%)\n");
	change_row(SIM_NORMAL, 0, STATS_CHANGE_ALPHA);
	change_row(SIM_LOGNORMAL, 0, STATS_CHANGE_ALPHA);
	change_row(SIM_BIMODAL, 0, STATS_CHANGE_ALPHA);
	change_row(SIM_AR1, 0, -1);
	change_row(SIM_NORMAL, 1, -1);
	change_row(SIM_NORMAL, 2, -1);
}

int main(int argc, char **argv)
{
	static void (*const table[])(void) = { table_identical, table_told,  table_margin,
					       table_power,	table_cover, table_symbols,
					       table_changes };
	unsigned int only = argc > 2 ? (unsigned int)atoi(argv[2]) : 0;

	if (argc > 1 && !strcmp(argv[1], "--quick"))
		gates = 1000;
	for (unsigned int k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
		double start = cpu_seconds();

		if (only && only != k + 1)
			continue;
		table[k]();
		printf("   (%.1f s)\n", cpu_seconds() - start);
		fflush(stdout);
	}
	printf(broken ? "\na rate is above what is promised\n" : "\nall rates are as promised\n");
	return broken;
}
