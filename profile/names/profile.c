/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/names/names.h"

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "profile/files/buildid_cache.h"
#include "profile/files/elf_id.h"
#include "profile/perfdata/format.h"
#include "profile/sink/sink.h"
#include "profile/names/spaces.h"
#include "symbolizer/program/userelf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define UNKNOWN "[unknown]"
#define CACHE_SLOTS 16384u /* power of two */

struct dso {
	char *name; /* the mapping's path, or a module's `[NAME]` */
	uint8_t build_id[20];
	bool kernel, has_id, tried;
	struct userelf *elf; /* where its segments lie; its source is gone */
	struct symtab *symbols;
};

/* Functions that kallsyms gives to one module. */
struct module {
	char *name; /* `[NAME]` */
	struct symtab *symbols;
};

struct cached {
	uint64_t addr;
	uint32_t space;
	uint32_t stamp; /* n->stamp when it was found */
	bool used, settled;
	struct name name;
};

struct names {
	const struct perfdata *profile;
	char *dir, *buildid_dir;
	struct symtab *kernel;
	uint64_t kernel_start, kernel_end; /* by its map; 0,0: everywhere */
	uint64_t slide;			   /* from kallsyms to where it runs */
	struct module *module;
	size_t nmodules;
	struct dso *dso;
	size_t ndso;
	struct spaces spaces;
	uint32_t kernel_space;
	uint32_t stamp; /* counts mappings */
	struct cached cache[CACHE_SLOTS];
	bool relaxed; /* names_set_relaxed() */
};

/* Of the modules, in spaces: no process has this pid. */
#define KERNEL_PID UINT32_MAX

/* -- kallsyms text ------------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* "ffffffff81000000 T name[\t[module]]": false for any other line. module: with its brackets. */
static bool parse_line(const char *line, size_t len, uint64_t *addr, char *type, char *name,
		       size_t size, char *module, size_t module_size)
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
	*module = '\0';
	if (n + 2 < len && line[n] == '\t' && line[n + 1] == '[' && len - n - 1 < module_size) {
		memcpy(module, line + n + 1, len - n - 1);
		module[len - n - 1] = '\0';
	}
	return n > 0;
}

/* The table of a module; they come in runs. NULL: no memory, or too many. */
static struct symtab *module_table(struct names *n, const char *name)
{
	struct module *grown, m = { 0 };

	for (size_t i = n->nmodules; i-- > 0;)
		if (!strcmp(n->module[i].name, name))
			return n->module[i].symbols;
	if (n->nmodules >= NAMES_MAX_MODULES)
		return NULL;
	grown = reallocarray(n->module, n->nmodules + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	n->module = grown;
	m.name = strdup(name);
	m.symbols = symtab_create();
	if (!m.name || !m.symbols) {
		free(m.name);
		symtab_destroy(m.symbols);
		return NULL;
	}
	n->module[n->nmodules++] = m;
	return m.symbols;
}

static int parse_kallsyms(struct names *n, struct symtab *kernel, const struct file_map *m,
			  struct err *e)
{
	char name[SYMTAB_MAX_NAME], module[PROFILE_MODULE_NAME + 2];
	struct cursor c;
	int ret;

