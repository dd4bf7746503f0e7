/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/places.h"

#include "vmm/breakpoint.h"
#include "vmm/machine.h"

_Static_assert(VM_MAX_BREAKPOINTS <= EXACT_MAX_PLACES, "one place each");

void places_init(struct exact_shared *s, const struct vm_breakpoint *b, unsigned int n)
{
	s->nplaces = n;
	for (unsigned int i = 0; i < n; i++)
		s->place[i].linked = b[i].addr;
}

void places_follow(struct exact_shared *s, const struct vm *vm)
{
	for (unsigned int i = 0; i < vm->cfg.nbreakpoints; i++)
		s->place[i].addr = capture_linked_address(&vm->vcpu[0], vm->cfg.breakpoint[i].addr);
}

const struct vm_breakpoint *places_reached(const struct exact_shared *s, struct vm *vm,
					   uint64_t now_ns)
{
	unsigned int i = s->reached - 1;
	const struct vm_breakpoint *b = &vm->cfg.breakpoint[i];

	if (i >= vm->cfg.nbreakpoints || !breakpoint_counts(vm, i, now_ns))
		return NULL;
	if (b->action == VM_BREAKPOINT_START)
		vm_collect(vm, true);
	return b;
}
