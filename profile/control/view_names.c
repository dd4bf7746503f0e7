/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/control/view_names.h"

#include "symbolizer/program/userelf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN "[unknown]"
#define KERNEL "[kernel.kallsyms]"
#define CACHE_SLOTS 16384u /* power of two */
#define ID_LEN 20u

struct live_dso {
	char *path; /* owned */
	uint8_t id[ID_LEN];
	uint8_t *elf; /* owned; NULL: not told, or read already */
	size_t elf_len;
	struct userelf *file; /* owned: where its segments lie; its source is gone */
	struct symtab *symbols;
};

struct live_cached {
	uint64_t addr;
	uint32_t space; /* KERNEL_SPACE: the kernel's */
	uint32_t stamp, func;
};
#define KERNEL_SPACE UINT32_MAX

/* -- hashes --------------------------------------------------------------------------- */

static uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *s = data;
	uint64_t h = len;

	for (size_t i = 0; i < len; i++)
		h = table_mix(h, s[i]);
	return h;
}

static bool equal_comm(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return !memcmp(a, b, LIVE_COMM);
}

static bool equal_dso(const void *a, const void *b, const void *ctx)
{
	const struct live_dso *x = a, *y = b;

	(void)ctx;
	return !memcmp(x->id, y->id, ID_LEN) && !strcmp(x->path, y->path);
}

/* Names are of tables that stay, so equal ones are one pointer. */
static bool equal_func(const void *a, const void *b, const void *ctx)
{
	const struct live_func *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->dso == y->dso && x->addr == y->addr;
}

/* -- life ----------------------------------------------------------------------------- */

bool live_names_init(struct live_names *n)
{
	char none[LIVE_COMM] = "";
	uint32_t index;
	bool fresh;

	*n = (struct live_names){ .stamp = 1 };
	n->dso.size = sizeof(struct live_dso);
	n->comm.size = LIVE_COMM;
	n->func.size = sizeof(struct live_func);
	display_names_init(&n->display, true, false);
	n->cache = calloc(CACHE_SLOTS, sizeof(*n->cache));
	/* [0] */
	return n->cache && !table_add(&n->comm, hash_bytes(none, LIVE_COMM), none, equal_comm, NULL,
				      &index, &fresh);
}

void live_names_deinit(struct live_names *n)
{
	struct live_dso *d = n->dso.item;

	display_names_deinit(&n->display);
	for (size_t i = 0; i < n->dso.n; i++) {
		free(d[i].path);
		free(d[i].elf);
		free(d[i].file);
		symtab_destroy(d[i].symbols);
	}
	for (size_t i = 0; i < n->nmodules; i++)
		free((char *)(uintptr_t)n->module[i].name);
	free(n->module);
	table_deinit(&n->dso);
	table_deinit(&n->comm);
	table_deinit(&n->func);
	idmap_deinit(&n->comm_of);
	spaces_deinit(&n->spaces);
	free(n->cache);
}

void live_names_restart(struct live_names *n)
{
	table_deinit(&n->func);
	n->func = (struct table){ .size = sizeof(struct live_func) };
	n->stamp++;
}

/* -- what the sink is told ------------------------------------------------------------ */

void live_names_kernel(struct live_names *n, const struct profile_kernel *k)
{
	n->kernel = *k;
	n->have_kernel = true;
	n->stamp++;
}

void live_names_module(struct live_names *n, const struct profile_module *m)
{
	struct profile_module copy = *m;
	char name[PROFILE_MODULE_NAME + 2];

	if (n->nmodules == n->module_cap) {
		size_t cap = n->module_cap ? n->module_cap * 2 : 64;
		struct profile_module *grown;

		if (cap > LIVE_MAX_MODULES)
			return;
		grown = reallocarray(n->module, cap, sizeof(*grown));
		if (!grown)
			return;
		n->module = grown;
		n->module_cap = cap;
	}
	snprintf(name, sizeof(name), "[%.*s]", (int)PROFILE_MODULE_NAME - 1, m->name);
	copy.name = strdup(name);
	copy.build_id = NULL;
	if (!copy.name)
		return;
	n->module[n->nmodules++] = copy;
	n->stamp++;
}

static uint32_t dso_index(struct live_names *n, const char *path, const uint8_t *id)
{
	struct live_dso like = { .path = (char *)(uintptr_t)path };
	uint64_t hash = hash_bytes(id, ID_LEN);
	uint32_t index;
	bool fresh;

	memcpy(like.id, id, ID_LEN);
	if (n->dso.n >= LIVE_MAX_DSOS)
		return UINT32_MAX;
	like.path = strdup(path);
	if (!like.path)
		return UINT32_MAX;
	if (table_add(&n->dso, hash, &like, equal_dso, NULL, &index, &fresh)) {
		free(like.path);
		return UINT32_MAX;
	}
	if (!fresh)
		free(like.path);
	return index;
}

static void keep_elf(struct live_names *n, uint32_t dso, const uint8_t *elf, size_t len)
{
	struct live_dso *d = (struct live_dso *)n->dso.item + dso;

	if (d->elf || d->symbols || !len || len > LIVE_MAX_ELF - n->elf_bytes)
		return;
	d->elf = malloc(len);
	if (!d->elf)
		return;
	memcpy(d->elf, elf, len);
	d->elf_len = len;
	n->elf_bytes += len;
	n->stamp++;
}

void live_names_dso(struct live_names *n, const struct profile_dso *d)
{
	uint32_t dso = dso_index(n, d->path, d->build_id);

	if (dso != UINT32_MAX)
		keep_elf(n, dso, d->elf, d->elf_len);
}

