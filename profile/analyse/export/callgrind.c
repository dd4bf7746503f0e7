/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callgrind: callgrind.out text, version 1 (Valgrind's manual, "Callgrind Format
 * Specification"), for callgrind_annotate and KCachegrind.
 *
 *   ob=(1) dso            the object; "(n) name" once, then "(n)" (name compression)
 *   fl=(1) dso            in place of a source file: callgrind_annotate tells functions apart by this, not by ob
 *   fn=(2) function       self cost below: "0 cost" (line 0)
 *   cob=(1)               a call from it: the callee's object, file and name
 *   cfi=(1)
 *   cfn=(3) callee
 *   calls=SAMPLES 0       or, of a counted profile, entries (calls and jumps); 1 where none was counted, since
 *                         callgrind_annotate takes the line behind calls=0 for the caller's own cost
 *   0 cost                inclusive
 *
 * What calls the outermost functions is the thread's name, a function of the object
 * [thread]: callgrind_annotate takes what calls a function for all of it, so a function
 * that is sometimes called and sometimes outermost must have callers for both.
 *
 * A function that is on a stack again, by recursion, is "function'2", "function'3" there,
 * as callgrind names levels with --separate-recs. So each stack counts once for each
 * function that it holds, and no inclusive cost exceeds the whole.
 */
#include "profile/analyse/export/private.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct callgrind {
	const struct stackset *s;
	const struct export_options *opt;
	struct export_out *o;
	struct export_labels *labels;
	uint32_t nlabels;	   /* after them come the threads' names */
	struct table comms;	   /* const char * */
	uint32_t *comm_of;	   /* indexed by task */
	struct export_tree *fns;   /* label -> level; .weight: self */
	struct export_tree *calls; /* caller -> callee */
	uint32_t *level;	   /* for each label: its level on the present stack */
	bool *named;		   /* for each fn: its name was written */
	struct table objects;	   /* const char *: objects whose names were written */
	struct table texts;	   /* struct label_text, of labels */
	int ret;
};

static bool equal_pointer(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const char *const *)a == *(const char *const *)b;
}

/* Collects the threads' names. Equal texts of a stackset are one pointer. */
static int find_comms(struct callgrind *c)
{
	int ret = 0;

	c->comm_of = calloc(c->s->ntasks + 1, sizeof(*c->comm_of));
	if (!c->comm_of)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < c->s->ntasks; i++) {
		const char *comm = c->s->task[i].comm;
		bool fresh;

		ret = table_add(&c->comms, table_mix((uint64_t)(uintptr_t)comm, 1), &comm,
				&c->comm_of[i], &fresh);
	}
	return ret;
}

static const char *label_text(const struct callgrind *c, uint32_t label)
{
	const char *comm = label < c->nlabels
				   ? export_label(c->labels, label)->text
				   : ((const char *const *)c->comms.item)[label - c->nlabels];

	return *comm ? comm : "?";
}

static int add_stack(struct callgrind *c, const struct stackset_stack *st)
{
	uint32_t caller, fn, call;
	const uint32_t *label;
	size_t n = export_stack_labels(c->labels, st, &label);
	uint64_t weight = export_weight(c->opt, st->weight, st->samples);
	int ret = export_tree_add(c->fns, c->nlabels + c->comm_of[st->task], 0, &fn);

	for (size_t i = 0; !ret && i < n; i++) {
		caller = fn;
		ret = export_tree_add(c->fns, label[i], c->level[label[i]]++, &fn);
		ret = ret ? ret : export_tree_add(c->calls, caller, fn, &call);
		if (ret)
			break;
		export_node(c->calls, call)->weight += weight;
		if (!c->opt->calls)
			export_node(c->calls, call)->samples += st->samples;
	}
	for (size_t i = 0; i < n; i++)
		c->level[label[i]] = 0;
	if (!ret)
		export_node(c->fns, fn)->weight += export_weight(c->opt, st->weight, st->samples);
	return ret;
}

/* -- exact calls ------------------------------------------------------------------------------- */

/* The key by which labels of two stacksets are equal. */
struct label_text {
	const char *text, *dso;
	uint32_t label;
};

static bool equal_text(const void *a, const void *b, const void *ctx)
{
	const struct label_text *x = a, *y = b;

	(void)ctx;
	return !strcmp(x->text, y->text) && !strcmp(x->dso, y->dso);
}

