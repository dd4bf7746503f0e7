/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/files/debuginfo.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/files/buildid_map.h"
#include "profile/format/files/debuginfod.h"
#include "symbolizer/core/elf64.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SYSTEM_DIR "/usr/lib/debug"

struct debuginfo {
	char *path;
	struct file_map file, alt;
	struct lines *lines;
	uint64_t text, text_end;
	char note[256];
};

/* A search for one id. If `found` alone is wanted (for an alternate file), d is NULL. */
struct debuginfo_search {
	const struct debuginfo_places *places;
	const uint8_t *id;
	size_t len;
	char hex[BUILDID_HEX_MAX];
	struct debuginfo *d; /* NULL: lines are not needed */
	char *found;
	struct buf why; /* "; "-separated */
};

static void because(struct debuginfo_search *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void because(struct debuginfo_search *s, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_printf(&s->why, "%s%s", s->why.len ? "; " : "", text);
}

static char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Returns NULL if memory runs out; the caller then treats the file as missing. */
static char *format(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return s;
}

/* -- one file ----------------------------------------------------------------------------- */

static void find_text(struct debuginfo *d)
{
	uint64_t half = 0;
	struct elf64 f;

	if (elf64_open(&f, d->path, d->file.data, d->file.len, NULL) < 0)
		return;
	for (uint32_t i = 0; i < f.phnum; i++) {
		Elf64_Phdr p = elf64_phdr(&f, i);

		if (p.p_type == PT_LOAD && (p.p_flags & PF_X))
			half |= p.p_vaddr & (1ull << 63);
	}
	d->text = UINT64_MAX;
	for (uint32_t i = 0; i < f.phnum; i++) {
		Elf64_Phdr p = elf64_phdr(&f, i);
		uint64_t end;

		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X) || (p.p_vaddr & half) != half)
			continue;
		if (p.p_vaddr < d->text)
			d->text = p.p_vaddr;
		if (__builtin_add_overflow(p.p_vaddr, p.p_memsz, &end))
			end = UINT64_MAX;
		if (end > d->text_end)
			d->text_end = end;
	}
	if (d->text == UINT64_MAX)
		d->text = 0;
}

/* Opens a file whose id was checked, for its source lines. */
static int debuginfo_take(struct debuginfo_search *s, const char *path, struct err *e)
{
	struct debuginfo *d = s->d;
	int ret = 0;

	if (d) {
		ret = file_map_open(&d->file, path, DEBUGINFO_MAX_FILE, e);
		if (ret == 0)
			ret = lines_open(d->file.data, d->file.len, path, &d->lines, e);
		if (ret)
			file_map_close(&d->file);
	}
	if (ret == 0 && !(s->found = strdup(path)))
		ret = err_set(e, ENOMEM, "%s: out of memory", path);
	return ret;
}

/* Returns 0, -ENOENT if the file does not exist, or -ESTALE if it has another id or none. */
static int try_file(struct debuginfo_search *s, const char *path, struct err *e)
{
	uint8_t id[ELF_ID_MAX];
	char hex[BUILDID_HEX_MAX];
	int n = elf_id_of_path(path, id);

	if (n == -ENOEXEC || n == -EINVAL)
		return err_set(e, EINVAL, "%s: not a 64-bit ELF file, or a damaged one", path);
	if (n < 0)
		return err_set(e, -n, "%s: cannot open: %s", path, strerror(-n));
	if ((size_t)n == s->len && !memcmp(id, s->id, s->len))
		return debuginfo_take(s, path, e);
	buildid_hex(hex, id, (size_t)n);
	return err_set(e, ESTALE, "%s: its build id is %s, expected %s", path, n ? hex : "missing",
		       s->hex);
}

/*
 * Tries a place where the file may be; a missing file is not mentioned in the message. Frees path.
 */
static bool try_place(struct debuginfo_search *s, char *path)
{
	struct err e = { 0 };
	int ret = path ? try_file(s, path, &e) : -ENOENT;

	if (ret && ret != -ENOENT && ret != -ENOTDIR)
		because(s, "%s", e.text);
	/* -ENOENT also means that the file exists but has no debug information. */
	if (ret == -ENOENT && e.code && path && access(path, F_OK) == 0)
		because(s, "%s", e.text);
	free(path);
	return ret == 0;
}

