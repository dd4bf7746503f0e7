/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/stackset.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/analyse/stacks/stackset_build.h"
#include "profile/analyse/stacks/stackset_names.h"
#include "profile/format/sink/exittime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1e9
#define DROPPED UINT32_MAX /* marks a raw stack whose samples are filtered out */

/* A set with the memory that it owns. */
struct owned_set {
	struct stackset set;
	struct texts texts;
	uint32_t *pool;
};

/* -- samples -------------------------------------------------------------------------------- */

static bool equal_raw(const void *a, const void *b, const void *ctx)
{
	const struct raw_stack *x = a, *y = b;

	(void)ctx;
	return x->task == y->task && chain_equal(&x->chain, &y->chain);
}

static bool equal_task(const void *a, const void *b, const void *ctx)
{
	const struct built_task *x = a, *y = b;

	(void)ctx;
	return x->t.pid == y->t.pid && x->t.tid == y->t.tid && x->comm == y->comm;
}

static int task_of(struct stackset_build *b, const struct perfdata_record *r, uint32_t comm,
		   uint32_t *out)
{
	struct built_task like = { .t = { .pid = r->pid, .tid = r->tid }, .comm = comm }, *t;
	bool fresh;

	if (table_add(&b->task, table_mix(r->pid, (uint64_t)r->tid << 32 | comm), &like, out,
		      &fresh) < 0)
		return -ENOMEM;
	if (!fresh)
		return 0;
	t = (struct built_task *)b->task.item + *out;
	t->t.comm = texts_add(&b->texts, tasks_text(b->in.tasks, comm));
	return t->t.comm ? 0 : -ENOMEM;
}

static int copy_chain(struct stackset_build *b, struct raw_stack *s)
{
	size_t len = 8 * (size_t)s->chain.nr;

	if (!b->chains || BLOCK_LEN - b->chains->used < len) {
		struct block *fresh = malloc(sizeof(*fresh));

		if (!fresh)
			return -ENOMEM;
		fresh->before = b->chains;
		fresh->used = 0;
		b->chains = fresh;
	}
	if (len)
		s->chain.words = memcpy(b->chains->data + b->chains->used, s->chain.words, len);
	b->chains->used += len;
	return 0;
}

static int keep_sample(struct stackset_build *b, const struct perfdata_record *r, uint32_t raw)
{
	if (ARRAY_ROOM(b->sample, b->nsamples, b->sample_cap))
		return -ENOMEM;
	b->sample[b->nsamples++] = (struct stackset_sample){
		.time_ns = r->time_ns,
		.weight = r->sample.period,
		.exit_ns = b->in.p->ours ? exittime_parse(r->sample.raw, r->sample.raw_len) : 0,
		.stack = raw,
		.cpu = r->cpu,
	};
	return 0;
}

static int add_sample(struct stackset_build *b, const struct perfdata_record *r)
{
	uint32_t comm = tasks_name(b->in.tasks, r->tid), index;
	struct raw_stack like = { .chain = chain_of(r, b->in.names) };
	struct raw_stack *s;
	bool fresh;

	if (!selection_sample(&b->selection, r))
		return 0;
	if (task_of(b, r, comm, &like.task) < 0 ||
	    table_add(&b->raw, chain_hash(&like.chain, like.task), &like, &index, &fresh) < 0)
		return -ENOMEM;
	s = (struct raw_stack *)b->raw.item + index;
	if (fresh && copy_chain(b, s) < 0)
		return -ENOMEM;
	s->samples++;
	s->weight += r->sample.period;
	b->samples++;
	b->weight += r->sample.period;
	return b->opt.keep_samples ? keep_sample(b, r, index) : 0;
}

static int add_marker(struct stackset_build *b, const struct perfdata_record *r)
{
	struct stackset_marker *m;

	if (b->nmarkers == STACKSET_MAX_MARKERS)
		return 0;
	if (ARRAY_ROOM(b->marker, b->nmarkers, b->marker_cap))
		return -ENOMEM;
	m = &b->marker[b->nmarkers];
	*m = (struct stackset_marker){ .time_ns = r->time_ns,
				       .name = stackset_clean(b, r->marker_name),
				       .kind = r->marker_kind };
	if (!m->name)
		return -ENOMEM;
	b->nmarkers++;
	return 0;
}