void live_names_map(struct live_names *n, const struct profile_map *m)
{
	struct mapping map = { m->addr, m->addr + m->len, m->pgoff, 0 };

	map.dso = dso_index(n, m->path, m->build_id);
	if (map.dso == UINT32_MAX || map.end <= map.addr)
		return;
	if (m->elf)
		keep_elf(n, map.dso, m->elf, m->elf_len);
	(void)spaces_map(&n->spaces, m->pid, &map, NULL);
	n->stamp++;
}

static void set_comm(struct live_names *n, uint32_t tid, uint32_t comm)
{
	uint32_t old;

	if (n->comm_of.n < LIVE_MAX_THREADS || idmap_get(&n->comm_of, tid, &old))
		(void)idmap_set(&n->comm_of, tid, comm);
}

void live_names_fork(struct live_names *n, uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid)
{
	uint32_t comm = 0;

	if (pid == tid)
		(void)spaces_fork(&n->spaces, pid, ppid, NULL);
	(void)idmap_get(&n->comm_of, ptid, &comm);
	set_comm(n, tid, comm);
	n->stamp++;
}

void live_names_comm(struct live_names *n, uint32_t pid, uint32_t tid, const char *comm, bool exec)
{
	char name[LIVE_COMM] = "";
	uint32_t index;
	bool fresh;

	if (exec) {
		(void)spaces_clear(&n->spaces, pid, NULL);
		n->stamp++;
	}
	memcpy(name, comm, strnlen(comm, LIVE_COMM - 1));
	if (n->comm.n < LIVE_MAX_COMMS && !table_add(&n->comm, hash_bytes(name, LIVE_COMM), name,
						     equal_comm, NULL, &index, &fresh))
		set_comm(n, tid, index);
}

/* -- lookup --------------------------------------------------------------------------- */

uint32_t live_names_comm_of(struct live_names *n, uint32_t tid)
{
	uint32_t comm = 0;

	(void)idmap_get(&n->comm_of, tid, &comm);
	return comm;
}

const struct symbol *live_names_kernel_symbol(const struct live_names *n, uint64_t addr,
					      const char **dso)
{
	/* The one that came last to a place is there now. */
	for (size_t i = n->nmodules; i-- > 0;) {
		const struct profile_module *m = &n->module[i];

		if (addr < m->addr || addr - m->addr >= m->len)
			continue;
		*dso = m->name;
		return m->symbols ? symtab_lookup(m->symbols, addr, NULL) : NULL;
	}
	*dso = n->have_kernel ? KERNEL : UNKNOWN;
	return n->have_kernel && n->kernel.symbols ? symtab_lookup(n->kernel.symbols, addr, NULL)
						   : NULL;
}

static void read_dso(struct live_names *n, struct live_dso *d)
{
	struct file_bytes bytes = { d->elf, d->elf_len };
	struct file_source src = file_source_of_bytes(&bytes);
	struct userelf *u = calloc(1, sizeof(*u));

	if (u && userelf_open(u, d->path, &src, NULL) == 0 &&
	    userelf_symbols(u, &d->symbols, NULL, NULL) == 0) {
		u->src = (struct file_source){ 0 };
		d->file = u;
	} else {
		free(u);
	}
	n->elf_bytes -= d->elf_len;
	free(d->elf);
	d->elf = NULL;
}

static void find_user(struct live_names *n, uint32_t space, uint64_t addr, struct live_func *out)
{
	const struct mapping *m = spaces_find(&n->spaces, space, addr);
	const struct symbol *s;
	struct live_dso *d;
	uint64_t va;

	if (!m)
		return;
	d = (struct live_dso *)n->dso.item + m->dso;
	out->dso = d->path;
	if (d->elf)
		read_dso(n, d);
	if (!d->symbols || !userelf_va_of(d->file, addr - m->addr + m->pgoff, &va))
		return;
	s = symtab_lookup(d->symbols, va, NULL);
	if (s)
		*out = (struct live_func){ display_name(&n->display, s, false), d->path, s->addr,
					   s->size };
}

static uint32_t find_func(struct live_names *n, uint32_t space, uint64_t addr)
{
	struct live_func f = { "", UNKNOWN, addr, 0 };
	uint32_t index;
	bool fresh;

	if (space == KERNEL_SPACE) {
		const struct symbol *s = live_names_kernel_symbol(n, addr, &f.dso);

		if (s)
			f = (struct live_func){ s->name, f.dso, s->addr, s->size };
	} else {
		find_user(n, space, addr, &f);
	}
	if (n->func.n >= LIVE_MAX_FUNCS)
		return UINT32_MAX;
	return table_add(&n->func,
			 table_mix(f.addr, table_mix((uintptr_t)f.name, (uintptr_t)f.dso)), &f,
			 equal_func, NULL, &index, &fresh)
		       ? UINT32_MAX
		       : index;
}

uint32_t live_names_func(struct live_names *n, uint32_t pid, bool kernel, uint64_t addr)
{
	uint32_t space = kernel ? KERNEL_SPACE : spaces_of(&n->spaces, pid);
	struct live_cached *c = &n->cache[table_mix(addr, space) & (CACHE_SLOTS - 1)];

	if (c->stamp == n->stamp && c->addr == addr && c->space == space)
		return c->func;
	*c = (struct live_cached){ addr, space, n->stamp, find_func(n, space, addr) };
	return c->func;
}
