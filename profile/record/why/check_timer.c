/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of what does not arrive at a processor: timers and interrupts, and what the host owes a vCPU's thread. The proof of a late
 * timer are two clocks: the time for which a clock event device was programmed, and the time that other processors have counted since.
 */
#include "profile/record/why/private.h"
#include "vmm/attach/standing.h"

#include <inttypes.h>

uint64_t why_late_ns(struct why *w, unsigned int cpu)
{
	struct why_scene *s = why_now(w);
	const struct why_scene *b = why_before(w);
	uint64_t event = s->rq[cpu].event;

	if (s->mono == WHY_UNKNOWN)
		return WHY_UNKNOWN;
	if (event == WHY_UNKNOWN || event >= s->mono || (b && b->rq[cpu].event != event))
		return 0;
	return s->mono - event;
}

/* Returns whether the time of a clock event device is known on at least one processor. */
static bool has_events(struct why *w)
{
	for (unsigned int i = 0; i < w->vcpus; i++)
		if (why_now(w)->rq[i].event != WHY_UNKNOWN)
			return why_now(w)->mono != WHY_UNKNOWN;
	return false;
}

static void prove_timer(struct why *w, struct why_finding *f, unsigned int i, uint64_t late)
{
	struct why_scene *s = why_now(w);
	unsigned int cpu = why_cpu_of(w, i);

	why_prove(w, f, "vcpu", i);
	why_prove(w, f, "cpu", cpu);
	why_prove(w, f, "late_ns", late);
	why_prove(w, f, "event_ns", s->rq[cpu].event);
	why_prove(w, f, "clock_ns", s->mono);
	why_fact(w, f,
		 "the clock event device of CPU %u is programmed for %.6f s by the guest's "
		 "monotonic clock, at "
		 "both looks; other processors have counted ticks up to %.6f s",
		 cpu, why_seconds(s->rq[cpu].event), why_seconds(s->mono));
}

void why_check_timer(struct why *w, struct why_finding *f)
{
	if (!has_events(w)) {
		why_unknown(
			f,
			"the kernel's clock event devices are not known: no type information, or "
			"no high-resolution timers");
		return;
	}
	for (unsigned int i = 0; i < w->vcpus; i++) {
		const struct why_vcpu *v = &w->vcpu[i];
		uint64_t late = why_late_ns(w, why_cpu_of(w, i));

		/* The timer's interrupt is not taken while interrupts are off or others come first. */
		if (v->samples < WHY_ENOUGH || 2 * v->open < v->samples || v->masked ||
		    2 * v->interrupt > v->samples || late == WHY_UNKNOWN || late < w->hang_ns)
			continue;
		why_bad(f,
			"The timer of vCPU %u has not fired: its interrupt has been due for %.1f "
			"s, and the vCPU "
			"runs with interrupts on.",
			i, why_seconds(late));
		prove_timer(w, f, i, late);
		why_fact(w, f,
			 "interrupts were on in %" PRIu64 " of %" PRIu64 " samples of vCPU %u",
			 v->open, v->samples, i);
		return;
	}
	why_ok_if_sampled(w, f, "no timer that is due by the other processors' clock is late");
}

void why_check_pending(struct why *w, struct why_finding *f)
{
	unsigned int masked = 0;

	for (unsigned int i = 0; i < w->vcpus; i++) {
		const struct why_vcpu *v = &w->vcpu[i];
		uint64_t late = why_late_ns(w, why_cpu_of(w, i));

		masked += v->masked != 0;
		if (v->samples < WHY_ENOUGH || 2 * v->masked < v->samples || v->masked != v->open ||
		    late == WHY_UNKNOWN || late < w->hang_ns)
			continue;
		why_bad(f,
			"vCPU %u does not take its interrupts: its task priority (CR8) is %" PRIu64
			", so those of vectors below 0x%" PRIx64
			"0 wait; its timer's has waited for %.1f s.",
			i, v->regs.cr8, v->regs.cr8 + 1, why_seconds(late));
		prove_timer(w, f, i, late);
		why_prove(w, f, "cr8", v->regs.cr8);
		return;
	}
	if (!why_has_samples(w))
		why_unknown(f, "no vCPU could be sampled");
	else if (masked)
		why_unknown(f,
			    "a vCPU's task priority holds interrupts up, and whether one waits is "
			    "not known");
	else
		why_unknown(f, "no task priority holds interrupts up; which ones wait in the local "
			       "APIC cannot be read");
}

/* -- the host's side --------------------------------------------------------------------- */

bool why_host_blocks(const struct standing *h)
{
	for (unsigned int i = 0; i < STANDING_CAUSES; i++)
		if (h->check[i].result == STANDING_BAD)
			return true;
	return false;
}

/* Copies the result of the host's check, with the thread as the proof if it is bad. */
static void judge_host(struct why *w, struct why_finding *f, enum standing_cause cause)
{
	const struct standing *h = w->host;
	const struct standing_check *c = h ? &h->check[cause] : NULL;

	if (!c) {
		why_unknown(f, "%s",
			    w->still ? "the machine was saved, so no process runs it"
				     : "the threads of the machine's process were not examined");
	} else if (c->result == STANDING_UNKNOWN) {
		why_unknown(f, "%s", c->text);
	} else if (c->result == STANDING_OK) {
		why_ok(f, "%s", c->text);
	} else {
		why_bad(f, "The host keeps the machine from running: %s.", c->text);
		why_prove(w, f, "tid", (uint64_t)c->tid);
		why_prove(w, f, "ran_ns", c->run_ns);
		why_prove(w, f, "of_ns", h->interval_ns);
		why_fact(w, f,
			 "thread %d was looked at several times in %" PRIu64
			 " ms, and ran for %" PRIu64 " ms of them",
			 (int)c->tid, h->interval_ns / 1000000, c->run_ns / 1000000);
	}
}

void why_check_paused(struct why *w, struct why_finding *f)
{
	judge_host(w, f, STANDING_PAUSED);
}

void why_check_not_scheduled(struct why *w, struct why_finding *f)
{
	judge_host(w, f, STANDING_NOT_SCHEDULED);
}

void why_check_absent(struct why *w, struct why_finding *f)
{
	judge_host(w, f, STANDING_MEMORY);
}

void why_check_vmm_thread(struct why *w, struct why_finding *f)
{
	judge_host(w, f, STANDING_THREAD);
}
