/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The instructions of the hottest functions of an event, and their source lines.
 *
 *   [{"f": function, "address": "0x...", "from": origin of the bytes, "files": [path, ...],
 *     "ins": [[offset, text, target or null, file, line], ...],
 *     "src": [[file, first line, [text, ...]], ...]}, ...]
 *
 * file is an index into files, or -1. The page counts hits by itself, because they depend on what
 * is selected there.
 */
#include "profile/analyse/html/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/texts.h"
#include "profile/analyse/annotate/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CODE_MAX_LEN (256u << 10) /* bytes of one function */
#define FILES_MAX 64u
#define LINES_AROUND 3u	 /* source lines before the first and after the last of a function */
#define LINES_MOST 2000u /* source lines of one function's file */
#define LINE_LEN 400u

struct html_code {
	const struct html_options *opt;
	const struct stackset *s;
	struct reader in;
	struct annotate_find find;
	struct display_names display;
	const struct annotate_function *fn;
	struct annotate_lines *lines;
	struct json_writer w;
};

/* A source file of one function, with the range of its lines. */
struct html_file {
	const char *path; /* borrowed from struct annotate_lines */
	unsigned int first, last;
};

struct html_files {
	struct html_file at[FILES_MAX];
	unsigned int n;
};

static const char *name_at(void *ctx, uint64_t addr, uint64_t *off)
{
	struct html_code *c = ctx;
	struct name name;

	names_lookup_in(c->in.names, c->fn->view, c->fn->kernel, addr + c->fn->bias, &name);
	*off = names_shown_off(&name);
	return name.symbol ? demangle_shown(&c->display, name.symbol, c->fn->kernel) : NULL;
}

static bool line_at(void *ctx, uint64_t addr, struct annotate_line *out)
{
	struct html_code *c = ctx;

	return c->lines && annotate_lines_at(c->lines, addr, out);
}

/* -- one function ---------------------------------------------------------------------------- */

/* Returns the number of a file, whose range then includes the line; -1 if there is none. */
static int file_of(struct html_files *files, const struct annotate_line *line)
{
	unsigned int i = 0;

	if (!line->file || !line->line)
		return -1;
	while (i < files->n && strcmp(files->at[i].path, line->file) != 0)
		i++;
	if (i == FILES_MAX)
		return -1;
	if (i == files->n)
		files->at[files->n++] = (struct html_file){ line->file, line->line, line->line };
	if (line->line < files->at[i].first)
		files->at[i].first = line->line;
	if (line->line > files->at[i].last)
		files->at[i].last = line->line;
	return (int)i;
}

static void put_row(struct html_code *c, const struct annotate *a, const struct annotate_row *row,
		    struct html_files *files)
{
	char target[ANNOTATE_TARGET];

	annotate_target(a, &row->insn, target);
	json_array_begin(&c->w, NULL);
	json_u64(&c->w, NULL, row->addr - c->fn->addr);
	json_strf(&c->w, NULL, "%s%s%s%s%s%s", row->insn.mnemonic, row->insn.operands[0] ? " " : "",
		  row->insn.operands, target[0] ? " " : "", target,
		  row->differs ? "  (patched)" : "");
	if (row->insn.has_target && row->insn.target - c->fn->addr < c->fn->size)
		json_u64(&c->w, NULL, row->insn.target - c->fn->addr);
	else
		json_str(&c->w, NULL, NULL);
	json_i64(&c->w, NULL, file_of(files, &row->line));
	json_u64(&c->w, NULL, row->line.line);
	json_array_end(&c->w);
}

static void put_source(struct html_code *c, const struct html_files *files, unsigned int i)
{
	const struct html_file *f = &files->at[i];
	unsigned int from = f->first > LINES_AROUND ? f->first - LINES_AROUND : 1;
	unsigned int to = f->last + LINES_AROUND;

	if (f->last - f->first > LINES_MOST || !annotate_lines_source(c->lines, f->path, f->first))
		return;
	json_array_begin(&c->w, NULL);
	json_u64(&c->w, NULL, i);
	json_u64(&c->w, NULL, from);
	json_array_begin(&c->w, NULL);
	for (unsigned int line = from; line <= to; line++) {
		const char *text = annotate_lines_source(c->lines, f->path, line);
		const char *end = text ? strchr(text, '\n') : NULL;
		int len = end && end - text < (int)LINE_LEN ? (int)(end - text) : (int)LINE_LEN;

		if (!text)
			break;
		json_strf(&c->w, NULL, "%.*s", len, text);
	}
	json_array_end(&c->w);
	json_array_end(&c->w);
}

