/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The samples of one event as columns, for the page's script (store.js).
 *
 * A column is a sequence of LEB128 numbers. Signed differences are zigzag-coded. The object in the
 * JSON text has "strings", and for each column [offset, bytes, numbers]:
 *
 *   fname fdso fkind     functions: string, string, enum stackset_kind
 *   ffunc foff           frames: function, offset in it
 *   tpid ttid tcomm      tasks: numbers, string
 *   nup nitem            nodes of the call tree; node 0 is the root. nup is this node's number
 *                        minus its parent's; nitem is a string (the task's name) below the root,
 *                        otherwise a frame. Parents have smaller numbers.
 *   snode stask skind    stacks: innermost node, task, mode * 16 + where (see below)
 *   mtime mstack mcpu mweight   samples by time: difference in ns (signed), stack, vCPU + 1 or 0,
 *                        difference of weights (signed)
 *
 * where is enum sample_where + 1, or 0 if the stack does not show the state of the vCPU's thread.
 */
#include "profile/analyse/html/private.h"

#include "base/cleanup.h"
#include "base/sample.h"
#include "base/table.h"
#include "profile/format/sink/where.h"

#include <errno.h>
#include <stdlib.h>

#define LEB_MAX 10u
#define WHERE_BITS 4u

/* A node of the call tree. */
struct html_node {
	uint32_t parent, item;
};

struct html_data {
	struct buf *out;
	struct json_writer *w;
	const struct stackset *s;
	struct table strings; /* const char *, compared as pointers */
	struct table nodes;   /* struct html_node */
};

static bool equal_string(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const char *const *)a == *(const char *const *)b;
}

static bool equal_view_node(const void *a, const void *b, const void *ctx)
{
	const struct html_node *x = a, *y = b;

	(void)ctx;
	return x->parent == y->parent && x->item == y->item;
}

/* -- columns --------------------------------------------------------------------------------- */

struct column {
	struct buf *out;
	struct json_writer *w;
	const char *name;
	size_t from;
	uint64_t n;
};

static struct column column_begin(struct html_data *d, const char *name)
{
	return (struct column){ d->out, d->w, name, d->out->len, 0 };
}

