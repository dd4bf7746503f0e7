/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the host's files with the symbols of a profile's kernel and its modules.
 */
#include "profile/format/names/private.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "profile/format/files/buildid_cache.h"
#include "symbolizer/core/elf64.h"
#include "symbolizer/kernel/symfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNEL_NOTES "/sys/kernel/notes"
#define KERNEL_KALLSYMS "/proc/kallsyms"

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
	char type, name[SYMTAB_MAX_NAME + 2];
	char module[PROFILE_MODULE_NAME + 2]; /* with brackets, or "" */
};

/* Removes a mark that only perf needs: here, maps tell when a module was at its place. */
static void drop_mark(char *name, size_t len)
{
	const size_t mark = strlen(PERFDATA_OLDER_CODE);

	if (len > mark && !strcmp(name + len - mark, PERFDATA_OLDER_CODE))
		name[len - mark] = '\0';
}

/* Parses "ffffffff81000000 T name[\t[module]]"; returns false for any other line. */
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
	drop_mark(out->name, n);
	*out->module = '\0';
	if (n + 2 < len && line[n] == '\t' && line[n + 1] == '[' &&
	    len - n - 1 < sizeof(out->module)) {
		memcpy(out->module, line + n + 1, len - n - 1);
		out->module[len - n - 1] = '\0';
	}
	return n > 0;
}

/*
 * Returns the table of a module, whose lines are consecutive. Returns NULL if out of memory or over
 * the limit.
 */
static struct symtab *module_table(struct names_from_profile *n, const char *name)
{
	struct profile_table_module m = { 0 };

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

static int take_kallsyms(struct names_from_profile *n, const char *path, const struct file_map *m,
			 struct err *e)
{
	struct symtab *t = symtab_create();
	int ret = t ? parse_kallsyms(n, t, m, e) : err_set(e, ENOMEM, "%s: out of memory", path);

