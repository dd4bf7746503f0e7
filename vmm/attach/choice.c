/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/choice.h"

/* In each cycle of CYCLE samples, PROBE consecutive ones use the technique that is not preferred. */
#define PROBE 32u
#define CYCLE 512u
/* Length of a tally of recent samples. A longer one is halved. */
#define WINDOW 2048u
/* ptrace is preferred if it sees this many percent more of the periods. */
#define MARGIN_PCT 10u
/* With fewer hits than one in FEW_HITS samples, BPF only adds a detour to ptrace. */
#define FEW_HITS 16u

enum choice_technique choice_next(const struct choice *c)
{
	/* The run begins with a probe of each technique. */
	if (c->turns < 2 * PROBE)
		return c->turns < PROBE ? CHOICE_BPF : CHOICE_PTRACE;
	if (c->turns % CYCLE >= PROBE)
		return c->preferred;
	return c->preferred == CHOICE_BPF ? CHOICE_PTRACE : CHOICE_BPF;
}

static bool is_ptrace_better(const struct choice *c)
{
	const struct choice_tally *b = &c->recent[CHOICE_BPF], *p = &c->recent[CHOICE_PTRACE];

	if (b->hits * FEW_HITS < b->samples)
		return true;
	/* p->samples / p->periods > (1 + margin) * b->samples / b->periods */
	return p->samples * b->periods * 100 > b->samples * p->periods * (100 + MARGIN_PCT);
}

static void choice_tally_add(struct choice_tally *t, uint64_t periods, bool hit)
{
	t->samples++;
	t->periods += periods;
	t->hits += hit;
}

void choice_note(struct choice *c, enum choice_technique first, uint64_t periods, bool hit)
{
	struct choice_tally *t = &c->recent[first];

	choice_tally_add(&c->all[first], periods, hit);
	choice_tally_add(t, periods, hit);
	if (t->samples > WINDOW) {
		t->samples /= 2;
		t->periods /= 2;
		t->hits /= 2;
	}
	c->turns++;
	if (c->turns == 2 * PROBE || (c->turns > CYCLE && c->turns % CYCLE == PROBE))
		c->preferred = is_ptrace_better(c) ? CHOICE_PTRACE : CHOICE_BPF;
}
