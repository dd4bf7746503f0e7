/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/names/names.h"

#include "base/hash.h"
#include "profile/format/names/private.h"
#include "profile/format/sink/sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN "[unknown]"
#define CACHE_SLOTS 16384u /* power of two */

struct names_cached {
	uint64_t addr;
	uint32_t space;
	uint32_t stamp; /* n->stamp at the time of the lookup */
	bool used;
	struct name name;
};

/* The process number under which `spaces` keeps the modules; no process has it. */
#define KERNEL_PID UINT32_MAX
#define KERNEL_HALF (UINT64_C(1) << 63)

/* -- life ------------------------------------------------------------------------------ */

static bool equal_dso(const void *a, const void *b, const void *ctx)
{
	const struct names_dso *x = a, *y = b;

	(void)ctx;
	return x->kernel == y->kernel && x->id_len == y->id_len &&
	       x->at_run_time == y->at_run_time && x->shift == y->shift &&
	       !strcmp(x->name, y->name) && !memcmp(x->build_id, y->build_id, x->id_len) &&
	       x->inode.ino == y->inode.ino && x->inode.generation == y->inode.generation &&
	       x->inode.major == y->inode.major && x->inode.minor == y->inode.minor;
}

struct names *names_create_live(void)
{
	struct names *n = calloc(1, sizeof(*n));

	if (n)
		n->cache = calloc(CACHE_SLOTS, sizeof(*n->cache));
	if (!n || !n->cache) {
		free(n);
		return NULL;
	}
	n->dsos = TABLE_OF(struct names_dso, equal_dso);
	/* No address is the kernel's until names_kernel() is called. */
	n->kernel_start = n->kernel_end = UINT64_MAX;
	return n;
}

void names_destroy(struct names *n)
{
	struct names_dso *d;

	if (!n)
		return;
	d = n->dsos.item;
	for (size_t i = 0; i < n->dsos.n; i++) {
		symtab_destroy(d[i].symbols);
		free(d[i].elf);
		free(d[i].bytes);
		free(d[i].path);
		names_frames_destroy(d[i].frames);
		free(d[i].name);
	}
	table_deinit(&n->dsos);
	spaces_deinit(&n->spaces);
	names_from_profile_destroy(n->from);
	free(n->cache);
	free(n);
}

uint64_t names_left_out(const struct names *n)
{
	return n->dsos_left_out + n->spaces.left_out;
}

void names_set_relaxed(struct names *n, bool relaxed)
{
	n->relaxed = relaxed;
}

static struct names_dso *dso_at(const struct names *n, uint32_t dso)
{
	return (struct names_dso *)n->dsos.item + dso;
}

const uint8_t *names_build_id(const struct names *n, uint32_t program, size_t *len)
{
	*len = program < n->dsos.n ? dso_at(n, program)->id_len : 0;
	return *len ? dso_at(n, program)->build_id : NULL;
}

bool names_have_kernel(const struct names *n)
{
	return n->kernel != NULL;
}

/* -- what is mapped -------------------------------------------------------------------- */

static int find_dso(struct names *n, const struct names_dso *like, uint32_t *index, struct err *e)
{
	uint64_t hash = hash_text(HASH_START + like->kernel, like->name);
	struct names_dso d = *like;
	bool fresh;

	hash = hash_bytes(hash, like->build_id, like->id_len) + like->inode.ino;
	if (table_find(&n->dsos, hash, like, index))
		return 0;
	if (n->dsos.n >= (n->from ? NAMES_MAX_DSOS : NAMES_MAX_LIVE_DSOS))
		return -E2BIG;
	d.name = strdup(like->name);
	if (!d.name || table_add(&n->dsos, hash, &d, index, &fresh)) {
		free(d.name);
		return err_nomem(e);
	}
	return 0;
}

int names_add_map(struct names *n, uint32_t pid, const struct mapping *at,
		  const struct names_dso *dso, struct err *e)
{
	struct mapping m = *at;
	uint32_t of = dso->kernel ? KERNEL_PID : pid;
	int ret = find_dso(n, dso, &m.dso, e);

	if (ret == -E2BIG) {
		/*
		 * Remove the process's mappings: older ones at this place are not valid any more.
		 */
		n->dsos_left_out++;
		ret = spaces_clear(&n->spaces, of, e);
	} else if (!ret) {
		ret = spaces_map(&n->spaces, of, &m, e);
	}
	n->kernel_space = spaces_of(&n->spaces, KERNEL_PID);
	n->stamp++;
	return ret;
}

/* -- what a sink is told --------------------------------------------------------------- */