	if (!ret && symtab_count(t)) {
		n->kernel = t;
		return 0;
	}
	symtab_destroy(t);
	return ret;
}

/* Returns 0 also if the file is missing; n->kernel is then still NULL. */
static int load_kallsyms(struct names_from_profile *n, const char *path, struct err *e)
{
	struct file_map m = { 0 };
	struct err unread = { 0 };
	int ret;

	if (names_open_file(&m, path, NAMES_MAX_KALLSYMS, &unread) < 0) {
		if (unread.code)
			*e = unread;
		return unread.code ? -unread.code : 0;
	}
	ret = take_kallsyms(n, path, &m, e);
	file_map_close(&m);
	return ret;
}

/* Reads the running kernel's names. Their addresses are all 0 for a user who may not see them. */
static int load_running_kernel(struct names_from_profile *n, struct err *e)
{
	cleanup_close int fd = open(KERNEL_KALLSYMS, O_RDONLY | O_CLOEXEC);
	struct err unread = { 0 };
	struct file_map m;
	struct buf text;
	int ret = 0;

	if (fd < 0)
		return 0;
	buf_init(&text);
	ret = file_read_rest(&text, fd, NAMES_MAX_KALLSYMS, KERNEL_KALLSYMS, &unread);
	m = (struct file_map){ .data = text.data, .len = text.len };
	if (ret == -ENOMEM)
		*e = unread;
	else if (!ret && text.len > 17 && memcmp(text.data, "0000000000000000", 16) != 0)
		ret = take_kallsyms(n, KERNEL_KALLSYMS, &m, e);
	else
		ret = 0; /* only names are missing */
	buf_deinit(&text);
	return ret;
}

/* -- files with the kernel's build id ------------------------------------------------- */

/* Loads the symbols of an ELF file if it has the kernel's build id; any other file is ignored. */
static int load_vmlinux(struct names_from_profile *n, const char *path, struct err *e)
{
	const struct perfdata *p = n->profile;
	struct file_map m = { 0 };
	struct symfile f = { 0 };
	struct err unread = { 0 };

	if (names_open_file(&m, path, NAMES_MAX_VMLINUX, &unread) < 0) {
		if (unread.code)
			*e = unread;
		return unread.code ? -unread.code : 0;
	}
	if (m.len > 4 && !memcmp(m.data, "\177ELF", 4) &&
	    symfile_parse(&f, path, m.data, m.len, NULL) == 0 &&
	    f.build_id_len == p->kernel_id_len &&
	    !memcmp(f.build_id, p->kernel_id, p->kernel_id_len) && symtab_count(f.symbols)) {
		n->kernel = f.symbols;
		f.symbols = NULL;
	}
	symfile_deinit(&f);
	file_map_close(&m);
	return 0;
}

/* Returns whether the running kernel has this build id. The file is a sequence of ELF notes. */
static bool is_running_kernel(const uint8_t *id, size_t len)
{
	uint8_t notes[4096], own[PERFDATA_BUILD_ID_SIZE];
	cleanup_fclose FILE *in = fopen(KERNEL_NOTES, "re");
	size_t n = in ? fread(notes, 1, sizeof(notes), in) : 0;
	struct elf64 file = { .name = KERNEL_NOTES };

	cursor_init(&file.file, notes, n);
	return elf64_build_id(&file, 0, n, own, sizeof(own)) == len && !memcmp(own, id, len);
}

/* The path of a file: DIR PREFIX, then HEX, HH/REST or the release, then SUFFIX. */
struct kernel_place {
	bool kallsyms; /* otherwise an ELF file, whose build id must match */
	bool cache;    /* DIR is the build-id cache, otherwise "" */
	enum { BY_HEX, BY_ID, BY_RELEASE } key;
	const char *prefix, *suffix;
};

static const struct kernel_place places[] = {
	{ true, true, BY_HEX, "/" PERFDATA_KERNEL_DSO "/", "/kallsyms" },
	{ true, true, BY_ID, "/.build-id/", "/kallsyms" },
	{ false, true, BY_ID, "/.build-id/", "/elf" },
	{ false, true, BY_ID, "/.build-id/", "/vmlinux" },
	{ false, true, BY_ID, "/.build-id/", "/debug" },
	{ false, false, BY_ID, "/usr/lib/debug/.build-id/", ".debug" },
	{ false, false, BY_RELEASE, "/usr/lib/debug/boot/vmlinux-", "" },
	{ false, false, BY_RELEASE, "/usr/lib/debug/lib/modules/", "/vmlinux" },
	{ false, false, BY_RELEASE, "/boot/vmlinux-", "" },
};

static int try_place(struct names_from_profile *n, const struct kernel_place *x, struct err *e)
{
	const struct perfdata *p = n->profile;
	const char *dir = x->cache ? n->buildid_dir : "", *key;
	char hex[BUILDID_HEX_MAX], split[BUILDID_HEX_MAX + 1];
	cleanup_free char *path = NULL;

	buildid_hex(hex, p->kernel_id, p->kernel_id_len);
	snprintf(split, sizeof(split), "%.2s/%s", hex, hex + 2);
	key = x->key == BY_HEX ? hex : x->key == BY_ID ? split : p->osrelease;
	/* The release becomes a part of a file name and must not contain a '/'. */
	if (!dir || !*key || (x->key == BY_RELEASE && strchr(key, '/')))
		return 0;
	if (asprintf(&path, "%s%s%s%s", dir, x->prefix, key, x->suffix) < 0) {
		path = NULL;
		return err_nomem(e);
	}
	return x->kallsyms ? load_kallsyms(n, path, e) : load_vmlinux(n, path, e);
}

int names_load_kernel(struct names_from_profile *n, struct err *e)
{
	const struct perfdata *p = n->profile;
	cleanup_free char *path = NULL;
	int ret = 0;

	if (n->dir) {
		if (asprintf(&path, "%s/kcore_dir/kallsyms", n->dir) < 0) {
			path = NULL;
			return err_nomem(e);
		}
		ret = load_kallsyms(n, path, e);
	}
	for (size_t i = 0; i < ARRAY_SIZE(places) && p->kernel_id_len >= 2 && !ret && !n->kernel;
	     i++)
		ret = try_place(n, &places[i], e);
	/*
	 * perf does this, too, if it has not stored the names and the recorded kernel still runs.
	 */
	if (!ret && !n->kernel && !p->ours && p->kernel_id_len &&
	    is_running_kernel(p->kernel_id, p->kernel_id_len))
		ret = load_running_kernel(n, e);
	return ret;
}
