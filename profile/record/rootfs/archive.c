/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/rootfs/archive.h"

#include "base/cleanup.h"
#include "base/library.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The functions of the library that are used. */
/* clang-format off */
#define FUNCTIONS(X) \
	X(archive_entry_filetype) \
	X(archive_entry_gid) \
	X(archive_entry_hardlink) \
	X(archive_entry_hardlink_utf8) \
	X(archive_entry_mtime) \
	X(archive_entry_pathname) \
	X(archive_entry_pathname_utf8) \
	X(archive_entry_perm) \
	X(archive_entry_rdevmajor) \
	X(archive_entry_rdevminor) \
	X(archive_entry_size) \
	X(archive_entry_size_is_set) \
	X(archive_entry_symlink) \
	X(archive_entry_symlink_utf8) \
	X(archive_entry_uid) \
	X(archive_error_string) \
	X(archive_format) \
	X(archive_read_data) \
	X(archive_read_free) \
	X(archive_read_new) \
	X(archive_read_next_header) \
	X(archive_read_open_filename) \
	X(archive_read_support_filter_bzip2) \
	X(archive_read_support_filter_compress) \
	X(archive_read_support_filter_gzip) \
	X(archive_read_support_filter_lz4) \
	X(archive_read_support_filter_lzma) \
	X(archive_read_support_filter_xz) \
	X(archive_read_support_filter_zstd) \
	X(archive_read_support_format_cpio) \
	X(archive_read_support_format_tar)
/* clang-format on */

#define READ_BLOCK (128u << 10)
#define COPY_LEN (128u << 10)

static const char *const function_names[] = { FUNCTIONS(LIBRARY_NAME) };
static struct {
	FUNCTIONS(LIBRARY_MEMBER)
} la; /* used by the main thread only */

/* A file to which hard links refer. */
struct archive_target {
	uint32_t ino; /* 0: not added yet */
	char name[];
};

struct archive_reader {
	struct rootfs *r;
	const char *path;
	struct archive *a;
	void *targets; /* tsearch() tree of struct archive_target */
};