void names_kernel(struct names *n, const struct profile_kernel *k)
{
	/* The mappings under the previous kernel are gone. */
	if (n->kernel_is_set)
		(void)spaces_clear_all(&n->spaces, NULL);
	n->kernel_space = spaces_of(&n->spaces, KERNEL_PID);
	n->kernel_is_set = true;
	n->kernel = k->symbols;
	n->kernel_start = n->kernel_end = 0;
	n->stamp++;
}

static struct mapping mapping_of(uint64_t addr, uint64_t len, uint64_t pgoff)
{
	struct mapping m = { .addr = addr, .pgoff = pgoff };

	if (__builtin_add_overflow(addr, len, &m.end))
		m.end = UINT64_MAX;
	return m;
}

int names_module(struct names *n, const struct profile_module *m, struct err *e)
{
	char name[PROFILE_MODULE_NAME + 2];
	const struct names_dso d = { .name = name, .kernel = true, .at_run_time = m->symbols };
	const struct mapping at = mapping_of(m->addr, m->len, 0);

	snprintf(name, sizeof(name), "[%.*s]", (int)PROFILE_MODULE_NAME - 1, m->name);
	return names_add_map(n, 0, &at, &d, e);
}

/* Copies the file if the limit allows it. */
static void keep_bytes(struct names *n, uint32_t dso, const uint8_t *elf, size_t len)
{
	struct names_dso *d = dso_at(n, dso);

	if (!elf || d->bytes || d->symbols || !len || len > NAMES_MAX_WAITING - n->waiting)
		return;
	d->bytes = malloc(len);
	if (!d->bytes)
		return;
	memcpy(d->bytes, elf, len);
	d->len = len;
	n->waiting += len;
	n->stamp++;
}

int names_dso(struct names *n, const struct profile_dso *p, struct err *e)
{
	struct names_dso d = { .name = (char *)(uintptr_t)p->path, .id_len = sizeof(d.build_id) };
	uint32_t index;
	int ret;

	memcpy(d.build_id, p->build_id, sizeof(d.build_id));
	ret = find_dso(n, &d, &index, e);
	if (!ret)
		keep_bytes(n, index, p->elf, p->elf_len);
	/* names_add_map() counts the file over the limit with its mappings. */
	return ret == -E2BIG ? 0 : ret;
}

int names_map(struct names *n, const struct profile_map *p, struct err *e)
{
	const struct profile_dso file = { p->path, p->build_id, p->elf, p->elf_len };
	struct names_dso d = { .name = (char *)(uintptr_t)p->path, .id_len = sizeof(d.build_id) };
	const struct mapping at = mapping_of(p->addr, p->len, p->pgoff);
	int ret = names_dso(n, &file, e);

	memcpy(d.build_id, p->build_id, sizeof(d.build_id));
	return ret ? ret : names_add_map(n, p->pid, &at, &d, e);
}

int names_fork(struct names *n, uint32_t pid, uint32_t ppid, struct err *e)
{
	return spaces_fork(&n->spaces, pid, ppid, e);
}

int names_exec(struct names *n, uint32_t pid, struct err *e)
{
	return spaces_clear(&n->spaces, pid, e);
}

int names_forget_all(struct names *n, struct err *e)
{
	static char unknown[] = UNKNOWN;
	const struct names_dso none = { .name = unknown, .kernel = true, .other_kernel = true };
	const struct mapping half = { .addr = KERNEL_HALF, .end = UINT64_MAX };
	int ret = spaces_clear_all(&n->spaces, e);

	n->kernel_space = spaces_of(&n->spaces, KERNEL_PID);
	return ret ? ret : names_add_map(n, 0, &half, &none, e);
}

/* -- lookup ---------------------------------------------------------------------------- */

static void read_bytes(struct names *n, struct names_dso *d)
{
	(void)names_read_program(d, d->bytes, d->len);
	n->waiting -= d->len;
	free(d->bytes);
	d->bytes = NULL;
}

static const struct symbol *find_symbol(const struct names *n, const struct symtab *t,
					uint64_t addr, uint64_t *off)
{
	const struct symbol *s = symtab_lookup(t, addr, off);

	return s || !n->relaxed ? s : symtab_before(t, addr, off);
}

static void lookup_user(struct names *n, const struct mapping *m, uint64_t addr, struct name *out)
{
	struct names_dso *d = dso_at(n, m->dso);
	uint64_t va;

	out->dso = d->name;
	out->program = m->dso;
	out->to_file = m->pgoff - m->addr;
	out->map_start = m->addr;
	if (d->bytes)
		read_bytes(n, d);
	else if (n->from && !d->tried)
		names_load_dso(n, d);
	/* A mapping has file offsets, a symbol table virtual addresses. */
	if (d->symbols && userelf_va_of(d->elf, addr - m->addr + m->pgoff, &va))
		out->symbol = find_symbol(n, d->symbols, va, &out->off);
	out->symbols = out->symbol ? d->symbols : NULL;
}

