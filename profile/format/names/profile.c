/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a perf.data file: its kallsyms, the files of its programs, and its records.
 */
#include "profile/format/names/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/files/elf_id.h"
#include "profile/format/sink/sink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Functions that kallsyms gives to one module. */
struct module {
	char *name; /* `[NAME]` */
	struct symtab *symbols;
};

struct names_from_profile {
	const struct perfdata *profile;
	char *dir, *buildid_dir;
	struct symtab *kernel;
	struct module *module;
	size_t nmodules, module_cap;
	struct err unread; /* of the first program's file that the host failed to read */
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

struct kallsyms_line {
	uint64_t addr;
	char type, name[SYMTAB_MAX_NAME];
	char module[PROFILE_MODULE_NAME + 2]; /* with its brackets, or "" */
};

/* "ffffffff81000000 T name[\t[module]]": false for any other line. */
static bool parse_line(const char *line, size_t len, struct kallsyms_line *out)
{
	size_t i = 0, n;

	for (out->addr = 0; i < len && i < 16 && hex_digit(line[i]) >= 0; i++)
		out->addr = out->addr << 4 | (uint64_t)hex_digit(line[i]);
	if (i == 0 || i + 3 >= len || line[i] != ' ' || line[i + 2] != ' ')
		return false;
	out->type = line[i + 1];
	line += i + 3;
	len -= i + 3;
	for (n = 0; n < len && n + 1 < sizeof(out->name) && line[n] != '\t' && line[n] != '\0'; n++)
		out->name[n] = line[n];
	out->name[n] = '\0';
	*out->module = '\0';
	if (n + 2 < len && line[n] == '\t' && line[n + 1] == '[' &&
	    len - n - 1 < sizeof(out->module)) {
		memcpy(out->module, line + n + 1, len - n - 1);
		out->module[len - n - 1] = '\0';
	}
	return n > 0;
}

/* The table of a module; they come in runs. NULL: no memory, or too many. */
static struct symtab *module_table(struct names_from_profile *n, const char *name)
{
	struct module m = { 0 };

