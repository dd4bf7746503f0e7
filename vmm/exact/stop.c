/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/stop.h"

#include "vmm/breakpoint.h"
#include "vmm/capture/capture_task.h"
#include "vmm/exact/exact.h"
#include "vmm/machine.h"
#include "vmm/control.h"

#include <errno.h>

_Static_assert(VM_MAX_BREAKPOINTS + EXACT_MAX_PARTS <= EXACT_MAX_PLACES, "one place each");

/* -- what the page says ---------------------------------------------------------------------- */

static int stop_bad(struct err *e, const char *what, uint64_t value)
{
	return err_set(e, EPROTO, "QEMU's plugin reports %s %llu, which cannot be", what,
		       (unsigned long long)value);
}

static void stop_copy_regs(const exact_page *page, struct exact_regs *out)
{
	const volatile uint64_t *from = (const volatile uint64_t *)&page->regs;
	uint64_t *to = (uint64_t *)out;

	for (unsigned int i = 0; i < EXACT_REGISTERS; i++)
		to[i] = from[i];
}

/* Decodes `off`: the guest ends itself. */
static int stop_take_end(struct exact_stop *s, uint32_t off, struct err *e)
{
	s->kind = off == EXACT_OFF ? EXACT_STOP_POWEROFF : EXACT_STOP_EXIT;
	s->status = (uint8_t)(off >> EXACT_EXIT_SHIFT);
	return off == EXACT_OFF || off == (EXACT_EXIT | (uint32_t)s->status << EXACT_EXIT_SHIFT)
		       ? 0
		       : stop_bad(e, "the end", off);
}

int exact_stop_take(const exact_page *page, const struct exact_expected *x, struct exact_stop *out,
		    struct err *e)
{
	uint32_t off = page->off, reached = page->reached;
	struct exact_stop s = {
		.count = exact_stop_count(page, x),
		.at = page->at,
		.ahead = page->ahead,
	};
	int ret;

	stop_copy_regs(page, &s.regs);
	if (off) {
		ret = stop_take_end(&s, off, e);
		if (!ret)
			*out = s;
		return ret;
	}
	if (reached > x->nplaces || reached > EXACT_MAX_PLACES)
		return stop_bad(e, "place", reached);
	s.kind = reached ? EXACT_STOP_PLACE : EXACT_STOP_SAMPLE;
	s.place = reached ? reached - 1 : 0;
	/* A sample is at the requested instruction; a place may come before that. */
	if (reached ? s.at < x->least || s.at > x->next || s.at > EXACT_MAX_COUNT : s.at != x->next)
		return stop_bad(e, "instruction", s.at);
	if (s.ahead > EXACT_MAX_AHEAD)
		return stop_bad(e, "a distance of", s.ahead);
	*out = s;
	return 0;
}

uint64_t exact_stop_count(const exact_page *page, const struct exact_expected *x)
{
	uint64_t count = page->count, most = x->next < EXACT_MAX_COUNT ? x->next : EXACT_MAX_COUNT;

	/* A block that reaches the next sample has not been counted yet. */
	return count < x->least ? x->least : count > most ? most : count;
}

void exact_stop_read_hello(const exact_page *page, struct exact_hello *out)
{
	unsigned int n = 0;

	out->magic = page->magic;
	out->version = page->version;
	for (; n < sizeof(out->error) - 1; n++) {
		char c = page->error[n];

		if (!c)
			break;
		out->error[n] = c >= 0x20 && c < 0x7f ? c : '?';
	}
	out->error[n] = '\0';
}

/* -- places ----------------------------------------------------------------------------------- */

unsigned int exact_places_init(exact_page *page, const struct exact_config *cfg)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < cfg->nbreakpoints; i++)
		page->place[n++].linked = cfg->breakpoint[i].addr;
	for (unsigned int i = 0; i < cfg->nparts; i++)
		page->place[n++].linked = cfg->part[i].addr;
	page->nplaces = n;
	return n;
}

void exact_places_relocate(exact_page *page, const struct vm *vm, const struct exact_facts *f)
{
	unsigned int n = vm->cfg.nbreakpoints;

	for (unsigned int i = 0; i < n; i++)
		page->place[i].addr =
			capture_linked_address(&vm->vcpu[0], vm->cfg.breakpoint[i].addr);
	for (unsigned int i = 0; i < f->nparts; i++)
		page->place[n + i].addr =
			f->parts_begun > i ? 0
					   : capture_linked_address(&vm->vcpu[0], f->part[i].addr);
}

bool exact_places_begin_part(exact_page *page, const struct exact_stop *stop, const struct vm *vm,
			     struct exact_facts *f)
{
	unsigned int i;

	if (stop->place < vm->cfg.nbreakpoints)
		return false;
	i = stop->place - vm->cfg.nbreakpoints;
	if (i >= f->nparts || f->parts_begun > i)
		return false;
	f->part_at[i] = stop->at;
	f->parts_begun = i + 1;
	page->part = i + 1;
	return true;
}

const struct vm_breakpoint *exact_places_reached(const struct exact_stop *stop, struct vm *vm,
						 uint64_t now_ns)
{
	const struct vm_breakpoint *b;

	if (stop->place >= vm->cfg.nbreakpoints || stop->place >= VM_MAX_BREAKPOINTS ||
	    !breakpoint_counts(vm, stop->place, now_ns))
		return NULL;
	b = &vm->cfg.breakpoint[stop->place];
	if (b->action == VM_BREAKPOINT_START)
		vm_collect(vm, true);
	return b;
}
