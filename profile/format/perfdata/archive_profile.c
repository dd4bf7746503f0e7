/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/archive.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
	char *path; /* in the archive, below its directory */
	char *from; /* NULL: an empty file, or a directory */
	uint64_t size;
	bool dir;
};

struct list {
	struct entry *entry;
	size_t n, cap;
};

static void list_deinit(struct list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->entry[i].path);
		free(l->entry[i].from);
	}
	free(l->entry);
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static bool archive_profile_has(const struct list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->entry[i].path, path))
			return true;
	return false;
}

static int archive_profile_add(struct list *l, const char *path, const char *from,
			       const struct stat *st, struct err *e)
{
	struct entry x = { .dir = st && S_ISDIR(st->st_mode) };

	if (l->n == ARCHIVE_MAX_ENTRIES)
		return err_set(e, E2BIG, "%s: more than %u files in the profile", path,
			       ARCHIVE_MAX_ENTRIES);
	if (ARRAY_ROOM(l->entry, l->n, l->cap))
		return err_set(e, ENOMEM, "out of memory");
	x.path = strdup(path);
	x.from = from && !x.dir ? strdup(from) : NULL;
	x.size = st && !x.dir ? (uint64_t)st->st_size : 0;
	if (!x.path || (from && !x.dir && !x.from)) {
		free(x.path);
		free(x.from);
		return err_set(e, ENOMEM, "out of memory");
	}
	l->entry[l->n++] = x;
	return 0;
}

static int add_dir(struct list *l, const char *path, struct err *e)
{
	const struct stat dir = { .st_mode = S_IFDIR };

	return archive_profile_has(l, path) ? 0 : archive_profile_add(l, path, NULL, &dir, e);
}

/* -- what the profile has --------------------------------------------------------------------- */

static int scan(struct list *l, const char *root, const char *below, unsigned int depth,
		struct err *e);

