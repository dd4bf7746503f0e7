/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kp: kernel-profiling stacks as SystemTap's print_stack() and DTrace's stack() print them
 * one behind the other, for the post-processing scripts that go with those (their README:
 * github.com/xuhz/profiling). Grammar, as those scripts read it:
 *
 *   file    = summary *stack "!\n"
 *   stack   = "!\n" 1*frame "\t" count "\n"                 innermost first
 *   frame   = " 0x" addr " : " name "+0x" off "/0x" size " [" module "]\n"
 *   module  = "kernel", a module's name, or a path
 *   summary = header *( name "  " percent "%(" count ")  " percent "%(" count ")\n" )
 *
 * A line with a '!' ends a stack, and lines before the first are skipped, which is where
 * the summary is: inclusive, then exclusive samples of each function, by the former. A
 * function counts once for a stack, however often it is on it; the scripts count each.
 * They take a name from behind the last ": " or '`' of a line to the first '/' and '+', so
 * these and '!' are coded in names (coded.h), which the first line says. Counts are samples.
 * An address without a symbol is its own name; a sample without a stack is (kernel),
 * (usermode) or (idle). A module of a program is its path in brackets, also where that
 * begins with one, such as "[[vdso]]".
 */
#include "profile/analyse/export/private.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "profile/analyse/stacks/coded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct total {
	uint64_t inclusive, exclusive;
	const char *name;
	size_t last; /* number of the stack that counted it last, plus 1 */
};

struct kp {
	const struct stackset *s;
	struct export_out *o;
	struct export_labels *labels;
	struct export_tree *tree; /* tree of frames, outermost first; below the stack's mode */
	struct total *total;	  /* totals by label, then by mode for samples without a stack */
	int ret;		  /* 0, or the first error of writing a name */
};

static const char *const without_stack[STACKSET_MODES] = { "(kernel)", "(usermode)", "(idle)",
							   "(guest)" };

/* Returns true if the byte at p ends a stack, a name or a module for a reader of the text. */
static bool is_special(const char *text, const char *p, bool name)
{
	bool blank = p > text && p[-1] == ' ';

	return *p == '!' || *p == '`' || *p == '%' || (*p == ':' && p[1] == ' ') ||
	       (p == text && *p == ' ') || (name ? *p == '/' || *p == '+' : *p == '[' && blank);
}

static void put_text(struct kp *k, const char *text, bool name)
{
	cleanup_free char *clean = utf8_clean_copy(text);

	if (!clean) {
		k->ret = -ENOMEM;
		return;
	}
	for (const char *p = clean; *p; p++)
		if (is_special(clean, p, name))
			export_out_coded(k->o, *p);
		else
			export_out_char(k->o, *p);
}

static void put_frame(struct kp *k, uint32_t frame)
{
	const struct stackset_frame *f = &k->s->frame[frame];
	const struct stackset_func *func = &k->s->func[f->func];
	bool kernel = stackset_kind_in_kernel(func->kind);
	const char *dso = func->kind == STACKSET_KIND_KERNEL ? "[kernel]" : func->dso;
	bool has_brackets = *dso == '[' && (kernel || !strcmp(dso, "[unknown]"));

	export_out_printf(k->o, " 0x%" PRIx64 " : ", f->addr);
	put_text(k, func->name, true);
	export_out_printf(k->o, "+0x%" PRIx64 "/0x%" PRIx64 " ", f->off,
			  func->named ? func->size : 0);
	if (!has_brackets)
		export_out_char(k->o, '[');
	put_text(k, dso, false);
	export_out_text(k->o, has_brackets ? "\n" : "]\n");
}

/* -- summary ----------------------------------------------------------------------------------- */

static void count_stack(struct kp *k, size_t i)
{
	const struct stackset_stack *st = &k->s->stack[i];
	const uint32_t *label;
	size_t n = export_stack_labels(k->labels, st, &label);
	uint32_t none = (uint32_t)export_labels_count(k->labels) + st->mode % STACKSET_MODES;

	if (!n) {
		label = &none;
		n = 1;
	}
	for (size_t j = 0; j < n; j++) {
		struct total *t = &k->total[label[j]];

		if (t->last != i + 1)
			t->inclusive += st->samples;
		t->last = i + 1;
	}
	k->total[label[n - 1]].exclusive += st->samples;
}