static int read_records(struct stackset_build *b, struct err *e)
{
	struct perfdata_record r;
	int ret;

	while ((ret = reader_next(&b->in, &r, e)) > 0) {
		if (r.kind == PERFDATA_SAMPLE && add_sample(b, &r) < 0)
			return err_set(e, ENOMEM, "out of memory after %zu different stacks",
				       b->raw.n);
		if (r.kind == PERFDATA_MARKER && add_marker(b, &r) < 0)
			return err_set(e, ENOMEM, "out of memory after %zu markers", b->nmarkers);
	}
	return ret;
}

/* -- stacks ---------------------------------------------------------------------------------- */

static int push_frame(struct stackset_build *b, uint32_t frame)
{
	if (ARRAY_ROOM(b->pool, b->pool_len, b->pool_cap))
		return -ENOMEM;
	b->pool[b->pool_len++] = frame;
	return 0;
}

static bool equal_stack(const void *a, const void *b, const void *ctx)
{
	const struct built_stack *x = a, *y = b;
	const struct stackset_build *v = ctx;

	return x->s.n == y->s.n && x->s.task == y->s.task && x->s.mode == y->s.mode &&
	       (!x->s.n ||
		!memcmp(v->pool + x->first, v->pool + y->first, x->s.n * sizeof(*v->pool)));
}

/* Appends the frames of a raw stack to the pool; *mode becomes that of the innermost one. */
static int push_frames(struct stackset_build *b, const struct raw_stack *raw, uint8_t *mode)
{
	size_t first = b->pool_len;
	struct perfdata_walk walk;
	struct perfdata_frame f;
	uint32_t frame;

	chain_walk_begin(&walk, &raw->chain);
	while (perfdata_walk_next(&walk, &f)) {
		if (!selection_frame(b->opt.selection, &f))
			continue;
		if (b->pool_len == first)
			*mode = f.owner		  ? STACKSET_GUEST
				: raw->chain.idle ? STACKSET_IDLE
				: f.kernel	  ? STACKSET_KERNEL
						  : STACKSET_USER;
		if (stackset_frame_of(b, raw->chain.view, &f, &frame) < 0 ||
		    push_frame(b, frame) < 0)
			return -ENOMEM;
	}
	if (!b->opt.where)
		return 0;
	return stackset_where(b, chain_where(&raw->chain), &frame) < 0 ? -ENOMEM
								       : push_frame(b, frame);
}

/* Returns whether the named frames from `first` on pass the selection's choice of functions. */
static bool frames_pass(const struct stackset_build *b, size_t first)
{
	const struct stackset_frame *frame = b->frame.item;
	const struct built_func *func = b->func.item;
	bool parent = !b->opt.selection || !b->opt.selection->parent;

	if (!selection_needs_chain(b->opt.selection) || b->pool_len == first)
		return parent;
	if (!b->opt.keep_unchosen && func[frame[b->pool[first]].func].f.hidden)
		return false;
	for (size_t i = first; i < b->pool_len && !parent; i++)
		parent = func[frame[b->pool[i]].func].parent;
	return parent;
}

/*
 * Stacks whose mappings differ but whose names are equal become one. Those that the selection refuses
 * are dropped only here, because their names are known here.
 */
static int name_stack(struct stackset_build *b, struct raw_stack *raw)
{
	struct built_stack like = { .first = b->pool_len, .s = { .task = raw->task } }, *s;
	uint64_t hash;
	uint32_t index;
	bool fresh;

	if (push_frames(b, raw, &like.s.mode) < 0)
		return -ENOMEM;
	if (!frames_pass(b, like.first)) {
		b->pool_len = like.first;
		b->samples -= raw->samples;
		b->weight -= raw->weight;
		raw->stack = DROPPED;
		return 0;
	}
	like.s.n = (uint32_t)(b->pool_len - like.first);
	hash = table_mix((uint64_t)like.s.n << 32 | like.s.mode, like.s.task);
	for (uint32_t i = 0; i < like.s.n; i++)
		hash = table_mix(hash, b->pool[like.first + i]);
	if (table_add(&b->stack, hash, &like, &index, &fresh) < 0)
		return -ENOMEM;
	if (!fresh)
		b->pool_len = like.first;
	s = (struct built_stack *)b->stack.item + index;
	s->s.weight += raw->weight;
	s->s.samples += raw->samples;
	b->mode_weight[s->s.mode] += raw->weight;
	raw->stack = index;
	return 0;
}