	cursor_init(&c, m->data, m->len);
	while (cursor_left(&c)) {
		const char *line = (const char *)c.base + c.pos;
		const char *nl = memchr(line, '\n', cursor_left(&c));
		size_t len = nl ? (size_t)(nl - line) : cursor_left(&c);
		uint64_t addr;
		char type;

		if (parse_line(line, len, &addr, &type, name, sizeof(name), module,
			       sizeof(module))) {
			struct symtab *t = *module ? module_table(n, module) : kernel;

			ret = t ? symtab_add(t, addr, 0, type, name) : -E2BIG;
			if (ret == -ENOMEM || ret == -E2BIG)
				return err_set(e, -ret, "too many kernel symbols: %s",
					       strerror(-ret));
		}
		cursor_skip(&c, len + (nl ? 1 : 0));
	}
	ret = symtab_freeze(kernel, e);
	for (size_t i = 0; !ret && i < n->nmodules; i++)
		ret = symtab_freeze(n->module[i].symbols, e);
	return ret;
}

/* 0 also when the file is missing; n->kernel is then still NULL. */
static int load_kallsyms(struct names *n, const char *path, struct err *e)
{
	struct file_map m = { 0 };
	struct symtab *t;
	int ret;

	if (file_map_open(&m, path, NAMES_MAX_KALLSYMS, NULL) < 0)
		return 0;
	t = symtab_create();
	ret = t ? parse_kallsyms(n, t, &m, e) : err_set(e, ENOMEM, "%s: out of memory", path);
	file_map_close(&m);
	if (!ret && symtab_count(t)) {
		n->kernel = t;
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
		ret = load_kallsyms(n, path, e);
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
		return load_kallsyms(n, cached, e);
	}
	return 0;
}

/* -- user programs --------------------------------------------------------------------- */

/*
 * The one place that reads programs: what else gives symbols to one plugs in here.
 * The file may be one of symbols alone, whose segments have no bytes (elfsynth.h).
 */
static void load_dso_file(struct dso *d, const char *path)
{
	struct file_map m = { 0 };
	struct file_bytes bytes;
	struct file_source src;
	struct userelf *u;

	if (file_map_open(&m, path, NAMES_MAX_ELF, NULL) < 0)
		return;
	bytes = (struct file_bytes){ m.data, m.len };
	src = file_source_of_bytes(&bytes);
	u = calloc(1, sizeof(*u));
	if (u && userelf_open(u, d->name, &src, NULL) == 0 &&
	    userelf_symbols(u, &d->symbols, NULL, NULL) == 0) {
		u->src = (struct file_source){ 0 };
		d->elf = u;
	} else {
		free(u);
	}
	file_map_close(&m);
}

static void load_dso(const struct names *n, struct dso *d)
{
	cleanup_free char *own = NULL, *cached = NULL;
	char hex[BUILDID_HEX_MAX];
	uint8_t id[ELF_ID_MAX];

	d->tried = true;
	if (!d->has_id)
		return;
	buildid_hex(hex, d->build_id, sizeof(d->build_id));
	if (n->dir && asprintf(&own, "%s/dso/%s", n->dir, hex) > 0)
		load_dso_file(d, own);
	if (!d->symbols && n->buildid_dir &&
	    asprintf(&cached, "%s/.build-id/%.2s/%s/%s", n->buildid_dir, hex, hex + 2,
		     buildid_file(d->name)) > 0)
		load_dso_file(d, cached);
	/* perf's profiles are of a host, maybe of this one: the very same file will do. */
	if (!d->symbols && !n->profile->ours && d->name[0] == '/' &&
	    elf_id_of_path(d->name, id) == (int)sizeof(d->build_id) &&
	    !memcmp(id, d->build_id, sizeof(d->build_id)))
		load_dso_file(d, d->name);
}

/* What perf found out about a file at its end, when its map does not say it. */
static const uint8_t *build_id_of_name(const struct perfdata *p, const char *name, bool kernel)
{
	for (size_t i = 0; i < p->nbuild_ids; i++)
		if (p->build_ids[i].kernel == kernel &&
		    p->build_ids[i].len == PERFDATA_BUILD_ID_SIZE &&
		    !strcmp(p->build_ids[i].name, name))
			return p->build_ids[i].id;
	return NULL;
}

static const struct symbol *find_symbol(const struct names *n, const struct symtab *t,
					uint64_t addr, uint64_t *off)
{
	const struct symbol *s = symtab_lookup(t, addr, off);

	return s || !n->relaxed ? s : symtab_before(t, addr, off);
}

void names_set_relaxed(struct names *n, bool relaxed)
{
	n->relaxed = relaxed;
}

static void lookup_user(struct names *n, uint32_t space, uint64_t addr, struct name *out)
{
	const struct mapping *m = spaces_find(&n->spaces, space, addr);
	struct dso *d;
	uint64_t va;

	if (!m)
		return;
	d = &n->dso[m->dso];
	out->dso = d->name;
	out->program = m->dso;
	out->to_file = m->pgoff - m->addr;
	out->map_start = m->addr;
	if (!d->tried)
		load_dso(n, d);
	/* A mapping counts in file offsets, a symbol table in virtual addresses. */
	if (d->symbols && userelf_va_of(d->elf, addr - m->addr + m->pgoff, &va))
		out->symbol = find_symbol(n, d->symbols, va, &out->off);
}

/* -- kernel and modules ------------------------------------------------------------------ */

static const struct symtab *symbols_of_module(const struct names *n, const char *name)
{
	for (size_t i = 0; i < n->nmodules; i++)
		if (!strcmp(n->module[i].name, name))
			return n->module[i].symbols;
	return NULL;
}

static void lookup_kernel(struct names *n, uint32_t space, uint64_t addr, struct name *out)
{
	const struct mapping *m = spaces_find(&n->spaces, space, addr);
	const struct symtab *t;

	if (m) {
		out->dso = n->dso[m->dso].name;
		out->map_start = m->addr;
		t = symbols_of_module(n, out->dso);
		if (t)
			out->symbol = find_symbol(n, t, addr, &out->off);
		return;
	}
	/* A kernel that has a map is nowhere else. */
	if (n->kernel_end && (addr < n->kernel_start || addr >= n->kernel_end))
		return;
	out->dso = PERFDATA_KERNEL_DSO;
	out->map_start = n->kernel_start;
	if (n->kernel)
		out->symbol = find_symbol(n, n->kernel, addr - n->slide, &out->off);
}

/*
 * `[kernel.kallsyms]SYMBOL` with SYMBOL's run-time address as offset: where the
 * kernel is, and how far its kallsyms (of another boot) are off.
 */
static void locate_kernel(struct names *n, const struct perfdata_record *r)
{
	const struct symbol *ref =
		n->kernel ? symtab_find(n->kernel, r->map.path + strlen(PERFDATA_KERNEL_DSO))
			  : NULL;

	n->slide = ref && ref->addr && r->map.pgoff ? r->map.pgoff - ref->addr : 0;
	n->kernel_start = r->map.addr;
	if (__builtin_add_overflow(r->map.addr, r->map.len, &n->kernel_end))
		n->kernel_end = UINT64_MAX;
}

/* A module that perf recorded from its file: "/lib/.../virtio-net.ko.xz" is `[virtio_net]`. */
static void module_name(char *out, size_t size, const char *path)
{
	const char *base = strrchr(path, '/'), *end;

	base = base ? base + 1 : path;
	end = strstr(base, ".ko");
	snprintf(out, size, "[%.*s]", (int)(end ? end - base : (ptrdiff_t)strlen(base)), base);
	for (char *c = out; *c; c++)
		if (*c == '-')
			*c = '_';
}

static int find_dso(struct names *n, const struct perfdata_record *r, uint32_t *index,
		    struct err *e)
{
	char module[PROFILE_MODULE_NAME + 2];
	const char *path = r->map.path;
	const uint8_t *id = r->map.build_id;
	struct dso *grown, d = { .kernel = r->kernel };

