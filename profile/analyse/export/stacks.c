/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/export/stacks.h"

#include "base/cleanup.h"
#include "base/sample.h"
#include "base/table.h"
#include "base/texts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* -- labels ------------------------------------------------------------------------------------ */

struct export_labels {
	struct table label; /* struct export_label */
	struct texts texts;
	uint32_t *of_frame; /* for each frame: its outer label */
	uint32_t *inner;    /* for each frame: its inner label, or NONE; NULL: no frame has one */
	uint32_t *stack;    /* result of the last export_stack_labels() */
	size_t cap;
};

static bool equal_label(const void *a, const void *b, const void *ctx)
{
	const struct export_label *x = a, *y = b;

	(void)ctx;
	/* Texts are stored once. */
	return x->text == y->text && x->dso == y->dso && x->kind == y->kind;
}

static int add_label(struct export_labels *l, const struct stackset_func *f, uint32_t func,
		     const char *text, uint32_t *out)
{
	struct export_label like = { .text = texts_add(&l->texts, text),
				     .dso = texts_add(&l->texts, f->dso),
				     .func = func,
				     .kind = f->kind };
	bool fresh;

	if (!like.text || !like.dso)
		return -ENOMEM;
	return table_add(&l->label,
			 table_mix((uint64_t)(uintptr_t)like.text,
				   (uint64_t)(uintptr_t)like.dso ^ like.kind),
			 &like, out, &fresh);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Returns the text for a function, which the caller frees; NULL if out of memory. */
static char *plain_text(const struct stackset_func *f)
{
	char *text;

	if (f->named)
		return strdup(f->name);
	if (*f->dso == '[')
		return strdup(f->dso);
	return asprintf(&text, "[%s]", last_part(f->dso)) < 0 ? NULL : text;
}

/* Returns the text for f with the offset off, which the caller frees; NULL if out of memory. */
static char *offset_text(const struct stackset_func *f, uint64_t off)
{
	char *text;

	if (!f->named)
		return strdup(f->name);
	return asprintf(&text, "%s+0x%" PRIx64, f->name, off) < 0 ? NULL : text;
}

static int label_frame(struct export_labels *l, const struct stackset *s, size_t i,
		       enum export_names names)
{
	const struct stackset_frame *fr = &s->frame[i];
	const struct stackset_func *f = &s->func[fr->func];
	cleanup_free char *text = plain_text(f), *with_off = offset_text(f, fr->off);
	int ret;

	if (!text || !with_off)
		return -ENOMEM;
	ret = add_label(l, f, fr->func, names == EXPORT_OFFSET ? with_off : text, &l->of_frame[i]);
	if (!ret && names == EXPORT_BOTH)
		ret = add_label(l, f, fr->func, with_off, &l->inner[i]);
	return ret;
}

int export_labels_create(struct export_labels **out, const struct stackset *s,
			 enum export_names names, struct err *e)
{
	struct export_labels *l = calloc(1, sizeof(*l));
	size_t deepest = 1;
	int ret = 0;

	if (!l)
		return err_nomem(e);
	l->label = TABLE_OF(struct export_label, equal_label);
	for (size_t i = 0; i < s->nstacks; i++)
		if (s->stack[i].n > deepest)
			deepest = s->stack[i].n;
	l->cap = deepest * 2;
	l->stack = calloc(l->cap, sizeof(*l->stack));
	l->of_frame = calloc(s->nframes + 1, sizeof(*l->of_frame));
	if (names == EXPORT_BOTH)
		l->inner = calloc(s->nframes + 1, sizeof(*l->inner));
	if (!l->stack || !l->of_frame || (names == EXPORT_BOTH && !l->inner))
		ret = -ENOMEM;
	for (size_t i = 0; !ret && i < s->nframes; i++)
		ret = label_frame(l, s, i, names);
	if (ret) {
		export_labels_destroy(l);
		return err_set(e, -ret, "out of memory for the names of %zu frames", s->nframes);
	}
	*out = l;
	return 0;
}

void export_labels_destroy(struct export_labels *l)
{
	if (!l)
		return;
	table_deinit(&l->label);
	texts_deinit(&l->texts);
	free(l->of_frame);
	free(l->inner);
	free(l->stack);
	free(l);
}

size_t export_labels_count(const struct export_labels *l)
{
	return l->label.n;
}

const struct export_label *export_label(const struct export_labels *l, uint32_t i)
{
	return (const struct export_label *)l->label.item + i;
}

size_t export_stack_labels(struct export_labels *l, const struct stackset_stack *st,
			   const uint32_t **out)
{
	size_t n = 0;

	for (uint32_t i = st->n; i-- > 0;) {
		l->stack[n++] = l->of_frame[st->frame[i]];
		if (l->inner)
			l->stack[n++] = l->inner[st->frame[i]];
	}
	*out = l->stack;
	return n;
}

/* -- trees ------------------------------------------------------------------------------------- */

struct export_tree {
	struct table node; /* struct export_node */
};

static bool equal_node(const void *a, const void *b, const void *ctx)
{
	const struct export_node *x = a, *y = b;

	(void)ctx;
	return x->parent == y->parent && x->label == y->label;
}

struct export_tree *export_tree_create(void)
{
	struct export_tree *t = calloc(1, sizeof(*t));

	if (t)
		t->node = TABLE_OF(struct export_node, equal_node);
	return t;
}

void export_tree_destroy(struct export_tree *t)
{
	if (!t)
		return;
	table_deinit(&t->node);
	free(t);
}

int export_tree_add(struct export_tree *t, uint32_t parent, uint32_t label, uint32_t *node)
{
	struct export_node like = { .parent = parent, .label = label };
	bool fresh;

	return table_add(&t->node, table_mix(parent, label), &like, node, &fresh);
}

size_t export_tree_count(const struct export_tree *t)
{
	return t->node.n;
}

struct export_node *export_node(struct export_tree *t, uint32_t i)
{
	return (struct export_node *)t->node.item + i;
}

/* -- tracks ------------------------------------------------------------------------------------ */

/* Stores the track of a sample as a node of a tree: the pid, below it the tid or the vCPU. */
static int track_of(struct export_tree *keys, const struct stackset *s,
		    const struct stackset_sample *sample, bool by_cpu, uint32_t *out)
{
	const struct stackset_task *task = &s->task[s->stack[sample->stack].task];
	int ret;

	if (by_cpu)
		return export_tree_add(keys, EXPORT_ROOT, sample->cpu, out);
	ret = export_tree_add(keys, EXPORT_ROOT, task->pid, out);
	/* pid 0 is one thread for each vCPU. */
	return ret ? ret : export_tree_add(keys, *out, task->pid ? task->tid : sample->cpu, out);
}

static void fill_tracks(struct export_tracks *t, const struct stackset *s, const uint32_t *of,
			bool by_cpu)
{
	size_t at = 0;

	for (size_t i = 0; i < s->nsamples; i++) {
		struct export_track *tr = &t->track[of[i]];

		tr->task = s->stack[s->sample[i].stack].task;
		if (!tr->n++) {
			tr->first_task = tr->task;
			tr->cpu = s->sample[i].cpu;
			tr->idle = !by_cpu && !s->task[tr->task].pid;
		}
		tr->weight += s->sample[i].weight;
	}
	for (size_t i = 0; i < t->n; i++) {
		t->track[i].sample = t->samples + at;
		at += t->track[i].n;
		t->track[i].n = 0;
	}
	for (size_t i = 0; i < s->nsamples; i++) {
		struct export_track *tr = &t->track[of[i]];

		t->samples[(size_t)(tr->sample - t->samples) + tr->n++] = (uint32_t)i;
	}
}

int export_tracks_create(struct export_tracks *t, const struct stackset *s,
			 enum export_track_of key, struct err *e)
{
	const bool by_cpu = key == EXPORT_TRACK_OF_VCPU;
	struct export_tree *keys = export_tree_create();
	uint32_t *of = calloc(s->nsamples + 1, sizeof(*of));
	int ret = keys && of ? 0 : -ENOMEM;

	*t = (struct export_tracks){ 0 };
	for (size_t i = 0; !ret && i < s->nsamples; i++)
		ret = track_of(keys, s, &s->sample[i], by_cpu, &of[i]);
	/* Remove the pids' nodes, which have no samples. */
	for (size_t i = 0; !ret && i < s->nsamples; i++)
		export_node(keys, of[i])->samples = 1;
	if (!ret) {
		uint64_t n = 0;

		for (size_t i = 0; i < export_tree_count(keys); i++) {
			struct export_node *node = export_node(keys, (uint32_t)i);

			node->weight = n;
			n += node->samples;
		}
		for (size_t i = 0; i < s->nsamples; i++)
			of[i] = (uint32_t)export_node(keys, of[i])->weight;
		t->n = n;
		t->track = calloc(t->n + 1, sizeof(*t->track));
		t->samples = calloc(s->nsamples + 1, sizeof(*t->samples));
		ret = t->track && t->samples ? 0 : -ENOMEM;
	}
	if (!ret)
		fill_tracks(t, s, of, by_cpu);
	else
		export_tracks_destroy(t);
	export_tree_destroy(keys);
	free(of);
	return ret ? err_set(e, -ret, "out of memory for %zu samples", s->nsamples) : 0;
}

void export_tracks_destroy(struct export_tracks *t)
{
	free(t->track);
	free(t->samples);
	*t = (struct export_tracks){ 0 };
}

void export_track_name(const struct export_track *t, const struct stackset *s,
		       enum export_track_of key, char *text, size_t size)
{
	const struct stackset_task *task = &s->task[t->task];

	if (key == EXPORT_TRACK_OF_VCPU && t->cpu == SAMPLE_NO_CPU)
		snprintf(text, size, "no vCPU");
	else if (key == EXPORT_TRACK_OF_VCPU)
		snprintf(text, size, "vCPU %u", t->cpu);
	else if (t->idle)
		snprintf(text, size, "%s (vCPU %u)", task->comm, t->cpu);
	else if (!strcmp(task->comm, s->task[t->first_task].comm))
		snprintf(text, size, "%s %u", task->comm, task->tid);
	else
		snprintf(text, size, "%s %u (was %s)", task->comm, task->tid,
			 s->task[t->first_task].comm);
}
