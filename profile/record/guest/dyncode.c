/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/dyncode.h"

#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct guest_dyncode {
	const struct linux_dyncode_layout *layout;
	const struct memory *memory;
	struct sink *sink;
	struct linux_dyncode_list now;
	struct symtab **symbols; /* of each in now; NULL: none. Owned by `told`. */
	struct symtab **told;	 /* the sink reads them until its end */
	size_t ntold, told_cap;
	struct unwind_region *region; /* with the modules' */
	size_t nregions, region_cap;
	uint64_t modules_seen; /* for which `region` was made */
	uint64_t changes;
	bool joined;
	struct code_watch watch;
	struct guest_dyncode_stats stats;
};

int guest_dyncode_create(struct guest_dyncode **out, const struct linux_dyncode_layout *layout,
			 const struct memory *memory, struct sink *sink, struct err *e)
{
	struct guest_dyncode *g = calloc(1, sizeof(*g));

	if (!g)
		return err_set(e, ENOMEM, "out of memory");
	g->layout = layout;
	g->memory = memory;
	g->sink = sink;
	*out = g;
	return 0;
}

void guest_dyncode_destroy(struct guest_dyncode *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->ntold; i++)
		symtab_destroy(g->told[i]);
	free(g->told);
	free(g->symbols);
	free(g->region);
	linux_dyncode_list_deinit(&g->now);
	free(g);
}

const struct guest_dyncode_stats *guest_dyncode_stats(const struct guest_dyncode *g)
{
	return &g->stats;
}

uint64_t guest_dyncode_changes(const struct guest_dyncode *g)
{
	return g->changes;
}

/* -- names -------------------------------------------------------------------------- */

static bool is_same(const struct linux_dyncode *a, const struct linux_dyncode *b)
{
	return a->start == b->start && a->end == b->end && a->kind == b->kind &&
	       a->copy_of == b->copy_of && !strcmp(a->name, b->name);
}

/* The list is sorted. NULL: it was not there before, or has no name. */
static struct symtab *known_symbols(const struct guest_dyncode *g, const struct linux_dyncode *c,
				    bool *known)
{
	size_t low = 0, high = g->now.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (g->now.code[mid].start < c->start)
			low = mid + 1;
		else
			high = mid;
	}
	*known = low < g->now.n && is_same(&g->now.code[low], c);
	return *known ? g->symbols[low] : NULL;
}

/* NULL: no memory, or too many names are kept already. */
static struct symtab *make_symbols(struct guest_dyncode *g, const struct linux_dyncode *c)
{
	struct symtab *s;

	if (g->ntold >= GUEST_DYNCODE_MAX_TOLD || ARRAY_ROOM(g->told, g->ntold, g->told_cap))
		return NULL;
	s = symtab_create();
	if (!s || symtab_add(s, c->start, c->end - c->start, 't', c->name) ||
	    symtab_freeze(s, NULL)) {
		symtab_destroy(s);
		return NULL;
	}
	g->told[g->ntold++] = s;
	return s;
}

static int dyncode_announce(struct guest_dyncode *g, const struct linux_dyncode *c,
			    const struct symtab *symbols, uint64_t time_ns, struct err *e)
{
	char name[PROFILE_MODULE_NAME];
	struct profile_module p = {
		.name = name,
		.addr = c->start,
		.len = c->end - c->start,
		.time_ns = time_ns,
		.symbols = symbols,
	};

	snprintf(name, sizeof(name), "%.63s", c->name);
	return g->sink->ops->module(g->sink, &p, e);
}

/* -- lists -------------------------------------------------------------------------- */

/* From the old list to the fresh one. Returns the first error of the sink. */
static int dyncode_replace(struct guest_dyncode *g, struct linux_dyncode_list *fresh,
			   struct symtab **symbols, uint64_t time_ns, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < fresh->n; i++) {
		const struct linux_dyncode *c = &fresh->code[i];
		bool known;

		symbols[i] = known_symbols(g, c, &known);
		if (known)
			continue;
		symbols[i] = make_symbols(g, c);
		g->stats.seen++;
		g->stats.without_symbols += !symbols[i];
		if (symbols[i] && !ret)
			ret = dyncode_announce(g, c, symbols[i], time_ns, e);
	}
	linux_dyncode_list_deinit(&g->now);
	free(g->symbols);
	g->now = *fresh;
	g->symbols = symbols;
	g->joined = false;
	g->changes++;
	return ret;
}

static int dyncode_read(struct guest_dyncode *g, uint64_t hash, uint64_t time_ns, struct err *e)
{
	struct linux_dyncode_list fresh;
	struct symtab **symbols;

	if (linux_dyncode_list(g->layout, g->memory, &fresh, e))
		return -ENOMEM;
	if (fresh.cut) {
		/* It changes right now: what it lacks isn't gone. */
		g->stats.failed++;
		linux_dyncode_list_deinit(&fresh);
		return 0;
	}
	symbols = calloc(fresh.n + 1, sizeof(struct symtab *));
	if (!symbols) {
		linux_dyncode_list_deinit(&fresh);
		return err_set(e, ENOMEM, "out of memory");
	}
	code_watch_set_read(&g->watch, hash);
	g->stats.skipped += fresh.skipped;
	return dyncode_replace(g, &fresh, symbols, time_ns, e);
}

int guest_dyncode_see(struct guest_dyncode *g, uint64_t ip, enum guest_ip where, uint64_t time_ns,
		      struct err *e)
{
	const struct code_watch_known known = { g->region, g->nregions };
	uint64_t hash;

	if (!code_watch_is_due(&g->watch, &known, ip, where, time_ns))
		return 0;
	if (linux_dyncode_hash(g->layout, g->memory, &hash) < 0) {
		g->stats.failed++;
		return 0;
	}
	return code_watch_has_changed(&g->watch, hash) ? dyncode_read(g, hash, time_ns, e) : 0;
}

const struct unwind_region *guest_dyncode_join(struct guest_dyncode *g,
					       const struct guest_modules *modules, size_t *n)
{
	uint64_t modules_seen = modules ? guest_modules_changes(modules) : 0;
	const struct unwind_region *m = NULL;
	size_t nm = 0, i = 0, k = 0, at = 0;

	if (g->joined && g->modules_seen == modules_seen) {
		*n = g->nregions;
		return g->region;
	}
	if (modules)
		m = guest_modules_regions(modules, &nm);
	if (ARRAY_FIT(g->region, nm + g->now.n + 1, g->region_cap)) {
		*n = nm;
		return m;
	}
	while (i < nm || k < g->now.n) {
		const struct linux_dyncode *c = &g->now.code[k];

		if (k == g->now.n || (i < nm && m[i].start < c->end)) {
			/* Init text that is gone makes room for such code, and is seen to be so later. */
			while (k < g->now.n && g->now.code[k].start < m[i].end)
				k++;
			g->region[at++] = m[i++];
		} else {
			g->region[at++] = linux_dyncode_region(c, g->symbols[k++]);
		}
	}
	g->nregions = *n = at;
	g->modules_seen = modules_seen;
	g->joined = true;
	return g->region;
}
