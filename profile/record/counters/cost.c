/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/counters/cost.h"

#include "vmm/control.h"
#include "vmm/vm.h"

#include <string.h>

/* The least interval between checks; it is longer until there are this many samples. */
#define LOOK_NS 100000000u
#define LOOK_SAMPLES 16u
/* Slightly below the bound, so that it is kept and not only met. */
#define MARGIN 1.1
#define PERIOD_MAX (100 * UINT64_C(1000000000))

double cost_share(const struct vcpu_stats *s, uint64_t stop_ns, uint64_t n, uint64_t elapsed_ns)
{
	uint64_t way = 2 * hist_quantile(&s->latency_ns, 100);

	return elapsed_ns ? (double)(stop_ns + n * way) / (double)elapsed_ns : 0;
}

void cost_bound_init(struct cost_bound *b, struct vm *vm, const struct vm_event *event,
		     unsigned int nevents, double limit)
{
	memset(b, 0, sizeof(*b));
	b->vm = vm;
	b->nevents = nevents;
	b->limit = limit;
	for (unsigned int i = 0; i < nevents; i++)
		b->is_rate[i] = event[i].counter.freq;
}

/* Returns the share of the vCPU with the highest cost; negative: too few samples. */
static double dearest(struct cost_bound *b, uint64_t elapsed_ns)
{
	double most = -1;

	for (unsigned int i = 0; i < vm_vcpus(b->vm); i++) {
		const struct vcpu_stats s = vm_stats(b->vm, i);
		uint64_t n = s.stop_ns.count - b->seen_samples[i];
		double share;

		if (n < LOOK_SAMPLES)
			continue;
		share = cost_share(&s, s.stop_ns.sum - b->seen_stop[i], n, elapsed_ns);
		most = share > most ? share : most;
	}
	return most;
}

static void cost_remember(struct cost_bound *b, uint64_t now_ns)
{
	b->seen_ns = now_ns;
	for (unsigned int i = 0; i < vm_vcpus(b->vm); i++) {
		const struct vcpu_stats s = vm_stats(b->vm, i);

		b->seen_stop[i] = s.stop_ns.sum;
		b->seen_samples[i] = s.stop_ns.count;
	}
}

bool cost_bound_check(struct cost_bound *b, uint64_t now_ns)
{
	double share, longer;

	if (!b->limit || !b->nevents || !vm_first_entry_ns(b->vm))
		return false;
	if (!b->seen_ns) {
		cost_remember(b, now_ns);
		return false;
	}
	if (now_ns - b->seen_ns < LOOK_NS)
		return false;
	share = dearest(b, now_ns - b->seen_ns);
	if (share < 0)
		return false;
	cost_remember(b, now_ns);
	b->last = share;
	if (share <= b->limit)
		return false;
	longer = share / b->limit * MARGIN;
	for (unsigned int i = 0; i < b->nevents; i++) {
		double period = (double)vm_period(b->vm, i);

		period = b->is_rate[i] ? period / longer : period * longer + 1;
		period = period > 1 ? period : 1;
		vm_set_period(b->vm, i,
			      period < (double)PERIOD_MAX ? (uint64_t)period : PERIOD_MAX);
	}
	if (!b->changes)
		b->worst = share;
	return b->changes++ == 0;
}
