/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/diverge/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "symbolizer/core/demangle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct naming {
	struct reader in;
	struct srcline *lines; /* NULL: none */
	struct display_names display;
};

static uint64_t stacks_number(const struct diverge *d, unsigned int side, enum diverge_place place)
{
	switch (place) {
	case DIVERGE_LAST:
		return d->flow.found ? d->flow.last.number : 0;
	case DIVERGE_NEXT:
		return d->flow.found ? d->flow.next[side].number : 0;
	default:
		return d->value.found ? d->value.insn.number : 0;
	}
}

/* Plans a run that takes a sample at each place, in the order of instructions. */
static void stacks_plan(struct diverge *d, unsigned int side)
{
	struct exact_trace *t = &d->side[side].plan;

	t->nat = 0;
	for (unsigned int p = 0; p < DIVERGE_PLACE_MAX; p++) {
		uint64_t number = stacks_number(d, side, p);
		unsigned int at = 0;

		while (at < t->nat && t->at[at] < number)
			at++;
		if (!number || (at < t->nat && t->at[at] == number))
			continue;
		memmove(&t->at[at + 1], &t->at[at], (t->nat - at) * sizeof(t->at[0]));
		t->at[at] = number;
		t->nat++;
	}
}

/* -- names ------------------------------------------------------------------------------------ */

static void stacks_name_frame(struct naming *n, struct names_view view,
			      const struct perfdata_frame *f, struct diverge_frame *out)
{
	struct srcline_result at = { 0 };
	struct name name;
	uint64_t addr = names_lookup_frame(n->in.names, view, f, n->in.p->ours, &name);
	uint64_t line_addr = addr;

	out->ip = f->ip;
	if (name.symbol && asprintf(&out->symbol, "%s+0x%" PRIx64,
				    demangle_shown(&n->display, name.symbol, f->kernel),
				    names_shown_off(&name) + (f->ip - addr)) < 0)
		out->symbol = NULL;
	if (name.dso[0] != '[' || strcmp(name.dso, "[unknown]") != 0)
		out->dso = strdup(name.dso);
	if (n->lines && f->kernel && names_to_first_kernel(&name, &line_addr))
		at = srcline_of(n->lines, line_addr);
	if (at.n && at.frame[0].line &&
	    asprintf(&out->line, "%s:%u", at.frame[0].file ? at.frame[0].file : "??",
		     at.frame[0].line) < 0)
		out->line = NULL;
}

static int stacks_take(struct naming *n, const struct perfdata_record *r, struct diverge_stack *out,
		       struct err *e)
{
	struct names_view view = names_view(n->in.names, r->pid);
	struct perfdata_walk walk;
	struct perfdata_frame f;
	size_t cap = 0, count = 0;

	out->pid = r->pid;
	out->cpu = r->cpu;
	out->comm = strdup(tasks_text(n->in.tasks, tasks_name(n->in.tasks, r->tid)));
	perfdata_walk_begin(&walk, r);
	while (count < STACKS_MAX_FRAMES && perfdata_walk_next(&walk, &f)) {
		if (ARRAY_ROOM(out->frame, count, cap))
			return err_nomem(e);
		out->frame[count] = (struct diverge_frame){ 0 };
		stacks_name_frame(n, view, &f, &out->frame[count++]);
		out->n = (unsigned int)count;
	}
	return 0;
}

/* The time of a sample determines its instruction. */
static int stacks_read(struct diverge *d, unsigned int side, const char *path,
		       const struct diverge_options *o, struct err *e)
{
	const struct reader_options from = { .input = path };
	struct naming n = { 0 };
	struct perfdata_record r;
	int ret = reader_open(&n.in, &from, e);

	if (ret)
		return ret;
	demangle_names_init(&n.display, DEMANGLE_PROGRAMS);
	ret = srcline_create(&n.lines, &o->places, e);
	if (!ret) {
		srcline_set_profile(n.lines, n.in.p);
		n.in.lines = n.lines;
	}
	while (!ret && (ret = reader_next(&n.in, &r, e)) > 0) {
		ret = 0;
		for (unsigned int p = 0; p < DIVERGE_PLACE_MAX && !ret; p++) {
			uint64_t number = stacks_number(d, side, p);

			if (r.kind == PERFDATA_SAMPLE && number && !d->stack[side][p].n &&
			    r.time_ns == EXACT_NS_AT(number))
				ret = stacks_take(&n, &r, &d->stack[side][p], e);
		}
		if (ret)
			break;
	}
	srcline_destroy(n.lines);
	demangle_names_deinit(&n.display);
	reader_close(&n.in);
	return ret;
}

/* -- the runs --------------------------------------------------------------------------------- */

static int stacks_run(struct diverge *d, const char *dir, const struct diverge_options *o,
		      struct err *e)
{
	cleanup_free char *a = NULL, *b = NULL;
	int ret;

	if (asprintf(&a, "%s/a", dir) < 0 || asprintf(&b, "%s/b", dir) < 0)
		return err_nomem(e);
	for (unsigned int i = 0; i < 2; i++) {
		stacks_plan(d, i);
		d->side[i].plan.plan = (struct trace_plan){ 0 };
		d->side[i].output = i ? b : a;
	}
	/* Traced as before, so that instructions are counted alike. */
	ret = rerun_both(d->side, true, NULL, e);
	ret = ret ? ret : stacks_read(d, 0, a, o, e);
	ret = ret ? ret : stacks_read(d, 1, b, o, e);
	d->side[0].output = d->side[1].output = NULL;
	return ret;
}

int diverge_find_stacks(struct diverge *d, const struct diverge_options *o, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	cleanup_free char *dir = NULL;
	int ret;

	if (asprintf(&dir, "%s/kvmprof-diverge.XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0)
		return err_nomem(e);
	if (!mkdtemp(dir))
		return err_set(e, errno, "%s: cannot make a directory there: %s",
			       tmp && *tmp ? tmp : "/tmp", strerror(errno));
	ret = stacks_run(d, dir, o, e);
	(void)file_remove_tree(dir, NULL);
	return ret;
}

void diverge_free_stacks(struct diverge *d)
{
	for (unsigned int i = 0; i < 2 * DIVERGE_PLACE_MAX; i++) {
		struct diverge_stack *s = &d->stack[i / DIVERGE_PLACE_MAX][i % DIVERGE_PLACE_MAX];

		for (unsigned int k = 0; k < s->n; k++) {
			free(s->frame[k].symbol);
			free(s->frame[k].line);
			free(s->frame[k].dso);
		}
		free(s->frame);
		free(s->comm);
	}
}
