/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach_host.h"

#include "base/clock.h"
#include "vmm/attach/attach_sample.h"
#include "vmm/capture/capture.h"
#include "vmm/capture/counter.h"
#include "vmm/capture/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * ON_LOST: the counter is re-armed after this many periods of CPU time without its signal.
 * ASLEEP_MOST: sleep of unknown cause becomes a sample after this many periods.
 */
#define ON_LOST 64u
#define ASLEEP_MOST 256u

/* Times of a thread in ns. attach_look_times() reads those on a processor and waiting for one. */
struct host_times {
	uint64_t wall, ran, delay, stopped;
};

struct attach_host {
	struct counter counter;
	struct tracer_own own; /* its signal */
	struct host_times seen, now;
	uint64_t on_seen;	     /* part of seen.ran that samples stand for */
	uint64_t asleep;	     /* time asleep whose cause is not known yet */
	int64_t rest;		     /* negative: part of the next account already sampled */
	uint64_t off[SAMPLE_WHERES]; /* no sample stands for it yet */
	uint64_t waits_since;
	/* where the thread slept at the deadline: HALTED, WAITING, STOPPED, IN_VMM; else UNTOLD */
	enum sample_where at;
};

static void host_look(struct attach *a, unsigned int i, uint64_t now)
{
	struct host_times *t = &a->host[i].now;
	struct attach_look_times thread;

	t->wall = now;
	if (!attach_look_times(a, i, &thread))
		return;
	t->ran = thread.ran;
	t->delay = thread.delay;
}

int attach_host_open_one(struct attach *a, unsigned int i, struct err *e)
{
	const struct trigger_rule rule = { .period_ns = a->cfg.event.period,
					   .jitter = a->cfg.event.jitter,
					   .seed = clock_mono_ns() + i };
	const struct tracee *t = &a->tracee[i];
	struct attach_host *h = &a->host[i];
	struct err why = { 0 };
	int ret;

	if (i < a->nhosts)
		counter_close(&h->counter);
	else
		a->nhosts = i + 1;
	*h = (struct attach_host){ .counter = { .fd = -1 } };
	ret = tracer_choose_own(t->tid, &h->own, &why);

	ret = ret ? ret
		  : counter_open_on(&h->counter, t->tid, &a->cfg.event.counter, &rule, h->own.signo,
				    &why);
	host_look(a, i, clock_mono_ns());
	/* Without CONFIG_SCHED_INFO the file is missing or has zeros. */
	if (!ret && !h->now.ran)
		ret = err_set(&why, ENOTSUP,
			      "thread %d: /proc has no schedstat of it: this host does not tell "
			      "how long it ran and waited",
			      (int)t->tid);
	return ret ? err_set(e, -ret, "event host: %s", why.text) : 0;
}

int attach_host_open(struct attach *a, struct err *e)
{
	int ret = 0;

	if (a->cfg.event.kind != VM_EVENT_HOST)
		return 0;
	a->host = calloc(ATTACH_MAX_VCPUS, sizeof(*a->host));
	if (!a->host)
		return err_nomem(e);
	for (unsigned int i = 0; !ret && i < a->ntracees; i++)
		ret = attach_host_open_one(a, i, e);
	return ret;
}

void attach_host_close(struct attach *a)
{
	for (unsigned int i = 0; i < a->nhosts; i++)
		counter_close(&a->host[i].counter);
	free(a->host);
	a->host = NULL;
	a->nhosts = 0;
}

/* -- accounts ------------------------------------------------------------------------------- */

/*
 * Accounts the time off the processor of a held thread. A held thread has no processor, so the
 * kernel's figures are up to date. held is the longest time, in ns, that it can have slept in its
 * stop before this call.
 */
static void account_off(struct attach *a, unsigned int i, uint64_t now, uint64_t held)
{
	struct attach_host *h = &a->host[i];
	const struct host_times *was = &h->seen, *is = &h->now;
	uint64_t known, delay;

	host_look(a, i, now);
	delay = is->delay - was->delay;
	known = is->ran - was->ran + delay + is->stopped - was->stopped;
	h->off[SAMPLE_RUNNABLE] += delay;
	h->off[SAMPLE_STOPPED] += is->stopped - was->stopped;
	/* The times come from several clocks. A surplus is subtracted from the next account. */
	h->rest += (int64_t)(is->wall - was->wall - known);
	if (h->rest > 0) {
		if (held > (uint64_t)h->rest)
			held = (uint64_t)h->rest;
		h->off[SAMPLE_STOPPED] += held;
		h->asleep += (uint64_t)h->rest - held;
		h->rest = 0;
	}
	h->seen = h->now;
}

