/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/export/coverage.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/table.h"
#include "profile/analyse/export/private.h"
#include "profile/format/names/reader.h"
#include "profile/format/sink/counted.h"
#include "symbolizer/program/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_HALF (UINT64_C(1) << 63)
/* Linux's image begins at a multiple of this, also in physical memory */
#define HUGE_PAGE (UINT64_C(2) << 20)
/* number of matching instructions that prove its physical address */
#define EARLY_LEAST 8u

struct executed {
	uint64_t va; /* address as linked */
	uint64_t times;
};

/* A file's text and its index. */
struct file_name {
	const char *text;
	uint64_t hash;
};

struct coverage_private {
	struct reader in;
	struct srcline *lines;
	struct table files; /* struct file_name */
	struct table line;  /* struct coverage_line */
	struct table function;
	struct executed *at; /* sorted; each address once */
	size_t n, cap;
	struct executed *early; /* instructions outside the kernel's half, by run-time address */
	size_t nearly, early_cap;
	const char *last; /* file of the previous row: consecutive rows often have one file */
	uint32_t last_index;
};

/* -- what was executed ------------------------------------------------------------------------ */

static int coverage_add(struct executed **list, size_t *n, size_t *cap, uint64_t va, uint64_t times)
{
	if (ARRAY_ROOM(*list, *n, *cap))
		return -ENOMEM;
	(*list)[(*n)++] = (struct executed){ va, times };
	return 0;
}

/*
 * Stores the linked address of a sample's instruction. Returns false if the debug information does
 * not have it.
 */
static bool coverage_linked(struct coverage_private *v, const struct perfdata_record *r,
			    uint64_t *va)
{
	uint64_t addr = r->sample.ip;
	struct name name;

	if (v->in.now != v->in.p) {
		names_lookup(v->in.names, r->pid, NAMES_KERNEL, addr, &name);
		if (!names_to_first_kernel(&name, &addr))
			return false;
	}
	return srcline_linked(v->lines, addr, va);
}

static int coverage_read(struct coverage *c, struct err *e)
{
	struct coverage_private *v = c->priv;
	struct perfdata_record r;
	uint64_t va;
	int ret = 0, more;

	while ((more = reader_next(&v->in, &r, e)) > 0 && !ret) {
		if (r.kind != PERFDATA_SAMPLE)
			continue;
		if (r.kernel && r.sample.ip & KERNEL_HALF && coverage_linked(v, &r, &va))
			ret = coverage_add(&v->at, &v->n, &v->cap, va, r.sample.period);
		else if (r.kernel && !(r.sample.ip & KERNEL_HALF))
			ret = coverage_add(&v->early, &v->nearly, &v->early_cap, r.sample.ip,
					   r.sample.period);
		c->elsewhere += r.sample.period;
	}
	return ret ? err_nomem(e) : more;
}

