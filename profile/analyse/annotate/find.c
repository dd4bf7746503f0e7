/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/annotate/find.h"

#include "base/utf8.h"
#include "profile/format/names/srcline.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/textstore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_address(const char *s, uint64_t *out)
{
	char *end;

	if (s[0] != '0' || (s[1] | 0x20) != 'x' || !s[2])
		return false;
	errno = 0;
	*out = strtoull(s, &end, 16);
	return !*end && !errno;
}

static bool is_called(const struct annotate_find *f, const struct annotate_function *fn,
		      const char *name)
{
	for (const struct symbol *s = fn->symbol; s; s = s->alias)
		if (!strcmp(s->name, name) ||
		    !strcmp(demangle_shown(f->display, s, fn->kernel), name))
			return true;
	return false;
}

/* The debug information for the file that contains a function. */
struct find_files {
	const struct annotate_find *find;
	const struct annotate_function *fn;
	struct debuginfo *info; /* owned; of a program */
	bool tried;
};

static struct lines *kernel_lines(const struct find_files *x, uint64_t *addr)
{
	struct srcline *kernel = x->find->in->lines;
	uint64_t at = *addr + (x->fn->addr - x->fn->symbol->addr) - x->fn->shift;

	if (strcmp(x->fn->dso, PERFDATA_KERNEL_DSO) != 0 || x->fn->other_kernel || !kernel ||
	    srcline_load(kernel, NULL) || !srcline_linked(kernel, at, addr))
		return NULL;
	return srcline_lines(kernel);
}

/* Implements function_table.lines. */
static struct lines *find_lines(void *ctx, enum function_search how, uint64_t *addr)
{
	struct find_files *x = ctx;

	if (x->fn->kernel)
		return kernel_lines(x, addr);
	if (how == FUNCTION_WANTED && !x->tried && x->fn->id_len && x->find->in->lines)
		(void)debuginfo_open(&x->info, srcline_places(x->find->in->lines), x->fn->build_id,
				     x->fn->id_len, NULL);
	x->tried |= how == FUNCTION_WANTED;
	return x->info ? debuginfo_lines(x->info) : NULL;
}

/* Returns true if the query selects fn by file and number among the functions of its name. */
static bool is_selected(struct annotate_find *f, const struct annotate_function *fn)
{
	struct find_files files = { .find = f, .fn = fn };
	const struct function_table table = { fn->symbols, fn->dso, find_lines, &files };
	struct function_name want = f->parts;
	struct functions found = { .n = 0 };
	bool selected = false;

	function_base_name(want.name, fn->symbol);
	/* Keep the first reason. */
	(void)function_select(&table, &want, FUNCTION_EACH, &found, &f->why);
	for (size_t i = 0; i < found.n; i++)
		selected |= found.at[i].symbol->addr == fn->symbol->addr;
	function_deinit(&found);
	debuginfo_close(files.info);
	return selected;
}

static bool is_wanted(struct annotate_find *f, const struct annotate_function *fn)
{
	if (f->query.selection && !selection_dso(f->query.selection, fn->dso))
		return false;
	if (f->by_address)
		return f->address >= fn->addr && f->address - fn->addr < fn->size;
	if (is_called(f, fn, f->query.text))
		return true;
	return (f->parts.number || f->parts.all || f->parts.file[0]) &&
	       is_called(f, fn, f->parts.name) && is_selected(f, fn);
}

void annotate_find_describe(struct annotate_find *f, const struct annotate_function *fn,
			    char out[ANNOTATE_WHICH_LEN])
{
	struct find_files files = { .find = f, .fn = fn };
	const struct function_table table = { fn->symbols, fn->dso, find_lines, &files };
	struct function x = { .symbol = fn->symbol };
	unsigned int of;
	size_t at = 0;

	x.number = function_number(fn->symbols, fn->symbol, &of);
	function_locate(&table, FUNCTION_AT_HAND, &x);
	out[0] = '\0';
	if (of > 1)
		at = (size_t)snprintf(out, ANNOTATE_WHICH_LEN, "#%u%s", x.number,
				      x.file ? " " : "");
	/* A file's name may contain control characters, which a terminal would execute. */
	if (x.file)
		utf8_clean(out + at, ANNOTATE_WHICH_LEN - at, function_short_file(x.file));
	debuginfo_close(files.info);
}

