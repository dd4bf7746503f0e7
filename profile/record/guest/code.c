/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/code.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "symbolizer/linux/module_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state that the lists of modules and of generated code have in common. */
struct code_list {
	bool read;
	uint64_t hash; /* hash of the bytes that were read */
	struct guest_code_stats stats;
};

/* A range whose code changed at some moment between two looks. */
struct code_doubt {
	uint64_t start, end;
	uint64_t from_ns, until_ns;
};

/* The most changes that are remembered. Samples arrive a few milliseconds late. */
#define CODE_DOUBTS 256u

struct guest_code {
	const struct memory *memory;
	guest_code_clock clock;
	void *clock_ctx;
	struct sink *sink;
	/* Symbols of code that is gone or was generated, which the sink reads until its end(). */
	struct symtab **kept;
	size_t nkept, kept_cap;

	const struct linux_module_layout *module_layout; /* NULL: modules cannot be found */
	struct linux_module_list modules;
	size_t gone; /* number of symbols of unloaded modules */

	const struct linux_dyncode_layout *made_layout; /* NULL: generated code cannot be found */
	struct linux_dyncode_list made;
	struct symtab **made_symbols; /* one for each in `made` or NULL; `kept` owns them */
	size_t nmade;		      /* number of pieces that were reported */

	struct code_list module, piece;
	struct unwind_region *region; /* all regions, sorted */
	size_t nregions, region_cap;
	uint64_t *identity; /* for each region: a hash that is equal for the same code */
	size_t identity_cap;
	/* The regions and identities of the previous look, while two looks are compared. */
	struct unwind_region *before;
	uint64_t *before_identity;
	size_t nbefore, before_cap, before_identity_cap;
	uint64_t look_ns;		      /* start of the current look, on `clock` */
	struct code_doubt doubt[CODE_DOUBTS]; /* a ring */
	size_t ndoubts;			      /* number ever added */
	uint64_t looked_ns;		      /* time of the sample at the last look; 0: none */
	/* on `clock`: the code was as it is known now; 0: never */
	uint64_t proven_ns;
	/* the last look could not read a list completely, so it proved nothing */
	bool incomplete;
	uint64_t changes;
};

static uint64_t code_mono_ns(void *ctx)
{
	(void)ctx;
	return clock_mono_ns();
}

int guest_code_create(struct guest_code **out, const struct memory *memory, struct sink *sink,
		      struct err *e)
{
	struct guest_code *g = calloc(1, sizeof(*g));

	if (!g)
		return err_nomem(e);
	g->memory = memory;
	g->sink = sink;
	g->clock = code_mono_ns;
	*out = g;
	return 0;
}

void guest_code_set_clock(struct guest_code *g, guest_code_clock clock, void *ctx)
{
	g->clock = clock;
	g->clock_ctx = ctx;
}

void guest_code_destroy(struct guest_code *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->nkept; i++)
		symtab_destroy(g->kept[i]);
	free(g->kept);
	linux_module_list_deinit(&g->modules);
	linux_dyncode_list_deinit(&g->made);
	free(g->made_symbols);
	free(g->region);
	free(g->before);
	free(g->identity);
	free(g->before_identity);
	free(g);
}

void guest_code_use_modules(struct guest_code *g, const struct linux_module_layout *layout)
{
	g->module_layout = layout;
	g->looked_ns = 0;
}

void guest_code_use_dynamic(struct guest_code *g, const struct linux_dyncode_layout *layout)
{
	g->made_layout = layout;
	g->looked_ns = 0;
}

const struct guest_code_stats *guest_code_module_stats(const struct guest_code *g)
{
	return &g->module.stats;
}

const struct guest_code_stats *guest_code_dynamic_stats(const struct guest_code *g)
{
	return &g->piece.stats;
}

const struct unwind_region *guest_code_regions(const struct guest_code *g, size_t *n)
{
	*n = g->nregions;
	return g->region;
}

