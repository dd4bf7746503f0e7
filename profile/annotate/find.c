/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/annotate/find.h"

#include "profile/perfdata/textstore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define START_CAP 1024u

static bool parse_address(const char *s, uint64_t *out)
{
	char *end;

	if (s[0] != '0' || (s[1] | 0x20) != 'x' || !s[2])
		return false;
	errno = 0;
	*out = strtoull(s, &end, 16);
	return !*end && !errno;
}

static bool dso_matches(const char *dso, const char *wanted)
{
	const char *slash = strrchr(dso, '/');
	size_t n = strlen(dso);

	if (!wanted || !strcmp(dso, wanted) || (slash && !strcmp(slash + 1, wanted)))
		return true;
	/* A module with or without its brackets. */
	return n > 2 && dso[0] == '[' && strlen(wanted) == n - 2 &&
	       !strncmp(dso + 1, wanted, n - 2);
}

static bool is_wanted(const struct annotate_find *f, const struct annotate_function *fn)
{
	if (!dso_matches(fn->dso, f->query.dso))
		return false;
	if (f->by_address)
		return f->address >= fn->addr && f->address - fn->addr < fn->size;
	return !strcmp(fn->symbol->name, f->query.text) ||
	       !strcmp(display_name(f->display, fn->symbol, fn->kernel), f->query.text);
}

static uint32_t *slot_of(const struct annotate_find *f, const struct symbol *s)
{
	size_t mask = f->cap * 2 - 1;
	size_t i = (size_t)(((uintptr_t)s * 0x9e3779b97f4a7c15u) >> 32) & mask;

	while (f->slot[i] && f->function[f->slot[i] - 1].symbol != s)
		i = (i + 1) & mask;
	return &f->slot[i];
}

static int grow(struct annotate_find *f, struct err *e)
{
	size_t cap = f->cap ? f->cap * 2 : START_CAP;
	struct annotate_function *fn;
	uint32_t *slot;

	if (f->count < f->cap)
		return 0;
	if (cap > ANNOTATE_MAX_FUNCTIONS)
		return err_set(e, E2BIG, "more than %u functions were sampled",
			       ANNOTATE_MAX_FUNCTIONS);
	fn = reallocarray(f->function, cap, sizeof(*fn));
	if (fn)
		f->function = fn;
	slot = fn ? calloc(cap * 2, sizeof(*slot)) : NULL;
	if (!slot)
		return err_set(e, ENOMEM, "out of memory");
	free(f->slot);
	f->slot = slot;
	f->cap = cap;
	for (size_t i = 0; i < f->count; i++)
		*slot_of(f, fn[i].symbol) = (uint32_t)(i + 1);
	return 0;
}

/* The function of this name, with room for its hits if it is wanted. */
static int function_of(struct annotate_find *f, const struct perfdata_frame *at,
		       const struct name *name, struct names_view view,
		       struct annotate_function **out, struct err *e)
{
	struct annotate_function *fn;
	const uint8_t *id;
	uint32_t *slot;
	int ret = grow(f, e);

	if (ret)
		return ret;
	slot = slot_of(f, name->symbol);
	if (*slot) {
		*out = &f->function[*slot - 1];
		return 0;
	}
	fn = &f->function[f->count];
	*fn = (struct annotate_function){
		.symbol = name->symbol,
		.dso = name->dso,
		.kernel = at->kernel,
		.addr = at->kernel ? at->ip - name->off : name->symbol->addr,
		.size = name->symbol->size,
		.view = view,
	};
	fn->bias = at->ip - name->off - fn->addr;
	id = names_build_id(f->n, name->program);
	if (id) {
		fn->has_id = true;
		memcpy(fn->build_id, id, sizeof(fn->build_id));
	}
	fn->wanted = is_wanted(f, fn);
	if (fn->wanted && fn->size <= TEXTSTORE_MAX_LEN) {
		fn->at = calloc(fn->size + 1, sizeof(*fn->at));
		if (!fn->at)
			return err_set(e, ENOMEM, "out of memory");
	}
	f->nwanted += fn->wanted;
	*slot = (uint32_t)++f->count;
	*out = fn;
	return 0;
}

static int take_sample(struct annotate_find *f, const struct perfdata_record *r, struct err *e)
{
	struct names_view view = names_view(f->n, r->pid);
	struct annotate_function *fn = NULL;
	struct perfdata_walk walk;
	struct perfdata_frame at;
	struct name name;
	int ret;

	perfdata_walk_begin(&walk, r);
	if (!perfdata_walk_next(&walk, &at))
		return 0;
	names_lookup_in(f->n, view, at.kernel, at.ip, &name);
	if (!name.symbol)
		return 0;
	ret = function_of(f, &at, &name, view, &fn, e);
	if (ret)
		return ret;
	fn->weight += r->sample.period;
	fn->samples++;
	if (fn->at && name.off < fn->size) {
		fn->at[name.off].weight += r->sample.period;
		fn->at[name.off].samples++;
	}
	return 0;
}

static void pack_hits(struct annotate_function *fn)
{
	for (uint64_t off = 0; fn->at && off < fn->size; off++) {
		struct annotate_hit h = fn->at[off];

		if (!h.samples)
			continue;
		h.addr = fn->addr + off;
		fn->at[fn->nhits++] = h;
	}
}

int annotate_find(struct annotate_find *f, const struct annotate_query *q, struct err *e)
{
	struct perfdata_record r;
	int ret = 0;

	f->query = *q;
	f->by_address = parse_address(q->text, &f->address);
	while (!ret && perfdata_next(f->p, &r)) {
		ret = names_record(f->n, &r, e);
		if (!ret && r.kind == PERFDATA_SAMPLE)
			ret = take_sample(f, &r, e);
	}
	for (size_t i = 0; i < f->count; i++)
		pack_hits(&f->function[i]);
	return ret;
}

void annotate_find_deinit(struct annotate_find *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->function[i].at);
	free(f->function);
	free(f->slot);
}
