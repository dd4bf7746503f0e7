/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/archive.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define BLOCK 512u
#define CHUNK (256u << 10)
#define ZSTD_LEVEL 9
#define GZIP_LEVEL 6
#define SIZE_MAX_OCTAL 077777777777ull /* 11 digits */

struct archive {
	int fd;
	enum archive_form form;
	ZSTD_CCtx *zstd;
	z_stream gzip;
	bool gzip_open;
	uint8_t in[CHUNK], out[CHUNK];
};

/* -- compressing ----------------------------------------------------------------------------- */

static int put_out(struct archive *a, size_t len, struct err *e)
{
	int ret = file_write_all(a->fd, a->out, len);

	return ret ? err_set(e, -ret, "cannot write the archive: %s", strerror(-ret)) : 0;
}

static int put_zstd(struct archive *a, const void *data, size_t len, bool last, struct err *e)
{
	ZSTD_inBuffer in = { data, len, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out = { a->out, sizeof(a->out), 0 };
		int ret;

		left = ZSTD_compressStream2(a->zstd, &out, &in,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return err_set(e, EIO, "zstd: %s", ZSTD_getErrorName(left));
		ret = put_out(a, out.pos, e);
		if (ret)
			return ret;
	} while (in.pos < in.size || (last && left));
	return 0;
}

static int put_gzip(struct archive *a, const void *data, size_t len, bool last, struct err *e)
{
	int status;

	a->gzip.next_in = (Bytef *)(uintptr_t)data;
	a->gzip.avail_in = (uInt)len;
	do {
		int ret;

		a->gzip.next_out = a->out;
		a->gzip.avail_out = sizeof(a->out);
		status = deflate(&a->gzip, last ? Z_FINISH : Z_NO_FLUSH);
		if (status == Z_STREAM_ERROR)
			return err_set(e, EIO, "zlib: deflate failed");
		ret = put_out(a, sizeof(a->out) - a->gzip.avail_out, e);
		if (ret)
			return ret;
	} while (a->gzip.avail_out == 0 || (last && status != Z_STREAM_END));
	return 0;
}

/* Writes len bytes, at most CHUNK. */
static int archive_put(struct archive *a, const void *data, size_t len, bool last, struct err *e)
{
	int ret;

	if (a->form == ARCHIVE_ZSTD)
		return put_zstd(a, data, len, last, e);
	if (a->form == ARCHIVE_GZIP)
		return put_gzip(a, data, len, last, e);
	ret = file_write_all(a->fd, data, len);
	return ret ? err_set(e, -ret, "cannot write the archive: %s", strerror(-ret)) : 0;
}

static void archive_destroy(struct archive *a)
{
	if (!a)
		return;
	ZSTD_freeCCtx(a->zstd);
	if (a->gzip_open)
		deflateEnd(&a->gzip);
	free(a);
}

/* Creates an archive that writes to fd, which is borrowed. */
static int archive_create(struct archive **out, int fd, enum archive_form form, struct err *e)
{
	struct archive *a = calloc(1, sizeof(*a));
	bool ok = a != NULL;

	if (ok) {
		a->fd = fd;
		a->form = form;
	}
	if (ok && form == ARCHIVE_ZSTD) {
		a->zstd = ZSTD_createCCtx();
		ok = a->zstd &&
		     !ZSTD_isError(ZSTD_CCtx_setParameter(a->zstd, ZSTD_c_compressionLevel,
							  ZSTD_LEVEL)) &&
		     !ZSTD_isError(ZSTD_CCtx_setParameter(a->zstd, ZSTD_c_checksumFlag, 1));
	} else if (ok && form == ARCHIVE_GZIP) {
		/* 15 + 16: largest window, with a gzip header; zlib leaves its time 0. */
		ok = deflateInit2(&a->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8,
				  Z_DEFAULT_STRATEGY) == Z_OK;
		a->gzip_open = ok;
	}
	if (!ok) {
		archive_destroy(a);
		return err_set(e, ENOMEM, "out of memory for the archive");
	}
	*out = a;
	return 0;
}

/* -- headers ---------------------------------------------------------------------------------- */

/* Offsets of POSIX's "ustar Header Block". */
enum {
	OFF_NAME = 0,
	OFF_MODE = 100,
	OFF_UID = 108,
	OFF_GID = 116,
	OFF_SIZE = 124,
	OFF_MTIME = 136,
	OFF_SUM = 148,
	OFF_TYPE = 156,
	OFF_MAGIC = 257,
	NAME_LEN = 100
};

static void put_octal(uint8_t *field, unsigned int digits, uint64_t v)
{
	for (unsigned int i = digits; i-- > 0; v >>= 3)
		field[i] = (uint8_t)('0' + (v & 7));
}

static int put_header(struct archive *a, const char *path, char type, uint64_t size, struct err *e)
{
	uint8_t h[BLOCK] = { 0 };
	unsigned int sum = 0;
	size_t len = strlen(path);

	memcpy(h + OFF_NAME, path, len < NAME_LEN ? len : NAME_LEN);
	put_octal(h + OFF_MODE, 7, type == '5' ? 0755 : 0644);
	put_octal(h + OFF_UID, 7, 0);
	put_octal(h + OFF_GID, 7, 0);
	put_octal(h + OFF_SIZE, 11, size <= SIZE_MAX_OCTAL ? size : 0);
	put_octal(h + OFF_MTIME, 11, 0);
	h[OFF_TYPE] = (uint8_t)type;
	memcpy(h + OFF_MAGIC, "ustar\00000", 8);
	memset(h + OFF_SUM, ' ', 8);
	for (unsigned int i = 0; i < BLOCK; i++)
		sum += h[i];
	put_octal(h + OFF_SUM, 6, sum);
	h[OFF_SUM + 6] = 0;
	return archive_put(a, h, BLOCK, false, e);
}

static int put_padding(struct archive *a, uint64_t size, struct err *e)
{
	static const uint8_t zero[BLOCK];
	size_t pad = (size_t)(-size & (BLOCK - 1));

	return pad ? archive_put(a, zero, pad, false, e) : 0;
}

/* Writes "LEN key=value\n", where LEN includes itself. */
static size_t put_record(char *dst, size_t size, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, len = rest;

	for (;;) {
		size_t with = rest + (size_t)snprintf(NULL, 0, "%zu", len);

		if (with == len)
			break;
		len = with;
	}
	return (size_t)snprintf(dst, size, "%zu %s=%s\n", len, key, value);
}

/* Writes a header; fields that do not fit go into an extended header before it. */
static int put_entry(struct archive *a, const char *path, char type, uint64_t size, struct err *e)
{
	char more[ARCHIVE_MAX_PATH + 128], number[24];
	size_t n = 0;
	int ret;

	if (strlen(path) >= ARCHIVE_MAX_PATH)
		return err_set(e, ENAMETOOLONG, "%.100s...: path too long", path);
	if (strlen(path) > NAME_LEN)
		n += put_record(more, sizeof(more), "path", path);
	if (size > SIZE_MAX_OCTAL) {
		snprintf(number, sizeof(number), "%" PRIu64, size);
		n += put_record(more + n, sizeof(more) - n, "size", number);
	}
	if (n) {
		ret = put_header(a, "PaxHeaders/entry", 'x', n, e);
		if (ret)
			return ret;
		ret = archive_put(a, more, n, false, e);
		if (ret)
			return ret;
		ret = put_padding(a, n, e);
		if (ret)
			return ret;
	}
	return put_header(a, path, type, size, e);
}

/* -- entries ----------------------------------------------------------------------------------- */

/* Adds a directory. Paths are relative, without a '/' at the end; parents come first. */
static int archive_add_dir(struct archive *a, const char *path, struct err *e)
{
	char with_slash[ARCHIVE_MAX_PATH + 2];

	snprintf(with_slash, sizeof(with_slash), "%s/", path);
	return put_entry(a, with_slash, '5', 0, e);
}

static int copy_file(struct archive *a, int fd, const char *from, uint64_t size, struct err *e)
{
	uint64_t left = size;

	while (left) {
		ssize_t n = read(fd, a->in, left < sizeof(a->in) ? (size_t)left : sizeof(a->in));
		int ret;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, errno, "%s: cannot read: %s", from, strerror(errno));
		if (n == 0)
			return err_set(e, EIO, "%s: became shorter while it was read", from);
		ret = archive_put(a, a->in, (size_t)n, false, e);
		if (ret)
			return ret;
		left -= (uint64_t)n;
	}
	return put_padding(a, size, e);
}