static bool equal_function(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return ((const struct annotate_function *)a)->symbol ==
	       ((const struct annotate_function *)b)->symbol;
}

/* A frame of a sample with its name. */
struct found_frame {
	struct name name;
	uint64_t addr; /* the address that was looked up; for a caller: inside of its call */
	bool kernel;
};

/* Finds the function of this name, or adds it, with an array for its hits if it is wanted. */
static int function_of(struct annotate_find *f, const struct found_frame *at,
		       struct names_view view, struct annotate_function **out, struct err *e)
{
	const struct name *name = &at->name;
	const struct annotate_function like = {
		.symbol = name->symbol,
		.symbols = name->symbols,
		.dso = name->dso,
		.kernel = at->kernel,
		.addr = at->kernel ? at->addr - name->off : name->symbol->addr,
		.size = name->symbol->size,
		.view = view,
		.from = f->in->now,
		.shift = name->shift,
		.other_kernel = name->other_kernel,
	};
	struct annotate_function *fn;
	const uint8_t *id;
	size_t id_len;
	uint32_t index;
	bool fresh;

	if (table_add(&f->functions, table_mix((uintptr_t)name->symbol, 0), &like, &index, &fresh))
		return err_nomem(e);
	*out = fn = (struct annotate_function *)f->functions.item + index;
	if (!fresh)
		return 0;
	if (f->functions.n > ANNOTATE_MAX_FUNCTIONS)
		return err_set(e, E2BIG, "more than %u functions were sampled",
			       ANNOTATE_MAX_FUNCTIONS);
	fn->bias = at->addr - name->off - fn->addr;
	id = names_build_id(f->in->names, name->program, &id_len);
	fn->id_len = (uint8_t)id_len;
	if (id)
		memcpy(fn->build_id, id, id_len);
	fn->wanted = is_wanted(f, fn);
	if (fn->wanted && fn->size <= TEXTSTORE_MAX_LEN) {
		fn->at = calloc(fn->size + 1, sizeof(*fn->at));
		if (f->query.children)
			fn->below = calloc(fn->size + 1, sizeof(*fn->below));
		if (!fn->at || (f->query.children && !fn->below))
			return err_nomem(e);
	}
	f->nwanted += fn->wanted;
	return 0;
}

/* Returns 1 if the selection passes a sample, 0 if not, or -ENOMEM. */
static int find_passes(struct annotate_find *f, const struct perfdata_record *r)
{
	struct chain chain;

	if (!selection_sample(&f->selection, r))
		return 0;
	if (!f->query.selection || !f->query.selection->parent)
		return 1;
	chain = chain_of(r, f->in->names);
	return selection_has_parent(&f->selection, &chain, f->in->p->ours);
}

/* Counts a call instruction of a wanted function once for the sample. */
static void take_call(struct annotate_find *f, struct annotate_function *fn, uint64_t off,
		      const struct perfdata_record *r)
{
	struct annotate_hit *h = fn->below && off < fn->size ? &fn->below[off] : NULL;

	/* Until pack_hits() the address is the number of the last sample that was counted. */
	if (!h || h->addr == f->samples)
		return;
	h->addr = f->samples;
	h->weight += r->sample.period;
	h->samples++;
}

static int take_frame(struct annotate_find *f, const struct perfdata_record *r,
		      struct names_view view, const struct perfdata_frame *at, struct err *e)
{
	struct annotate_function *fn = NULL;
	struct found_frame frame = { .kernel = at->kernel };
	int ret;

