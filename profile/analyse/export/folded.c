/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * folded: what FlameGraph's stackcollapse-perf.pl prints and flamegraph.pl, inferno and
 * others read.
 *
 *   line  = comm *( ";" frame ) " " weight "\n"       outermost first
 *   comm  = the thread's name; with --per-thread and "-pid/tid" behind it
 *   frame = function [ mark ], or "[dso]" of an address without one
 *   mark  = "_[k]" of the kernel's, "_[j]" of code without a file	flamegraph.pl takes it off
 *
 * Each line is there once. Only what would break the format is replaced: ';' becomes ':',
 * a control character '?', and a byte that is no UTF-8 U+FFFD. What would mean something else to a
 * reader gets more text: a name that ends in a mark of its own has "_[i]" behind it, a comm that looks as with
 * --per-thread has "-pid/tid", and one that begins like a comment a blank in front. import_folded takes these off.
 * With --no-marks there are none of these. With --tidy neither, and text is tidied
 * as that script does it, so that stacks of both can be compared: blanks of a comm become
 * '_', < > \ " ' go, and so does an argument list, so that overloads become one function.
 * A frame whose name begins with "(" stays here, while the script loses it.
 */
#include "profile/analyse/export/private.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "base/texts.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct folded_folded {
	const struct export_options *opt;
	struct export_labels *labels;
	struct export_tree *tree; /* labels are indexes into text; the outermost one is the comm */
	struct texts texts;
	struct table text; /* const char *, as printed: each once */
	uint32_t *
		/*
		 * indexes into text; two for each label: the second for a frame of an unknown DSO
		 * in the kernel
		 */
		of_label;
	uint32_t *of_task;
	uint32_t *path; /* the frames of one output line, innermost first */
	size_t deepest;
};

/* Copies a name as stackcollapse-perf.pl writes it. dst has room for src. */
static void tidy(char *dst, const char *src, bool comm)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t n = 0;

	for (; *src; src++) {
		if (!comm && strchr("<>\\\"'", *src))
			continue;
		if (!comm && *src == '(' && n && strncmp(src, anonymous, sizeof(anonymous) - 1))
			break;
		dst[n++] = comm && *src == ' ' ? '_' : *src;
	}
	dst[n] = '\0';
}

/*
 * How one text is printed: comm selects the rules for a task's name; before and behind are added
 * around it.
 */
struct around {
	bool comm;
	const char *before, *behind;
};

static bool ends_in_mark(const char *text)
{
	size_t n = strlen(text);

	return n > 4 && !strncmp(text + n - 4, "_[", 2) && strchr("kijw", text[n - 2]) &&
	       text[n - 1] == ']';
}

/* Returns the suffix of a frame. `kernel`: it was recorded in the kernel, whatever its DSO is. */
static const char *mark_of(const struct folded_folded *f, const struct export_label *l, bool kernel)
{
	if (f->opt->tidy || f->opt->no_marks)
		return "";
	if (stackset_kind_in_kernel(l->kind) || (l->kind == STACKSET_KIND_UNKNOWN && kernel))
		return "_[k]";
	return l->kind == STACKSET_KIND_JIT ? "_[j]" : ends_in_mark(l->text) ? "_[i]" : "";
}

/* Returns true if a comm ends in "-12/34". */
static bool has_numbers(const char *comm)
{
	const char *dash = strrchr(comm, '-');
	size_t pid = dash ? strspn(dash + 1, "0123456789") : 0, tid;

	if (!pid || dash[1 + pid] != '/')
		return false;
	tid = strspn(dash + 2 + pid, "0123456789");
	return tid && !dash[2 + pid + tid];
}

static const char *before_comm(const struct folded_folded *f, const char *comm)
{
	bool is_comment = comm[strspn(comm, " ")] == '#';

	return is_comment && !f->opt->tidy && !f->opt->no_marks ? " " : "";
}

static bool equal_text(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const char *const *)a == *(const char *const *)b;
}

/*
 * Stores the index of the text printed for `text` in *out, with the additions of *a. Returns 0 or
 * -ENOMEM.
 */
static int text_index(struct folded_folded *f, const char *text, const struct around *a,
		      uint32_t *out)
{
	cleanup_free char *line = utf8_clean_copy(text), *whole = NULL;
	const char *own;
	bool fresh;

	if (!line)
		return -ENOMEM;
	if (f->opt->tidy)
		tidy(line, line, a->comm);
	/* ';' would end a frame. */
	for (char *c = line; *c; c++)
		*c = *c == ';' ? ':' : *c;
	if (asprintf(&whole, "%s%s%s", a->before, *line ? line : "?", a->behind) < 0)
		return -ENOMEM;
	own = texts_add(&f->texts, whole);
	return own ? table_add(&f->text, table_mix((uint64_t)(uintptr_t)own, 0), &own, out, &fresh)
		   : -ENOMEM;
}

/*
 * Returns true if the script encloses a text in brackets that has some already: the name of the
 * DSO, in place of an address without a function.
 */