void attach_host_begin(struct attach *a, unsigned int i, uint64_t now)
{
	struct attach_host *h = &a->host[i];
	struct err ignored = { 0 };

	host_look(a, i, now);
	h->seen = h->now;
	h->on_seen = h->now.ran;
	h->asleep = 0;
	h->rest = 0;
	memset(h->off, 0, sizeof(h->off));
	h->waits_since = now;
	a->tracee[i].own = h->own; /* a thread that was seized again has lost it */
	if (h->counter.axis.period_ns != a->trigger[i].period_ns)
		trigger_lengthen(&h->counter.axis, a->trigger[i].period_ns);
	/* It succeeded at the start of the machine, so an error means that the thread has ended. */
	(void)counter_start(&h->counter, &ignored);
}

/* -- off its processor ---------------------------------------------------------------------- */

/* Returns where the thread sleeps, or SAMPLE_UNTOLD if it does not sleep or that is not known. */
static enum sample_where asleep_at(const struct attach *a, unsigned int i, enum attach_seen seen)
{
	switch (seen) {
	case ATTACH_SEEN_HALTED:
		return SAMPLE_HALTED;
	case ATTACH_SEEN_WAITING:
		return SAMPLE_WAITING;
	case ATTACH_SEEN_STOPPED: /* at the counter's signal, which has not been handled yet */
		return SAMPLE_STOPPED;
	case ATTACH_SEEN_AWAY:
		/* Without an APIC in KVM, the VMM waits for the end of a halt. */
		return a->page[i]->exit_reason == KVM_EXIT_HLT ? SAMPLE_HALTED : SAMPLE_IN_VMM;
	default:
		return SAMPLE_UNTOLD;
	}
}

static bool is_due(struct attach *a, unsigned int i, enum attach_seen seen)
{
	struct attach_host *h = &a->host[i];

	h->at = asleep_at(a, i, seen);
	host_look(a, i, clock_mono_ns());
	if (h->at != SAMPLE_UNTOLD || h->asleep > ASLEEP_MOST * a->trigger[i].period_ns ||
	    h->off[SAMPLE_RUNNABLE] + h->now.delay - h->seen.delay >=
		    a->trigger[i].period_ns / SOURCE_HOST_PART)
		return true;
	trigger_advance(&a->trigger[i], h->now.wall);
	return false;
}

/*
 * Takes a sample with these registers or those of the vCPU's page. Returns false, and counts a
 * dropped sample, if the page is not fresh because the guest has not run since the last sample.
 */
static bool host_sample(struct attach *a, unsigned int i, const struct attach_regs *regs,
			const struct capture_cause *cause)
{
	struct vcpu *v = &a->vm->vcpu[i];
	struct capture_view view =
		regs ? attach_look_view(a, regs) : capture_view_of_run(a->page[i], &a->capture_mem);

	if (regs || regs_page_is_fresh(a->page[i]))
		return capture_sample_of(v, &view, cause);
	ring_drop(&v->ring);
	return false;
}

/* Makes samples of the time off the processor until now, with these registers or those of the vCPU's page. */
static void take_off(struct attach *a, unsigned int i, const struct attach_regs *regs,
		     uint32_t missed)
{
	struct attach_host *h = &a->host[i];
	const uint64_t period = a->trigger[i].period_ns, now = h->now.wall;

	if (h->at != SAMPLE_UNTOLD || h->asleep > ASLEEP_MOST * period) {
		h->off[h->at] += h->asleep;
		h->asleep = 0;
	}
	for (uint8_t w = 0; w < SAMPLE_WHERES; w++) {
		const bool waits = w == SAMPLE_RUNNABLE;
		const struct sample_host host = {
			.where = w,
			.exit_addr = waits ? h->waits_since : 0,
			.tid = waits ? (uint32_t)a->tracee[i].tid : 0,
		};
		const struct capture_cause cause = {
			.now = now,
			.reason = SAMPLE_HOST,
			.missed = missed,
			.weight = h->off[w],
			.host = &host,
		};

		if (h->off[w] < period / SOURCE_HOST_PART)
			continue;
		missed = 0;
		if (!host_sample(a, i, regs, &cause))
			continue;
		h->off[w] = 0;
		if (waits)
			h->waits_since = now;
	}
}

/* Attributes the time of a thread that sleeps to `where`. Only the elapsed time has changed. */
static void account_asleep(struct attach *a, unsigned int i, enum sample_where where)
{
	struct attach_host *h = &a->host[i];

	account_off(a, i, clock_mono_ns(), 0);
	h->off[where] += h->asleep;
	h->asleep = 0;
}

