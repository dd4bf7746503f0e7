/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bound on what sampling takes. The machine is its counters and a period. */
#include "profile/record/counters/cost.h"
#include "base/ring.h"
#include "vmm/control.h"
#include "vmm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)
#define T0 (UINT64_C(1000) * MS)

static struct vcpu_stats stats[2];
static uint64_t period[2], first_ns;

unsigned int vm_vcpus(const struct vm *vm)
{
	(void)vm;
	return 2;
}

struct vcpu_stats vm_stats(const struct vm *vm, unsigned int i)
{
	(void)vm;
	return stats[i];
}

uint64_t vm_first_entry_ns(const struct vm *vm)
{
	(void)vm;
	return first_ns;
}

uint64_t vm_period(const struct vm *vm, unsigned int event)
{
	(void)vm;
	return period[event];
}

void vm_set_period(struct vm *vm, unsigned int event, uint64_t p)
{
	(void)vm;
	period[event] = p;
}

static const struct vm_event event[2] = { { .kind = VM_EVENT_WALL }, { .kind = VM_EVENT_EXIT } };
static struct cost_bound b;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	memset(stats, 0, sizeof(stats));
	period[0] = 20 * US;
	period[1] = 100;
	first_ns = now = T0;
	cost_bound_init(&b, NULL, event, 2, 0.01);
	return 0;
}

/* Time passes with so many samples on a vCPU, 5 us each, kicked within 8 us (the histogram's
 * buckets are an eighth wide). */
static void pass(unsigned int vcpu, uint64_t ns, unsigned int samples)
{
	now += ns;
	for (unsigned int i = 0; i < samples; i++) {
		hist_add(&stats[vcpu].stop_ns, 5 * US);
		/* most are late, for reasons that are not the way's */
		hist_add(&stats[vcpu].latency_ns, i % 5 ? 3 * MS : 8 * US);
	}
}

static void what_a_sample_costs(void **state)
{
	double share;

	(void)state;
	pass(0, 0, 1000);
	/* 5 us, and twice 8 us for the way */
	share = cost_share(&stats[0], 5 * MS, 1000, 1000 * MS);
	assert_true(share > 0.021 * 0.85 && share < 0.021 * 1.15);
	assert_true(cost_share(&stats[0], 0, 0, 0) == 0);
}

static void goes_down_until_it_fits(void **state)
{
	unsigned int said = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		said += cost_bound_check(&b, now);
		pass(1, 200 * MS, (unsigned int)(200 * MS / period[0]));
	}
	assert_int_equal(said, 1);
	assert_true(b.changes >= 1 && b.changes < 4);
	assert_true(b.worst > 0.5);
	assert_true(b.last <= 0.01);
	/* 21 us in 2.1 ms is the bound: not far below it either */
	assert_in_range(period[0], 1800 * US, 3200 * US);
	/* the other event keeps its share */
	assert_in_range(period[1] * 200, period[0] * 9 / 10, period[0] * 11 / 10);
}

static void no_reason_to(void **state)
{
	(void)state;
	assert_false(cost_bound_check(&b, now)); /* the beginning */
	pass(0, 50 * MS, 1000);
	assert_false(cost_bound_check(&b, now)); /* too early */
	pass(0, 3000 * MS, 0);
	assert_false(cost_bound_check(&b, now)); /* it was little in the end */
	setup(NULL);
	cost_bound_check(&b, now);
	pass(0, 1000 * MS, 15);
	assert_false(cost_bound_check(&b, now)); /* too few to tell */
	assert_int_equal(b.seen_ns, T0);
	pass(0, 9000 * MS, 15);
	assert_false(cost_bound_check(&b, now));
	assert_int_equal(b.seen_ns, now);
	assert_int_equal(period[0], 20 * US);
	setup(NULL);
	first_ns = 0;
	pass(0, 1000 * MS, 1000);
	assert_false(cost_bound_check(&b, now)); /* nothing runs yet */
	cost_bound_init(&b, NULL, event, 2, 0);
	first_ns = T0;
	for (int i = 0; i < 3; i++) {
		pass(0, 200 * MS, 10000);
		assert_false(cost_bound_check(&b, now)); /* no bound */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_a_sample_costs, setup),
		cmocka_unit_test_setup(goes_down_until_it_fits, setup),
		cmocka_unit_test_setup(no_reason_to, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
