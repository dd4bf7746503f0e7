/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source_exit: VM exits to the program, as events.
 *
 * After an I/O, MMIO or MSR exit, the next KVM_RUN completes the instruction, and only then are
 * the registers complete. So that entry is made to return at once (immediate_exit), and the sample
 * is taken there: it shows the stack that caused the exit, after the instruction. At other exits
 * nothing is left to complete, and the sample is taken at once; the ring then holds it back until
 * the exit has been handled.
 *
 * The handling time is reported in both cases: the run loop reads the clock at both ends for the
 * account of time (account.c), so a sample needs no further clock reading.
 */
#include "vmm/capture/source_exit.h"

#include "base/clock.h"
#include "base/count.h"
#include "vmm/machine.h"
#include "vmm/capture/capture.h"
#include "vmm/capture/counter.h"
#include "vmm/capture/source.h"
#include "vmm/capture/trigger.h"
#include "vmm/vcpu_thread.h"

#include <sys/ioctl.h>

bool source_exit_is_finished_later(uint32_t kind)
{
	switch (kind) {
	case KVM_EXIT_IO:
	case KVM_EXIT_MMIO:
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
	case KVM_EXIT_HYPERCALL:
		return true;
	default:
		return false;
	}
}

static uint64_t address_of(const struct kvm_run *run)
{
	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		return run->io.port;
	case KVM_EXIT_MMIO:
		return run->mmio.phys_addr;
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		return run->msr.index;
	case KVM_EXIT_HYPERCALL:
		return run->hypercall.nr;
	default:
		return 0;
	}
}

void source_exit_begin(struct vcpu *v, uint64_t now)
{
	uint32_t kind = v->run->exit_reason;

	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++) {
		const struct vm_event *ev = &v->vm->cfg.event[i];
		struct source *s = &v->source[i];

		if (ev->kind != VM_EVENT_EXIT || !s->armed || !(ev->exits & VM_EXIT_BIT(kind)))
			continue;
		if (++s->exits < s->trigger.deadline_ns)
			continue;
		s->exit = (uint8_t)kind;
		s->exit_addr = address_of(v->run);
		s->began_ns = now;
		v->exit_noted = true;
		if (source_exit_is_finished_later(kind)) {
			s->due = 1;
			v->run->immediate_exit = 1;
		} else {
			uint64_t t0 = clock_mono_ns(), took;

			ring_hold(&v->ring);
			source_take_exit(v, i, t0);
			took = clock_mono_ns() - t0;
			hist_add(&v->stats.stop_ns, took);
			v->exit_stopped += took;
		}
	}
}

/* Completes the samples that were taken when the exit came, before it was handled. */
static void source_tell_held(struct vcpu *v, uint64_t took, uint64_t now)
{
	struct sample *s;
	size_t at = 0;

	while ((s = ring_held(&v->ring, &at)))
		if (s->reason == SAMPLE_EXIT) {
			s->exit_ns = took;
			s->time_ns = now;
		}
	ring_unhold(&v->ring);
}

void source_exit_handled(struct vcpu *v, uint64_t now)
{
	uint64_t took = 0, whole;

	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++) {
		struct source *s = &v->source[i];

		if (!s->began_ns)
			continue;
		whole = now - s->began_ns;
		took = whole > v->exit_stopped ? whole - v->exit_stopped : 1;
		s->exit_ns = took;
		s->handled_ns = now;
		s->began_ns = 0;
	}
	if (v->ring.held)
		source_tell_held(v, took, now);
	v->exit_stopped = 0;
	v->exit_noted = false;
}

void source_take_exit(struct vcpu *v, unsigned int i, uint64_t now)
{
	struct source *s = &v->source[i];
	bool handled = !s->began_ns && s->handled_ns;
	struct capture_cause cause = {
		.now = handled ? s->handled_ns : now,
		.reason = SAMPLE_EXIT,
		.event = (uint8_t)i,
		.exit = s->exit,
		.exit_addr = s->exit_addr,
		.exit_ns = handled ? s->exit_ns : 0,
	};

	cause.missed = trigger_advance(&s->trigger, s->exits);
	/*
	 * Exits come in bursts, and their number has to be exact even if not all stacks are kept.
	 */
	cause.weight = s->owed + (1 + (uint64_t)cause.missed) * s->period;
	count_add(&v->stats.overruns, cause.missed);
	s->owed = capture_sample(v, &cause) ? 0 : cause.weight;
}

void source_exit_last(struct vcpu *v)
{
	bool due = false;

	for (unsigned int i = 0; i < v->vm->cfg.nevents; i++) {
		struct source *s = &v->source[i];

		if (v->vm->cfg.event[i].kind == VM_EVENT_EXIT ||
		    v->vm->cfg.event[i].kind == VM_EVENT_IO)
			due |= s->due != 0;
		else
			s->due = 0; /* time is up */
	}
	if (!due)
		return;
	v->run->immediate_exit = 1;
	(void)ioctl(v->fd, KVM_RUN, 0); /* returns EINTR, because of immediate_exit */
	vcpu_fetch_regs(v);
	source_take_all(v);
}

/*
 * VM_EVENT_IO: finds the task that gave a disk its requests, or the network card its packets.
 *
 * A guest notifies a device of new requests by one register access, a VM exit; the task that runs
 * submitted them (or writes back what others have written). As for other exits, the sample is
 * taken after the next KVM_RUN, when the registers are complete. It carries the token of this
 * notification, as do the records of its requests, some of which end before the sample and some
 * long after.
 */
/* A token: 1 + the vCPU's index, and the number of the notification on this vCPU. */
#define TOKEN_VCPU_SHIFT 48

uint64_t source_exit_io_batch(void *ctx)
{
	struct vm *vm = ctx;
	struct vcpu *v = vcpu_current();

	/* After a snapshot, a device may read its queues without a notification. */
	if (!v || v->vm != vm || !capture_is_wanted(v))
		return 0;
	for (unsigned int i = 0; i < vm->cfg.nevents; i++) {
		struct source *s = &v->source[i];

		if (vm->cfg.event[i].kind != VM_EVENT_IO || !s->armed)
			continue;
		if (!s->due) {
			s->exit_addr = (v->index + UINT64_C(1)) << TOKEN_VCPU_SHIFT | ++s->exits;
			s->due = 1;
			v->run->immediate_exit = 1;
		}
		/* One sample serves all events of this kind. */
		return s->exit_addr;
	}
	return 0;
}

void source_take_io(struct vcpu *v, unsigned int i, uint64_t now)
{
	struct capture_cause cause = {
		.now = now,
		.reason = SAMPLE_IO,
		.event = (uint8_t)i,
		.weight = 1,
		.exit_addr = v->source[i].exit_addr,
	};

	(void)capture_sample(v, &cause); /* the ring counts it when there is no room */
}