uint64_t guest_code_changes(const struct guest_code *g)
{
	return g->changes;
}

/* -- the joint list of regions --------------------------------------------------------- */

/* Reserves room for the regions, so that nothing can fail once a list was replaced. */
static int reserve_regions(struct guest_code *g, size_t modules, size_t made, struct err *e)
{
	const size_t n = 2 * modules + made + 1;

	return ARRAY_FIT(g->region, n, g->region_cap) || ARRAY_FIT(g->identity, n, g->identity_cap)
		       ? err_nomem(e)
		       : 0;
}

/* Returns the index of the first piece that does not begin before this address, or made.n. */
static size_t piece_at(const struct guest_code *g, uint64_t start)
{
	size_t low = 0, high = g->made.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (g->made.code[mid].start < start)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Returns a hash that distinguishes the code that begins at an address from other code. It is never
 * 0.
 */
static uint64_t identity_at(const struct guest_code *g, uint64_t start)
{
	uint64_t hash = HASH_START;
	size_t at;

	for (size_t i = 0; i < g->modules.n; i++) {
		const struct linux_module *m = &g->modules.module[i];

		if (m->text.start != start && m->init_text.start != start)
			continue;
		hash = hash_text(hash, m->name);
		hash = hash_bytes(hash, &m->module, sizeof(m->module));
		return hash_bytes(hash, m->build_id, m->build_id_len) | 1;
	}
	at = piece_at(g, start);
	if (at < g->made.n)
		hash = hash_text(hash + g->made.code[at].kind, g->made.code[at].name);
	return hash | 1;
}

/*
 * Joins both lists. The caller has reserved room; the regions of modules are placed behind the room
 * for all others.
 */
static void join_regions(struct guest_code *g)
{
	const struct unwind_region *m = g->region + g->made.n;
	size_t nm = linux_module_regions(&g->modules, g->region + g->made.n, 2 * g->modules.n);
	size_t i = 0, k = 0, at = 0;

	while (i < nm || k < g->made.n) {
		const struct linux_dyncode *c = &g->made.code[k];

		if (k == g->made.n || (i < nm && m[i].start < c->end)) {
			/*
			 * Generated code may reuse the memory of init text that is gone, which is
			 * noticed later.
			 */
			while (k < g->made.n && g->made.code[k].start < m[i].end)
				k++;
			g->region[at++] = m[i++];
		} else {
			g->region[at++] = linux_dyncode_region(c, g->made_symbols[k]);
			k++;
		}
	}
	g->nregions = at;
	for (size_t r = 0; r < at; r++)
		g->identity[r] = identity_at(g, g->region[r].start);
	g->changes++;
}

/* -- modules -------------------------------------------------------------------------- */

static bool is_same_module(const struct linux_module *old, const struct linux_module *m)
{
	if (old->module != m->module || strcmp(old->name, m->name) != 0 ||
	    old->text.start != m->text.start || old->text.end != m->text.end ||
	    old->build_id_len != m->build_id_len ||
	    memcmp(old->build_id, m->build_id, m->build_id_len) != 0)
		return false;
	/* Init text is freed after loading; if it appears, the module was loaded again. */
	if (m->init_text.end &&
	    (m->init_text.start != old->init_text.start || m->init_text.end != old->init_text.end))
		return false;
	/* A module that could not be read while it was loading is tried once more. */
	return old->symbols || old->state == m->state;
}

/* Moves the symbols that were read of the same module before from the old list to *m. */
static bool take_known(struct linux_module_list *old, struct linux_module *m)
{
	for (size_t i = 0; i < old->n; i++) {
		struct linux_module *o = &old->module[i];

		if (!is_same_module(o, m))
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

/* Code that replaces other code is certain only from this look on. */
static uint64_t announce_time(const struct guest_code *g, uint64_t start, uint64_t end,
			      uint64_t time_ns)
{
	for (size_t i = 0; i < g->nbefore; i++)
		if (g->before[i].start < end && start < g->before[i].end)
			return g->look_ns > time_ns ? g->look_ns : time_ns;
	return time_ns;
}

static int announce_module(struct guest_code *g, const struct linux_module *m, uint64_t time_ns,
			   struct err *e)
{
	char init_name[PROFILE_MODULE_NAME];
	struct profile_module p = {
		.name = m->name,
		.addr = m->text.start,
		.len = m->text.end - m->text.start,
		.time_ns = announce_time(g, m->text.start, m->text.end, time_ns),
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
	p.time_ns = announce_time(g, m->init_text.start, m->init_text.end, time_ns);
	p.build_id = NULL;
	p.build_id_len = 0;
	return g->sink->ops->module(g->sink, &p, e);
}

static void keep_gone(struct guest_code *g, struct linux_module_list *old)
{
	for (size_t i = 0; i < old->n; i++) {
		struct linux_module *o = &old->module[i];

		if (!o->symbols)
			continue;
		g->gone += symtab_count(o->symbols);
		g->kept[g->nkept++] = o->symbols;
		o->symbols = NULL;
	}
}

static void load_module(struct guest_code *g, struct linux_module *m)
{
	struct guest_code_stats *stats = &g->module.stats;
	struct err why = { 0 };

	linux_module_load(g->module_layout, g->memory, m, &why);
	if (g->gone > GUEST_CODE_MAX_KEPT) {
		symtab_destroy(m->symbols);
		m->symbols = NULL;
	}
	stats->seen++;
	stats->without_symbols += !m->symbols;
	stats->without_orc += !m->orc;
}

/*
 * Replaces the list of modules. The regions are replaced even on failure, because they point into
 * the tables of the old list. Returns 0 or the first error of the sink.
 */
static int replace_modules(struct guest_code *g, const struct linux_module_list *fresh,
			   uint64_t time_ns, struct err *e)
{
	struct linux_module_list old = g->modules;
	int ret = 0;

	g->modules = *fresh;
	for (size_t i = 0; i < g->modules.n; i++) {
		struct linux_module *m = &g->modules.module[i];

		if (take_known(&old, m))
			continue;
		load_module(g, m);
		if (!ret)
			ret = announce_module(g, m, time_ns, e);
	}
	join_regions(g);
	keep_gone(g, &old);
	linux_module_list_deinit(&old);
	return ret;
}

/* Counts a look that could not read a list whole. */
static void note_failed(struct guest_code *g, struct code_list *l)
{
	l->stats.failed++;
	g->incomplete = true;
}

static int read_modules(struct guest_code *g, uint64_t hash, uint64_t time_ns, struct err *e)
{
	struct linux_module_list fresh;
	struct err why = { 0 };
	int ret = linux_module_list(g->module_layout, g->memory, &fresh, &why);

	if (ret < 0) {
		note_failed(g, &g->module);
		return ret == -ENOMEM ? err_nomem(e) : 0;
	}
	if (fresh.cut) {
		/* The list is changing right now: a missing module is not proven to be gone. */
		note_failed(g, &g->module);
		linux_module_list_deinit(&fresh);
		return 0;
	}
	ret = reserve_regions(g, fresh.n, g->made.n, e);
	if (!ret && ARRAY_FIT(g->kept, g->nkept + g->modules.n, g->kept_cap))
		ret = err_nomem(e);
	if (ret) {
		linux_module_list_deinit(&fresh);
		return ret;
	}
	g->module.read = true;
	g->module.hash = hash;
	return replace_modules(g, &fresh, time_ns, e);
}

/* -- generated code -------------------------------------------------------------------- */

static bool is_same_piece(const struct linux_dyncode *a, const struct linux_dyncode *b)
{
	return a->start == b->start && a->end == b->end && a->kind == b->kind &&
	       a->copy_of == b->copy_of && !strcmp(a->name, b->name);
}

/*
 * Returns the symbols of a piece that was in the previous list, or NULL if it was not there or has
 * no name. The list is sorted.
 */
static struct symtab *known_symbols(const struct guest_code *g, const struct linux_dyncode *c,
				    bool *known)
{
	const size_t low = piece_at(g, c->start);

	*known = low < g->made.n && is_same_piece(&g->made.code[low], c);
	return *known ? g->made_symbols[low] : NULL;
}

/* Returns NULL if out of memory or if too many names are kept. */
static struct symtab *make_symbols(struct guest_code *g, const struct linux_dyncode *c)
{
	struct symtab *s;

	if (g->nmade >= GUEST_CODE_MAX_MADE || ARRAY_ROOM(g->kept, g->nkept, g->kept_cap))
		return NULL;
	s = symtab_create();
	if (!s || symtab_add(s, c->start, c->end - c->start, 't', c->name) ||
	    symtab_freeze(s, NULL)) {
		symtab_destroy(s);
		return NULL;
	}
	g->nmade++;
	g->kept[g->nkept++] = s;
	return s;
}

static int announce_piece(struct guest_code *g, const struct linux_dyncode *c,
			  const struct symtab *symbols, uint64_t time_ns, struct err *e)
{
	char name[PROFILE_MODULE_NAME];
	struct profile_module p = {
		.name = name,
		.addr = c->start,
		.len = c->end - c->start,
		.time_ns = announce_time(g, c->start, c->end, time_ns),
		.symbols = symbols,
	};

	snprintf(name, sizeof(name), "%.63s", c->name);
	return g->sink->ops->module(g->sink, &p, e);
}

/* Replaces the list of generated code. Returns 0 or the first error of the sink. */
static int replace_made(struct guest_code *g, const struct linux_dyncode_list *fresh,
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
		g->piece.stats.seen++;
		g->piece.stats.without_symbols += !symbols[i];
		if (symbols[i] && !ret)
			ret = announce_piece(g, c, symbols[i], time_ns, e);
	}
	linux_dyncode_list_deinit(&g->made);
	free(g->made_symbols);
	g->made = *fresh;
	g->made_symbols = symbols;
	join_regions(g);
	return ret;
}

static int read_made(struct guest_code *g, uint64_t hash, uint64_t time_ns, struct err *e)
{
	struct linux_dyncode_list fresh;
	struct symtab **symbols;

	if (linux_dyncode_list(g->made_layout, g->memory, &fresh, e))
		return -ENOMEM;
	if (fresh.cut) {
		note_failed(g, &g->piece);
		linux_dyncode_list_deinit(&fresh);
		return 0;
	}
	symbols = calloc(fresh.n + 1, sizeof(*symbols));
	if (!symbols || reserve_regions(g, g->modules.n, fresh.n, e)) {
		free(symbols);
		linux_dyncode_list_deinit(&fresh);
		return err_nomem(e);
	}
	g->piece.read = true;
	g->piece.hash = hash;
	g->piece.stats.skipped += fresh.skipped;
	return replace_made(g, &fresh, symbols, time_ns, e);
}

/* -- when to look --------------------------------------------------------------------- */

static bool is_due(struct guest_code *g, uint64_t ip, enum guest_ip where, uint64_t time_ns)
{
	/* Samples of several vCPUs may be slightly out of order. */
	uint64_t age = time_ns > g->looked_ns ? time_ns - g->looked_ns : 0;

	if (g->looked_ns &&
	    (age < GUEST_CODE_RETRY_NS ||
	     (age < GUEST_CODE_CHECK_NS &&
	      (where == GUEST_IP_IN_IMAGE || unwind_region_at(g->region, g->nregions, ip)))))
		return false;
	g->looked_ns = time_ns;
	return true;
}

/* Reads the lists that have changed. */
static int read_lists(struct guest_code *g, uint64_t time_ns, struct err *e)
{
	uint64_t hash;
	int ret;

	if (g->module_layout) {
		if (linux_module_hash(g->module_layout, g->memory, &hash) < 0) {
			note_failed(g, &g->module);
		} else if (!g->module.read || g->module.hash != hash) {
			ret = read_modules(g, hash, time_ns, e);
			if (ret)
				return ret;
		}
	}
	if (!g->made_layout)
		return 0;
	if (linux_dyncode_hash(g->made_layout, g->memory, &hash) < 0) {
		note_failed(g, &g->piece);
		return 0;
	}
	return g->piece.read && g->piece.hash == hash ? 0 : read_made(g, hash, time_ns, e);
}

/* Returns whether region i of the previous look is still there. */
static bool is_kept(const struct guest_code *g, size_t i)
{
	const struct unwind_region *old = &g->before[i];
	const struct unwind_region *at = unwind_region_at(g->region, g->nregions, old->start);

	return at && at->start == old->start && at->end == old->end &&
	       at->copy_of == old->copy_of && g->identity[at - g->region] == g->before_identity[i];
}

/* Notes where code was removed or replaced: samples between the two looks may be of either code. */
static void note_replaced(struct guest_code *g)
{
	for (size_t i = 0; i < g->nbefore; i++) {
		if (is_kept(g, i))
			continue;
		g->doubt[g->ndoubts++ % CODE_DOUBTS] =
			(struct code_doubt){ g->before[i].start, g->before[i].end, g->proven_ns,
					     g->look_ns };
		g->module.stats.replaced++;
	}
}

/*
 * Looks at both lists. Unless one could not be read completely, all is then known as of the moment
 * at which the look began.
 */
static int code_look(struct guest_code *g, uint64_t time_ns, struct err *e)
{
	const uint64_t changes = g->changes;
	int ret;

	if (ARRAY_FIT(g->before, g->nregions + 1, g->before_cap) ||
	    ARRAY_FIT(g->before_identity, g->nregions + 1, g->before_identity_cap))
		return err_nomem(e);
	g->nbefore = g->nregions;
	if (g->nbefore) {
		memcpy(g->before, g->region, g->nbefore * sizeof(*g->before));
		memcpy(g->before_identity, g->identity, g->nbefore * sizeof(*g->identity));
	}
	g->look_ns = g->clock(g->clock_ctx);
	g->incomplete = false;
	ret = read_lists(g, time_ns, e);
	if (g->changes != changes)
		note_replaced(g);
	if (!g->incomplete)
		g->proven_ns = g->look_ns;
	return ret;
}

int guest_code_update(struct guest_code *g, uint64_t ip, enum guest_ip where, uint64_t time_ns,
		      struct err *e)
{
	return is_due(g, ip, where, time_ns) ? code_look(g, time_ns, e) : 0;
}

int guest_code_prove(struct guest_code *g, const uint64_t *ip, unsigned int n, uint64_t time_ns,
		     struct err *e)
{
	if (time_ns <= g->proven_ns)
		return 0;
	/* A list that cannot be read is not tried again for each sample. */
	if (g->incomplete && time_ns - g->looked_ns < GUEST_CODE_RETRY_NS)
		return 0;
	for (unsigned int i = 0; i < n; i++)
		if (unwind_region_at(g->region, g->nregions, ip[i])) {
			g->looked_ns = time_ns;
			return code_look(g, time_ns, e);
		}
	return 0;
}

bool guest_code_is_uncertain(const struct guest_code *g, uint64_t va, uint64_t time_ns)
{
	size_t n = g->ndoubts < CODE_DOUBTS ? g->ndoubts : CODE_DOUBTS;

	/* The look after the sample failed. */
	if (time_ns > g->proven_ns && unwind_region_at(g->region, g->nregions, va))
		return true;
	for (size_t i = 0; i < n; i++) {
		const struct code_doubt *d = &g->doubt[i];

		if (va - d->start < d->end - d->start && time_ns > d->from_ns &&
		    time_ns <= d->until_ns)
			return true;
	}
	return false;
}
