/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/rootfs/modules.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "vmm/image/unpack.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEP_MAX (32u << 20) /* bytes of a modules.dep */
#define MODULES_MAX 65536u
#define MODULE_MAX (256u << 20) /* bytes of a module, decompressed */
#define MODULE_NAME 64u		/* Linux's MODULE_NAME_LEN is 56 */
#define DEPTH_MAX 64u

struct modules_module {
	char *path; /* relative to the tree; owned, as deps is */
	char *deps; /* names or paths, separated by blanks or commas; NULL: not known yet */
	char name[MODULE_NAME];
	bool packed;
};

struct tree {
	struct rootfs *r;
	char dir[PATH_MAX]; /* path on this host */
	char version[128];  /* release of the kernel */
	bool flat;	    /* without modules.dep */
	struct modules_module *module;
	size_t n, cap;
	struct buf *load; /* NULL: no module is loaded */
};

/* Makes "snd_pcm" from "kernel/sound/snd-pcm.ko.xz"; the kernel has '_' for '-'. */
static void module_name(const char *path, size_t len, char name[MODULE_NAME])
{
	size_t n = 0;

	for (size_t i = len; i > 0; i--)
		if (path[i - 1] == '/') {
			path += i;
			len -= i;
			break;
		}
	for (; n < len && n < MODULE_NAME - 1 && path[n] != '.'; n++)
		name[n] = path[n] == '-' ? '_' : path[n];
	name[n] = 0;
}

static struct modules_module *modules_find(const struct tree *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->module[i].name, name))
			return &t->module[i];
	return NULL;
}

static int add_module(struct tree *t, const char *path, size_t len, const char *deps,
		      size_t dep_len, struct err *e)
{
	struct modules_module *m;

	if (t->n >= MODULES_MAX)
		return err_set(e, E2BIG, "%.200s: more than %u modules", t->dir, MODULES_MAX);
	if (ARRAY_ROOM(t->module, t->n, t->cap))
		return err_nomem(e);
	m = &t->module[t->n];
	*m = (struct modules_module){ .path = strndup(path, len) };
	m->deps = deps ? strndup(deps, dep_len) : NULL;
	t->n++;
	if (!m->path || (deps && !m->deps))
		return err_nomem(e);
	module_name(path, len, m->name);
	return 0;
}

/* Reads lines such as "kernel/fs/a.ko: kernel/lib/b.ko kernel/lib/c.ko". */
static int read_dep(struct tree *t, const char *text, size_t len, struct err *e)
{
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len;
		const char *colon = memchr(text, ':', line);
		int ret = 0;

		if (colon && memmem(text, (size_t)(colon - text), "..", 2) == NULL && *text != '/')
			ret = add_module(t, text, (size_t)(colon - text), colon + 1,
					 line - (size_t)(colon - text) - 1, e);
		if (ret)
			return ret;
		line += end != NULL;
		text += line;
		len -= line;
	}
	return 0;
}

static bool is_module(const char *name)
{
	static const char *const suffix[] = { ".ko", ".ko.xz", ".ko.zst", ".ko.gz" };
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++)
		if (len > strlen(suffix[i]) && !strcmp(name + len - strlen(suffix[i]), suffix[i]))
			return true;
	return false;
}

static int list_flat(struct tree *t, struct err *e)
{
	cleanup_closedir DIR *d = opendir(t->dir);
	int ret = d ? 0 : err_set(e, errno, "--modules %.200s: %s", t->dir, strerror(errno));

	for (struct dirent *x; !ret && (x = readdir(d));)
		if (is_module(x->d_name))
			ret = add_module(t, x->d_name, strlen(x->d_name), NULL, 0, e);
	if (!ret && !t->n)
		ret = err_set(
			e, ENOENT,
			"--modules %.200s: neither lib/modules/VERSION with a modules.dep nor "
			"*.ko files",
			t->dir);
	return ret;
}

static bool has_dep(const char *dir)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/modules.dep", dir) < (int)sizeof(path) &&
	       access(path, R_OK) == 0;
}

/* Finds dir/VERSION for the kernel's version, or the only version that exists. */
static bool find_version(struct tree *t, const char *dir, const char *osrelease)
{
	cleanup_closedir DIR *d = NULL;
	unsigned int n = 0;
	char path[PATH_MAX];

	if (*osrelease &&
	    snprintf(path, sizeof(path), "%s/%s", dir, osrelease) < (int)sizeof(path) &&
	    has_dep(path)) {
		memcpy(t->dir, path, sizeof(path));
		return true;
	}
	d = opendir(dir);
	for (struct dirent *x; d && (x = readdir(d));)
		if (x->d_name[0] != '.' &&
		    snprintf(path, sizeof(path), "%s/%s", dir, x->d_name) < (int)sizeof(path) &&
		    has_dep(path)) {
			memcpy(t->dir, path, sizeof(path));
			n++;
		}
	return n == 1;
}

