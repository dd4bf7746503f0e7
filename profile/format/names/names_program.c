/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the host's files with the symbols of a profile's programs.
 */
#include "profile/format/names/private.h"

#include "base/cleanup.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/files/elf_id.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SYSTEM_DEBUG "/usr/lib/debug"

int names_open_file(struct file_map *m, const char *path, size_t max, struct err *e)
{
	struct err why = { 0 };
	int ret = file_map_open(m, path, max, &why);

	if (!e->code && (ret == -EIO || ret == -ENOMEM || ret == -EMFILE || ret == -ENFILE))
		*e = why;
	return ret;
}

bool names_read_program(struct names_dso *d, const uint8_t *bytes, size_t len)
{
	struct file_bytes file = { bytes, len };
	struct file_source src = filepiece_source_of_bytes(&file);
	struct userelf_names names = { 0 };
	struct userelf *u = calloc(1, sizeof(*u));

	if (!u || userelf_open(u, d->name, &src, NULL) < 0) {
		free(u);
		return false;
	}
	symtab_destroy(d->symbols);
	d->symbols = NULL;
	(void)userelf_symbols(u, &d->symbols, &names, NULL);
	d->stripped = !names.from_symtab;
	u->src = (struct file_source){ 0 };
	free(d->elf);
	d->elf = u;
	return true;
}

/* -- its file ----------------------------------------------------------------------------- */

/* Loads a file, which may have symbols only and segments without bytes (elfsynth.h). */
static bool load_program(struct names_dso *d, const char *path, struct err *unread)
{
	struct file_map m = { 0 };
	bool read;

	if (names_open_file(&m, path, NAMES_MAX_ELF, unread) < 0)
		return false;
	read = names_read_program(d, m.data, m.len);
	file_map_close(&m);
	if (read) {
		free(d->path);
		d->path = strdup(path);
	}
	return read;
}

/*
 * Returns true if the file at the mapped path is the one that was mapped: it has the same inode,
 * which has not changed since the profile was written. perf gives jitted code the generation 1, and
 * 0 to mappings it reads from /proc/PID/maps; these numbers prove nothing. File systems without
 * FS_IOC_GETVERSION have no generation.
 */