static int name_stacks(struct stackset_build *b, struct err *e)
{
	struct raw_stack *raw = b->raw.item;
	size_t left = 0;

	for (size_t i = 0; i < b->raw.n; i++)
		if (name_stack(b, &raw[i]) < 0)
			return err_set(e, ENOMEM, "out of memory after %zu stacks", b->stack.n);
	for (size_t i = 0; i < b->nsamples; i++) {
		struct stackset_sample s = b->sample[i];

		s.stack = raw[s.stack].stack;
		if (s.stack != DROPPED)
			b->sample[left++] = s;
	}
	b->nsamples = left;
	return 0;
}

/* -- the result ------------------------------------------------------------------------------- */

/* Like calloc(), but returns memory for 0 items, too. */
static void *make_array(size_t n, size_t size)
{
	return calloc(n ? n : 1, size);
}

static int fill_arrays(struct stackset_build *b, struct stackset *s)
{
	struct stackset_func *func = make_array(b->func.n, sizeof(*func));
	struct stackset_task *task = make_array(b->task.n, sizeof(*task));
	struct stackset_stack *stack = make_array(b->stack.n, sizeof(*stack));

	s->func = func;
	s->task = task;
	s->stack = stack;
	s->frame = b->frame.item ? take_ptr(b->frame.item)
				 : make_array(0, sizeof(struct stackset_frame));
	if (b->opt.keep_samples)
		s->sample = b->sample ? take_ptr(b->sample)
				      : make_array(0, sizeof(struct stackset_sample));
	if (!func || !task || !stack || !s->frame || (b->opt.keep_samples && !s->sample))
		return -ENOMEM;
	for (size_t i = 0; i < b->func.n; i++)
		func[i] = ((struct built_func *)b->func.item)[i].f;
	for (size_t i = 0; i < b->task.n; i++)
		task[i] = ((struct built_task *)b->task.item)[i].t;
	for (size_t i = 0; i < b->stack.n; i++) {
		const struct built_stack *from = (struct built_stack *)b->stack.item + i;

		stack[i] = from->s;
		stack[i].frame = b->pool + from->first;
	}
	s->nfuncs = b->func.n;
	s->nframes = b->frame.n;
	s->ntasks = b->task.n;
	s->nstacks = b->stack.n;
	s->nsamples = b->nsamples;
	if (b->marker)
		s->marker = take_ptr(b->marker);
	s->nmarkers = b->nmarkers;
	return 0;
}

/* Returns true if the event is a clock of kvmprof or perf. */
static bool counts_ns(const struct perfdata *p)
{
	return (p->ours && (!strcmp(p->event, "wall") || !strcmp(p->event, "host") ||
			    !strcmp(p->event, "off-cpu") || !strcmp(p->event, "host-threads"))) ||
	       stackset_begins(p->event, "cpu-clock") || stackset_begins(p->event, "task-clock");
}

static int fill_facts(struct stackset_build *b, struct stackset *s)
{
	const struct perfdata *p = b->in.p;
	uint64_t left = names_left_out(b->in.names);
	char text[80], note[NAMES_NOTE_MAX];
	struct err missed = { 0 };

	(void)selection_missed(&b->selection, &missed);
	s->missed = stackset_clean(b, missed.text);
	s->samples = b->samples;
	s->weight = b->weight;
	memcpy(s->mode_weight, b->mode_weight, sizeof(s->mode_weight));
	s->lost = p->nlost;
	s->first_ns = p->first_ns > b->window.from_ns ? p->first_ns : b->window.from_ns;
	s->last_ns = p->last_ns < b->window.to_ns ? p->last_ns : b->window.to_ns;
	if (s->last_ns < s->first_ns)
		s->last_ns = s->first_ns;
	s->ncpus = p->ncpus;
	s->weight_is_ns = counts_ns(p);
	s->counted = p->counted;
	s->ours = p->ours;
	s->partial = p->partial || left;
	s->event = stackset_clean(b, p->event[0] ? p->event : "event");
	s->osrelease = stackset_clean(b, p->osrelease);
	s->guest = stackset_clean(b, p->guest);
	snprintf(text, sizeof(text), "%" PRIu64 " mappings of programs are left out: too many",
		 left);
	names_note(b->in.names, note);
	s->note = stackset_clean(b, note);
	s->message = stackset_clean(b, p->partial ? p->message : left ? text : "");
	if (p->json) {
		char *json = strndup(p->json, p->json_len);

		s->json = json ? texts_add(&b->texts, json) : NULL;
		free(json);
		if (!s->json)
			return -ENOMEM;
	}
	return s->event && s->osrelease && s->guest && s->message && s->note && s->missed ? 0
											  : -ENOMEM;
}