static int archive_compare(const void *a, const void *b)
{
	const struct archive_target *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int open_archive(struct archive_reader *x, struct err *e)
{
	const struct library want = {
		.soname = "libarchive.so.13",
		.what = "archives can't be read",
		.hint = "install libarchive13, or give a directory",
		.names = function_names,
		.nnames = ARRAY_SIZE(function_names),
	};
	int ret = library_load(&want, (void **)&la, e);

	if (ret)
		return ret;
	x->a = la.archive_read_new();
	if (!x->a)
		return err_nomem(e);
	la.archive_read_support_filter_gzip(x->a);
	la.archive_read_support_filter_bzip2(x->a);
	la.archive_read_support_filter_xz(x->a);
	la.archive_read_support_filter_lzma(x->a);
	la.archive_read_support_filter_zstd(x->a);
	la.archive_read_support_filter_lz4(x->a);
	la.archive_read_support_filter_compress(x->a);
	la.archive_read_support_format_tar(x->a);
	la.archive_read_support_format_cpio(x->a);
	if (la.archive_read_open_filename(x->a, x->path, READ_BLOCK) != ARCHIVE_OK)
		return err_set(e, EINVAL,
			       "%.200s: neither a directory nor a tar or cpio archive: %s", x->path,
			       la.archive_error_string(x->a));
	return 0;
}

/* Returns 1, 0 at the end, or -errno. */
static int next_entry(struct archive_reader *x, struct archive_entry **entry, struct err *e)
{
	int ret = la.archive_read_next_header(x->a, entry);

	if (ret == ARCHIVE_EOF)
		return 0;
	if (ret < ARCHIVE_WARN) {
		const char *why = la.archive_error_string(x->a);
		bool none = !la.archive_format(x->a);

		return err_set(e, EINVAL, "%.200s: %s%s", x->path,
			       none ? "neither a directory nor a tar or cpio archive: "
				    : "the archive is damaged: ",
			       why ? why : "unknown reason");
	}
	return 1;
}

/* Returns the name as it was written: in UTF-8 if the archive declares it, else byte by byte. */
static const char *name_of(struct archive_entry *entry)
{
	const char *s = la.archive_entry_pathname_utf8(entry);

	return s ? s : la.archive_entry_pathname(entry);
}

static const char *target_of(struct archive_entry *entry)
{
	const char *s = la.archive_entry_hardlink_utf8(entry);

	return s ? s : la.archive_entry_hardlink(entry);
}

/* Names may be written in several ways: "./a" and "a". Returns NULL if out of memory. */
static struct archive_target *make_key(const char *name)
{
	size_t n = 0;
	struct archive_target *t = calloc(1, sizeof(*t) + strlen(name) + 1);

	while (t && *name) {
		size_t len;

		name += strspn(name, "/");
		len = strcspn(name, "/");
		if (len && !(len == 1 && *name == '.')) {
			if (n)
				t->name[n++] = '/';
			memcpy(t->name + n, name, len);
			n += len;
		}
		name += len;
	}
	return t;
}

static struct archive_target *find_target(struct archive_reader *x, const char *name)
{
	cleanup_free struct archive_target *key = make_key(name);
	void *found = key ? tfind(key, &x->targets, archive_compare) : NULL;

	return found ? *(struct archive_target **)found : NULL;
}

static int note_target(struct archive_reader *x, const char *name, struct err *e)
{
	struct archive_target *key = make_key(name), **at;

	at = key ? tsearch(key, &x->targets, archive_compare) : NULL;
	if (!at) {
		free(key);
		return err_nomem(e);
	}
	if (*at != key)
		free(key);
	return 0;
}

static int look_for_links(struct archive_reader *x, struct err *e)
{
	struct archive_entry *entry;
	uint64_t n = 0;
	int ret;

	while ((ret = next_entry(x, &entry, e)) > 0) {
		const char *target = target_of(entry);

		if (++n > ROOTFS_MAX_ENTRIES)
			return err_set(e, E2BIG, "%.200s has more than %u entries", x->path,
				       ROOTFS_MAX_ENTRIES);
		ret = target ? note_target(x, target, e) : 0;
		if (ret)
			return ret;
	}
	return ret;
}

static int copy_data(struct archive_reader *x, const char *name, uint64_t size, struct err *e)
{
	cleanup_free uint8_t *bytes = malloc(COPY_LEN);

	if (!bytes)
		return err_nomem(e);
	while (size) {
		la_ssize_t n = la.archive_read_data(x->a, bytes, size < COPY_LEN ? size : COPY_LEN);
		int ret;

		if (n <= 0)
			return err_set(e, EINVAL, "%.200s: the archive is damaged: %.200s: %s",
				       x->path, name,
				       n ? la.archive_error_string(x->a) : "its data end early");
		ret = cpio_write_data(&x->r->cpio, bytes, (size_t)n, e);
		if (ret)
			return ret;
		size -= (uint64_t)n;
	}
	return 0;
}

/* Returns the inode number of an entry, or 0 if it must be left out. */
static uint32_t inode_of(struct archive_reader *x, const char *name, const char *link)
{
	struct archive_target *self = find_target(x, name), *t = link ? find_target(x, link) : NULL;
	uint32_t ino = t ? t->ino : 0;

	if (link && !ino)
		return 0;
	if (!ino)
		ino = x->r->next_ino++;
	if (self)
		self->ino = ino;
	return ino;
}

static int add_regular(struct archive_reader *x, struct archive_entry *entry, struct cpio_entry *c,
		       struct err *e)
{
	const char *link = target_of(entry);
	int64_t size = la.archive_entry_size_is_set(entry) ? la.archive_entry_size(entry) : 0;
	int ret;

	c->mode = S_IFREG | (c->mode & 07777);
	c->links = link || find_target(x, c->name) ? 2 : 1;
	c->ino = inode_of(x, c->name, link);
	c->size = size > 0 ? (uint64_t)size : 0;
	if (!c->ino) {
		rootfs_count_skipped(x->r, c->name,
				     "a link to a name that is not earlier in the archive");
		return 0;
	}
	x->r->files++;
	ret = rootfs_entry(x->r, c, e);
	return ret ? ret : copy_data(x, c->name, c->size, e);
}

static int add_symlink(struct archive_reader *x, struct archive_entry *entry, struct cpio_entry *c,
		       struct err *e)
{
	const char *to = la.archive_entry_symlink_utf8(entry);
	size_t len;
	int ret;

	to = to ? to : la.archive_entry_symlink(entry);
	len = to ? strlen(to) : 0;
	if (!len || len > ROOTFS_LINK_MAX) {
		rootfs_count_skipped(x->r, c->name,
				     "a link to nothing, or to a name that is too long");
		return 0;
	}
	c->size = len;
	ret = rootfs_entry(x->r, c, e);
	return ret ? ret : cpio_write_data(&x->r->cpio, to, len, e);
}

static uint32_t clamp(int64_t v)
{
	return v < 0 || v > UINT32_MAX ? 0 : (uint32_t)v;
}

static int add_entry(struct archive_reader *x, struct archive_entry *entry, struct err *e)
{
	struct cpio_entry c = {
		.name = name_of(entry),
		.mode = la.archive_entry_filetype(entry) | (la.archive_entry_perm(entry) & 07777),
		.uid = clamp(la.archive_entry_uid(entry)),
		.gid = clamp(la.archive_entry_gid(entry)),
		.mtime = clamp(la.archive_entry_mtime(entry)),
	};

	if (!c.name || !*c.name) {
		rootfs_count_skipped(x->r, "(no name)", "an entry without a name");
		return 0;
	}
	if (target_of(entry))
		return add_regular(x, entry, &c, e);
	switch (la.archive_entry_filetype(entry)) {
	case AE_IFREG:
		return add_regular(x, entry, &c, e);
	case AE_IFLNK:
		return add_symlink(x, entry, &c, e);
	case AE_IFCHR:
	case AE_IFBLK:
		c.major = (uint32_t)la.archive_entry_rdevmajor(entry);
		c.minor = (uint32_t)la.archive_entry_rdevminor(entry);
		return rootfs_entry(x->r, &c, e);
	case AE_IFDIR:
	case AE_IFIFO:
		return rootfs_entry(x->r, &c, e);
	default:
		rootfs_count_skipped(x->r, c.name, "a socket, or of an unknown kind");
		return 0;
	}
}

int rootfs_add_archive(struct rootfs *r, const char *path, struct err *e)
{
	struct archive_reader x = { .r = r, .path = path };
	struct archive_entry *entry;
	int ret = open_archive(&x, e);

	ret = ret ? ret : look_for_links(&x, e);
	la.archive_read_free(x.a);
	x.a = NULL;
	ret = ret ? ret : open_archive(&x, e);
	while (!ret && (ret = next_entry(&x, &entry, e)) > 0)
		ret = add_entry(&x, entry, e);
	la.archive_read_free(x.a);
	tdestroy(x.targets, free);
	return ret;
}
