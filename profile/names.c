/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/names.h"

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "profile/buildid_cache.h"
#include "profile/perfdata_format.h"
#include "symbolizer/kimage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define UNKNOWN "[unknown]"
#define CACHE_SLOTS 16384u /* power of two */

struct dso {
	char *name; /* the mapping's path */
	uint8_t build_id[20];
	bool has_id, tried;
	struct file_map file;
	struct kimage *image;
	struct symtab *symbols;
};

struct mapping {
	uint32_t pid;
	uint64_t addr, end, pgoff;
	size_t dso;
};

struct cached {
	uint64_t addr;
	uint32_t pid;
	bool kernel, used;
	struct name name;
};

struct names {
	char *dir, *buildid_dir;
	struct symtab *kernel;
	struct dso *dso;
	size_t ndso;
	struct mapping *map;
	size_t nmap, map_cap;
	struct cached cache[CACHE_SLOTS];
};

/* -- kallsyms text ------------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* "ffffffff81000000 T name[\t[module]]": false for any other line. */
static bool parse_line(const char *line, size_t len, uint64_t *addr, char *type, char *name,
		       size_t size)
{
	size_t i = 0, n;

	for (*addr = 0; i < len && i < 16 && hex_digit(line[i]) >= 0; i++)
		*addr = *addr << 4 | (uint64_t)hex_digit(line[i]);
	if (i == 0 || i + 3 >= len || line[i] != ' ' || line[i + 2] != ' ')
		return false;
	*type = line[i + 1];
	line += i + 3;
	len -= i + 3;
	for (n = 0; n < len && n + 1 < size && line[n] != '\t' && line[n] != '\0'; n++)
		name[n] = line[n];
	name[n] = '\0';
	return n > 0;
}

static int parse_kallsyms(struct symtab *t, const struct file_map *m, struct err *e)
{
	char name[SYMTAB_MAX_NAME];
	struct cursor c;

	cursor_init(&c, m->data, m->len);
	while (cursor_left(&c)) {
		const char *line = (const char *)c.base + c.pos;
		const char *nl = memchr(line, '\n', cursor_left(&c));
		size_t len = nl ? (size_t)(nl - line) : cursor_left(&c);
		uint64_t addr;
		char type;

		if (parse_line(line, len, &addr, &type, name, sizeof(name))) {
			int ret = symtab_add(t, addr, 0, type, name);

			if (ret == -ENOMEM || ret == -E2BIG)
				return err_set(e, -ret, "too many kernel symbols: %s",
					       strerror(-ret));
		}
		cursor_skip(&c, len + (nl ? 1 : 0));
	}
	return symtab_freeze(t, e);
}

/* 0 also when the file is missing; *out is then unchanged. */
static int load_kallsyms(struct symtab **out, const char *path, struct err *e)
{
	struct file_map m = { 0 };
	struct symtab *t;
	int ret;

	if (file_map_open(&m, path, NAMES_MAX_KALLSYMS, NULL) < 0)
		return 0;
	t = symtab_create();
	ret = t ? parse_kallsyms(t, &m, e) : err_set(e, ENOMEM, "%s: out of memory", path);
	file_map_close(&m);
	if (!ret && symtab_count(t)) {
		*out = t;
		return 0;
	}
	symtab_destroy(t);
	return ret;
}

static int load_kernel(struct names *n, const struct perfdata *p, struct err *e)
{
	cleanup_free char *path = NULL;
	int ret;

	if (n->dir) {
		if (asprintf(&path, "%s/kcore_dir/kallsyms", n->dir) < 0) {
			path = NULL;
			return err_set(e, ENOMEM, "out of memory");
		}
		ret = load_kallsyms(&n->kernel, path, e);
		if (ret || n->kernel)
			return ret;
	}
	for (size_t i = 0; i < p->nbuild_ids && n->buildid_dir; i++) {
		const struct perfdata_build_id_entry *b = &p->build_ids[i];
		cleanup_free char *cached = NULL;
		char hex[BUILDID_HEX_MAX];

		if (!b->kernel || strcmp(b->name, PERFDATA_KERNEL_DSO) != 0)
			continue;
		buildid_hex(hex, b->id, b->len);
		if (asprintf(&cached, "%s/%s/%s/kallsyms", n->buildid_dir, PERFDATA_KERNEL_DSO,
			     hex) < 0) {
			cached = NULL;
			return err_set(e, ENOMEM, "out of memory");
		}
		return load_kallsyms(&n->kernel, cached, e);
	}
	return 0;
}

/* -- user programs --------------------------------------------------------------------- */

static void load_dso_file(struct dso *d, const char *path)
{
	struct kimage *k;

	if (file_map_open(&d->file, path, NAMES_MAX_ELF, NULL) < 0)
		return;
	k = calloc(1, sizeof(*k));
	if (!k || kimage_parse(k, path, d->file.data, d->file.len, NULL) < 0 ||
	    kimage_symbols(k, &d->symbols, NULL) < 0) {
		free(k);
		file_map_close(&d->file);
		return;
	}
	d->image = k;
}

static void load_dso(const struct names *n, struct dso *d)
{
	cleanup_free char *own = NULL, *cached = NULL;
	char hex[BUILDID_HEX_MAX];

	d->tried = true;
	if (!d->has_id)
		return;
	buildid_hex(hex, d->build_id, sizeof(d->build_id));
	if (n->dir && asprintf(&own, "%s/dso/%s", n->dir, hex) > 0)
		load_dso_file(d, own);
	if (!d->symbols && n->buildid_dir &&
	    asprintf(&cached, "%s/.build-id/%.2s/%s/elf", n->buildid_dir, hex, hex + 2) > 0)
		load_dso_file(d, cached);
}