/* Finds the label with this text, or adds *label under it. */
static int label_of(struct callgrind *c, const struct label_text *text, uint32_t *label)
{
	uint64_t hash = hash_text(hash_text(HASH_START, text->text) * 31, text->dso);
	uint32_t i;
	bool fresh;

	if (table_add(&c->texts, hash, text, &i, &fresh))
		return -ENOMEM;
	*label = ((const struct label_text *)c->texts.item)[i].label;
	return 0;
}

/*
 * Adds the number of calls of the innermost function; calls of a function that executed nothing are
 * omitted.
 */
static int add_calls(struct callgrind *c, struct export_labels *labels, const uint32_t *same,
		     const char *comm, const struct stackset_stack *st)
{
	uint32_t caller = 0, fn, call;
	const uint32_t *label;
	size_t n = export_stack_labels(labels, st, &label), known = 0;
	uint32_t i = 0;
	bool fresh;
	int ret = table_add(&c->comms, table_mix((uint64_t)(uintptr_t)comm, 1), &comm, &i, &fresh);

	if (ret)
		return ret;
	ret = export_tree_add(c->fns, c->nlabels + i, 0, &fn);
	for (; !ret && known < n && same[label[known]] < c->nlabels; known++) {
		caller = fn;
		ret = export_tree_add(c->fns, same[label[known]], c->level[same[label[known]]]++,
				      &fn);
	}
	for (size_t k = 0; k < known; k++)
		c->level[same[label[k]]] = 0;
	if (ret || !n || known < n)
		return ret;
	ret = export_tree_add(c->calls, caller, fn, &call);
	if (!ret)
		export_node(c->calls, call)->samples += st->weight;
	return ret;
}

static const char *comm_like(struct callgrind *c, const char *comm)
{
	for (size_t i = 0; i < c->comms.n; i++)
		if (!strcmp(((const char *const *)c->comms.item)[i], comm))
			return ((const char *const *)c->comms.item)[i];
	return comm;
}

static int add_exact_calls(struct callgrind *c, struct err *e)
{
	const struct stackset *s = c->opt->calls;
	struct export_labels *labels = NULL;
	cleanup_free uint32_t *same = NULL;
	int ret = export_labels_create(&labels, s, c->opt->names, e);
	size_t n = ret ? 0 : export_labels_count(labels);

	if (ret)
		return ret;
	same = calloc(n + 1, sizeof(*same));
	ret = same ? 0 : -ENOMEM;
	for (uint32_t i = 0; !ret && i < c->nlabels + n; i++) {
		const struct export_label *l = i < c->nlabels
						       ? export_label(c->labels, i)
						       : export_label(labels, i - c->nlabels);
		uint32_t label = 0;

		ret = label_of(c, &(struct label_text){ l->text, l->dso, i }, &label);
		if (i >= c->nlabels)
			same[i - c->nlabels] = label;
	}
	for (size_t i = 0; !ret && i < s->nstacks; i++)
		ret = add_calls(c, labels, same, comm_like(c, s->task[s->stack[i].task].comm),
				&s->stack[i]);
	export_labels_destroy(labels);
	return ret;
}

/* -- writing ----------------------------------------------------------------------------------- */

static void put_place(struct callgrind *c, const char *key, uint32_t index, const char *name)
{
	export_out_printf(c->o, name ? "%s=(%" PRIu32 ") " : "%s=(%" PRIu32 ")", key, index + 1);
	if (name)
		export_out_clean(c->o, name);
	export_out_char(c->o, '\n');
}

/* Writes the object, also in place of the file. Equal texts of labels are one pointer. */
static void put_object(struct callgrind *c, const char *object, const char *file, uint32_t fn)
{
	static const char thread[] = "[thread]";
	uint32_t label = export_node(c->fns, fn)->parent, index = 0;
	const char *dso = label < c->nlabels ? export_label(c->labels, label)->dso : thread;
	bool fresh = false;

	if (table_add(&c->objects, table_mix((uint64_t)(uintptr_t)dso, 1), &dso, &index, &fresh) <
	    0)
		c->ret = -ENOMEM;
	put_place(c, object, index, fresh ? dso : NULL);
	put_place(c, file, index, fresh ? dso : NULL);
}

static void put_function(struct callgrind *c, const char *key, uint32_t fn)
{
	const struct export_node *node = export_node(c->fns, fn);

	export_out_printf(c->o, "%s=(%" PRIu32 ")", key, fn + 1);
	if (!c->named[fn]) {
		export_out_char(c->o, ' ');
		export_out_clean(c->o, label_text(c, node->parent));
		if (node->label)
			export_out_printf(c->o, "'%" PRIu32, node->label + 1);
		c->named[fn] = true;
	}
	export_out_char(c->o, '\n');
}

