/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source_io: who brought a disk its requests, or the network card its packets.
 *
 * A guest tells a device of new requests by one access to a register, a VM exit; the task
 * that runs is the one that brought them (or that writes back what others have written).
 * As for other exits (source_exit.c) the sample is taken once KVM_RUN was entered again, when
 * the registers are complete. It carries the token of this notification, and so do the
 * records of its requests, some of which end before it is taken and some long after.
 */
#include "base/clock.h"
#include "vmm/machine.h"

/* A token: 1 + the vCPU's index, and how many it has had. */
#define TOKEN_VCPU_SHIFT 48

uint64_t machine_io_batch(void *ctx)
{
	struct vm *vm = ctx;
	struct vcpu *v = vcpu_current();

	/* After a snapshot a device may look into its queues without a notification. */
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