	frame.addr = names_lookup_frame(f->in->names, view, at,
					/* exact= */ at->innermost || f->in->p->ours, &frame.name);
	if (!frame.name.symbol)
		return 0;
	ret = function_of(f, &frame, view, &fn, e);
	if (ret)
		return ret;
	if (fn->stamp != f->samples) {
		fn->stamp = f->samples;
		fn->children += r->sample.period;
		fn->children_samples++;
	}
	if (!at->innermost) {
		take_call(f, fn, frame.name.off, r);
		return 0;
	}
	fn->weight += r->sample.period;
	fn->samples++;
	if (fn->at && frame.name.off < fn->size) {
		fn->at[frame.name.off].weight += r->sample.period;
		fn->at[frame.name.off].samples++;
	}
	return 0;
}

static int take_sample(struct annotate_find *f, const struct perfdata_record *r, struct err *e)
{
	struct names_view view = names_view(f->in->names, r->pid);
	struct perfdata_walk walk;
	struct perfdata_frame at;
	int ret = find_passes(f, r);

	if (ret <= 0)
		return ret ? err_nomem(e) : 0;
	f->samples++;
	f->weight += r->sample.period;
	perfdata_walk_begin(&walk, r);
	while (perfdata_walk_next(&walk, &at)) {
		f->chains |= !at.innermost;
		ret = take_frame(f, r, view, &at, e);
		if (ret || !f->query.children)
			return ret < 0 ? ret : 0;
	}
	return 0;
}

/* Moves the entries with samples to the front. Returns their number. */
static size_t pack_hits(struct annotate_hit *at, const struct annotate_function *fn)
{
	size_t n = 0;

	for (uint64_t off = 0; at && off < fn->size; off++) {
		struct annotate_hit h = at[off];

		if (!h.samples)
			continue;
		h.addr = fn->addr + off;
		at[n++] = h;
	}
	return n;
}

void annotate_find_take_calls(struct annotate_find *f, struct annotate_find *from)
{
	for (size_t i = 0; i < f->count; i++) {
		struct annotate_function *fn = &f->function[i];

		for (size_t k = 0; k < from->count && fn->wanted; k++) {
			struct annotate_function *x = &from->function[k];

			if (!x->wanted || x->addr != fn->addr || x->kernel != fn->kernel ||
			    strcmp(x->dso, fn->dso) != 0)
				continue;
			free(fn->below);
			fn->below = x->below;
			fn->nbelow = x->nbelow;
			fn->children = x->children;
			fn->children_samples = x->children_samples;
			x->below = NULL;
			x->nbelow = 0;
		}
	}
	f->chains = from->chains;
	f->weight = from->weight;
}

int annotate_find(struct annotate_find *f, const struct annotate_query *q, struct err *e)
{
	struct perfdata_record r;
	int ret;

	f->functions = TABLE_OF(struct annotate_function, equal_function);
	f->query = *q;
	selection_use_init(&f->selection, q->selection, f->in->names, f->in->tasks, f->display);
	f->by_address = parse_address(q->text, &f->address);
	function_name_parse(&f->parts, q->text);
	while ((ret = reader_next(f->in, &r, e)) > 0) {
		ret = r.kind == PERFDATA_SAMPLE ? take_sample(f, &r, e) : 0;
		if (ret)
			break;
	}
	ret = ret ? ret : selection_missed(&f->selection, e);
	f->function = f->functions.item;
	f->count = f->functions.n;
	for (size_t i = 0; i < f->count; i++) {
		f->function[i].nhits = pack_hits(f->function[i].at, &f->function[i]);
		f->function[i].nbelow = pack_hits(f->function[i].below, &f->function[i]);
	}
	return ret;
}

void annotate_find_deinit(struct annotate_find *f)
{
	for (size_t i = 0; i < f->count; i++) {
		free(f->function[i].at);
		free(f->function[i].below);
	}
	table_deinit(&f->functions);
	selection_use_deinit(&f->selection);
}