static int compare_totals(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	if (x->inclusive != y->inclusive)
		return x->inclusive > y->inclusive ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int put_summary(struct kp *k)
{
	size_t n = export_labels_count(k->labels);
	double all = (double)k->s->samples;

	k->total = calloc(n + STACKSET_MODES, sizeof(*k->total));
	if (!k->total)
		return -ENOMEM;
	for (size_t i = 0; i < n + STACKSET_MODES; i++) {
		const struct export_label *l = i < n ? export_label(k->labels, (uint32_t)i) : NULL;

		k->total[i].name = l ? l->text : without_stack[i - n];
	}
	for (size_t i = 0; i < k->s->nstacks; i++)
		count_stack(k, i);
	qsort(k->total, n + STACKSET_MODES, sizeof(*k->total), compare_totals);
	export_out_printf(k->o, "%-40s %-22s %-22s %s\n", "Function", "Inclusive", "Exclusive",
			  CODED_KP_MARK);
	for (size_t i = 0; i < n + STACKSET_MODES && k->total[i].inclusive; i++) {
		const struct total *t = &k->total[i];
		size_t len = strlen(t->name);
		char inclusive[64];

		put_text(k, t->name, true);
		snprintf(inclusive, sizeof(inclusive), "%5.2f%%(%" PRIu64 ")",
			 100.0 * (double)t->inclusive / all, t->inclusive);
		export_out_printf(k->o, "%*s %-22s %5.2f%%(%" PRIu64 ")\n",
				  len < 40 ? (int)(40 - len) : 1, "", inclusive,
				  100.0 * (double)t->exclusive / all, t->exclusive);
	}
	return 0;
}

/* -- stacks ------------------------------------------------------------------------------------ */

/* Adds a stack; equal stacks of all threads become one. */
static int add_stack(struct kp *k, const struct stackset_stack *st)
{
	uint32_t node;
	int ret = export_tree_add(k->tree, EXPORT_ROOT, st->n ? 0 : st->mode % STACKSET_MODES + 1u,
				  &node);

	for (uint32_t i = st->n; !ret && i-- > 0;)
		ret = export_tree_add(k->tree, node, st->frame[i], &node);
	if (!ret)
		export_node(k->tree, node)->samples += st->samples;
	return ret;
}

static void put_stacks(struct kp *k)
{
	for (size_t i = 0; i < export_tree_count(k->tree); i++) {
		const struct export_node *node = export_node(k->tree, (uint32_t)i);
		uint64_t samples = node->samples;

		if (!samples)
			continue;
		export_out_text(k->o, "!\n");
		if (node->parent == EXPORT_ROOT)
			export_out_printf(
				k->o, " 0x0 : %s+0x0/0x0 [unknown]\n",
				without_stack[(node->label + STACKSET_MODES - 1) % STACKSET_MODES]);
		for (; node->parent != EXPORT_ROOT; node = export_node(k->tree, node->parent))
			put_frame(k, node->label);
		export_out_printf(k->o, "\t%" PRIu64 "\n", samples);
	}
	export_out_text(k->o, "!\n");
}

EXPORT_WRITER(kp)
{
	struct kp k = { .s = s, .o = o, .tree = export_tree_create() };
	int ret = export_labels_create(&k.labels, s, EXPORT_FUNCTION, e);

	(void)path;
	(void)opt;
	if (!ret && !k.tree)
		ret = err_nomem(e);
	for (size_t i = 0; !ret && i < s->nstacks; i++)
		if (add_stack(&k, &s->stack[i]) < 0)
			ret = err_set(e, ENOMEM, "out of memory after %zu stacks", i);
	if (!ret && put_summary(&k) < 0)
		ret = err_nomem(e);
	if (!ret)
		put_stacks(&k);
	if (!ret && k.ret)
		ret = err_nomem(e);
	free(k.total);
	export_tree_destroy(k.tree);
	export_labels_destroy(k.labels);
	return ret;
}