static bool is_doubled(const struct folded_folded *f, const struct stackset *s,
		       const struct export_label *l)
{
	return f->opt->tidy && !s->func[l->func].named && *l->dso == '[' && *l->text == '[' &&
	       strcmp(l->dso, "[unknown]") != 0;
}

/*
 * Collects the printed texts: they may be equal even if labels differ, and no line may occur twice.
 */
static int tidy_all(struct folded_folded *f, const struct stackset *s)
{
	size_t nlabels = export_labels_count(f->labels);
	int ret = 0;

	f->text = TABLE_OF(const char *, equal_text);
	f->of_label = calloc(2 * nlabels + 2, sizeof(*f->of_label));
	f->of_task = calloc(s->ntasks + 1, sizeof(*f->of_task));
	if (!f->of_label || !f->of_task)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < nlabels; i++) {
		const struct export_label *l = export_label(f->labels, (uint32_t)i);
		cleanup_free char *doubled = NULL;

		if (is_doubled(f, s, l) && asprintf(&doubled, "[%s]", l->text) < 0)
			return -ENOMEM;
		for (unsigned int kernel = 0; kernel < 2 && !ret; kernel++)
			ret = text_index(f, doubled ? doubled : l->text,
					 &(struct around){ false, "", mark_of(f, l, kernel) },
					 &f->of_label[2 * i + kernel]);
	}
	for (size_t i = 0; !ret && i < s->ntasks; i++) {
		const struct stackset_task *t = &s->task[i];
		cleanup_free char *thread = NULL;

		if ((f->opt->per_thread ||
		     (has_numbers(t->comm) && !f->opt->tidy && !f->opt->no_marks)) &&
		    asprintf(&thread, "%s-%u/%u", t->comm, t->pid, t->tid) < 0)
			return -ENOMEM;
		ret = text_index(f, thread ? thread : t->comm,
				 &(struct around){ true, before_comm(f, t->comm), "" },
				 &f->of_task[i]);
	}
	return ret;
}

/*
 * Returns true if the frame of the i-th of n labels, outermost first, was recorded in the kernel. A
 * frame has one or two labels.
 */
static bool in_kernel(const struct stackset *s, const struct stackset_stack *st, size_t i, size_t n)
{
	size_t frame = st->n - 1 - i / (n / st->n);

	return s->func[s->frame[st->frame[frame]].func].kernel;
}

static int add_stack(struct folded_folded *f, const struct stackset *s,
		     const struct stackset_stack *st)
{
	const uint32_t *label;
	size_t n = export_stack_labels(f->labels, st, &label);
	struct export_node *leaf;
	uint32_t node;
	int ret = export_tree_add(f->tree, EXPORT_ROOT, f->of_task[st->task], &node);

	for (size_t i = 0; !ret && i < n; i++)
		ret = export_tree_add(f->tree, node,
				      f->of_label[2 * label[i] + in_kernel(s, st, i, n)], &node);
	if (ret)
		return ret;
	if (n + 1 > f->deepest)
		f->deepest = n + 1;
	leaf = export_node(f->tree, node);
	leaf->samples += st->samples;
	leaf->weight += st->weight;
	return 0;
}

static void print_lines(struct folded_folded *f, struct export_out *o)
{
	for (size_t i = 0; i < export_tree_count(f->tree); i++) {
		const struct export_node *node = export_node(f->tree, (uint32_t)i);
		uint64_t weight = export_weight(f->opt, node->weight, node->samples);
		size_t n = 0;

		if (!node->samples)
			continue;
		for (uint32_t at = (uint32_t)i; at != EXPORT_ROOT;
		     at = export_node(f->tree, at)->parent)
			f->path[n++] = export_node(f->tree, at)->label;
		while (n--) {
			export_out_text(o, ((const char **)f->text.item)[f->path[n]]);
			export_out_char(o, n ? ';' : ' ');
		}
		export_out_u64(o, weight);
		export_out_char(o, '\n');
	}
}

EXPORT_WRITER(folded)
{
	struct folded_folded f = { .opt = opt, .tree = export_tree_create() };
	int ret = export_labels_create(&f.labels, s, opt->names, e);

	(void)path;
	if (!ret && (!f.tree || tidy_all(&f, s) < 0))
		ret = err_nomem(e);
	for (size_t i = 0; !ret && i < s->nstacks; i++)
		if (add_stack(&f, s, &s->stack[i]) < 0)
			ret = err_set(e, ENOMEM, "out of memory after %zu stacks", i);
	if (!ret) {
		f.path = calloc(f.deepest + 1, sizeof(*f.path));
		if (f.path)
			print_lines(&f, o);
		else
			ret = err_nomem(e);
	}
	free(f.path);
	free(f.of_label);
	free(f.of_task);
	table_deinit(&f.text);
	texts_deinit(&f.texts);
	export_tree_destroy(f.tree);
	export_labels_destroy(f.labels);
	return ret;
}
