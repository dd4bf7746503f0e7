/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/capture/trigger.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SEED UINT64_C(0x6b766d70726f66)
#define START UINT64_C(1000000007)
#define PERIOD UINT64_C(1003009) /* 997 Hz; no round number, so that rounding would show */
#define DRAWS 100000
#define BINS 64

/*
 * A trigger without a timer, for the arithmetic alone. Its first deadline is the end of
 * period 0, also with jitter: trigger_start would draw it, but would arm a timer as well.
 */
static struct trigger made(bool jitter, uint64_t period, uint64_t seed)
{
	return (struct trigger){
		.jitter = jitter,
		.period_ns = period,
		.start_ns = START,
		.deadline_ns = START + period,
		.rng = seed,
	};
}

/* Deterministic numbers for the tests' own choices, apart from the trigger's. */
static uint64_t next_random(uint64_t *s)
{
	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	return *s >> 11;
}

static void without_jitter_at_period_ends(void **state)
{
	struct trigger t = made(false, PERIOD, 1);

	(void)state;
	for (uint64_t n = 1; n < 10000; n++) {
		/* served at once, somewhat later, and at the last moment of the next period */
		uint64_t late = n % 3 == 0 ? 0 : n % 3 == 1 ? 4711 : PERIOD - 1;

		assert_int_equal(trigger_advance(&t, t.deadline_ns + late), 0);
		assert_int_equal(t.period_no, n);
		assert_int_equal(t.deadline_ns, START + (n + 1) * PERIOD);
	}
	/* exactly at the next deadline: that one is lost, not set to "now" */
	assert_int_equal(trigger_advance(&t, t.deadline_ns + PERIOD), 1);
	assert_int_equal(t.deadline_ns, START + (t.period_no + 1) * PERIOD);
}

static void deadline_is_inside_its_period_and_ahead(void **state)
{
	struct trigger t = made(true, PERIOD, SEED);
	uint64_t r = 1;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		uint64_t now = t.deadline_ns + next_random(&r) % (3 * PERIOD);

		trigger_advance(&t, now);
		assert_true(t.deadline_ns > now);
		assert_true(t.deadline_ns >= START + t.period_no * PERIOD);
		assert_true(t.deadline_ns < START + (t.period_no + 1) * PERIOD);
	}
}

/* However late each one is served: every period is in exactly one weight. */
static void weights_add_up(void **state)
{
	(void)state;
	for (int jitter = 0; jitter < 2; jitter++) {
		struct trigger t = made(jitter, PERIOD, SEED);
		uint64_t weight = 0, lost = 0, r = 99;

		for (int i = 0; i < DRAWS; i++) {
			uint64_t late = next_random(&r) % 16 ? next_random(&r) % (PERIOD / 50)
							     : next_random(&r) % (40 * PERIOD);
			uint32_t missed = trigger_advance(&t, t.deadline_ns + late);

			lost += missed;
			weight += (1 + (uint64_t)missed) * t.period_ns;
			assert_int_equal(weight, t.period_no * PERIOD);
		}
		assert_true(lost > DRAWS / 16); /* the test did make it lose some */
	}
}

/* Whenever the period becomes longer: weights go on to add up to the time that passed. */
static void weights_add_up_when_lengthened(void **state)
{
	(void)state;
	for (int jitter = 0; jitter < 2; jitter++) {
		struct trigger t = made(jitter, 10000, SEED);
		uint64_t weight = 0, now = 0, r = 5;

		for (int i = 0; i < 1000; i++) {
			now = t.deadline_ns + next_random(&r) % 30000;
			/* as source.c: a sample stands for its own period, and those it missed */
			weight += t.period_ns;
			weight += trigger_advance(&t, now) * t.period_ns;
			if (i % 100 != 99)
				continue;
			trigger_lengthen(&t, t.period_ns * 3 / 2);
			assert_true(t.deadline_ns >= t.start_ns);
			assert_true(t.deadline_ns <= t.start_ns + t.period_ns);
			assert_int_equal(t.start_ns, START + weight);
		}
		assert_true(weight + t.period_ns * 2 > now - START);
		assert_true(weight < now - START + t.period_ns * 2);
	}
}

static void uniform_over_the_period(void **state)
{
	struct trigger t = made(true, PERIOD, SEED);
	uint32_t bin[BINS] = { 0 };
	double chi2 = 0, sum = 0, expect = (double)DRAWS / BINS;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		uint64_t at;

		assert_int_equal(trigger_advance(&t, t.deadline_ns), 0);
		at = t.deadline_ns - START - t.period_no * PERIOD;
		bin[at * BINS / PERIOD]++;
		sum += (double)at / PERIOD;
	}
	for (int i = 0; i < BINS; i++)
		chi2 += (bin[i] - expect) * (bin[i] - expect) / expect;
	/* 63 degrees of freedom: 103.5 and 33.8 are the 0.1 % points at either end. */
	assert_true(chi2 < 103.5);
	assert_true(chi2 > 33.8);
	/* the mean of n uniform draws: sigma is 1/sqrt(12 n) */
	assert_true(fabs(sum / DRAWS - 0.5) < 4 / sqrt(12.0 * DRAWS));
}