static int open_tree(struct tree *t, const char *dir, const char *osrelease, struct err *e)
{
	char real[PATH_MAX], below[PATH_MAX], path[PATH_MAX];
	struct file_map m = { 0 };
	int ret;

	if (!realpath(dir, real))
		return err_set(e, errno, "--modules %.200s: %s", dir, strerror(errno));
	snprintf(t->dir, sizeof(t->dir), "%s", real);
	if (snprintf(below, sizeof(below), "%s/lib/modules", real) >= (int)sizeof(below))
		return err_set(e, ENAMETOOLONG, "--modules %.200s: too long a path", dir);
	t->flat = !has_dep(real) && !find_version(t, real, osrelease) &&
		  !find_version(t, below, osrelease);
	if (t->flat) {
		snprintf(t->dir, sizeof(t->dir), "%s", real);
		snprintf(t->version, sizeof(t->version), "%s", *osrelease ? osrelease : "unknown");
		return list_flat(t, e);
	}
	snprintf(t->version, sizeof(t->version), "%s", strrchr(t->dir, '/') + 1);
	if (*osrelease && strcmp(t->version, osrelease))
		return err_set(e, EINVAL,
			       "--modules %.200s: these are for Linux %.100s, and the kernel is "
			       "%.100s, which would refuse them",
			       dir, t->version, osrelease);
	if (snprintf(path, sizeof(path), "%s/modules.dep", t->dir) >= (int)sizeof(path))
		return err_set(e, ENAMETOOLONG, "--modules %.200s: too long a path", dir);
	ret = file_map_open(&m, path, DEP_MAX, e);
	ret = ret ? ret : read_dep(t, (const char *)m.data, m.len, e);
	file_map_close(&m);
	return ret;
}

/* Returns the value of "depends=" in .modinfo (strings, each with its NUL), or NULL. */
static char *depends_of(const uint8_t *data, size_t len)
{
	Elf *elf;
	Elf_Scn *s = NULL;
	char *found = NULL;
	size_t names = 0;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)(uintptr_t)data, len);
	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names) < 0) {
		elf_end(elf);
		return NULL;
	}
	while (!found && (s = elf_nextscn(elf, s))) {
		GElf_Shdr h;
		const char *name = gelf_getshdr(s, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;
		Elf_Data *d = name && !strcmp(name, ".modinfo") ? elf_rawdata(s, NULL) : NULL;
		const char *p = d ? d->d_buf : NULL, *end = p ? p + d->d_size : NULL;

		while (!found && p && p < end) {
			size_t n = strnlen(p, (size_t)(end - p));

			if (n >= 8 && !memcmp(p, "depends=", 8))
				found = strndup(p + 8, n - 8);
			p += n + 1;
		}
	}
	elf_end(elf);
	return found;
}

static int modules_take(struct tree *t, struct modules_module *m, unsigned int depth,
			struct err *e);

static int take_dependencies(struct tree *t, struct modules_module *m, unsigned int depth,
			     struct err *e)
{
	const char *s = m->deps;
	int ret = 0;

	while (!ret && s && *s) {
		char name[MODULE_NAME];
		struct modules_module *other;
		size_t len;

		s += strspn(s, " ,\t");
		len = strcspn(s, " ,\t");
		if (!len)
			break;
		module_name(s, len, name);
		other = modules_find(t, name);
		if (!other)
			ret = err_set(e, ENOENT, "%.200s: %s depends on %s, which is not there",
				      t->dir, m->name, name);
		else
			ret = modules_take(t, other, depth + 1, e);
		s += len;
	}
	return ret;
}

static int pack(struct tree *t, const struct modules_module *m, const uint8_t *data, size_t len,
		struct err *e)
{
	const char *dot = strstr(m->path, ".ko");
	char name[CPIO_NAME_MAX + 1];
	int ret;

	if (snprintf(name, sizeof(name), "/lib/modules/%s/%s%.*s.ko", t->version,
		     t->flat ? "extra/" : "", dot ? (int)(dot - m->path) : 0,
		     m->path) >= (int)sizeof(name))
		return err_set(e, ENAMETOOLONG, "%.200s: too long a name", m->path);
	ret = rootfs_add_bytes(t->r, name, S_IFREG | 0644, data, len, e);
	if (!ret && t->load)
		buf_add(t->load, name, strlen(name) + 1);
	return ret;
}