static bool is_mapped_inode(const struct names_dso *d, const struct perfdata *p)
{
	cleanup_close int fd = open(d->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	unsigned int generation = 0;
	struct stat st;

	if (!d->inode.ino || fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (st.st_ino != d->inode.ino || major(st.st_dev) != d->inode.major ||
	    minor(st.st_dev) != d->inode.minor || st.st_ctime > p->changed_s)
		return false;
	return d->inode.generation <= 1 || ioctl(fd, FS_IOC_GETVERSION, &generation) < 0 ||
	       generation == (unsigned int)d->inode.generation;
}

/*
 * Returns true if the host's file is proven to be the mapped one. perf's profiles are those of a
 * host, possibly this one.
 */
static bool is_same_file(const struct names_dso *d, const struct perfdata *p)
{
	uint8_t id[ELF_ID_MAX];

	if (p->ours || d->name[0] != '/')
		return false;
	if (d->id_len)
		return elf_id_of_path(d->name, id) == d->id_len &&
		       !memcmp(id, d->build_id, d->id_len);
	return is_mapped_inode(d, p);
}

/* -- its debug file ----------------------------------------------------------------------- */

static bool is_linkage(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && !strcmp(name + len - 4, "@plt");
}

/* Adds the symbols of t to `to`; with linkage, only those of the linkage table (@plt). */
static int add_symbols(struct symtab *to, const struct symtab *t, bool linkage)
{
	int ret = 0;

	for (size_t i = 0; i < symtab_count(t) && !ret; i++) {
		const struct symbol *s = symtab_at(t, i);

		if (linkage && !is_linkage(s->name))
			continue;
		(void)symtab_set_file(to, s->file);
		ret = symtab_add(to, s->addr, s->size, s->type, s->name);
		ret = ret == -ENOMEM ? ret : 0;
	}
	return ret;
}

/* Replaces the symbols by those of the debug file, which lacks only the linkage table's. */
static void take_debug_symbols(struct names_dso *d, struct symtab *debug)
{
	struct symtab *both = d->symbols ? symtab_create() : NULL;

	if (!both) {
		symtab_destroy(d->symbols);
		d->symbols = debug;
		return;
	}
	if (add_symbols(both, debug, false) || add_symbols(both, d->symbols, true) ||
	    symtab_freeze(both, NULL)) {
		symtab_destroy(both);
		both = NULL;
	}
	if (both) {
		symtab_destroy(d->symbols);
		d->symbols = both;
	}
	symtab_destroy(debug);
}

static bool load_debug(struct names_dso *d, const char *path, struct err *unread)
{
	struct file_map m = { 0 };
	struct userelf_names names = { 0 };
	struct symtab *symbols = NULL;
	struct userelf *u = calloc(1, sizeof(*u));
	struct file_bytes bytes;
	struct file_source src;

	if (!u || names_open_file(&m, path, NAMES_MAX_ELF, unread) < 0) {
		free(u);
		return false;
	}
	bytes = (struct file_bytes){ m.data, m.len };
	src = filepiece_source_of_bytes(&bytes);
	if (userelf_open(u, path, &src, NULL) == 0 && u->build_id_len == d->id_len &&
	    !memcmp(u->build_id, d->build_id, d->id_len) &&
	    userelf_symbols(u, &symbols, &names, NULL) == 0 && !names.from_symtab) {
		symtab_destroy(symbols);
		symbols = NULL;
	}
	free(u);
	file_map_close(&m);
	if (!symbols)
		return false;
	d->stripped = false;
	take_debug_symbols(d, symbols);
	return true;
}

/*
 * Searches for the stripped symbols. The segments remain the program's own, since a debug file has
 * no valid file offsets.
 */
static void find_debug(struct names_from_profile *n, struct names_dso *d, const char *hex,
		       struct err *unread)
{
	cleanup_free char *cached = NULL, *system = NULL;

	if (n->buildid_dir &&
	    asprintf(&cached, "%s/.build-id/%.2s/%s/debug", n->buildid_dir, hex, hex + 2) > 0 &&
	    load_debug(d, cached, unread))
		return;
	if (asprintf(&system, SYSTEM_DEBUG "/.build-id/%.2s/%s.debug", hex, hex + 2) > 0)
		(void)load_debug(d, system, unread);
}

/* -- all of it ---------------------------------------------------------------------------- */

void names_load_dso(const struct names *names, struct names_dso *d)
{
	struct names_from_profile *n = names->from;
	cleanup_free char *own = NULL, *cached = NULL;
	struct err unread = { 0 };
	char hex[BUILDID_HEX_MAX];
	bool loaded = false;

	d->tried = true;
	buildid_hex(hex, d->build_id, d->id_len);
	/* A program of an earlier kernel may be looked up after a later kernel has begun. */
	for (const struct names_from_profile *f = n; f && d->id_len && !loaded; f = f->before) {
		free(take_ptr(own));
		if (f->dir && asprintf(&own, "%s/dso/%s", f->dir, hex) > 0)
			loaded = load_program(d, own, &unread);
	}
	if (d->id_len >= 2 && !d->symbols && n->buildid_dir &&
	    asprintf(&cached, "%s/.build-id/%.2s/%s/%s", n->buildid_dir, hex, hex + 2,
		     buildid_file(d->name)) > 0)
		loaded |= load_program(d, cached, &unread);
	if (!d->symbols && is_same_file(d, n->profile))
		loaded |= load_program(d, d->name, &unread);
	if (loaded && d->stripped && d->id_len >= 2)
		find_debug(n, d, hex, &unread);
	if (!d->symbols && unread.code && !n->unread.code)
		n->unread = unread;
}

int names_read_error(const struct names *n, struct err *e)
{
	for (const struct names_from_profile *f = n->from; f; f = f->before)
		if (f->unread.code) {
			*e = f->unread;
			return -f->unread.code;
		}
	return 0;
}