static void column_put(struct column *c, uint64_t v)
{
	uint8_t *p = buf_reserve(c->out, LEB_MAX);
	size_t n = 0;

	if (!p)
		return;
	while (v >= 0x80) {
		p[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	p[n++] = (uint8_t)v;
	c->out->len += n;
	c->n++;
}

/* Writes to - from, which wraps around as unsigned numbers do. */
static void column_put_step(struct column *c, uint64_t from, uint64_t to)
{
	uint64_t step = to - from;

	column_put(c, step << 1 ^ (0 - (step >> 63)));
}

static void column_end(const struct column *c)
{
	json_array_begin(c->w, c->name);
	json_u64(c->w, NULL, c->from);
	json_u64(c->w, NULL, c->out->len - c->from);
	json_u64(c->w, NULL, c->n);
	json_array_end(c->w);
}

/* -- tables ---------------------------------------------------------------------------------- */

static uint32_t string_of(struct html_data *d, const char *text)
{
	uint32_t index = 0;
	bool fresh;

	text = text ? text : "";
	if (table_add(&d->strings, table_mix((uint64_t)(uintptr_t)text, 0), &text, &index, &fresh))
		d->out->failed = true;
	return index;
}

static void put_functions(struct html_data *d)
{
	const struct stackset *s = d->s;
	struct column c = column_begin(d, "fname");

	for (size_t i = 0; i < s->nfuncs; i++)
		column_put(&c, string_of(d, s->func[i].name));
	column_end(&c);
	c = column_begin(d, "fdso");
	for (size_t i = 0; i < s->nfuncs; i++)
		column_put(&c, string_of(d, s->func[i].dso));
	column_end(&c);
	c = column_begin(d, "fkind");
	for (size_t i = 0; i < s->nfuncs; i++)
		column_put(&c, s->func[i].kind);
	column_end(&c);
}

static void put_frames(struct html_data *d)
{
	const struct stackset *s = d->s;
	struct column c = column_begin(d, "ffunc");

	for (size_t i = 0; i < s->nframes; i++)
		column_put(&c, s->frame[i].func);
	column_end(&c);
	c = column_begin(d, "foff");
	for (size_t i = 0; i < s->nframes; i++)
		column_put(&c, s->frame[i].off);
	column_end(&c);
}

static void put_tasks(struct html_data *d)
{
	const struct stackset *s = d->s;
	struct column c = column_begin(d, "tpid");

	for (size_t i = 0; i < s->ntasks; i++)
		column_put(&c, s->task[i].pid);
	column_end(&c);
	c = column_begin(d, "ttid");
	for (size_t i = 0; i < s->ntasks; i++)
		column_put(&c, s->task[i].tid);
	column_end(&c);
	c = column_begin(d, "tcomm");
	for (size_t i = 0; i < s->ntasks; i++)
		column_put(&c, string_of(d, s->task[i].comm));
	column_end(&c);
}

/* -- stacks ---------------------------------------------------------------------------------- */

/* Returns enum sample_where + 1, or 0 if no frame shows where the thread was. */
static unsigned int where_of_stack(const struct stackset *s, const struct stackset_stack *st)
{
	enum sample_where where;

	for (uint32_t i = 0; i < st->n; i++)
		if (where_of(s->frame[st->frame[i]].addr, &where))
			return (unsigned int)where + 1;
	return 0;
}

static uint32_t node_of(struct html_data *d, const struct stackset_stack *st)
{
	struct html_node like = { 0, string_of(d, d->s->task[st->task].comm) };
	uint32_t at = 0, left = st->n;
	bool fresh;

	for (;;) {
		if (table_add(&d->nodes, table_mix(like.parent, like.item), &like, &at, &fresh)) {
			d->out->failed = true;
			return 0;
		}
		if (!left)
			return at;
		like = (struct html_node){ at, st->frame[--left] };
	}
}

static void put_stacks(struct html_data *d)
{
	const struct html_node root = { UINT32_MAX, UINT32_MAX };
	const struct stackset *s = d->s;
	struct column c = column_begin(d, "snode");
	const struct html_node *node;
	uint32_t at;
	bool fresh;

	if (table_add(&d->nodes, 0, &root, &at, &fresh))
		d->out->failed = true;
	for (size_t i = 0; i < s->nstacks; i++)
		column_put(&c, node_of(d, &s->stack[i]));
	column_end(&c);
	c = column_begin(d, "stask");
	for (size_t i = 0; i < s->nstacks; i++)
		column_put(&c, s->stack[i].task);
	column_end(&c);
	c = column_begin(d, "skind");
	for (size_t i = 0; i < s->nstacks; i++)
		column_put(&c, (uint64_t)s->stack[i].mode << WHERE_BITS |
				       where_of_stack(s, &s->stack[i]));
	column_end(&c);
	node = d->nodes.item;
	c = column_begin(d, "nup");
	for (size_t i = 1; i < d->nodes.n; i++)
		column_put(&c, i - node[i].parent);
	column_end(&c);
	c = column_begin(d, "nitem");
	for (size_t i = 1; i < d->nodes.n; i++)
		column_put(&c, node[i].item);
	column_end(&c);
}

/* -- samples --------------------------------------------------------------------------------- */

static void put_samples(struct html_data *d, uint64_t begin_ns)
{
	const struct stackset *s = d->s;
	struct column c = column_begin(d, "mtime");
	uint64_t before = begin_ns;

	for (size_t i = 0; i < s->nsamples; i++) {
		column_put_step(&c, before, s->sample[i].time_ns);
		before = s->sample[i].time_ns;
	}
	column_end(&c);
	c = column_begin(d, "mstack");
	for (size_t i = 0; i < s->nsamples; i++)
		column_put(&c, s->sample[i].stack);
	column_end(&c);
	c = column_begin(d, "mcpu");
	for (size_t i = 0; i < s->nsamples; i++)
		column_put(&c,
			   s->sample[i].cpu == SAMPLE_NO_CPU ? 0 : (uint64_t)s->sample[i].cpu + 1);
	column_end(&c);
	c = column_begin(d, "mweight");
	before = 0;
	for (size_t i = 0; i < s->nsamples; i++) {
		column_put_step(&c, before, s->sample[i].weight);
		before = s->sample[i].weight;
	}
	column_end(&c);
}

int html_data_event(struct buf *out, struct json_writer *w, const struct stackset *s,
		    uint64_t begin_ns, struct err *e)
{
	struct html_data d = { .out = out, .w = w, .s = s };

	if (s->nsamples > HTML_MAX_SAMPLES)
		return err_set(e, E2BIG,
			       "the event %s has %zu samples, and a page holds %u: select a part "
			       "with --time, --phase, --cpu or --comms",
			       s->event, s->nsamples, HTML_MAX_SAMPLES);
	d.strings = TABLE_OF(const char *, equal_string);
	d.nodes = TABLE_OF(struct html_node, equal_view_node);
	json_put(w, "name", s->event, "ns", s->weight_is_ns, "counted", s->counted, "samples",
		 s->samples, "weight", s->weight, "lost", s->lost, "ncpus", s->ncpus);
	json_object_begin(w, "columns");
	put_functions(&d);
	put_frames(&d);
	put_tasks(&d);
	put_stacks(&d);
	put_samples(&d, begin_ns);
	json_object_end(w);
	json_array_begin(w, "strings");
	for (size_t i = 0; i < d.strings.n; i++)
		json_str(w, NULL, ((const char **)d.strings.item)[i]);
	json_array_end(w);
	table_deinit(&d.strings);
	table_deinit(&d.nodes);
	return out->failed ? err_nomem(e) : 0;
}
