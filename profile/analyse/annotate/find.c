/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/annotate/find.h"

#include "profile/format/perfdata/textstore.h"

#include <errno.h>
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

static bool equal_function(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return ((const struct annotate_function *)a)->symbol ==
	       ((const struct annotate_function *)b)->symbol;
}

/* The function of this name, with room for its hits if it is wanted. */
static int function_of(struct annotate_find *f, const struct perfdata_frame *at,
		       const struct name *name, struct names_view view,
		       struct annotate_function **out, struct err *e)
{
	const struct annotate_function like = {
		.symbol = name->symbol,
		.dso = name->dso,
		.kernel = at->kernel,
		.addr = at->kernel ? at->ip - name->off : name->symbol->addr,
		.size = name->symbol->size,
		.view = view,
	};
	struct annotate_function *fn;
	const uint8_t *id;
	uint32_t index;
	bool fresh;

	if (table_add(&f->functions, table_mix((uintptr_t)name->symbol, 0), &like, &index, &fresh))
		return err_set(e, ENOMEM, "out of memory");
	*out = fn = (struct annotate_function *)f->functions.item + index;
	if (!fresh)
		return 0;
	if (f->functions.n > ANNOTATE_MAX_FUNCTIONS)
		return err_set(e, E2BIG, "more than %u functions were sampled",
			       ANNOTATE_MAX_FUNCTIONS);
	fn->bias = at->ip - name->off - fn->addr;
	id = names_build_id(f->in->names, name->program);
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
	return 0;
}

static int take_sample(struct annotate_find *f, const struct perfdata_record *r, struct err *e)
{
	struct names_view view = names_view(f->in->names, r->pid);
	struct annotate_function *fn = NULL;
	struct perfdata_walk walk;
	struct perfdata_frame at;
	struct name name;
	int ret;

	perfdata_walk_begin(&walk, r);
	if (!perfdata_walk_next(&walk, &at))
		return 0;
	names_lookup_in(f->in->names, view, at.kernel, at.ip, &name);
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
	int ret;

	f->functions = TABLE_OF(struct annotate_function, equal_function);
	f->query = *q;
	f->by_address = parse_address(q->text, &f->address);
	while ((ret = reader_next(f->in, &r, e)) > 0) {
		ret = r.kind == PERFDATA_SAMPLE ? take_sample(f, &r, e) : 0;
		if (ret)
			break;
	}
	f->function = f->functions.item;
	f->count = f->functions.n;
	for (size_t i = 0; i < f->count; i++)
		pack_hits(&f->function[i]);
	return ret;
}

void annotate_find_deinit(struct annotate_find *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->function[i].at);
	table_deinit(&f->functions);
}
