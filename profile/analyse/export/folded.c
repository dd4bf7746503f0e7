/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * folded: what FlameGraph's stackcollapse-perf.pl prints and flamegraph.pl, inferno and
 * others read.
 *
 *   line  = comm *( ";" frame ) " " weight "\n"       outermost first
 *   comm  = the thread's name, '_' for blanks; with --per-thread and "-pid/tid" behind it
 *   frame = function, or "[dso]" of an address without one
 *
 * Each line is there once. Text is tidied as that script does it, so that stacks of both
 * can be compared: ';' becomes ':', < > \ " ' go, and so does an argument list. A frame
 * whose name begins with "(" stays here, while the script loses it.
 */
#include "profile/analyse/export/export.h"

#include "base/table.h"
#include "base/texts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 8192u

struct folded {
	const struct export_options *opt;
	struct export_labels *labels;
	struct export_tree *tree; /* its labels are indexes of text; the outermost is the comm */
	struct texts texts;
	struct table text;  /* const char *, as printed: each once */
	uint32_t *of_label; /* indexes of text */
	uint32_t *of_task;
	uint32_t *path; /* of a line, innermost first */
	size_t deepest;
};

static void tidy(char *dst, size_t size, const char *src, bool comm)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t n = 0;

	for (; *src && n + 1 < size; src++) {
		char c = *src;

		if (!comm && strchr("<>\\\"'", c))
			continue;
		if (!comm && c == '(' && n && strncmp(src, anonymous, sizeof(anonymous) - 1))
			break;
		if (c == ';')
			c = ':';
		else if ((unsigned char)c < 0x20 || c == 0x7f)
			c = '?';
		else if (comm && c == ' ')
			c = '_';
		dst[n++] = c;
	}
	dst[n] = '\0';
}

static bool equal_text(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const char *const *)a == *(const char *const *)b;
}

static int text_index(struct folded *f, const char *text, uint32_t *out)
{
	const char *own = texts_add(&f->texts, *text ? text : "?");
	bool fresh;

	return own ? table_add(&f->text, table_mix((uint64_t)(uintptr_t)own, 0), &own, out, &fresh)
		   : -ENOMEM;
}

/* The script puts brackets around what has some already. */
static void frame_text(const struct folded *f, const struct stackset *s, uint32_t label, char *text,
		       size_t size)
{
	const struct export_label *l = export_label(f->labels, label);
	char doubled[MAX_NAME];

	snprintf(doubled, sizeof(doubled), "[%s]", l->text);
	/* Of an address in this mode it is the DSO's name, "[...]" already when that has none. */
	tidy(text, size,
	     !s->func[l->func].named && *l->dso == '[' && *l->text == '[' &&
			     strcmp(l->dso, "[unknown]")
		     ? doubled
		     : l->text,
	     false);
}

/* Tidied names may be equal where labels were not; lines must not come twice. */
static int tidy_all(struct folded *f, const struct stackset *s)
{
	size_t nlabels = export_labels_count(f->labels);
	char text[MAX_NAME], thread[MAX_NAME + 32];
	int ret = 0;

	f->text = TABLE_OF(const char *, equal_text);
	f->of_label = calloc(nlabels + 1, sizeof(*f->of_label));
	f->of_task = calloc(s->ntasks + 1, sizeof(*f->of_task));
	if (!f->of_label || !f->of_task)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < nlabels; i++) {
		frame_text(f, s, (uint32_t)i, text, sizeof(text));
		ret = text_index(f, text, &f->of_label[i]);
	}
	for (size_t i = 0; !ret && i < s->ntasks; i++) {
		tidy(text, sizeof(text), s->task[i].comm, true);
		snprintf(thread, sizeof(thread), "%s-%u/%u", text, s->task[i].pid, s->task[i].tid);
		ret = text_index(f, f->opt->per_thread ? thread : text, &f->of_task[i]);
	}
	return ret;
}

static int add_stack(struct folded *f, const struct stackset_stack *st)
{
	const uint32_t *label;
	size_t n = export_stack_labels(f->labels, st, &label);
	struct export_node *leaf;
	uint32_t node;
	int ret = export_tree_add(f->tree, EXPORT_ROOT, f->of_task[st->task], &node);

	for (size_t i = 0; !ret && i < n; i++)
		ret = export_tree_add(f->tree, node, f->of_label[label[i]], &node);
	if (ret)
		return ret;
	if (n + 1 > f->deepest)
		f->deepest = n + 1;
	leaf = export_node(f->tree, node);
	leaf->samples += st->samples;
	leaf->weight += st->weight;
	return 0;
}

static void print_lines(struct folded *f, struct export_out *o)
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
			out_text(o, ((const char **)f->text.item)[f->path[n]]);
			out_char(o, n ? ';' : ' ');
		}
		out_u64(o, weight);
		out_char(o, '\n');
	}
}

EXPORT_WRITER(folded)
{
	struct folded f = { .opt = opt, .tree = export_tree_create() };
	int ret = export_labels_create(&f.labels, s, opt->names, e);

	(void)path;
	if (!ret && (!f.tree || tidy_all(&f, s) < 0))
		ret = err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; !ret && i < s->nstacks; i++)
		if (add_stack(&f, &s->stack[i]) < 0)
			ret = err_set(e, ENOMEM, "out of memory after %zu stacks", i);
	if (!ret) {
		f.path = calloc(f.deepest + 1, sizeof(*f.path));
		if (f.path)
			print_lines(&f, o);
		else
			ret = err_set(e, ENOMEM, "out of memory");
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
