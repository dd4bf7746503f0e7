/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stat_time: one vCPU's time as rows that add up to what has passed.
 *
 * The frame is the thread's own account (vmm/account.h): in KVM_RUN, in the VMM, stopped by us, each with
 * what it had of a processor. The rest only divides the time in KVM_RUN: that it ran, by the host's
 * accounting of guests; that it was off its processor, by KVM's own times of halts. What none of them
 * explains has a row of its own.
 */
#include "profile/record/counters/stat.h"

#include <string.h>

const char *const stat_where_name[STAT_WHERES] = {
	[STAT_GUEST] = "guest",	      [STAT_KVM] = "kvm",	[STAT_VMM] = "vmm",
	[STAT_RUNNABLE] = "runnable", [STAT_HALTED] = "halted", [STAT_STOPPED] = "stopped",
	[STAT_WAITING] = "waiting",   [STAT_UNTOLD] = "untold",
};

static bool kvm_value(const struct stat_vcpu *v, const char *name, uint64_t *out)
{
	const struct kvmstats_desc *d = v->kvm ? kvmstats_find(v->kvm, name) : NULL;

	if (d)
		*out = kvmstats_value(d, v->kvm_data);
	return d != NULL;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void stat_time_of(struct stat_time *t, const struct stat_vcpu *v)
{
	const struct account *a = &v->account;
	uint64_t hit = 0, miss = 0, blocking = 0;

	memset(t, 0, sizeof(*t));
	memcpy(t->wall, a->wall, sizeof(t->wall));
	memcpy(t->delay, a->delay, sizeof(t->delay));
	memcpy(t->blocked, a->blocked, sizeof(t->blocked));
	t->elsewhere = a->elsewhere;
	t->have_guest = v->thread.have_times;
	t->guest = v->thread.guest_ns;
	t->have_delay = v->thread.have_sched;
	t->have_halted = kvm_value(v, "halt_wait_ns", &t->halted);
	/* Polling for an interrupt in the hope that the halt is a short one. */
	kvm_value(v, "halt_poll_success_ns", &hit);
	kvm_value(v, "halt_poll_fail_ns", &miss);
	t->polled = hit + miss;
	/* KVM counts a halt when it ends; until then it says that there is one. */
	if (t->have_halted && kvm_value(v, "blocking", &blocking) && blocking)
		t->halted =
			a->blocked[ACCOUNT_RUN] > t->halted ? a->blocked[ACCOUNT_RUN] : t->halted;
}

void stat_time_since(struct stat_time *t, const struct stat_time *before)
{
	for (unsigned int i = 0; i < ACCOUNT_SPANS; i++) {
		/* A wait that went on then may turn out to be one of the other kind. */
		uint64_t delay = less(before->delay[i], t->delay[i]);
		uint64_t blocked = less(before->blocked[i], t->blocked[i]);

		t->wall[i] = less(t->wall[i], before->wall[i]);
		t->delay[i] = less(t->delay[i], before->delay[i] + blocked);
		t->blocked[i] = less(t->blocked[i], before->blocked[i] + delay);
	}
	t->elsewhere = less(t->elsewhere, before->elsewhere);
	t->guest = less(t->guest, before->guest);
	t->halted = less(t->halted, before->halted);
	t->polled = less(t->polled, before->polled);
}

void stat_time_rows(const struct stat_time *t, uint64_t elapsed_ns, uint64_t *out, bool *supported)
{
	uint64_t wall = 0, ran[ACCOUNT_SPANS], blocked[ACCOUNT_SPANS], polled;

	for (unsigned int i = 0; i < STAT_WHERES; i++) {
		out[i] = 0;
		supported[i] = true;
	}
	for (unsigned int i = 0; i < ACCOUNT_SPANS; i++) {
		uint64_t delay = least(t->delay[i], t->wall[i]);

		wall += t->wall[i];
		blocked[i] = least(t->blocked[i], t->wall[i] - delay);
		ran[i] = t->wall[i] - delay - blocked[i];
		out[STAT_RUNNABLE] += delay;
	}
	/* Where an account says more of a span than it was long, of which it has no other way. */
	out[STAT_UNTOLD] = least(t->elsewhere, ran[ACCOUNT_RUN]);
	ran[ACCOUNT_RUN] -= out[STAT_UNTOLD];
	out[STAT_UNTOLD] += less(elapsed_ns, wall);

	polled = least(t->polled, ran[ACCOUNT_RUN]);
	out[STAT_VMM] = ran[ACCOUNT_VMM] + blocked[ACCOUNT_VMM];
	out[STAT_STOPPED] = ran[ACCOUNT_STOPPED] + blocked[ACCOUNT_STOPPED];
	out[STAT_GUEST] = least(t->guest, ran[ACCOUNT_RUN] - polled);
	out[STAT_KVM] = ran[ACCOUNT_RUN] - polled - out[STAT_GUEST];
	out[STAT_HALTED] = polled + least(blocked[ACCOUNT_RUN], t->halted);
	out[STAT_WAITING] = less(blocked[ACCOUNT_RUN], t->halted);

	supported[STAT_GUEST] = supported[STAT_KVM] = t->have_guest;
	supported[STAT_HALTED] = t->have_halted;
	supported[STAT_RUNNABLE] = t->have_delay;
	/* Then these do not only wait for what they seem to. */
	supported[STAT_WAITING] = t->have_halted && t->have_delay;
	for (unsigned int i = 0; i < STAT_UNTOLD; i++) {
		if (supported[i])
			continue;
		out[STAT_UNTOLD] += out[i];
		out[i] = 0;
	}
}
