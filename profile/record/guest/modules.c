/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/modules.h"

#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct guest_modules {
	const struct linux_module_layout *layout;
	const struct memory *memory;
	struct sink *sink;
	struct linux_module_list now;
	/* Of modules that are gone from the list; the sink still reads them. */
	struct symtab **gone;
	size_t ngone, gone_cap;
	size_t kept; /* symbols in them */
	struct unwind_region *region;
	size_t nregions;
	struct code_watch watch;
	uint64_t changes;
	struct guest_modules_stats stats;
};

int guest_modules_create(struct guest_modules **out, const struct linux_module_layout *layout,
			 const struct memory *memory, struct sink *sink, struct err *e)
{
	struct guest_modules *g = calloc(1, sizeof(*g));

	if (!g)
		return err_set(e, ENOMEM, "out of memory");
	g->layout = layout;
	g->memory = memory;
	g->sink = sink;
	*out = g;
	return 0;
}

void guest_modules_destroy(struct guest_modules *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->ngone; i++)
		symtab_destroy(g->gone[i]);
	free(g->gone);
	linux_module_list_deinit(&g->now);
	free(g->region);
	free(g);
}

const struct guest_modules_stats *guest_modules_stats(const struct guest_modules *g)
{
	return &g->stats;
}

const struct unwind_region *guest_modules_regions(const struct guest_modules *g, size_t *n)
{
	*n = g->nregions;
	return g->region;
}

uint64_t guest_modules_changes(const struct guest_modules *g)
{
	return g->changes;
}

static bool is_same(const struct linux_module *old, const struct linux_module *m)
{
	if (old->module != m->module || strcmp(old->name, m->name) != 0 ||
	    old->text.start != m->text.start || old->text.end != m->text.end ||
	    old->build_id_len != m->build_id_len ||
	    memcmp(old->build_id, m->build_id, m->build_id_len) != 0)
		return false;
	/* Init text goes away; where it comes, the module was loaded anew. */
	if (m->init_text.end &&
	    (m->init_text.start != old->init_text.start || m->init_text.end != old->init_text.end))
		return false;
	/* What couldn't be read while it was loading is tried once more. */
	return old->symbols || old->state == m->state;
}

/* What was read of the same module before; it is taken out of the old list. */
static bool take_known(struct linux_module_list *old, struct linux_module *m)
{
	for (size_t i = 0; i < old->n; i++) {
		struct linux_module *o = &old->module[i];

		if (!is_same(o, m))
			continue;
		m->symbols = o->symbols;
		m->orc = o->orc;
		m->init_orc = o->init_orc;
		o->symbols = NULL;
		o->orc = o->init_orc = NULL;
		return true;
	}
	return false;
}

static int modules_announce(struct guest_modules *g, const struct linux_module *m, uint64_t time_ns,
			    struct err *e)
{
	char init_name[PROFILE_MODULE_NAME];
	struct profile_module p = {
		.name = m->name,
		.addr = m->text.start,
		.len = m->text.end - m->text.start,
		.time_ns = time_ns,
		.symbols = m->symbols,
		.build_id = m->build_id_len ? m->build_id : NULL,
		.build_id_len = m->build_id_len,
	};
	int ret = p.len ? g->sink->ops->module(g->sink, &p, e) : 0;

	if (ret || m->init_text.end == m->init_text.start)
		return ret;
	/* perf counts a module's functions from the start of its text: see docs/perf-data.md. */
	snprintf(init_name, sizeof(init_name), "%.56s:init", m->name);
	p.name = init_name;
	p.addr = m->init_text.start;
	p.len = m->init_text.end - m->init_text.start;
	p.build_id = NULL;
	p.build_id_len = 0;
	return g->sink->ops->module(g->sink, &p, e);
}

/* So that nothing can fail when symbols that the sink has are moved there. */
static int reserve_gone(struct guest_modules *g, struct err *e)
{
	if (ARRAY_FIT(g->gone, g->ngone + g->now.n, g->gone_cap))
		return err_set(e, ENOMEM, "out of memory");
	return 0;
}

static void keep_gone(struct guest_modules *g, struct linux_module_list *old)
{
	for (size_t i = 0; i < old->n; i++) {
		struct linux_module *o = &old->module[i];

		if (!o->symbols)
			continue;
		g->kept += symtab_count(o->symbols);
		g->gone[g->ngone++] = o->symbols;
		o->symbols = NULL;
	}
}

static void modules_load(struct guest_modules *g, struct linux_module *m)
{
	struct err why = { 0 };

	linux_module_load(g->layout, g->memory, m, &why);
	if (g->kept > GUEST_MODULES_MAX_KEPT) {
		symtab_destroy(m->symbols);
		m->symbols = NULL;
	}
	g->stats.seen++;
	g->stats.without_symbols += !m->symbols;
	g->stats.without_orc += !m->orc;
}

/*
 * From the old list to the fresh one. The unwinder's regions follow in any case: they
 * point into the tables of the old one. Returns the first error of the sink.
 */
static int replace(struct guest_modules *g, struct linux_module_list *fresh,
		   struct unwind_region *region, uint64_t time_ns, struct err *e)
{
	struct linux_module_list old = g->now;
	int ret = 0;

	g->now = *fresh;
	for (size_t i = 0; i < g->now.n; i++) {
		struct linux_module *m = &g->now.module[i];

		if (take_known(&old, m))
			continue;
		modules_load(g, m);
		if (!ret)
			ret = modules_announce(g, m, time_ns, e);
	}
	free(g->region);
	g->region = region;
	g->nregions = linux_module_regions(&g->now, region, 2 * g->now.n);
	g->changes++;
	keep_gone(g, &old);
	linux_module_list_deinit(&old);
	return ret;
}

static int read_list(struct guest_modules *g, uint64_t hash, uint64_t time_ns, struct err *e)
{
	struct linux_module_list fresh;
	struct unwind_region *region;
	struct err why = { 0 };
	int ret = linux_module_list(g->layout, g->memory, &fresh, &why);

	if (ret < 0) {
		g->stats.failed++;
		return ret == -ENOMEM ? err_set(e, ENOMEM, "out of memory") : 0;
	}
	if (fresh.cut) {
		/* It changes right now: what it lacks isn't gone. */
		g->stats.failed++;
		linux_module_list_deinit(&fresh);
		return 0;
	}
	ret = reserve_gone(g, e);
	region = ret ? NULL : calloc(2 * fresh.n + 1, sizeof(*region));
	if (!region) {
		linux_module_list_deinit(&fresh);
		return ret ? ret : err_set(e, ENOMEM, "out of memory");
	}
	code_watch_set_read(&g->watch, hash);
	return replace(g, &fresh, region, time_ns, e);
}

int guest_modules_see(struct guest_modules *g, uint64_t ip, enum guest_ip where, uint64_t time_ns,
		      struct err *e)
{
	const struct code_watch_known known = { g->region, g->nregions };
	uint64_t hash;

	if (!code_watch_is_due(&g->watch, &known, ip, where, time_ns))
		return 0;
	if (linux_module_hash(g->layout, g->memory, &hash) < 0) {
		g->stats.failed++;
		return 0;
	}
	return code_watch_has_changed(&g->watch, hash) ? read_list(g, hash, time_ns, e) : 0;
}