/* Returns the indexes of calls sorted by caller; those of fn begin at first[fn]. */
static uint32_t *sort_calls(struct callgrind *c, size_t **first)
{
	size_t nfns = export_tree_count(c->fns), ncalls = export_tree_count(c->calls);
	uint32_t *order = calloc(ncalls + 1, sizeof(*order));
	size_t *at = calloc(nfns + 2, sizeof(*at));

	if (!order || !at) {
		free(order);
		free(at);
		return NULL;
	}
	for (size_t i = 0; i < ncalls; i++)
		at[export_node(c->calls, (uint32_t)i)->parent + 2]++;
	for (size_t i = 2; i < nfns + 2; i++)
		at[i] += at[i - 1];
	for (size_t i = 0; i < ncalls; i++)
		order[at[export_node(c->calls, (uint32_t)i)->parent + 1]++] = (uint32_t)i;
	*first = at;
	return order;
}

static void put_call(struct callgrind *c, const struct export_node *call)
{
	put_object(c, "cob", "cfi", call->label);
	put_function(c, "cfn", call->label);
	export_out_printf(c->o, "calls=%" PRIu64 " 0\n0 %" PRIu64 "\n",
			  call->samples ? call->samples : 1, call->weight);
}

static int put_functions(struct callgrind *c)
{
	size_t nfns = export_tree_count(c->fns), *first = NULL;
	uint32_t *order = sort_calls(c, &first);

	c->named = calloc(nfns + 1, sizeof(*c->named));
	if (!order || !c->named)
		c->ret = -ENOMEM;
	for (size_t i = 0; !c->ret && i < nfns; i++) {
		export_out_char(c->o, '\n');
		put_object(c, "ob", "fl", (uint32_t)i);
		put_function(c, "fn", (uint32_t)i);
		export_out_printf(c->o, "0 %" PRIu64 "\n",
				  export_node(c->fns, (uint32_t)i)->weight);
		for (size_t j = first[i]; j < first[i + 1]; j++)
			put_call(c, export_node(c->calls, order[j]));
	}
	free(order);
	free(first);
	return c->ret;
}

static void put_head(struct callgrind *c)
{
	const char *unit = c->opt->count_samples ? "Samples" : c->s->weight_is_ns ? "ns" : "Events";

	export_out_printf(c->o, "# callgrind format\nversion: 1\ncreator: kvmprof %s\ncmd: ",
			  c->opt->version);
	export_out_clean(c->o, *c->s->osrelease ? c->s->osrelease : "guest");
	export_out_printf(c->o, "\npositions: line\nevent: %s : ", unit);
	export_out_clean(c->o, c->opt->count_samples ? "samples" : c->s->event);
	export_out_printf(c->o, "%s\nevents: %s\nsummary: %" PRIu64 "\n",
			  !c->opt->count_samples && c->s->weight_is_ns ? " time (ns)" : "", unit,
			  export_weight(c->opt, c->s->weight, c->s->samples));
}

EXPORT_WRITER(callgrind)
{
	struct callgrind c = { .s = s,
			       .opt = opt,
			       .o = o,
			       .objects = TABLE_OF(const char *, equal_pointer),
			       .texts = TABLE_OF(struct label_text, equal_text),
			       .comms = TABLE_OF(const char *, equal_pointer) };
	int ret = export_labels_create(&c.labels, s, opt->names, e);

	(void)path;
	if (ret)
		return ret;
	c.nlabels = (uint32_t)export_labels_count(c.labels);
	c.level = calloc((size_t)c.nlabels + 1, sizeof(*c.level));
	c.fns = export_tree_create();
	c.calls = export_tree_create();
	if (!c.level || !c.fns || !c.calls)
		c.ret = -ENOMEM;
	if (!c.ret)
		c.ret = find_comms(&c);
	for (size_t i = 0; !c.ret && i < s->nstacks; i++)
		c.ret = add_stack(&c, &s->stack[i]);
	if (!c.ret && opt->calls)
		c.ret = add_exact_calls(&c, e);
	if (!c.ret) {
		put_head(&c);
		put_functions(&c);
	}
	table_deinit(&c.objects);
	table_deinit(&c.texts);
	table_deinit(&c.comms);
	free(c.comm_of);
	free(c.level);
	free(c.named);
	export_tree_destroy(c.fns);
	export_tree_destroy(c.calls);
	export_labels_destroy(c.labels);
	return c.ret ? err_set(e, -c.ret, "out of memory") : 0;
}