/* -- places --------------------------------------------------------------------------------- */

/* Tries the layouts that distributions have below /usr/lib/debug. */
static bool try_debug_tree(struct debuginfo_search *s, const char *root)
{
	const char *release = s->places->release;

	if (try_place(s, format("%s/.build-id/%.2s/%s.debug", root, s->hex, s->hex + 2)))
		return true;
	if (!release || !*release || strchr(release, '/'))
		return false;
	return try_place(s, format("%s/boot/vmlinux-%s", root, release)) ||
	       try_place(s, format("%s/lib/modules/%s/vmlinux", root, release));
}

/*
 * Tries each file right in the directory. Only files with a kernel's name are mentioned in the
 * message.
 */
static bool try_files_of(struct debuginfo_search *s, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *x;
	bool found = false;

	if (!d) {
		because(s, "%s: cannot read: %s", dir, strerror(errno));
		return false;
	}
	for (unsigned int n = 0; !found && n < DEBUGINFO_MAX_DIR && (x = readdir(d)); n++) {
		cleanup_free char *path = format("%s/%s", dir, x->d_name);
		uint8_t id[ELF_ID_MAX];
		int len;

		if (!path || x->d_name[0] == '.' || x->d_type == DT_DIR)
			continue;
		len = elf_id_of_path(path, id);
		if (((size_t)len == s->len && len > 0 && !memcmp(id, s->id, s->len)) ||
		    !strncmp(x->d_name, "vmlinux", 7))
			found = try_place(s, take_ptr(path));
	}
	closedir(d);
	return found;
}

/* Returns 1 if found, 0 if not, or -errno. */
static int try_given(struct debuginfo_search *s, struct err *e)
{
	const char *given = s->places->given;
	cleanup_free char *tree = NULL;
	struct stat st;
	int ret;

	if (!given)
		return 0;
	if (stat(given, &st) < 0)
		return err_set(e, errno, "--debuginfo %s: %s", given, strerror(errno));
	if (!S_ISDIR(st.st_mode)) {
		/* The search for the alternate file: the given file is not that one. */
		if (!s->d)
			return 0;
		ret = try_file(s, given, e);
		return ret ? ret : 1;
	}
	tree = format("%s" SYSTEM_DIR, given);
	if (try_debug_tree(s, given) || (tree && try_debug_tree(s, tree)) || try_files_of(s, given))
		return 1;
	because(s, "not in %s", given);
	return 0;
}

static int try_map(struct debuginfo_search *s, struct err *e)
{
	const char *file = s->places->map_file, *path;
	struct buildid_map map = { 0 };
	struct file_map m = { 0 };
	bool found = false;
	int ret;

	if (!file)
		return 0;
	ret = file_map_open(&m, file, BUILDID_MAP_MAX_FILE, e);
	if (ret == 0)
		ret = buildid_map_parse(&map, file, m.data, m.len, e);
	for (size_t i = 0; !ret && !found; i++) {
		struct err why = { 0 };

		path = buildid_map_find(&map, s->id, s->len, i);
		if (!path) {
			because(s, "%s has %s file of this id", file, i ? "no usable" : "no");
			break;
		}
		found = try_file(s, path, &why) == 0;
		if (!found)
			because(s, "%s", why.text);
	}
	buildid_map_deinit(&map);
	file_map_close(&m);
	return ret ? ret : found;
}

/* "elf" in the cache is the guest's image, which usually has no debug information. */
static bool try_cache(struct debuginfo_search *s)
{
	cleanup_free char *dir =
		s->places->cache_dir ? strdup(s->places->cache_dir) : buildid_default_dir();
	static const char *const name[] = { "debug", "elf" };

	for (size_t i = 0; dir && i < ARRAY_SIZE(name); i++) {
		cleanup_free char *path =
			format("%s/.build-id/%.2s/%s/%s", dir, s->hex, s->hex + 2, name[i]);

		if (path && try_file(s, path, NULL) == 0)
			return true;
	}
	return false;
}