/* A mapping counts in file offsets, a symbol table in virtual addresses. */
static bool file_to_va(const struct kimage *k, uint64_t off, uint64_t *va)
{
	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];

		if (off >= s->file_off && off - s->file_off < s->file_len) {
			*va = off - s->file_off + s->va;
			return true;
		}
	}
	return false;
}

static void lookup_user(struct names *n, uint32_t pid, uint64_t addr, struct name *out)
{
	for (size_t i = n->nmap; i-- > 0;) {
		const struct mapping *m = &n->map[i];
		struct dso *d;
		uint64_t va;

		if (m->pid != pid || addr < m->addr || addr >= m->end)
			continue;
		d = &n->dso[m->dso];
		out->dso = d->name;
		out->to_file = m->pgoff - m->addr;
		if (!d->tried)
			load_dso(n, d);
		if (d->symbols && file_to_va(d->image, addr - m->addr + m->pgoff, &va))
			out->symbol = symtab_lookup(d->symbols, va, &out->off);
		return;
	}
}

static int find_dso(struct names *n, const struct perfdata_record *r, size_t *index, struct err *e)
{
	struct dso *grown, d = { .has_id = r->map.build_id != NULL };

	for (size_t i = 0; i < n->ndso; i++) {
		const struct dso *o = &n->dso[i];

		if (!strcmp(o->name, r->map.path) && o->has_id == d.has_id &&
		    (!d.has_id || !memcmp(o->build_id, r->map.build_id, sizeof(o->build_id)))) {
			*index = i;
			return 0;
		}
	}
	if (n->ndso >= NAMES_MAX_DSOS)
		return err_set(e, E2BIG, "more than %u different programs are mapped",
			       NAMES_MAX_DSOS);
	grown = reallocarray(n->dso, n->ndso + 1, sizeof(*grown));
	if (!grown)
		return err_set(e, ENOMEM, "out of memory");
	n->dso = grown;
	if (d.has_id)
		memcpy(d.build_id, r->map.build_id, sizeof(d.build_id));
	d.name = strdup(r->map.path);
	if (!d.name)
		return err_set(e, ENOMEM, "out of memory");
	*index = n->ndso;
	n->dso[n->ndso++] = d;
	return 0;
}

/* -- interface --------------------------------------------------------------------------- */

int names_create(struct names **out, const struct perfdata *p, const char *buildid_dir,
		 struct err *e)
{
	struct names *n = calloc(1, sizeof(*n));
	int ret;

	if (!n)
		return err_set(e, ENOMEM, "out of memory");
	n->buildid_dir = buildid_dir ? strdup(buildid_dir) : buildid_default_dir();
	n->dir = p->dir ? strdup(p->dir) : NULL;
	ret = load_kernel(n, p, e);
	if (ret)
		names_destroy(n);
	else
		*out = n;
	return ret;
}

void names_destroy(struct names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->ndso; i++) {
		symtab_destroy(n->dso[i].symbols);
		free(n->dso[i].image);
		file_map_close(&n->dso[i].file);
		free(n->dso[i].name);
	}
	symtab_destroy(n->kernel);
	free(n->dso);
	free(n->map);
	free(n->dir);
	free(n->buildid_dir);
	free(n);
}

bool names_have_kernel(const struct names *n)
{
	return n->kernel != NULL;
}

int names_map(struct names *n, const struct perfdata_record *r, struct err *e)
{
	struct mapping m = { .pid = r->pid, .addr = r->map.addr, .pgoff = r->map.pgoff };
	int ret;

	/* The kernel's names come with their addresses; its map says nothing more. */
	if (r->kernel)
		return 0;
	if (__builtin_add_overflow(r->map.addr, r->map.len, &m.end))
		m.end = UINT64_MAX;
	if (n->nmap >= NAMES_MAX_MAPS)
		return err_set(e, E2BIG, "more than %u mappings", NAMES_MAX_MAPS);
	ret = find_dso(n, r, &m.dso, e);
	if (ret)
		return ret;
	if (n->nmap == n->map_cap) {
		size_t cap = n->map_cap ? n->map_cap * 2 : 64;
		struct mapping *grown = reallocarray(n->map, cap, sizeof(*grown));

		if (!grown)
			return err_set(e, ENOMEM, "out of memory");
		n->map = grown;
		n->map_cap = cap;
	}
	n->map[n->nmap++] = m;
	memset(n->cache, 0, sizeof(n->cache));
	return 0;
}

void names_lookup(struct names *n, uint32_t pid, bool kernel, uint64_t addr, struct name *out)
{
	uint64_t hash = (addr ^ (kernel ? 0 : (uint64_t)pid << 40)) * 0x9e3779b97f4a7c15u;
	struct cached *c = &n->cache[hash >> 40 & (CACHE_SLOTS - 1)];

	if (c->used && c->addr == addr && c->kernel == kernel && (kernel || c->pid == pid)) {
		*out = c->name;
		return;
	}
	*out = (struct name){ .dso = UNKNOWN };
	if (kernel) {
		out->dso = PERFDATA_KERNEL_DSO;
		if (n->kernel)
			out->symbol = symtab_lookup(n->kernel, addr, &out->off);
	} else {
		lookup_user(n, pid, addr, out);
	}
	*c = (struct cached){
		.addr = addr, .pid = pid, .kernel = kernel, .used = true, .name = *out
	};
}