static int coverage_cmp(const void *a, const void *b)
{
	const struct executed *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

static size_t coverage_merge(struct executed *at, size_t n)
{
	size_t out = 0;

	if (n)
		qsort(at, n, sizeof(*at), coverage_cmp);
	for (size_t i = 0; i < n; i++) {
		if (out && at[out - 1].va == at[i].va)
			at[out - 1].times += at[i].times;
		else
			at[out++] = at[i];
	}
	return out;
}

/* Returns the index of the first instruction executed at or after va. */
static size_t coverage_from(const struct executed *at, size_t n, uint64_t va)
{
	size_t lo = 0;

	while (lo < n) {
		size_t mid = lo + (n - lo) / 2;

		if (at[mid].va < va)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

/* -- before the page tables ------------------------------------------------------------------- */

/*
 * Returns how many of the functions' entries and rows in `starts` were executed if the image is at
 * `base`.
 */
static size_t coverage_matches(const struct coverage_private *v, uint64_t base, uint64_t text,
			       uint64_t end, const struct executed *starts, size_t nstarts)
{
	size_t n = 0;

	for (size_t i = coverage_from(v->early, v->nearly, base); i < v->nearly; i++) {
		uint64_t va = v->early[i].va - base + text;
		size_t k;

		if (va >= end)
			break;
		k = coverage_from(starts, nstarts, va);
		n += k < nstarts && starts[k].va == va;
	}
	return n;
}

/*
 * Finds the image's place in physical memory by evidence: its first instruction was executed there,
 * and others that begin lines of the image.
 */
static int coverage_place_early(struct coverage_private *v, const struct executed *starts,
				size_t nstarts)
{
	uint64_t text = srcline_text(v->lines), end = srcline_text_end(v->lines), best = 0;
	size_t most = EARLY_LEAST - 1;
	int ret = 0;

	v->nearly = coverage_merge(v->early, v->nearly);
	for (size_t i = 0; i < v->nearly; i++) {
		uint64_t base = v->early[i].va;
		size_t n;

		if (base % HUGE_PAGE != text % HUGE_PAGE || !base)
			continue;
		n = coverage_matches(v, base, text, end, starts, nstarts);
		if (n > most) {
			most = n;
			best = base;
		}
	}
	for (size_t i = coverage_from(v->early, v->nearly, best); best && !ret && i < v->nearly;
	     i++)
		if (v->early[i].va - best < end - text)
			ret = coverage_add(&v->at, &v->n, &v->cap, v->early[i].va - best + text,
					   v->early[i].times);
	return ret;
}

/* -- lines and functions ---------------------------------------------------------------------- */

static bool coverage_same_file(const void *a, const void *b, const void *ctx)
{
	const struct file_name *x = a, *y = b;

	(void)ctx;
	return x->hash == y->hash && !strcmp(x->text, y->text);
}

static bool coverage_same_line(const void *a, const void *b, const void *ctx)
{
	const struct coverage_line *x = a, *y = b;

	(void)ctx;
	return x->file == y->file && x->line == y->line;
}

static bool coverage_same_function(const void *a, const void *b, const void *ctx)
{
	const struct coverage_function *x = a, *y = b;

	(void)ctx;
	return x->file == y->file && x->line == y->line && !strcmp(x->name, y->name);
}

static int coverage_file(struct coverage_private *v, const char *text, uint32_t *index)
{
	struct file_name like = { .text = text };
	bool fresh;
	int ret;

	if (text == v->last) {
		*index = v->last_index;
		return 0;
	}
	like.hash = hash_text(HASH_START, text);
	ret = table_add(&v->files, table_mix(like.hash, 2), &like, index, &fresh);
	v->last = ret ? NULL : text;
	v->last_index = *index;
	return ret;
}

/* Returns the largest count of the instructions in [lo, hi). */
static uint64_t coverage_most(const struct coverage_private *v, uint64_t lo, uint64_t hi)
{
	uint64_t most = 0;

	for (size_t i = coverage_from(v->at, v->n, lo); i < v->n && v->at[i].va < hi; i++)
		if (v->at[i].times > most)
			most = v->at[i].times;
	return most;
}

struct visiting {
	struct coverage *c;
	struct executed *start; /* first pass: addresses at which rows begin */
	size_t nstarts, starts_cap;
	uint64_t text, end;
};

static bool coverage_in_image(const struct visiting *x, uint64_t va)
{
	return va >= x->text && va < x->end;
}

static int coverage_visit_start(void *ctx, const struct lines_row *row)
{
	struct visiting *x = ctx;

	return coverage_in_image(x, row->lo)
		       ? coverage_add(&x->start, &x->nstarts, &x->starts_cap, row->lo, 1)
		       : 0;
}

static int coverage_visit_row(void *ctx, const struct lines_row *row)
{
	struct visiting *x = ctx;
	struct coverage_private *v = x->c->priv;
	struct coverage_line like = { .line = row->line }, *line;
	uint64_t count;
	uint32_t i;
	bool fresh;
	int ret;

	if (!coverage_in_image(x, row->lo))
		return 0;
	ret = coverage_file(v, row->file, &like.file);
	if (ret)
		return ret;
	ret = table_add(&v->line, table_mix(like.file, like.line), &like, &i, &fresh);
	if (ret)
		return ret;
	line = (struct coverage_line *)v->line.item + i;
	count = coverage_most(v, row->lo, row->hi);
	if (count > line->count)
		line->count = count;
	return 0;
}

static int coverage_visit_function(void *ctx, const struct lines_function *f)
{
	struct visiting *x = ctx;
	struct coverage_private *v = x->c->priv;
	struct coverage_function like = { .line = f->line, .name = f->name };
	uint32_t i;
	bool fresh;
	int ret;

	if (!coverage_in_image(x, f->entry))
		return 0;
	ret = coverage_file(v, f->file, &like.file);
	if (ret)
		return ret;
	ret = table_add(&v->function, table_mix(like.file, like.line), &like, &i, &fresh);
	if (ret)
		return ret;
	((struct coverage_function *)v->function.item)[i].count +=
		coverage_most(v, f->entry, f->entry + 1);
	return 0;
}

static int coverage_visit(struct coverage *c, struct err *e)
{
	struct coverage_private *v = c->priv;
	struct lines *lines = srcline_lines(v->lines);
	struct visiting x = { .c = c,
			      .text = srcline_text(v->lines),
			      .end = srcline_text_end(v->lines) };
	const struct lines_visitor first = { &x, coverage_visit_start, NULL },
				   then = { &x, coverage_visit_row, coverage_visit_function };
	int ret = lines_each(lines, &first, &c->left_out, e);

	if (!ret) {
		x.nstarts = coverage_merge(x.start, x.nstarts);
		ret = coverage_place_early(v, x.start, x.nstarts) ? err_nomem(e) : 0;
	}
	free(x.start);
	v->n = coverage_merge(v->at, v->n);
	for (size_t i = 0; i < v->n; i++)
		c->inside += v->at[i].times;
	c->elsewhere -= c->inside;
	return ret ? ret : lines_each(lines, &then, &c->left_out, e);
}

/* -- the whole -------------------------------------------------------------------------------- */

static int coverage_cmp_line(const void *a, const void *b)
{
	const struct coverage_line *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static int coverage_cmp_function(const void *a, const void *b)
{
	const struct coverage_function *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Sorts lines and functions. The tables own the items, which stay at their addresses. */
static int coverage_sort(struct coverage *c)
{
	struct coverage_private *v = c->priv;

	c->line = v->line.item;
	c->nlines = v->line.n;
	c->function = v->function.item;
	c->nfunctions = v->function.n;
	c->nfiles = v->files.n;
	c->file = calloc(c->nfiles + 1, sizeof(*c->file));
	if (!c->file)
		return -ENOMEM;
	for (size_t i = 0; i < c->nfiles; i++)
		c->file[i] = ((const struct file_name *)v->files.item)[i].text;
	if (c->nlines)
		qsort(c->line, c->nlines, sizeof(*c->line), coverage_cmp_line);
	if (c->nfunctions)
		qsort(c->function, c->nfunctions, sizeof(*c->function), coverage_cmp_function);
	return 0;
}

static bool coverage_has_event(const struct perfdata *p)
{
	for (uint32_t i = 0; i < p->nevents; i++)
		if (!strcmp(p->events[i].name, COUNTED_EXEC))
			return true;
	return false;
}

static int coverage_open(struct coverage *c, const struct coverage_options *o, struct err *e)
{
	struct coverage_private *v = c->priv;
	const char *input = o->input ? o->input : "perf.data";
	const struct reader_options from = { .input = o->input,
					     .event = COUNTED_EXEC,
					     .buildid_dir = o->buildid_dir };
	struct perfdata *p;
	struct err why = { 0 };
	bool has;
	int ret = perfdata_open(&p, input, e);

	if (ret)
		return ret;
	has = coverage_has_event(p);
	perfdata_close(p);
	if (!has)
		return err_set(e, ENOENT,
			       "%s: it has no counts of instructions: `kvmprof run --engine exact "
			       "--call-counts` makes them",
			       input);
	ret = reader_open(&v->in, &from, e);
	if (ret)
		return ret;
	ret = srcline_create(&v->lines, &o->places, e);
	if (ret)
		return ret;
	srcline_set_profile(v->lines, v->in.p);
	v->in.lines = v->lines;
	if (srcline_load(v->lines, &why))
		return err_set(e, why.code,
			       "no lines of the kernel: %s; give its debug file with --debuginfo",
			       why.text);
	return 0;
}

int coverage_load(struct coverage **out, const struct coverage_options *o, struct err *e)
{
	struct coverage *c = calloc(1, sizeof(*c));
	struct coverage_private *v = calloc(1, sizeof(*v));
	int ret;

	*out = c;
	if (!c || !v) {
		free(v);
		return err_nomem(e);
	}
	c->priv = v;
	v->files = TABLE_OF(struct file_name, coverage_same_file);
	v->line = TABLE_OF(struct coverage_line, coverage_same_line);
	v->function = TABLE_OF(struct coverage_function, coverage_same_function);
	ret = coverage_open(c, o, e);
	if (ret)
		return ret;
	ret = coverage_read(c, e);
	if (ret)
		return ret;
	v->n = coverage_merge(v->at, v->n);
	ret = coverage_visit(c, e);
	if (ret)
		return ret;
	return coverage_sort(c) ? err_nomem(e) : 0;
}

void coverage_destroy(struct coverage *c)
{
	if (!c)
		return;
	if (c->priv) {
		table_deinit(&c->priv->files);
		table_deinit(&c->priv->line);
		table_deinit(&c->priv->function);
		srcline_destroy(c->priv->lines);
		reader_close(&c->priv->in);
		free(c->priv->at);
		free(c->priv->early);
		free(c->priv);
	}
	free(c->file);
	free(c);
}

/* -- lcov ------------------------------------------------------------------------------------ */

/* Writes a name in a line of text; only in damaged files a name contains a line feed. */
static void lcov_text(struct export_out *o, const char *text)
{
	for (; *text; text++)
		export_out_char(o, *text == '\n' || *text == '\r' ? '?' : *text);
}

static bool lcov_comes_again(const struct coverage *c, size_t from, size_t at)
{
	for (size_t i = from; i < at; i++)
		if (!strcmp(c->function[i].name, c->function[at].name))
			return true;
	return false;
}

static void lcov_function_name(struct export_out *o, const struct coverage *c, size_t from,
			       size_t at)
{
	lcov_text(o, c->function[at].name);
	if (lcov_comes_again(c, from, at))
		export_out_printf(o, "@%" PRIu32, c->function[at].line);
	export_out_char(o, '\n');
}

static void lcov_functions(struct export_out *o, const struct coverage *c, size_t from, size_t to)
{
	size_t hit = 0;

	for (size_t i = from; i < to; i++) {
		export_out_printf(o, "FN:%" PRIu32 ",", c->function[i].line);
		lcov_function_name(o, c, from, i);
	}
	for (size_t i = from; i < to; i++) {
		export_out_printf(o, "FNDA:%" PRIu64 ",", c->function[i].count);
		lcov_function_name(o, c, from, i);
		hit += c->function[i].count != 0;
	}
	export_out_printf(o, "FNF:%zu\nFNH:%zu\n", to - from, hit);
}

static void lcov_lines(struct export_out *o, const struct coverage *c, size_t from, size_t to)
{
	size_t hit = 0;

	for (size_t i = from; i < to; i++) {
		export_out_printf(o, "DA:%" PRIu32 ",%" PRIu64 "\n", c->line[i].line,
				  c->line[i].count);
		hit += c->line[i].count != 0;
	}
	export_out_printf(o, "LF:%zu\nLH:%zu\n", to - from, hit);
}

void coverage_write_lcov(struct export_out *o, const struct coverage *c)
{
	size_t line = 0, function = 0;

	for (uint32_t f = 0; f < c->nfiles; f++) {
		size_t first_line = line, first_function = function;

		while (line < c->nlines && c->line[line].file == f)
			line++;
		while (function < c->nfunctions && c->function[function].file == f)
			function++;
		if (line == first_line)
			continue;
		export_out_text(o, "TN:\nSF:");
		lcov_text(o, c->file[f]);
		export_out_char(o, '\n');
		lcov_functions(o, c, first_function, function);
		lcov_lines(o, c, first_line, line);
		export_out_text(o, "end_of_record\n");
	}
}