/* Packs a module after its dependencies. */
static int modules_take(struct tree *t, struct modules_module *m, unsigned int depth, struct err *e)
{
	cleanup_free uint8_t *unpacked = NULL;
	struct file_map f = { 0 };
	char path[2 * PATH_MAX];
	const uint8_t *data;
	size_t len;
	int ret;

	/* Marked before the dependencies, so that a cycle ends here. */
	if (m->packed)
		return 0;
	m->packed = true;
	if (depth > DEPTH_MAX)
		return err_set(e, ELOOP, "%.200s: dependencies more than %u deep", m->path,
			       DEPTH_MAX);
	snprintf(path, sizeof(path), "%s/%s", t->dir, m->path);
	ret = file_map_open(&f, path, MODULE_MAX, e);
	if (ret)
		return ret;
	data = f.data;
	len = f.len;
	if (unpack_detect(data, len)) {
		if (unpack_image(path, (struct bytes){ f.data, f.len }, MODULE_MAX, &unpacked, &len,
				 NULL) < 0)
			ret = err_set(e, EINVAL, "%.200s: cannot be decompressed: damaged?", path);
		data = unpacked;
	}
	if (!ret && !m->deps)
		m->deps = depends_of(data, len);
	ret = ret ? ret : take_dependencies(t, m, depth, e);
	ret = ret ? ret : pack(t, m, data, len, e);
	file_map_close(&f);
	return ret;
}

/* Returns whether the module is built into the kernel: then nothing has to be loaded. */
static bool is_builtin(const struct tree *t, const char *name)
{
	cleanup_fclose FILE *f = NULL;
	char path[PATH_MAX + 32], line[PATH_MAX], other[MODULE_NAME];

	snprintf(path, sizeof(path), "%s/modules.builtin", t->dir);
	f = file_stream(path);
	while (f && fgets(line, sizeof(line), f)) {
		module_name(line, strcspn(line, "\n"), other);
		if (!strcmp(name, other))
			return true;
	}
	return false;
}

static int take_names(struct tree *t, const char *names, struct err *e)
{
	int ret = 0;

	for (const char *s = names; !ret && *s;) {
		size_t len = strcspn(s, ",");
		char name[MODULE_NAME];
		struct modules_module *m;

		module_name(s, len, name);
		m = modules_find(t, name);
		if (m)
			ret = modules_take(t, m, 0, e);
		else if (!is_builtin(t, name))
			ret = err_set(e, ENOENT, "--modprobe %.*s: no such module in %.200s",
				      (int)(len < 100 ? len : 100), s, t->dir);
		s += len + (s[len] == ',');
	}
	return ret;
}

/* Appends the path without the suffix of a compression. */
static void add_plain(struct buf *b, const char *path, size_t len)
{
	const char *dot = memmem(path, len, ".ko", 3);

	buf_add(b, path, dot ? (size_t)(dot - path) + 3 : len);
}

/* Writes modules.dep for modprobe in the guest, with the names as packed. */
static int add_dep(struct tree *t, struct err *e)
{
	char name[256];
	struct buf b;
	int ret;

	buf_init(&b);
	for (size_t i = 0; i < t->n; i++) {
		const struct modules_module *m = &t->module[i];
		const char *s = m->deps;

		if (!m->packed)
			continue;
		add_plain(&b, m->path, strlen(m->path));
		buf_u8(&b, ':');
		while (s && *s) {
			size_t len;

			s += strspn(s, " \t");
			len = strcspn(s, " \t");
			if (len)
				buf_u8(&b, ' ');
			add_plain(&b, s, len);
			s += len;
		}
		buf_u8(&b, '\n');
	}
	snprintf(name, sizeof(name), "/lib/modules/%s/modules.dep", t->version);
	ret = b.failed ? err_nomem(e)
		       : rootfs_add_bytes(t->r, name, S_IFREG | 0644, b.data, b.len, e);
	buf_deinit(&b);
	return ret;
}

int rootfs_add_modules(struct rootfs *r, const char *dir, const char *names, const char *osrelease,
		       struct buf *load, struct err *e)
{
	cleanup_free struct tree *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return err_nomem(e);
	t->r = r;
	t->load = names ? load : NULL;
	ret = open_tree(t, dir, osrelease, e);
	if (!ret && names)
		ret = take_names(t, names, e);
	for (size_t i = 0; !ret && !names && i < t->n; i++)
		ret = modules_take(t, &t->module[i], 0, e);
	if (!ret && !t->flat && t->n)
		ret = add_dep(t, e);
	for (size_t i = 0; i < t->n; i++) {
		free(t->module[i].path);
		free(t->module[i].deps);
	}
	free(t->module);
	return ret;
}