/* Files and directories; anything else is not a profile's. */
static int scan_one(struct list *l, const char *root, const char *below, const char *name,
		    unsigned int depth, struct err *e)
{
	cleanup_free char *path = NULL, *from = NULL;
	struct stat st;
	int ret;

	if (asprintf(&path, "%s%s%s", below, *below ? "/" : "", name) < 0) {
		path = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	if (asprintf(&from, "%s/%s", root, path) < 0) {
		from = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	if (lstat(from, &st) < 0)
		return err_set(e, errno, "%s: %s", from, strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	ret = archive_profile_add(l, path, from, &st, e);
	return ret || !S_ISDIR(st.st_mode) ? ret : scan(l, root, path, depth + 1, e);
}

static int scan(struct list *l, const char *root, const char *below, unsigned int depth,
		struct err *e)
{
	cleanup_free char *dir = NULL;
	const struct dirent *d;
	DIR *list;
	int ret = 0;

	if (depth > ARCHIVE_MAX_DEPTH)
		return err_set(e, E2BIG, "%s/%s: more than %u directories deep", root, below,
			       ARCHIVE_MAX_DEPTH);
	if (asprintf(&dir, "%s/%s", root, below) < 0) {
		dir = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	list = opendir(dir);
	if (!list)
		return err_set(e, errno, "%s: %s", dir, strerror(errno));
	while (!ret && (d = readdir(list)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			ret = scan_one(l, root, below, d->d_name, depth, e);
	closedir(list);
	return ret;
}

/* -- what it lacks ----------------------------------------------------------------------------- */

struct gather {
	struct list list;
	struct archive_facts *facts;
	const char *cache; /* NULL: there is none */
};

static int add_cached(struct gather *g, const char *dir, const char *path, const char *from,
		      bool *found, struct err *e)
{
	struct stat st;
	int ret;

	*found = false;
	if (stat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	ret = add_dir(&g->list, dir, e);
	ret = ret ? ret : archive_profile_add(&g->list, path, from, &st, e);
	g->facts->from_cache += !ret;
	*found = !ret;
	return ret;
}

static int add_kernel(struct gather *g, const struct perfdata_build_id_entry *b, struct err *e)
{
	cleanup_free char *from = NULL;
	char hex[BUILDID_HEX_MAX];
	bool found = false;
	int ret = 0;

	if (archive_profile_has(&g->list, "kcore_dir/kallsyms"))
		return 0;
	buildid_hex(hex, b->id, b->len);
	if (g->cache &&
	    asprintf(&from, "%s/%s/%s/kallsyms", g->cache, PERFDATA_KERNEL_DSO, hex) < 0) {
		from = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	if (from)
		ret = add_cached(g, "kcore_dir", "kcore_dir/kallsyms", from, &found, e);
	g->facts->kernel_missing |= !found;
	/* perf wants it to be there. */
	return ret || !found ? ret
			     : archive_profile_add(&g->list, "kcore_dir/modules", NULL, NULL, e);
}

static int add_program(struct gather *g, const uint8_t *id, size_t len, const char *name,
		       struct err *e)
{
	cleanup_free char *from = NULL;
	char hex[BUILDID_HEX_MAX], path[8 + BUILDID_HEX_MAX];
	bool found = false;
	int ret = 0;

	buildid_hex(hex, id, len);
	snprintf(path, sizeof(path), "dso/%s", hex);
	if (archive_profile_has(&g->list, path))
		return 0;
	if (g->cache && asprintf(&from, "%s/.build-id/%.2s/%s/%s", g->cache, hex, hex + 2,
				 buildid_file(name)) < 0) {
		from = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	if (from)
		ret = add_cached(g, "dso", path, from, &found, e);
	g->facts->missing += !found;
	return ret;
}

static int add_needed(struct gather *g, const struct perfdata *p, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < p->nbuild_ids && !ret; i++) {
		const struct perfdata_build_id_entry *b = &p->build_ids[i];

		if (!b->kernel)
			ret = add_program(g, b->id, b->len, b->name, e);
		else if (!strcmp(b->name, PERFDATA_KERNEL_DSO))
			ret = add_kernel(g, b, e);
	}
	return ret;
}

/* -- packing ------------------------------------------------------------------------------------- */

static int pack(struct gather *g, const struct archive_request *r, struct err *e)
{
	struct archive *a = NULL;
	struct list *l = &g->list;
	int ret = archive_create(&a, r->fd, r->form, e);

	qsort(l->entry, l->n, sizeof(*l->entry), compare_entries);
	ret = ret ? ret : archive_add_dir(a, r->name, e);
	for (size_t i = 0; i < l->n && !ret; i++) {
		const struct entry *x = &l->entry[i];
		cleanup_free char *path = NULL;

		if (asprintf(&path, "%s/%s", r->name, x->path) < 0) {
			path = NULL;
			ret = err_set(e, ENOMEM, "out of memory");
		} else if (x->dir) {
			ret = archive_add_dir(a, path, e);
		} else {
			ret = archive_add_file(a, path, x->from, e);
			g->facts->files++;
			g->facts->bytes += x->size;
		}
	}
	ret = ret ? ret : archive_end(a, e);
	archive_destroy(a);
	return ret;
}

int archive_profile(const struct archive_request *r, struct archive_facts *facts, struct err *e)
{
	cleanup_free char *cache = r->buildid_dir ? strdup(r->buildid_dir) : buildid_default_dir();
	struct gather g = { .facts = facts, .cache = cache };
	struct perfdata *p = NULL;
	struct stat st = { 0 };
	int ret;

	*facts = (struct archive_facts){ 0 };
	ret = perfdata_open(&p, r->input, e);
	if (ret)
		return ret;
	facts->partial = p->partial;
	if (p->dir)
		ret = scan(&g.list, r->input, "", 0, e);
	else if (stat(r->input, &st) < 0)
		ret = err_set(e, errno, "%s: %s", r->input, strerror(errno));
	else
		ret = archive_profile_add(&g.list, "data", r->input, &st, e);
	ret = ret ? ret : add_needed(&g, p, e);
	ret = ret ? ret : pack(&g, r, e);
	list_deinit(&g.list);
	perfdata_close(p);
	return ret;
}
