/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source_host: samples of all of a vCPU thread's time, with the host's call chain.
 *
 * While the thread is on a processor, a counter of its CPU time overflows and records the call
 * chain of the host's kernel and whether the guest was running. The signal ends KVM_RUN, so the
 * guest's stack belongs to the same moment. For time off the processor, samples at deadlines of
 * wall-clock time represent what the thread's account (account.h) has recorded since the last one,
 * and the guest's state is the one where it stopped. Weights add up to elapsed time.
 */
#include "vmm/capture/source_host.h"

#include "base/clock.h"
#include "vmm/kvmstats.h"
#include "vmm/machine.h"
#include "vmm/capture/capture.h"
#include "vmm/capture/counter.h"
#include "vmm/capture/source.h"
#include "vmm/capture/trigger.h"
#include "vmm/kvm.h"
#include "vmm/vcpu_thread.h"

#include <string.h>
#include <unistd.h>

void source_host_prepare(struct vcpu *v)
{
	struct kvmstats k = { .fd = -1 };
	const struct kvmstats_desc *d;
	int fd = kvm_stats_fd(v->vm->cfg.host, v->fd);

	v->halt_fd = -1;
	if (fd < 0 || kvmstats_open(&k, fd, NULL) < 0)
		return;
	d = kvmstats_find(&k, "halt_wait_ns");
	if (d) {
		v->halt_at = (uint64_t)k.data_offset + d->offset;
		v->halt_fd = k.fd;
		k.fd = -1;
	}
	kvmstats_close(&k);
}

void source_host_release(struct vcpu *v)
{
	if (v->halt_fd >= 0)
		close(v->halt_fd);
	v->halt_fd = -1;
}

static uint64_t halts(const struct vcpu *v)
{
	uint64_t ns = 0;

	return v->halt_fd >= 0 &&
			       pread(v->halt_fd, &ns, sizeof(ns), (off_t)v->halt_at) == sizeof(ns)
		       ? ns
		       : 0;
}

/*
 * Returns the thread's processor time for the guest, without the time in which kvmprof stopped it.
 */
static uint64_t for_guest(const struct account *a)
{
	return account_ran(a, ACCOUNT_RUN) + account_ran(a, ACCOUNT_VMM) - a->elsewhere;
}

int source_host_arm(struct vcpu *v, unsigned int i, const struct trigger_rule *rule, struct err *e)
{
	struct source *s = &v->source[i];
	int ret = source_arm_counter(v, i, e);

	if (ret)
		return ret;
	ret = trigger_init(&s->trigger, CLOCK_MONOTONIC, VCPU_KICK_SIGNAL, (int)i, rule, e);
	if (ret)
		return ret;
	vcpu_account_update(v, clock_mono_ns());
	s->seen = v->account;
	s->on_seen = for_guest(&v->account);
	s->on_owed = 0;
	s->halts_seen = halts(v);
	memset(s->off, 0, sizeof(s->off));
	s->waits_since = clock_mono_ns();
	trigger_start(&s->trigger, s->waits_since);
	return 0;
}

static uint8_t where_it_was(const struct source *s)
{
	if (s->counter.in_guest)
		return SAMPLE_IN_GUEST;
	if (s->device)
		return SAMPLE_IN_VMM;
	return s->span == ACCOUNT_RUN	    ? SAMPLE_IN_KVM
	       : s->span == ACCOUNT_STOPPED ? SAMPLE_STOPPED
					    : SAMPLE_IN_VMM;
}

/*
 * Returns the weight of a sample: the periods that have ended, but in total no more than the
 * account contains, because the counter also runs during stops at deadlines. Periods that the
 * counter has lost are added.
 */
static uint64_t on_weight(struct vcpu *v, struct source *s, uint64_t weight, uint64_t now)
{
	uint64_t there;

	vcpu_account_update(v, now);
	there = for_guest(&v->account) - s->on_seen;
	return source_host_weight(weight, there, s->period);
}

