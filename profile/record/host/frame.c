/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/host/frame.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char letters[] = "RSDTtXZPI-";
/* Indexed by the sample's device minus SAMPLE_PERHAPS_NESTED. */
static const char *const nested[] = { "[nested guest or its hypervisor]", "[nested guest]" };

_Static_assert(SAMPLE_MAX_DEVICES + ARRAY_SIZE(nested) == FRAME_VMM_FRAMES, "an address for each");

void frame_names_deinit(struct frame_names *f)
{
	symtab_destroy(f->vmm);
	symtab_destroy(f->state);
	symtab_destroy(f->changed);
	f->vmm = f->state = f->changed = NULL;
}

const struct symbol *frame_names_at(const struct frame_names *f, uint64_t va, uint64_t *off)
{
	const struct symtab *t = frame_vmm_owns(va)	  ? f->vmm
				 : frame_state_owns(va)	  ? f->state
				 : frame_changed_owns(va) ? f->changed
							  : NULL;

	return t ? symtab_lookup(t, va, off) : NULL;
}

static uint64_t address_of_state(uint8_t state)
{
	return FRAME_STATE_BASE + (uint64_t)(state % FRAME_STATE_LETTERS) * FRAME_STATE_STEP;
}

static int name_devices(struct symtab *t, const struct frame_devices *devices)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && devices->name && i < SAMPLE_MAX_DEVICES; i++) {
		const char *device = devices->name(devices->ctx, i);
		char name[64];

		if (!device)
			continue;
		snprintf(name, sizeof(name), "[vmm] %s", device);
		ret = symtab_add(t, FRAME_VMM_BASE + i * FRAME_VMM_STEP, FRAME_VMM_STEP, 'T', name);
	}
	for (unsigned int i = 0; !ret && i < ARRAY_SIZE(nested); i++)
		ret = symtab_add(t, FRAME_VMM_BASE + (SAMPLE_MAX_DEVICES + i) * FRAME_VMM_STEP,
				 FRAME_VMM_STEP, 'T', nested[i]);
	return ret;
}

static int name_states(struct symtab *t)
{
	int ret = 0;

	for (const char *c = letters; !ret && *c; c++) {
		const char name[] = { '[', *c, ']', '\0' };

		ret = symtab_add(t, address_of_state((uint8_t)*c), FRAME_STATE_STEP, 'T', name);
	}
	return ret;
}

/*
 * Reports the module to the sink. Its symbols are m->symbols; `ret` is the result of filling them.
 */
static int report_module(struct sink *sink, struct symtab *t, int ret, struct profile_module *m,
			 struct err *e)
{
	if (ret)
		return err_set(e, -ret, "the names of frames: %s", strerror(-ret));
	ret = symtab_freeze(t, e);
	if (ret)
		return ret;
	m->symbols = t;
	return sink->ops->module(sink, m, e);
}

void frame_push(struct stack *stack, uint64_t va)
{
	unsigned int keep = stack->n < STACK_MAX_FRAMES ? stack->n : STACK_MAX_FRAMES - 1;

	/* A full stack loses its outermost frame. */
	memmove(stack->ip + 1, stack->ip, keep * sizeof(stack->ip[0]));
	memmove(stack->quality + 1, stack->quality, keep);
	memmove(stack->exact + 1, stack->exact, keep);
	if (stack->n != keep)
		stack->end = STACK_END_DEPTH;
	stack->ip[0] = va;
	stack->quality[0] = FRAME_REGS;
	stack->exact[0] = 1;
	/* For a program's stack the VMM counts as the kernel. */
	if (!stack->n_kernel) {
		stack->user_end = stack->end;
		stack->end = STACK_END_USER;
	}
	if (stack->n_kernel > keep)
		stack->n_kernel = (uint16_t)keep;
	stack->n = (uint16_t)(keep + 1);
	stack->n_kernel++;
}

bool frame_nested(const struct sample *s, struct stack *stack)
{
	if (s->device < SAMPLE_PERHAPS_NESTED)
		return false;
	stack->n = stack->n_kernel = 1;
	stack->ip[0] = FRAME_VMM_BASE +
		       (SAMPLE_MAX_DEVICES + s->device - SAMPLE_PERHAPS_NESTED) * FRAME_VMM_STEP;
	stack->quality[0] = FRAME_REGS;
	stack->exact[0] = 1;
	stack->end = STACK_END_ROOT;
	stack->user_end = 0;
	return true;
}

int frame_add_device(struct frame_names *f, struct sink *sink, const struct sample *s,
		     struct stack *stack, struct err *e)
{
	struct profile_module m = {
		.name = "vmm",
		.addr = FRAME_VMM_BASE,
		.len = (uint64_t)FRAME_VMM_FRAMES * FRAME_VMM_STEP,
		.time_ns = 1,
	};
	int ret;

	if (!s->device || (s->device > SAMPLE_MAX_DEVICES && s->device < SAMPLE_PERHAPS_NESTED))
		return 0;
	if (!f->vmm) {
		f->vmm = symtab_create();
		if (!f->vmm)
			return err_nomem(e);
		ret = report_module(sink, f->vmm, name_devices(f->vmm, &f->devices), &m, e);
		if (ret)
			return ret;
	}
	if (s->device >= SAMPLE_PERHAPS_NESTED)
		return 0;
	/* The guest's RIP is after the instruction that led here, or at its start after a fault. */
	stack->exact[0] = 1;
	frame_push(stack, FRAME_VMM_BASE + (s->device - 1u) * FRAME_VMM_STEP);
	return 0;
}

int frame_add_state(struct frame_names *f, struct sink *sink, const struct sample *s,
		    struct stack *stack, struct err *e)
{
	/*
	 * Walks of tasks are in the order of time: no earlier sample can follow, and older ones
	 * were written.
	 */
	struct profile_module m = {
		.name = "off-cpu",
		.addr = FRAME_STATE_BASE,
		.len = (uint64_t)FRAME_STATE_LETTERS * FRAME_STATE_STEP,
		.time_ns = s->time_ns,
	};
	int ret;

	if (s->reason != SAMPLE_OFFCPU)
		return 0;
	if (!f->state) {
		f->state = symtab_create();
		if (!f->state)
			return err_nomem(e);
		ret = report_module(sink, f->state, name_states(f->state), &m, e);
		if (ret)
			return ret;
	}
	frame_push(stack,
		   address_of_state(s->exit && strchr(letters, s->exit) ? s->exit : (uint8_t)'-'));
	return 0;
}

int frame_replace_changed(struct frame_names *f, struct sink *sink, struct stack *stack,
			  unsigned int i, struct err *e)
{
	struct profile_module m = {
		.name = "changed code",
		.addr = FRAME_CHANGED,
		.len = FRAME_CHANGED_LEN,
		.time_ns = 1,
	};
	int ret;

	if (!f->changed) {
		f->changed = symtab_create();
		if (!f->changed)
			return err_nomem(e);
		ret = report_module(sink, f->changed,
				    symtab_add(f->changed, FRAME_CHANGED, FRAME_CHANGED_LEN, 'T',
					       "[changed code]"),
				    &m, e);
		if (ret)
			return ret;
	}
	stack->ip[i] = FRAME_CHANGED;
	stack->exact[i] = 1;
	stack->n = stack->n_kernel = (uint16_t)(i + 1);
	stack->end = STACK_END_NO_TEXT;
	stack->user_end = 0;
	return 0;
}