static bool try_debuginfod(struct debuginfo_search *s)
{
	struct err e = { 0 };
	char *path;

	if (debuginfod_fetch(s->id, s->len, s->places->progress, s->places->progress_ctx, &path,
			     &e) < 0) {
		because(s, "%s", e.text);
		return false;
	}
	return try_place(s, path);
}

static int debuginfo_search(struct debuginfo_search *s, struct err *e)
{
	int ret;

	buildid_hex(s->hex, s->id, s->len);
	ret = try_given(s, e);
	if (ret == 0)
		ret = try_map(s, e);
	if (ret == 0 && s->d)
		ret = try_cache(s);
	if (ret == 0) {
		ret = try_debug_tree(s, SYSTEM_DIR);
		if (!ret)
			because(s, "not in " SYSTEM_DIR);
	}
	if (ret == 0)
		ret = try_debuginfod(s);
	if (ret == 0)
		return err_set(e, ENOENT, "no debug information for build id %s: %.*s", s->hex,
			       (int)s->why.len, (const char *)s->why.data);
	return ret < 0 ? ret : 0;
}

/* -- the second file that dwz makes ------------------------------------------------------------ */

static void find_alt(struct debuginfo *d, const struct debuginfo_places *places)
{
	uint8_t id[LINES_MAX_ALT_ID];
	const char *name = NULL;
	struct debuginfo_search s = { .places = places, .id = id };
	struct err e = { 0 };
	char *slash;

	s.len = lines_alt(d->lines, id, &name);
	if (!name)
		return;
	if (s.len == 0 || s.len > ELF_ID_MAX) {
		snprintf(d->note, sizeof(d->note), "%s: names a second file without a build id",
			 d->path);
		return;
	}
	buildid_hex(s.hex, id, s.len);
	/* The name may be relative to the directory of the referring file. */
	slash = strrchr(d->path, '/');
	if (!try_place(&s, *name == '/' || !slash
				   ? strdup(name)
				   : format("%.*s/%s", (int)(slash - d->path), d->path, name)))
		(void)debuginfo_search(&s, &e);
	if (!s.found || file_map_open(&d->alt, s.found, DEBUGINFO_MAX_FILE, &e) < 0 ||
	    lines_set_alt(d->lines, d->alt.data, d->alt.len, s.found, &e) < 0)
		snprintf(d->note, sizeof(d->note),
			 "%.100s: some names are missing, they are in %.60s (build id %s)", d->path,
			 name, s.hex);
	free(s.found);
	buf_deinit(&s.why);
}

/* -- interface ----------------------------------------------------------------------------------- */

int debuginfo_open(struct debuginfo **out, const struct debuginfo_places *places, const uint8_t *id,
		   size_t len, struct err *e)
{
	struct debuginfo *d = calloc(1, sizeof(*d));
	struct debuginfo_search s = { .places = places, .id = id, .len = len, .d = d };
	int ret;

	if (!d)
		return err_nomem(e);
	if (len == 0 || len > ELF_ID_MAX) {
		free(d);
		return err_set(e, ENOENT, "cannot search for debug information without a build id");
	}
	ret = debuginfo_search(&s, e);
	buf_deinit(&s.why);
	if (ret) {
		debuginfo_close(d);
		return ret;
	}
	d->path = s.found;
	find_text(d);
	find_alt(d, places);
	*out = d;
	return 0;
}

void debuginfo_close(struct debuginfo *d)
{
	if (!d)
		return;
	lines_close(d->lines);
	file_map_close(&d->file);
	file_map_close(&d->alt);
	free(d->path);
	free(d);
}

struct lines *debuginfo_lines(struct debuginfo *d)
{
	return d->lines;
}

const char *debuginfo_path(const struct debuginfo *d)
{
	return d->path;
}

const char *debuginfo_note(const struct debuginfo *d)
{
	return d->note;
}

uint64_t debuginfo_text(const struct debuginfo *d)
{
	return d->text;
}

uint64_t debuginfo_text_end(const struct debuginfo *d)
{
	return d->text_end;
}
