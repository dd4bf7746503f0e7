/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/places.h"

#include "vmm/breakpoint.h"
#include "vmm/machine.h"

_Static_assert(VM_MAX_BREAKPOINTS + EXACT_MAX_PARTS <= EXACT_MAX_PLACES, "one place each");

void places_init(struct exact_shared *s, const struct exact_config *cfg)
{
	for (unsigned int i = 0; i < cfg->nbreakpoints; i++)
		s->place[s->nplaces++].linked = cfg->breakpoint[i].addr;
	for (unsigned int i = 0; i < cfg->nparts; i++)
		s->place[s->nplaces++].linked = cfg->part[i].addr;
}

void places_follow(struct exact_shared *s, const struct vm *vm, const struct exact_facts *f)
{
	unsigned int n = vm->cfg.nbreakpoints;

	for (unsigned int i = 0; i < n; i++)
		s->place[i].addr = capture_linked_address(&vm->vcpu[0], vm->cfg.breakpoint[i].addr);
	for (unsigned int i = 0; i < f->nparts; i++)
		s->place[n + i].addr =
			s->part > i ? 0 : capture_linked_address(&vm->vcpu[0], f->part[i].addr);
}

bool places_begin_part(struct exact_shared *s, const struct vm *vm, struct exact_facts *f)
{
	unsigned int i = s->reached - 1 - vm->cfg.nbreakpoints;

	if (s->reached <= vm->cfg.nbreakpoints || i >= f->nparts || s->part > i)
		return false;
	f->part_at[i] = s->at;
	s->part = i + 1;
	return true;
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
