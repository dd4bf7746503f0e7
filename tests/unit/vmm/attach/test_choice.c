/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hosts on which one technique or the other sees more, and what is chosen on them. */
#include "vmm/attach/choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/*
 * The behaviour of a host: periods that pass for each sample, and how many of 100 samples BPF
 * takes.
 */
struct host {
	unsigned int periods[CHOICE_TECHNIQUES], hits;
};

/* Returns how many of these samples were tried by ptrace first. */
static unsigned int by_ptrace(struct choice *c, const struct host *h, unsigned int samples)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < samples; i++) {
		enum choice_technique t = choice_next(c);

		n += t == CHOICE_PTRACE;
		choice_note(c, t, h->periods[t], t == CHOICE_BPF && i % 100 < h->hits);
	}
	return n;
}

static const struct host quiet = { { 1, 1 }, 60 }, busy = { { 7, 2 }, 10 },
			 in_kernel = { { 1, 1 }, 0 };

static void each_is_tried_first(void **state)
{
	struct choice c = { 0 };

	(void)state;
	assert_int_equal(choice_next(&c), CHOICE_BPF);
	by_ptrace(&c, &quiet, 60);
	assert_int_equal(choice_next(&c), CHOICE_PTRACE);
	assert_true(c.all[CHOICE_BPF].samples > 0);
	assert_true(c.all[CHOICE_PTRACE].samples > 0);
}

static void bpf_is_preferred_where_it_sees_as_much(void **state)
{
	struct choice c = { 0 };
	unsigned int n;

	(void)state;
	n = by_ptrace(&c, &quiet, 10000);
	/* ptrace is looked at now and then, no more. */
	assert_true(n > 100);
	assert_true(n < 1000);
}

static void ptrace_is_preferred_where_it_sees_more(void **state)
{
	struct choice c = { 0 };

	(void)state;
	assert_true(by_ptrace(&c, &busy, 10000) > 9000);
	assert_int_equal(c.all[CHOICE_BPF].periods, 7 * c.all[CHOICE_BPF].samples);
}

static void bpf_that_takes_nothing_is_a_detour(void **state)
{
	struct choice c = { 0 };

	(void)state;
	assert_true(by_ptrace(&c, &in_kernel, 10000) > 9000);
}

/* The host may get busy, and quiet again; what was long ago does not hold it up for ever. */
static void it_follows_the_host(void **state)
{
	struct choice c = { 0 };

	(void)state;
	by_ptrace(&c, &quiet, 20000);
	by_ptrace(&c, &busy, 20000);
	assert_true(by_ptrace(&c, &busy, 5000) > 4500);
	by_ptrace(&c, &quiet, 100000);
	assert_true(by_ptrace(&c, &quiet, 5000) < 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_tried_first),
		cmocka_unit_test(bpf_is_preferred_where_it_sees_as_much),
		cmocka_unit_test(ptrace_is_preferred_where_it_sees_more),
		cmocka_unit_test(bpf_that_takes_nothing_is_a_detour),
		cmocka_unit_test(it_follows_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