/* Adds the regular file `from`, which must not shrink meanwhile; from NULL adds an empty one. */
static int archive_add_file(struct archive *a, const char *path, const char *from, struct err *e)
{
	cleanup_close int fd = -1;
	struct stat st;
	int ret;

	if (!from)
		return put_entry(a, path, '0', 0, e);
	fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: cannot open: %s", from, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, EINVAL, "%s: not a regular file", from);
	ret = put_entry(a, path, '0', (uint64_t)st.st_size, e);
	return ret ? ret : copy_file(a, fd, from, (uint64_t)st.st_size, e);
}

/* Writes the end of the archive. Nothing may be added afterwards. */
static int archive_end(struct archive *a, struct err *e)
{
	static const uint8_t zero[2 * BLOCK];

	return archive_put(a, zero, sizeof(zero), true, e);
}

/* -- a profile as an archive ------------------------------------------------------------------ */

struct archive_file_entry {
	char *path; /* in the archive, below its directory */
	char *from; /* NULL: an empty file, or a directory */
	uint64_t size;
	bool dir;
};

struct archive_list {
	struct archive_file_entry *entry;
	size_t n, cap;
};

static void list_deinit(struct archive_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->entry[i].path);
		free(l->entry[i].from);
	}
	free(l->entry);
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct archive_file_entry *)a)->path,
		      ((const struct archive_file_entry *)b)->path);
}

