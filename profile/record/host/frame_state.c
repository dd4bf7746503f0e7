/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/host/frame_state.h"

#include <errno.h>
#include <string.h>

static const char letters[] = "RSDTtXZPI-";

void guest_state_deinit(struct guest_states *g)
{
	symtab_destroy(g->symbols);
	g->symbols = NULL;
}

static uint64_t address_of(uint8_t state)
{
	return GUEST_STATE_BASE + (uint64_t)(state % GUEST_STATE_LETTERS) * GUEST_STATE_STEP;
}

/* Looks come in the order of time: none is before the first, and what is older is written. */
static int tell_module(struct guest_states *g, struct sink *sink, uint64_t time_ns, struct err *e)
{
	struct profile_module m = {
		.name = "off-cpu",
		.addr = GUEST_STATE_BASE,
		.len = (uint64_t)GUEST_STATE_LETTERS * GUEST_STATE_STEP,
		.time_ns = time_ns,
	};
	int ret = 0;

	g->symbols = symtab_create();
	if (!g->symbols)
		return err_set(e, ENOMEM, "out of memory");
	for (const char *c = letters; !ret && *c; c++) {
		const char name[] = { '[', *c, ']', '\0' };

		ret = symtab_add(g->symbols, address_of((uint8_t)*c), GUEST_STATE_STEP, 'T', name);
	}
	if (ret)
		return err_set(e, -ret, "the states' names: %s", strerror(-ret));
	ret = symtab_freeze(g->symbols, e);
	m.symbols = g->symbols;
	return ret ? ret : sink->ops->module(sink, &m, e);
}

int guest_state_see(struct guest_states *g, struct sink *sink, const struct sample *s,
		    struct stack *stack, struct err *e)
{
	int ret;

	if (s->reason != SAMPLE_OFFCPU)
		return 0;
	if (!g->symbols) {
		ret = tell_module(g, sink, s->time_ns, e);
		if (ret)
			return ret;
	}
	guest_vmm_push(stack, address_of(s->exit && strchr(letters, s->exit) ? s->exit : '-'));
	return 0;
}