static bool look_away(struct attach *a, unsigned int i, uint32_t missed)
{
	struct attach_host *h = &a->host[i];
	struct attach_regs now;

	if (!attach_look_regs(a, i, &now))
		return true;
	account_off(a, i, clock_mono_ns(), 0);
	if (h->at == SAMPLE_IN_VMM && attach_look_is_paused(a, i, &now, h->now.wall)) {
		h->asleep = 0;
		attach_look_skip(a, i, ATTACH_SKIP_PAUSED, 1 + missed);
		return true;
	}
	a->facts.in_vmm += h->at == SAMPLE_IN_VMM;
	attach_begin_reads(a, i);
	take_off(a, i, &now, missed);
	attach_end_reads(a);
	return true;
}

bool attach_host_look(struct attach *a, unsigned int i, enum attach_seen seen)
{
	const struct attach_regs *halted;

	attach_look_note(a, i, seen);
	if (!is_due(a, i, seen))
		return true;
	if (seen == ATTACH_SEEN_RUNNING || seen == ATTACH_SEEN_STOPPED)
		return false;
	if (seen == ATTACH_SEEN_AWAY)
		return look_away(a, i, trigger_advance(&a->trigger[i], clock_mono_ns()));
	halted = seen == ATTACH_SEEN_HALTED ? attach_look_halted(a, i) : NULL;
	if (seen == ATTACH_SEEN_HALTED && !halted)
		return false;
	account_asleep(a, i, a->host[i].at);
	/* The sample is taken when the thread runs again, because its registers are known then. */
	if (seen == ATTACH_SEEN_WAITING) {
		trigger_advance(&a->trigger[i], a->host[i].now.wall);
	} else {
		take_off(a, i, halted, trigger_advance(&a->trigger[i], a->host[i].now.wall));
		attach_end_reads(a);
	}
	return true;
}

/* -- on its processor ----------------------------------------------------------------------- */

static void take_on(struct attach *a, unsigned int i, enum tracer_place place, uint64_t now)
{
	struct attach_host *h = &a->host[i];
	struct vcpu *v = &a->vm->vcpu[i];
	struct sample_host host = { .n = 0 };
	struct capture_cause cause = { .now = now, .reason = SAMPLE_HOST, .host = &host };
	uint64_t there = h->now.ran - h->on_seen;

	host.where = h->counter.in_guest	 ? SAMPLE_IN_GUEST
		     : place == TRACER_ELSEWHERE ? SAMPLE_IN_VMM
						 : SAMPLE_IN_KVM;
	if (host.where == SAMPLE_IN_VMM)
		host.exit = source_exit_of(a->page[i], &host.exit_addr);
	if (host.where != SAMPLE_IN_GUEST)
		host.n = (uint16_t)perf_chain_trusted(h->counter.chain, h->counter.nchain);
	memcpy(host.ip, h->counter.chain, host.n * sizeof(host.ip[0]));
	if (counter_handle_signal(&h->counter, &cause.weight, &cause.missed)) {
		cause.weight = source_host_weight(cause.weight, there, a->trigger[i].period_ns);
		if (cause.weight && host_sample(a, i, NULL, &cause))
			h->on_seen += cause.weight;
	}
	counter_note(&h->counter, &v->stats.counter[0]);
}

void attach_host_sample(struct attach *a, unsigned int i)
{
	struct attach_host *h = &a->host[i];
	struct tracee *t = &a->tracee[i];
	struct vcpu *v = &a->vm->vcpu[i];
	const uint64_t now = clock_mono_ns();
	uint64_t stopped;
	bool fresh;
	int fd;
	const enum tracer_place place = tracer_place_of(t, &fd);

	attach_begin_reads(a, i);
	/* If KVM has not stored registers since the last sample, the guest has not run. */
	attach_unmark(a, i);
	a->facts.by_ptrace++;
	a->facts.in_vmm += place == TRACER_ELSEWHERE;
	fresh = t->by_own && counter_chain(&h->counter, &v->stats.counter[0]);
	account_off(a, i, now, fresh && now > h->counter.chain_ns ? now - h->counter.chain_ns : 0);
	if (t->by_own) {
		if (fresh)
			take_on(a, i, place, now);
		if (a->sampler.armed)
			counter_resume(&h->counter);
	} else {
		take_off(a, i, NULL, trigger_advance(&a->trigger[i], now));
		if (place != TRACER_ELSEWHERE)
			(void)attach_look_stopped(a, i, a->seen[i]);
		/* The signal of an overflow was lost. */
		if (h->now.ran - h->on_seen > ON_LOST * a->trigger[i].period_ns)
			counter_resume(&h->counter);
	}
	attach_end_reads(a);
	attach_mark(a, i);
	tracer_release(t);
	stopped = clock_mono_ns() - now;
	h->now.stopped += stopped;
	hist_add(&v->stats.stop_ns, stopped);
}