static bool archive_profile_has(const struct archive_list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->entry[i].path, path))
			return true;
	return false;
}

static int archive_profile_add(struct archive_list *l, const char *path, const char *from,
			       const struct stat *st, struct err *e)
{
	struct archive_file_entry x = { .dir = st && S_ISDIR(st->st_mode) };

	if (l->n == ARCHIVE_MAX_ENTRIES)
		return err_set(e, E2BIG, "%s: more than %u files in the profile", path,
			       ARCHIVE_MAX_ENTRIES);
	if (ARRAY_ROOM(l->entry, l->n, l->cap))
		return err_nomem(e);
	x.path = strdup(path);
	x.from = from && !x.dir ? strdup(from) : NULL;
	x.size = st && !x.dir ? (uint64_t)st->st_size : 0;
	if (!x.path || (from && !x.dir && !x.from)) {
		free(x.path);
		free(x.from);
		return err_nomem(e);
	}
	l->entry[l->n++] = x;
	return 0;
}

static int add_dir(struct archive_list *l, const char *path, struct err *e)
{
	const struct stat dir = { .st_mode = S_IFDIR };

	return archive_profile_has(l, path) ? 0 : archive_profile_add(l, path, NULL, &dir, e);
}

/* -- what the profile has --------------------------------------------------------------------- */

static int scan(struct archive_list *l, const char *root, const char *below, unsigned int depth,
		struct err *e);

/* Adds a file or directory to the list; anything else does not belong to a profile. */
static int scan_one(struct archive_list *l, const char *root, const char *below, const char *name,
		    unsigned int depth, struct err *e)
{
	cleanup_free char *path = NULL, *from = NULL;
	struct stat st;
	int ret;

	if (asprintf(&path, "%s%s%s", below, *below ? "/" : "", name) < 0) {
		path = NULL;
		return err_nomem(e);
	}
	if (asprintf(&from, "%s/%s", root, path) < 0) {
		from = NULL;
		return err_nomem(e);
	}
	if (lstat(from, &st) < 0)
		return err_set(e, errno, "%s: %s", from, strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	ret = archive_profile_add(l, path, from, &st, e);
	return ret || !S_ISDIR(st.st_mode) ? ret : scan(l, root, path, depth + 1, e);
}

static int scan(struct archive_list *l, const char *root, const char *below, unsigned int depth,
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
		return err_nomem(e);
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
	struct archive_list list;
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
	if (ret)
		return ret;
	ret = archive_profile_add(&g->list, path, from, &st, e);
	if (ret)
		return ret;
	g->facts->from_cache++;
	*found = true;
	return 0;
}

static int add_kernel(struct gather *g, const struct perfdata *p, struct err *e)
{
	cleanup_free char *from = NULL;
	char hex[BUILDID_HEX_MAX];
	bool found = false;
	int ret = 0;

	if (archive_profile_has(&g->list, "kcore_dir/kallsyms"))
		return 0;
	buildid_hex(hex, p->kernel_id, p->kernel_id_len);
	if (g->cache &&
	    asprintf(&from, "%s/%s/%s/kallsyms", g->cache, PERFDATA_KERNEL_DSO, hex) < 0) {
		from = NULL;
		return err_nomem(e);
	}
	if (from)
		ret = add_cached(g, "kcore_dir", "kcore_dir/kallsyms", from, &found, e);
	g->facts->kernel_missing |= !found;
	/* perf requires this file. */
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
		return err_nomem(e);
	}
	if (from)
		ret = add_cached(g, "dso", path, from, &found, e);
	g->facts->missing += !found;
	return ret;
}

static int add_needed(struct gather *g, const struct perfdata *p, struct err *e)
{
	int ret = p->kernel_id_len ? add_kernel(g, p, e) : 0;

	for (size_t i = 0; i < p->nbuild_ids && !ret; i++) {
		const struct perfdata_build_id_entry *b = &p->build_ids[i];

		if (!b->kernel && b->owner == PERFDATA_RECORDED)
			ret = add_program(g, b->id, b->len, b->name, e);
	}
	return ret;
}

/* -- packing ------------------------------------------------------------------------------------- */

static int pack(struct gather *g, const struct archive_request *r, struct err *e)
{
	struct archive *a = NULL;
	struct archive_list *l = &g->list;
	int ret = archive_create(&a, r->fd, r->form, e);

	qsort(l->entry, l->n, sizeof(*l->entry), compare_entries);
	ret = ret ? ret : archive_add_dir(a, r->name, e);
	for (size_t i = 0; i < l->n && !ret; i++) {
		const struct archive_file_entry *x = &l->entry[i];
		cleanup_free char *path = NULL;

		if (asprintf(&path, "%s/%s", r->name, x->path) < 0) {
			path = NULL;
			ret = err_nomem(e);
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