static void draws_are_not_correlated(void **state)
{
	struct trigger t = made(true, PERIOD, SEED);
	double before = 0.5, sum = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		double at;

		trigger_advance(&t, t.deadline_ns);
		at = (double)(t.deadline_ns - START - t.period_no * PERIOD) / PERIOD;
		sum += (at - 0.5) * (before - 0.5);
		before = at;
	}
	/* lag-1 correlation has sigma 1/sqrt(n); the variance of a uniform draw is 1/12 */
	assert_true(fabs(sum / DRAWS * 12) < 4 / sqrt((double)DRAWS));
}

/*
 * The guest does one thing in 30 % of its period and another in the rest, and
 * its period is a multiple, or a fraction, of ours. Returns the weighted share
 * of samples in the 30 %.
 */
static double share_of_phase(bool jitter, uint64_t guest_period, uint64_t phase, uint64_t serve_ns)
{
	struct trigger t = made(jitter, PERIOD, SEED);
	double in = 0, all = 0;

	for (int i = 0; i < DRAWS; i++) {
		uint64_t at = t.deadline_ns;
		double w = 1.0 + trigger_advance(&t, at + serve_ns);

		all += w;
		if ((at - START + phase) % guest_period < guest_period * 3 / 10)
			in += w;
	}
	return in / all;
}

static void unbiased_in_lock_step(void **state)
{
	double sigma = sqrt(0.3 * 0.7 / DRAWS);

	(void)state;
	for (uint64_t phase = 0; phase < PERIOD; phase += PERIOD / 7) {
		double plain = share_of_phase(false, PERIOD, phase, 0);

		/* Without jitter the sampler always finds it at the same place: all or nothing. */
		assert_true(plain < 0.001 || plain > 0.999);
		assert_true(fabs(share_of_phase(true, PERIOD, phase, 0) - 0.3) < 4 * sigma);
		/* harmonics as well; the guest's period need not be ours */
		assert_true(fabs(share_of_phase(true, PERIOD / 4, phase, 0) - 0.3) < 4 * sigma);
	}
}

/*
 * A sample that takes 5 us of a 1 ms period: at most that share of the deadlines is lost
 * where they lie close together, and what is lost is in the weights: the bias stays
 * below what the cost itself is.
 */
static void serving_time_adds_little_bias(void **state)
{
	double sigma = sqrt(0.3 * 0.7 / DRAWS), cost = 5000.0 / PERIOD;

	(void)state;
	for (uint64_t phase = 0; phase < PERIOD; phase += PERIOD / 7)
		assert_true(fabs(share_of_phase(true, PERIOD, phase, 5000) - 0.3) <
			    4 * sigma + cost);
}

/* The host slept. A draw for each of 10^12 periods would take hours: this must not. */
static void long_suspension(void **state)
{
	const uint64_t hours = UINT64_C(12) * 3600 * 1000000000;

	(void)state;
	for (int jitter = 0; jitter < 2; jitter++) {
		struct trigger t = made(jitter, 20000, SEED); /* 50 kHz */
		uint64_t now = t.deadline_ns + hours, rng;
		uint32_t missed = trigger_advance(&t, now);

		assert_true(t.deadline_ns > now && t.deadline_ns <= now + 2 * 20000);
		assert_int_equal(1 + (uint64_t)missed, t.period_no);

		/* at most two draws: the current period's and the next one's */
		t = made(true, 20000, SEED);
		trigger_advance(&t, t.deadline_ns);
		trigger_advance(&t, t.deadline_ns);
		rng = t.rng;
		t = made(true, 20000, SEED);
		trigger_advance(&t, now);
		if (t.rng != rng) {
			struct trigger one = made(true, 20000, SEED);

			trigger_advance(&one, one.deadline_ns);
			assert_int_equal(t.rng, one.rng);
		}
	}
	/* more periods than the counter holds: it says "very many", it does not wrap */
	{
		struct trigger t = made(false, 1, 1);

		assert_int_equal(trigger_advance(&t, START + (UINT64_C(1) << 40)), UINT32_MAX);
		assert_true(t.deadline_ns > START + (UINT64_C(1) << 40));
	}
}

static volatile sig_atomic_t fired, from_timer;