static int make_set(struct stackset_build *b, struct stackset **out, struct err *e)
{
	struct owned_set *o = calloc(1, sizeof(*o));

	if (!o)
		return err_nomem(e);
	if (fill_facts(b, &o->set) < 0 || fill_arrays(b, &o->set) < 0) {
		stackset_destroy(&o->set);
		return err_set(e, ENOMEM, "out of memory for %zu stacks", b->stack.n);
	}
	o->texts = b->texts;
	b->texts = (struct texts){ 0 };
	o->pool = take_ptr(b->pool);
	*out = &o->set;
	return 0;
}

void stackset_destroy(struct stackset *s)
{
	struct owned_set *o = (struct owned_set *)s; /* the first member of struct owned_set */

	if (!o)
		return;
	free((void *)s->func);
	free((void *)s->frame);
	free((void *)s->task);
	free((void *)s->stack);
	free((void *)s->sample);
	free((void *)s->marker);
	free(o->pool);
	texts_deinit(&o->texts);
	free(o);
}

static int stackset_build(struct stackset_build *b, struct stackset **out, struct err *e)
{
	const struct reader_options from = { .input = b->opt.input,
					     .event = b->opt.event,
					     .epoch = b->opt.epoch,
					     .buildid_dir = b->opt.buildid_dir };
	int ret = reader_open(&b->in, &from, e);

	if (ret)
		return ret;
	names_set_relaxed(b->in.names, b->opt.relaxed);
	ret = selection_set_window(b->opt.selection, b->in.p, b->opt.input, b->opt.buildid_dir,
				   &b->window, e);
	if (ret)
		return ret;
	selection_use_init(&b->selection, b->opt.selection, b->in.names, b->in.tasks, &b->display);
	ret = read_records(b, e);
	if (ret)
		return ret;
	ret = name_stacks(b, e);
	if (ret)
		return ret;
	ret = names_read_error(b->in.names, e);
	if (ret)
		return ret;
	return make_set(b, out, e);
}

static void free_chains(struct stackset_build *b)
{
	while (b->chains) {
		struct block *before = b->chains->before;

		free(b->chains);
		b->chains = before;
	}
}

int stackset_load(struct stackset **out, const struct stackset_options *opt, struct err *e)
{
	struct stackset_build b = {
		.opt = *opt,
		.raw = TABLE_OF(struct raw_stack, equal_raw),
		.addr = TABLE_OF(struct raw_addr, stackset_equal_addr),
		.func = TABLE_OF(struct built_func, stackset_equal_func),
		.frame = TABLE_OF(struct stackset_frame, stackset_equal_frame),
		.task = TABLE_OF(struct built_task, equal_task),
		.stack = TABLE_OF(struct built_stack, equal_stack),
	};
	int ret;

	b.stack.ctx = &b;
	demangle_names_init(&b.display, opt->no_demangle ? DEMANGLE_NONE : DEMANGLE_PROGRAMS);
	ret = stackset_build(&b, out, e);
	table_deinit(&b.raw);
	table_deinit(&b.addr);
	table_deinit(&b.func);
	table_deinit(&b.frame);
	table_deinit(&b.task);
	table_deinit(&b.stack);
	free(b.sample);
	free(b.marker);
	free(b.pool);
	free_chains(&b);
	selection_use_deinit(&b.selection);
	texts_deinit(&b.texts);
	demangle_names_deinit(&b.display);
	reader_close(&b.in);
	return ret;
}