static void take_on(struct vcpu *v, unsigned int i, uint64_t now)
{
	struct source *s = &v->source[i];
	struct capture_cause cause = {
		.now = now,
		.reason = SAMPLE_HOST,
		.event = (uint8_t)i,
		.device = (uint8_t)s->device,
	};
	struct sample_host host = { .where = where_it_was(s), .n = s->counter.nchain };

	if (host.where == SAMPLE_IN_VMM && s->device) {
		host.exit = s->exit;
		host.exit_addr = s->exit_addr;
	}
	/* The guest's own code was running, so the host's chain is omitted. */
	if (host.where == SAMPLE_IN_GUEST)
		host.n = 0;
	memcpy(host.ip, s->counter.chain, host.n * sizeof(host.ip[0]));
	cause.host = &host;
	if (counter_handle_signal(&s->counter, &cause.weight, &cause.missed)) {
		cause.weight = on_weight(v, s, cause.weight + s->on_owed, now);
		/* The next sample represents it. */
		s->on_owed = host.where == SAMPLE_STOPPED ? cause.weight : 0;
		if (host.where != SAMPLE_STOPPED && cause.weight) {
			if (source_sample_own(v, s, &cause))
				s->on_seen += cause.weight;
		}
	}
	counter_note(&s->counter, &v->stats.counter[i]);
	counter_resume(&s->counter);
}

/* Adds the time off the processor since the last call, by reason. */
static void add_off(struct vcpu *v, struct source *s, uint64_t now)
{
	const struct account *a = &v->account;
	struct account *was = &s->seen;
	uint64_t halted = halts(v), asleep, known;

	vcpu_account_update(v, now);
	for (unsigned int k = 0; k < ACCOUNT_SPANS; k++)
		s->off[SAMPLE_RUNNABLE] += a->delay[k] - was->delay[k];
	asleep = a->blocked[ACCOUNT_RUN] - was->blocked[ACCOUNT_RUN];
	/*
	 * KVM counts the wait for a processor at the end of a halt as halted, so the value is
	 * never too small.
	 */
	known = halted - s->halts_seen < asleep ? halted - s->halts_seen : asleep;
	s->off[SAMPLE_HALTED] += known;
	s->off[SAMPLE_WAITING] += asleep - known;
	s->off[SAMPLE_IN_VMM] += a->blocked[ACCOUNT_VMM] - was->blocked[ACCOUNT_VMM];
	s->off[SAMPLE_STOPPED] += a->wall[ACCOUNT_STOPPED] - a->delay[ACCOUNT_STOPPED] -
				  (was->wall[ACCOUNT_STOPPED] - was->delay[ACCOUNT_STOPPED]);
	s->off[SAMPLE_UNTOLD] += a->elsewhere - was->elsewhere;
	s->halts_seen = halted;
	*was = *a;
}

static void take_off(struct vcpu *v, unsigned int i, uint64_t now)
{
	struct source *s = &v->source[i];
	uint32_t missed = trigger_next(&s->trigger, now);

	add_off(v, s, now);
	for (uint8_t w = 0; w < SAMPLE_WHERES; w++) {
		const bool waits = w == SAMPLE_RUNNABLE;
		const struct sample_host host = {
			.where = w,
			.exit_addr = waits ? s->waits_since : 0,
			.tid = waits ? (uint32_t)atomic_load(&v->tid) : 0,
		};
		struct capture_cause cause = {
			.now = now,
			.reason = SAMPLE_HOST,
			.event = (uint8_t)i,
			.missed = missed,
			.weight = s->off[w],
			.host = &host,
		};

		if (s->off[w] < s->period / SOURCE_HOST_PART)
			continue;
		missed = 0;
		/* Without room, the time waits for more of its kind. */
		if (!source_sample_own(v, s, &cause))
			continue;
		s->off[w] = 0;
		if (waits)
			s->waits_since = now;
	}
}

void source_take_host(struct vcpu *v, unsigned int i, uint64_t now)
{
	struct source *s = &v->source[i];

	if (counter_chain(&s->counter, &v->stats.counter[i]))
		take_on(v, i, now);
	if (now >= s->trigger.deadline_ns)
		take_off(v, i, now);
}
