/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/guest_modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct guest_modules {
	const struct linux_module_layout *layout;
	const struct memory *memory;
	struct sink *sink;
	struct linux_module_list now;
	/* Gone from the list, but the sink still reads their symbols. */
	struct linux_module *gone;
	size_t ngone, gone_cap;
	struct unwind_region *region;
	size_t nregions;
	uint64_t hash, checked_ns;
	bool checked;
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
	struct linux_module_list gone;

	if (!g)
		return;
	gone = (struct linux_module_list){ .module = g->gone, .n = g->ngone };
	linux_module_list_deinit(&gone);
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

static bool is_same(const struct linux_module *a, const struct linux_module *b)
{
	return a->module == b->module && !strcmp(a->name, b->name) &&
	       a->text.start == b->text.start && a->text.end == b->text.end &&
	       a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
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

static int announce(struct guest_modules *g, const struct linux_module *m, uint64_t time_ns,
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

static int keep_gone(struct guest_modules *g, struct linux_module_list *old, struct err *e)
{
	for (size_t i = 0; i < old->n; i++) {
		struct linux_module *o = &old->module[i];

		if (!o->symbols && !o->orc && !o->init_orc)
			continue;
		if (g->ngone == g->gone_cap) {
			size_t cap = g->gone_cap ? g->gone_cap * 2 : 16;
			struct linux_module *grown = reallocarray(g->gone, cap, sizeof(*grown));

			if (!grown)
				return err_set(e, ENOMEM, "out of memory");
			g->gone = grown;
			g->gone_cap = cap;
		}
		g->gone[g->ngone++] = *o;
		o->symbols = NULL;
		o->orc = o->init_orc = NULL;
	}
	return 0;
}

static int set_regions(struct guest_modules *g, struct err *e)
{
	struct unwind_region *r = calloc(2 * g->now.n + 1, sizeof(*r));

	if (!r)
		return err_set(e, ENOMEM, "out of memory");
	free(g->region);
	g->region = r;
	g->nregions = linux_module_regions(&g->now, r, 2 * g->now.n);
	return 0;
}

static int read_list(struct guest_modules *g, uint64_t time_ns, struct err *e)
{
	struct linux_module_list fresh, old;
	struct err why = { 0 };
	int ret = linux_module_list(g->layout, g->memory, &fresh, &why);

	if (ret < 0) {
		g->stats.failed++;
		return ret == -ENOMEM ? err_set(e, ENOMEM, "out of memory") : 0;
	}
	old = g->now;
	g->now = fresh;
	ret = 0;
	for (size_t i = 0; i < fresh.n && !ret; i++) {
		struct linux_module *m = &g->now.module[i];

		if (take_known(&old, m))
			continue;
		linux_module_load(g->layout, g->memory, m, &why);
		g->stats.seen++;
		g->stats.without_symbols += !m->symbols;
		g->stats.without_orc += !m->orc;
		ret = announce(g, m, time_ns, e);
	}
	ret = ret ? ret : keep_gone(g, &old, e);
	linux_module_list_deinit(&old);
	return ret ? ret : set_regions(g, e);
}

static bool is_covered(const struct guest_modules *g, uint64_t ip)
{
	for (size_t i = 0; i < g->nregions; i++)
		if (ip >= g->region[i].start && ip < g->region[i].end)
			return true;
	return false;
}

int guest_modules_see(struct guest_modules *g, uint64_t ip, bool in_kernel, uint64_t time_ns,
		      struct err *e)
{
	bool strange = !in_kernel && !is_covered(g, ip);
	uint64_t age = time_ns - g->checked_ns, hash;

	if (g->checked && age < (strange ? GUEST_MODULES_RETRY_NS : GUEST_MODULES_CHECK_NS))
		return 0;
	g->checked_ns = time_ns;
	if (linux_module_hash(g->layout, g->memory, &hash) < 0) {
		g->stats.failed++;
		return 0;
	}
	if (g->checked && hash == g->hash)
		return 0;
	g->checked = true;
	g->hash = hash;
	return read_list(g, time_ns, e);
}