	for (size_t i = n->nmodules; i-- > 0;)
		if (!strcmp(n->module[i].name, name))
			return n->module[i].symbols;
	if (n->nmodules >= NAMES_MAX_MODULES)
		return NULL;
	if (ARRAY_ROOM(n->module, n->nmodules, n->module_cap))
		return NULL;
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

static int parse_kallsyms(struct names_from_profile *n, struct symtab *kernel,
			  const struct file_map *m, struct err *e)
{
	struct kallsyms_line l;
	struct cursor c;
	int ret;

	cursor_init(&c, m->data, m->len);
	while (cursor_left(&c)) {
		const char *line = (const char *)c.base + c.pos;
		const char *nl = memchr(line, '\n', cursor_left(&c));
		size_t len = nl ? (size_t)(nl - line) : cursor_left(&c);

		if (parse_line(line, len, &l)) {
			struct symtab *t = *l.module ? module_table(n, l.module) : kernel;

			ret = t ? symtab_add(t, l.addr, 0, l.type, l.name) : -E2BIG;
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

/*
 * What is not there, not ours to read or no such file costs names. What the host fails to read (an I/O
 * error, too many open files, no memory) may be there the next time: without a word the result would be
 * another one.
 */
static int names_open_file(struct file_map *m, const char *path, size_t max, struct err *e)
{
	struct err why = { 0 };
	int ret = file_map_open(m, path, max, &why);

	if (!e->code && (ret == -EIO || ret == -ENOMEM || ret == -EMFILE || ret == -ENFILE))
		*e = why;
	return ret;
}

/* 0 also when the file is missing; n->kernel is then still NULL. */
static int load_kallsyms(struct names_from_profile *n, const char *path, struct err *e)
{
	struct file_map m = { 0 };
	struct err unread = { 0 };
	struct symtab *t;
	int ret;

	if (names_open_file(&m, path, NAMES_MAX_KALLSYMS, &unread) < 0) {
		if (unread.code)
			*e = unread;
		return unread.code ? -unread.code : 0;
	}
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

static int load_kernel(struct names_from_profile *n, struct err *e)
{
	const struct perfdata *p = n->profile;
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
static void load_dso_file(struct names_dso *d, const char *path, struct err *unread)
{
	struct file_map m = { 0 };

	if (names_open_file(&m, path, NAMES_MAX_ELF, unread) < 0)
		return;
	names_read_dso(d, m.data, m.len);
	file_map_close(&m);
}

void names_load_dso(const struct names *names, struct names_dso *d)
{
	struct names_from_profile *n = names->from;
	cleanup_free char *own = NULL, *cached = NULL;
	struct err unread = { 0 };
	char hex[BUILDID_HEX_MAX];
	uint8_t id[ELF_ID_MAX];

	d->tried = true;
	if (!d->has_id)
		return;
	buildid_hex(hex, d->build_id, sizeof(d->build_id));
	if (n->dir && asprintf(&own, "%s/dso/%s", n->dir, hex) > 0)
		load_dso_file(d, own, &unread);
	if (!d->symbols && n->buildid_dir &&
	    asprintf(&cached, "%s/.build-id/%.2s/%s/%s", n->buildid_dir, hex, hex + 2,
		     buildid_file(d->name)) > 0)
		load_dso_file(d, cached, &unread);
	/* perf's profiles are of a host, maybe of this one: the very same file will do. */
	if (!d->symbols && !n->profile->ours && d->name[0] == '/' &&
	    elf_id_of_path(d->name, id) == (int)sizeof(d->build_id) &&
	    !memcmp(id, d->build_id, sizeof(d->build_id)))
		load_dso_file(d, d->name, &unread);
	if (!d->symbols && unread.code && !n->unread.code)
		n->unread = unread;
}

int names_unread(const struct names *n, struct err *e)
{
	const struct err *unread = n->from ? &n->from->unread : NULL;

	if (!unread || !unread->code)
		return 0;
	*e = *unread;
	return -unread->code;
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

/* -- records ----------------------------------------------------------------------------- */

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

static int take_map(struct names *n, const struct perfdata_record *r, struct err *e)
{
	const struct names_from_profile *f = n->from;
	char module[PROFILE_MODULE_NAME + 2];
	struct names_dso d = { .name = (char *)(uintptr_t)r->map.path, .kernel = r->kernel };
	struct mapping m = { .addr = r->map.addr, .pgoff = r->map.pgoff };
	const uint8_t *id = r->map.build_id;

	if (r->kernel && !strncmp(r->map.path, PERFDATA_KERNEL_DSO, strlen(PERFDATA_KERNEL_DSO))) {
		locate_kernel(n, r);
		n->stamp++;
		return 0;
	}
	if (__builtin_add_overflow(r->map.addr, r->map.len, &m.end))
		m.end = UINT64_MAX;
	if (r->kernel && d.name[0] == '/') {
		module_name(module, sizeof(module), d.name);
		d.name = module;
	}
	for (size_t i = 0; r->kernel && i < f->nmodules; i++)
		if (!strcmp(f->module[i].name, d.name))
			d.at_run_time = f->module[i].symbols;
	if (!id && !r->kernel && !f->profile->ours)
		id = build_id_of_name(f->profile, d.name, false);
	d.has_id = id != NULL;
	if (id)
		memcpy(d.build_id, id, sizeof(d.build_id));
	return names_add_map(n, r->pid, &m, &d, e);
}

int names_record(struct names *n, const struct perfdata_record *r, struct err *e)
{
	switch (r->kind) {
	case PERFDATA_MAP:
		return take_map(n, r, e);
	case PERFDATA_FORK:
		return names_fork(n, r->pid, r->fork.ppid, e);
	case PERFDATA_COMM:
		return r->exec ? names_exec(n, r->pid, e) : 0;
	default:
		/* Late samples of a task that has exited still have its mappings. */
		return 0;
	}
}

/* -- life -------------------------------------------------------------------------------- */

int names_create(struct names **out, const struct perfdata *p, const char *buildid_dir,
		 struct err *e)
{
	struct names_from_profile *f = calloc(1, sizeof(*f));
	struct names *n = names_create_live();
	int ret;

	if (!f || !n) {
		free(f);
		names_destroy(n);
		return err_set(e, ENOMEM, "out of memory");
	}
	n->from = f;
	f->profile = p;
	f->buildid_dir = buildid_dir ? strdup(buildid_dir) : buildid_default_dir();
	f->dir = p->dir ? strdup(p->dir) : NULL;
	ret = load_kernel(f, e);
	n->kernel = f->kernel;
	n->kernel_start = n->kernel_end = 0;
	if (ret)
		names_destroy(n);
	else
		*out = n;
	return ret;
}

void names_from_profile_destroy(struct names_from_profile *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nmodules; i++) {
		symtab_destroy(f->module[i].symbols);
		free(f->module[i].name);
	}
	free(f->module);
	symtab_destroy(f->kernel);
	free(f->dir);
	free(f->buildid_dir);
	free(f);
}