static void on_signal(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	fired++;
	from_timer += info->si_code == SI_TIMER;
}

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void real_timer(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO }, old;
	int signo = SIGRTMIN + 1;
	sigset_t block, before, wait;
	struct trigger t;
	struct err e = { 0 };

	(void)state;
	sigemptyset(&sa.sa_mask);
	assert_int_equal(sigaction(signo, &sa, &old), 0);
	/* Blocked but while we wait: a signal between the check and the wait is not lost. */
	sigemptyset(&block);
	sigaddset(&block, signo);
	assert_int_equal(sigprocmask(SIG_BLOCK, &block, &before), 0);
	wait = before;
	sigdelset(&wait, signo);

	assert_int_equal(trigger_init(&t, CLOCK_MONOTONIC, signo, 0,
				      &(struct trigger_rule){ 1000000, true, 0 }, &e),
			 0);
	assert_true(t.armed);
	assert_int_not_equal(t.rng, 0); /* xorshift would stay there for ever */
	trigger_start(&t, monotonic());
	for (int i = 0; i < 5; i++) {
		uint64_t now, deadline = t.deadline_ns;

		while (fired <= i)
			sigsuspend(&wait);
		now = monotonic();
		assert_true(now >= deadline); /* the timer does not run ahead of its clock */
		(void)trigger_next(&t, now);
		assert_true(t.deadline_ns > now);
	}
	assert_int_equal(from_timer, fired);
	trigger_deinit(&t);
	assert_false(t.armed);
	trigger_deinit(&t); /* harmless */
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	assert_int_equal(sigaction(signo, &old, NULL), 0);
}

static void bad_signal_is_an_error(void **state)
{
	struct trigger t;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(trigger_init(&t, CLOCK_MONOTONIC, 4096, 0,
				      &(struct trigger_rule){ 1000000, true, 1 }, &e),
			 -EINVAL);
	assert_non_null(strstr(e.text, "timer"));
	assert_false(t.armed);
	trigger_deinit(&t);
}

/* Counts begin with 1: the first period is those from 1 to its length. */
static void deadlines_of_counts(void **state)
{
	static const uint64_t length[] = { 1, 2, 7, 1000 };

	(void)state;
	for (size_t k = 0; k < sizeof(length) / sizeof(length[0]); k++)
		for (int jitter = 0; jitter < 2; jitter++) {
			uint64_t p = length[k], weight = 0;
			struct trigger t;

			trigger_init_count(&t, &(struct trigger_rule){ p, jitter, SEED });
			for (uint64_t n = 1; n <= 20 * p; n++) {
				assert_true(t.deadline_ns > weight && t.deadline_ns <= weight + p);
				if (n < t.deadline_ns)
					continue;
				assert_int_equal(trigger_advance(&t, n), 0);
				weight += p;
				if (!jitter)
					assert_int_equal(weight, n);
			}
			assert_int_equal(weight, 20 * p);
		}
}

static volatile sig_atomic_t fired;

static void on_timer(int signo)
{
	(void)signo;
	fired = 1;
}

/* A timer in the thread's CPU time stands still while the thread sleeps. */
static void cpu_time_stands_still(void **state)
{
	const struct timespec nap = { .tv_nsec = 30000000 };
	struct trigger t;
	struct err e = { 0 };
	struct timespec ts;

	(void)state;
	fired = 0;
	signal(SIGUSR1, on_timer);
	assert_int_equal(trigger_init(&t, CLOCK_THREAD_CPUTIME_ID, SIGUSR1, 0,
				      &(struct trigger_rule){ 20000000, false, SEED }, &e),
			 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	trigger_start(&t, (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec);
	nanosleep(&nap, NULL);
	assert_int_equal(fired, 0);
	while (!fired) /* the test's time limit is the other end */
		;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	assert_true((uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec >= t.deadline_ns);
	trigger_deinit(&t);
	signal(SIGUSR1, SIG_DFL);
}

/* A sampler without a timer takes its first sample in the first period, too. */
static void begins_in_the_first_period(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 200; seed++) {
		struct trigger t = { .period_ns = PERIOD, .jitter = true, .rng = seed };

		trigger_begin(&t, 5000);
		assert_true(t.deadline_ns >= 5000 && t.deadline_ns < 5000 + PERIOD);
		assert_int_equal(trigger_advance(&t, t.deadline_ns), 0);
		assert_true(t.deadline_ns >= 5000 + PERIOD && t.deadline_ns < 5000 + 2 * PERIOD);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_jitter_at_period_ends),
		cmocka_unit_test(deadline_is_inside_its_period_and_ahead),
		cmocka_unit_test(weights_add_up),
		cmocka_unit_test(weights_add_up_when_lengthened),
		cmocka_unit_test(uniform_over_the_period),
		cmocka_unit_test(draws_are_not_correlated),
		cmocka_unit_test(unbiased_in_lock_step),
		cmocka_unit_test(serving_time_adds_little_bias),
		cmocka_unit_test(long_suspension),
		cmocka_unit_test(real_timer),
		cmocka_unit_test(bad_signal_is_an_error),
		cmocka_unit_test(deadlines_of_counts),
		cmocka_unit_test(cpu_time_stands_still),
		cmocka_unit_test(begins_in_the_first_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