	if (r->kernel && path[0] == '/') {
		module_name(module, sizeof(module), path);
		path = module;
	}
	if (!id && !r->kernel && !n->profile->ours)
		id = build_id_of_name(n->profile, path, false);
	d.has_id = id != NULL;
	for (size_t i = 0; i < n->ndso; i++) {
		const struct dso *o = &n->dso[i];

		if (!strcmp(o->name, path) && o->kernel == d.kernel && o->has_id == d.has_id &&
		    (!d.has_id || !memcmp(o->build_id, id, sizeof(o->build_id)))) {
			*index = (uint32_t)i;
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
		memcpy(d.build_id, id, sizeof(d.build_id));
	d.name = strdup(path);
	if (!d.name)
		return err_set(e, ENOMEM, "out of memory");
	*index = (uint32_t)n->ndso;
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
	n->profile = p;
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
		free(n->dso[i].elf);
		free(n->dso[i].name);
	}
	for (size_t i = 0; i < n->nmodules; i++) {
		symtab_destroy(n->module[i].symbols);
		free(n->module[i].name);
	}
	free(n->module);
	symtab_destroy(n->kernel);
	spaces_deinit(&n->spaces);
	free(n->dso);
	free(n->dir);
	free(n->buildid_dir);
	free(n);
}

const uint8_t *names_build_id(const struct names *n, uint32_t program)
{
	return program < n->ndso && n->dso[program].has_id ? n->dso[program].build_id : NULL;
}

bool names_have_kernel(const struct names *n)
{
	return n->kernel != NULL;
}

static int take_map(struct names *n, const struct perfdata_record *r, struct err *e)
{
	struct mapping m = { .addr = r->map.addr, .pgoff = r->map.pgoff };
	int ret;

	if (r->kernel && !strncmp(r->map.path, PERFDATA_KERNEL_DSO, strlen(PERFDATA_KERNEL_DSO))) {
		locate_kernel(n, r);
		n->stamp++;
		return 0;
	}
	if (__builtin_add_overflow(r->map.addr, r->map.len, &m.end))
		m.end = UINT64_MAX;
	ret = find_dso(n, r, &m.dso, e);
	ret = ret ? ret : spaces_map(&n->spaces, r->kernel ? KERNEL_PID : r->pid, &m, e);
	n->kernel_space = spaces_of(&n->spaces, KERNEL_PID);
	n->stamp++;
	return ret;
}

int names_record(struct names *n, const struct perfdata_record *r, struct err *e)
{
	switch (r->kind) {
	case PERFDATA_MAP:
		return take_map(n, r, e);
	case PERFDATA_FORK:
		return spaces_fork(&n->spaces, r->pid, r->fork.ppid, e);
	case PERFDATA_COMM:
		return r->exec ? spaces_clear(&n->spaces, r->pid, e) : 0;
	default:
		/* Late samples of a task that has exited still have its mappings. */
		return 0;
	}
}

struct names_view names_view(const struct names *n, uint32_t pid)
{
	return (struct names_view){ .kernel = n->kernel_space, .user = spaces_of(&n->spaces, pid) };
}

void names_lookup_in(struct names *n, struct names_view view, bool kernel, uint64_t addr,
		     struct name *out)
{
	uint32_t space = kernel ? view.kernel : view.user;
	uint64_t hash = (addr ^ (uint64_t)(space * 2 + kernel) << 40) * 0x9e3779b97f4a7c15u;
	struct cached *c = &n->cache[hash >> 40 & (CACHE_SLOTS - 1)];

	/* A place where nothing was may have gained a mapping since. */
	if (c->used && c->addr == addr && c->space == (space * 2 | kernel) &&
	    (c->settled || c->stamp == n->stamp)) {
		*out = c->name;
		return;
	}
	*out = (struct name){ .dso = UNKNOWN, .program = NAMES_NONE };
	if (kernel)
		lookup_kernel(n, space, addr, out);
	else
		lookup_user(n, space, addr, out);
	*c = (struct cached){
		.addr = addr,
		.space = space * 2 | kernel,
		.stamp = n->stamp,
		.used = true,
		.settled = out->symbol || spaces_find(&n->spaces, space, addr),
		.name = *out,
	};
}

void names_lookup(struct names *n, uint32_t pid, bool kernel, uint64_t addr, struct name *out)
{
	names_lookup_in(n, names_view(n, pid), kernel, addr, out);
}