static void put_function(struct html_code *c, uint32_t func, const struct annotate *a,
			 const char *from)
{
	struct html_files *files = calloc(1, sizeof(*files));

	if (!files) {
		c->w.b->failed = true;
		return;
	}
	json_object_begin(&c->w, NULL);
	json_u64(&c->w, "f", func);
	json_hex(&c->w, "address", c->fn->addr);
	json_str(&c->w, "from", from);
	json_array_begin(&c->w, "ins");
	for (size_t i = 0; i < a->nrows; i++)
		put_row(c, a, &a->row[i], files);
	json_array_end(&c->w);
	json_array_begin(&c->w, "files");
	for (unsigned int i = 0; i < files->n; i++)
		json_str(&c->w, NULL, files->at[i].path);
	json_array_end(&c->w);
	json_array_begin(&c->w, "src");
	for (unsigned int i = 0; i < files->n; i++)
		put_source(c, files, i);
	json_array_end(&c->w);
	json_object_end(&c->w);
	free(files);
}

/* Writes the function unless its code is not available. Returns 0 or -ENOMEM. */
static int code_of(struct html_code *c, uint32_t func, struct srcline *kernel, struct err *why,
		   struct err *e)
{
	struct annotate_input in = { .name = name_at, .line = line_at, .ctx = c };
	struct annotate_text text = { 0 };
	struct annotate *a = NULL;
	struct err none = { 0 };
	int ret = annotate_text(&text, c->fn, c->opt->load.buildid_dir, &none);

	if (!ret && text.len <= CODE_MAX_LEN) {
		if (kernel)
			(void)annotate_lines_open(&c->lines, c->fn, &text, kernel,
						  why->code ? &none : why, &none);
		in.addr = c->fn->addr;
		in.live = text.live;
		in.image = text.image;
		in.len = text.len;
		in.function = c->s->func[func].name;
		ret = annotate_build(&a, &in, &none);
		if (!ret)
			put_function(c, func, a, text.source);
		annotate_destroy(a);
		annotate_lines_close(c->lines);
		c->lines = NULL;
	}
	annotate_text_deinit(&text);
	return ret == -ENOMEM ? err_nomem(e) : 0;
}

/* -- which functions ------------------------------------------------------------------------- */

struct html_rank {
	uint64_t weight;
	uint32_t func;
};

static int compare_ranks(const void *a, const void *b)
{
	const struct html_rank *x = a, *y = b;

	return x->weight != y->weight ? (x->weight < y->weight) - (x->weight > y->weight)
				      : (x->func > y->func) - (x->func < y->func);
}

/* Sorts the functions by their own weight, the highest first. NULL: out of memory. */
static struct html_rank *rank_functions(const struct stackset *s)
{
	struct html_rank *rank = calloc(s->nfuncs + 1, sizeof(*rank));

	if (!rank)
		return NULL;
	for (size_t i = 0; i < s->nfuncs; i++)
		rank[i].func = (uint32_t)i;
	for (size_t i = 0; i < s->nstacks; i++)
		if (s->stack[i].n)
			rank[s->frame[s->stack[i].frame[0]].func].weight += s->stack[i].weight;
	qsort(rank, s->nfuncs, sizeof(*rank), compare_ranks);
	return rank;
}

static const struct annotate_function *find_function(const struct html_code *c,
						     const struct stackset_func *f)
{
	for (size_t i = 0; f->named && i < c->find.count; i++)
		if (c->find.function[i].addr == f->addr && !strcmp(c->find.function[i].dso, f->dso))
			return &c->find.function[i];
	return NULL;
}

static int put_all(struct html_code *c, struct srcline *kernel, struct err *why, struct err *e)
{
	cleanup_free struct html_rank *rank = rank_functions(c->s);
	int ret = 0;

	if (!rank)
		return err_nomem(e);
	json_array_begin(&c->w, NULL);
	for (size_t i = 0; i < c->s->nfuncs && i < c->opt->functions && rank[i].weight && !ret;
	     i++) {
		c->fn = find_function(c, &c->s->func[rank[i].func]);
		if (c->fn)
			ret = code_of(c, rank[i].func, kernel, why, e);
	}
	if (!ret)
		json_array_end(&c->w);
	return ret;
}

int html_code(struct buf *out, const struct html_options *opt, const struct stackset *s,
	      struct err *why, struct err *e)
{
	const struct reader_options from = { .input = opt->load.input,
					     .buildid_dir = opt->load.buildid_dir,
					     .event = opt->load.event,
					     .epoch = opt->load.epoch };
	const struct annotate_query none = { .text = "" };
	struct html_code c = { .opt = opt, .s = s };
	struct srcline *kernel = NULL;
	int ret = reader_open(&c.in, &from, e);

	if (ret)
		return ret;
	demangle_names_init(&c.display, opt->load.no_demangle ? DEMANGLE_NONE : DEMANGLE_PROGRAMS);
	c.find.display = &c.display;
	c.find.in = &c.in;
	json_begin(&c.w, out);
	if (opt->places) {
		ret = srcline_create(&kernel, opt->places, e);
		if (!ret) {
			srcline_set_profile(kernel, c.in.p);
			c.in.lines = kernel;
		}
	}
	ret = ret ? ret : annotate_find(&c.find, &none, e);
	ret = ret ? ret : put_all(&c, kernel, why, e);
	buf_u8(out, '\0'); /* json_raw() reads a string */
	annotate_find_deinit(&c.find);
	srcline_destroy(kernel);
	demangle_names_deinit(&c.display);
	reader_close(&c.in);
	return ret;
}
