/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/host/frame_vmm.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void guest_vmm_deinit(struct guest_vmm *g)
{
	symtab_destroy(g->symbols);
	g->symbols = NULL;
}

/* By the sample's device, from SAMPLE_PERHAPS_NESTED on. */
static const char *const nested[] = { "[nested guest or its hypervisor]", "[nested guest]" };

_Static_assert(VM_MAX_DEVICES + ARRAY_SIZE(nested) == GUEST_VMM_FRAMES, "an address for each");

static int tell_module(struct guest_vmm *g, const struct vm *vm, struct sink *sink, struct err *e)
{
	struct profile_module m = {
		.name = "vmm",
		.addr = GUEST_VMM_BASE,
		.len = (uint64_t)GUEST_VMM_FRAMES * GUEST_VMM_STEP,
		.time_ns = 1,
	};
	int ret = 0;

	g->symbols = symtab_create();
	if (!g->symbols)
		return err_set(e, ENOMEM, "out of memory");
	for (unsigned int i = 0; !ret && i < VM_MAX_DEVICES; i++) {
		const char *device = vm_device_name(vm, i);
		char name[64];

		if (!device)
			continue;
		snprintf(name, sizeof(name), "[vmm] %s", device);
		ret = symtab_add(g->symbols, GUEST_VMM_BASE + i * GUEST_VMM_STEP, GUEST_VMM_STEP,
				 'T', name);
	}
	for (unsigned int i = 0; !ret && i < ARRAY_SIZE(nested); i++)
		ret = symtab_add(g->symbols, GUEST_VMM_BASE + (VM_MAX_DEVICES + i) * GUEST_VMM_STEP,
				 GUEST_VMM_STEP, 'T', nested[i]);
	if (ret)
		return err_set(e, -ret, "the names of frames: %s", strerror(-ret));
	ret = symtab_freeze(g->symbols, e);
	m.symbols = g->symbols;
	return ret ? ret : sink->ops->module(sink, &m, e);
}

void guest_vmm_push(struct stack *stack, uint64_t va)
{
	unsigned int keep = stack->n < STACK_MAX_FRAMES ? stack->n : STACK_MAX_FRAMES - 1;

	/* Of a stack that is full already the outermost frame goes. */
	memmove(stack->ip + 1, stack->ip, keep * sizeof(stack->ip[0]));
	memmove(stack->quality + 1, stack->quality, keep);
	memmove(stack->exact + 1, stack->exact, keep);
	if (stack->n != keep)
		stack->end = STACK_END_DEPTH;
	stack->ip[0] = va;
	stack->quality[0] = FRAME_REGS;
	stack->exact[0] = 1;
	/* The VMM is to a program what a kernel is. */
	if (!stack->n_kernel) {
		stack->user_end = stack->end;
		stack->end = STACK_END_USER;
	}
	if (stack->n_kernel > keep)
		stack->n_kernel = (uint16_t)keep;
	stack->n = (uint16_t)(keep + 1);
	stack->n_kernel++;
}

bool guest_vmm_nested(const struct sample *s, struct stack *stack)
{
	if (s->device < SAMPLE_PERHAPS_NESTED)
		return false;
	stack->n = stack->n_kernel = 1;
	stack->ip[0] = GUEST_VMM_BASE +
		       (VM_MAX_DEVICES + s->device - SAMPLE_PERHAPS_NESTED) * GUEST_VMM_STEP;
	stack->quality[0] = FRAME_REGS;
	stack->exact[0] = 1;
	stack->end = STACK_END_ROOT;
	stack->user_end = 0;
	return true;
}

int guest_vmm_see(struct guest_vmm *g, const struct vm *vm, struct sink *sink,
		  const struct sample *s, struct stack *stack, struct err *e)
{
	int ret;

	if (!s->device || (s->device > VM_MAX_DEVICES && s->device < SAMPLE_PERHAPS_NESTED))
		return 0;
	if (!g->symbols) {
		ret = tell_module(g, vm, sink, e);
		if (ret)
			return ret;
	}
	if (s->device >= SAMPLE_PERHAPS_NESTED)
		return 0;
	/* The guest stands behind the instruction that led here, at its start after a fault. */
	stack->exact[0] = 1;
	guest_vmm_push(stack, GUEST_VMM_BASE + (s->device - 1u) * GUEST_VMM_STEP);
	return 0;
}