/* For bytes placed in front of a function, returns that function. */
static const struct symbol *find_kernel_symbol(const struct names *n, const struct symtab *t,
					       uint64_t addr, uint64_t *off)
{
	const struct symbol *s = find_symbol(n, t, addr, off);
	const struct symbol *prefix = s ? s : symtab_before(t, addr, NULL);
	const struct symbol *function = prefix ? symtab_behind_prefix(t, prefix) : NULL;

	/*
	 * Addresses after a prefix without a function belong to no symbol, if the prefix has a
	 * size.
	 */
	if (!function || addr >= function->addr)
		return s;
	*off = addr - function->addr;
	return function;
}

static void lookup_kernel(struct names *n, const struct mapping *m, uint64_t addr, struct name *out)
{
	if (m) {
		const struct names_dso *d = dso_at(n, m->dso);

		out->dso = d->name;
		out->map_start = m->addr;
		if (d->at_run_time)
			out->symbol =
				find_kernel_symbol(n, d->at_run_time, addr - d->shift, &out->off);
		out->symbols = out->symbol ? d->at_run_time : NULL;
		out->shift = d->shift;
		out->other_kernel = d->other_kernel;
		return;
	}
	/* A kernel that has a map has no code elsewhere. */
	if (n->kernel_end && (addr < n->kernel_start || addr >= n->kernel_end))
		return;
	out->dso = PERFDATA_KERNEL_DSO;
	out->map_start = n->kernel_start;
	if (n->kernel)
		out->symbol = find_kernel_symbol(n, n->kernel, addr - n->slide, &out->off);
	out->symbols = out->symbol ? n->kernel : NULL;
}

struct names_view names_view(const struct names *n, uint32_t pid)
{
	return (struct names_view){ .kernel = n->kernel_space, .user = spaces_of(&n->spaces, pid) };
}

void names_lookup_in(struct names *n, struct names_view view, enum names_of whose, uint64_t addr,
		     struct name *out)
{
	const bool kernel = whose == NAMES_KERNEL;
	uint32_t space = kernel ? view.kernel : view.user;
	uint64_t hash = (addr ^ (uint64_t)(space * 2 + kernel) << 40) * 0x9e3779b97f4a7c15u;
	struct names_cached *c = &n->cache[hash >> 40 & (CACHE_SLOTS - 1)];
	const struct mapping *m;

	/* A place without a mapping may have gained one since. */
	if (c->used && c->addr == addr && c->space == (space * 2 | kernel) &&
	    (c->name.settled || c->stamp == n->stamp)) {
		*out = c->name;
		return;
	}
	*out = (struct name){ .dso = UNKNOWN, .program = NAMES_NONE };
	m = spaces_find(&n->spaces, space, addr);
	if (kernel)
		lookup_kernel(n, m, addr, out);
	else if (m)
		lookup_user(n, m, addr, out);
	/* A sink may report another kernel or a program's file later. */
	out->settled = n->from && (out->symbol || m);
	*c = (struct names_cached){
		.addr = addr,
		.space = space * 2 | kernel,
		.stamp = n->stamp,
		.used = true,
		.name = *out,
	};
}

uint32_t names_stamp(const struct names *n)
{
	return n->stamp;
}

uint64_t names_lookup_frame(struct names *n, struct names_view view, const struct perfdata_frame *f,
			    bool exact, struct name *out)
{
	static const char *const other[PERFDATA_OWNERS] = {
		[PERFDATA_GUEST_KERNEL] = "[guest.kernel]",
		[PERFDATA_GUEST_USER] = "[guest.user]",
		[PERFDATA_HYPERVISOR] = "[hypervisor]",
		[PERFDATA_NO_MODE] = UNKNOWN,
	};
	uint64_t addr = f->interrupted || exact || !f->ip ? f->ip : f->ip - 1;

	if (f->owner != PERFDATA_RECORDED) {
		*out = (struct name){ .dso = other[f->owner], .program = NAMES_NONE };
		return addr;
	}
	names_lookup_in(n, view, f->kernel, addr, out);
	/* No call precedes a function's first byte. */
	if (addr != f->ip && f->kernel && out->symbol && (int64_t)out->off < 0) {
		addr = f->ip;
		names_lookup_in(n, view, f->kernel, addr, out);
	}
	return addr;
}

void names_lookup(struct names *n, uint32_t pid, enum names_of whose, uint64_t addr,
		  struct name *out)
{
	names_lookup_in(n, names_view(n, pid), whose, addr, out);
}
