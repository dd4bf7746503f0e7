/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/disk_image.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "vmm/dev/disk_nbd.h"
#include "vmm/dev/disk_unpack.h"
#include "vmm/image/disk_extent.h"
#include "vmm/image/disk_format.h"
#include "vmm/image/disk_header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void disk_image_init(struct disk_image *m)
{
	*m = (struct disk_image){ .fd = -1, .unpacked = -1, .format = "raw" };
}

void disk_image_close(struct disk_image *m)
{
	disk_nbd_close(m->nbd);
	if (m->unpacked >= 0)
		close(m->unpacked);
	while (m->nothers)
		close(m->other[--m->nothers]);
	disk_image_init(m);
}

int disk_image_read(const struct disk_image *m, uint64_t off, void *dst, size_t len, size_t more)
{
	return m->nbd ? disk_nbd_read(m->nbd, off, dst, len, more) : -EIO;
}

void disk_image_stop(const struct disk_image *m)
{
	if (m->nbd)
		disk_nbd_stop(m->nbd);
}

bool disk_image_failed(const struct disk_image *m)
{
	return m->nbd && disk_nbd_failed(m->nbd);
}

/* Reads at most cap bytes from the beginning. Returns their number or -errno. */
static ssize_t read_head(int fd, uint8_t *dst, size_t cap)
{
	size_t have = 0;

	while (have < cap) {
		ssize_t n = pread(fd, dst + have, cap - have, (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

/* -- other files ----------------------------------------------------------------------------- */

/* What is opened for the image, and the options of qemu-nbd that name it. */
struct disk_chain {
	const struct disk_image_config *cfg;
	struct disk_image *image;
	int file[DISK_NBD_MAX_FILES];
	unsigned int n;
	struct buf options;
};

/* Replaces what a terminal would act on, in a name that comes from an image. */
static void printable(char *to, size_t cap, const char *name)
{
	snprintf(to, cap, "%s", name);
	for (char *c = to; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

static int refuse_other(const struct disk_chain *c, const char *path, const char *other,
			struct err *e)
{
	char name[200];

	printable(name, sizeof(name), other);
	return err_set(e, ENOTSUP,
		       "%s: the image refers to another file, %s, which is not read unless you "
		       "trust the image and give --backing",
		       path ? path : c->cfg->path, name);
}

/* A name in an image is relative to the directory of that image, as for QEMU. */
static int other_path(const char *path, const char *other, char *out, size_t cap, struct err *e)
{
	const char *slash = strrchr(path, '/');
	int n;

	if (!strncmp(other, "file:", 5))
		other += 5;
	if (*other == '/' || !slash)
		n = snprintf(out, cap, "%s", other);
	else
		n = snprintf(out, cap, "%.*s/%s", (int)(slash - path), path, other);
	return n >= 0 && (size_t)n < cap
		       ? 0
		       : err_set(e, ENAMETOOLONG, "%s: the name of another file is too long", path);
}

static int chain_open(struct disk_chain *c, const char *path, struct err *e)
{
	char name[300];
	int fd;

	printable(name, sizeof(name), path);
	if (c->n == DISK_NBD_MAX_FILES || c->image->nothers == DISK_PROGRAM_MAX_FILES)
		return err_set(e, ELOOP, "%s: the image refers to more than %u files", c->cfg->path,
			       DISK_NBD_MAX_FILES);
	fd = file_open_regular(path, NULL, NULL);
	if (fd < 0)
		return err_set(e, -fd, "%s: the image refers to %s: %s", c->cfg->path, name,
			       strerror(-fd));
	c->image->other[c->image->nothers++] = fd;
	c->file[c->n++] = fd;
	return 0;
}

/* Appends "PREFIXdriver=FORMAT,PREFIXfile.driver=file,PREFIXfile.filename=..." for the last file. */
static void chain_describe(struct disk_chain *c, const char *prefix, const char *format)
{
	buf_printf(&c->options, "%s%sdriver=%s,%sfile.driver=file,%sfile.filename=/proc/self/fd/%u",
		   c->options.len ? "," : "", prefix, format, prefix, prefix,
		   DISK_PROGRAM_FILE + c->n - 1);
}

static int chain_check(const struct disk_chain *c, const struct disk_header *h, const char *format,
		       const char *path, struct err *e)
{
	if (h->encryption)
		return err_set(e, ENOTSUP,
			       "%s: this %s image is encrypted (%s), and kvmprof takes no keys; "
			       "make a copy that is not encrypted with the program that made it",
			       path, format, h->encryption);
	if (h->part_of)
		return err_set(e, ENOTSUP,
			       "%s: this %s image is not complete: %s; `qemu-img convert -O qcow2` "
			       "makes one file of it",
			       path, format, h->part_of);
	if (*h->data && !c->cfg->follow)
		return refuse_other(c, path, h->data, e);
	if (*h->backing && !c->cfg->follow)
		return refuse_other(c, path, h->backing, e);
	return 0;
}

/* Adds the file that has the data of the image at path. */
static int chain_add_data(struct disk_chain *c, const char *path, const char *prefix,
			  const struct disk_header *h, struct err *e)
{
	char at[PATH_MAX];
	int ret = other_path(path, h->data, at, sizeof(at), e);

	ret = ret ? ret : chain_open(c, at, e);
	if (!ret)
		buf_printf(&c->options,
			   ",%sdata-file.driver=raw,%sdata-file.file.driver=file"
			   ",%sdata-file.file.filename=/proc/self/fd/%u",
			   prefix, prefix, prefix, DISK_PROGRAM_FILE + c->n - 1);
	return ret;
}

/*
 * Adds the image below the one at `at`, and replaces at by its path. Returns 0 or -errno. *format is
 * then its format. That is not guessed, because a guest may have written the header of another
 * format to a raw disk.
 */
static int chain_add_backing(struct disk_chain *c, char at[PATH_MAX], const struct disk_header *h,
			     const char **format, struct err *e)
{
	char below[PATH_MAX];
	int ret;

	*format = !strcmp(h->backing_format, "raw") ? "raw" : disk_format_find(h->backing_format);
	if (!*format)
		return err_set(e, ENOTSUP,
			       "%s: the image has a backing file of no known format: `qemu-img "
			       "rebase -u -F FORMAT -b FILE` sets it",
			       at);
	ret = other_path(at, h->backing, below, sizeof(below), e);
	ret = ret ? ret : chain_open(c, below, e);
	snprintf(at, PATH_MAX, "%s", below);
	return ret;
}

/* Implements struct disk_extent_file. */
static int read_file(void *ctx, uint64_t off, void *dst, size_t len)
{
	ssize_t n = pread(*(const int *)ctx, dst, len, (off_t)off);

	return n == (ssize_t)len ? 0 : -EIO;
}

static int check_extent(int fd, const char *path, const char *format, struct err *e)
{
	struct disk_extent_file f = { .read = read_file, .ctx = &fd };
	uint64_t missing;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	f.size = (uint64_t)st.st_size;
	missing = disk_extent_missing(&f, format);
	if (!missing)
		return 0;
	return err_set(e, EINVAL,
		       "%s: this %s image is truncated or damaged: it ends at byte "
		       "%llu and refers to byte %llu; fetch or copy it again",
		       path, format, (unsigned long long)f.size, (unsigned long long)missing);
}

/* Describes file 0 of the chain and those below it. QEMU opens none by a name in an image. */
static int chain_follow(struct disk_chain *c, const char *format, struct err *e)
{
	cleanup_free uint8_t *head = malloc(DISK_HEADER_MAX);
	cleanup_free struct disk_header *h = malloc(sizeof(*h));
	char at[PATH_MAX], prefix[16 * DISK_NBD_MAX_FILES] = "";
	int ret = 0;

	if (!head || !h)
		return err_nomem(e);
	snprintf(at, sizeof(at), "%s", c->cfg->path);
	while (!ret) {
		ssize_t n = read_head(c->file[c->n - 1], head, DISK_HEADER_MAX);

		if (n < 0)
			return err_set(e, (int)-n, "%s: cannot read: %s", at, strerror((int)-n));
		chain_describe(c, prefix, format);
		memset(h, 0, sizeof(*h));
		if (strcmp(format, "raw") != 0)
			ret = disk_header_parse(h, at, format, head, (size_t)n, e);
		ret = ret ? ret : chain_check(c, h, format, at, e);
		ret = ret ? ret : check_extent(c->file[c->n - 1], at, format, e);
		if (!ret && *h->data)
			ret = chain_add_data(c, at, prefix, h, e);
		if (ret || !*h->backing)
			break;
		ret = chain_add_backing(c, at, h, &format, e);
		snprintf(prefix + strlen(prefix), sizeof(prefix) - strlen(prefix), "backing.");
	}
	return ret;
}

/* -- the image --------------------------------------------------------------------------------- */

static int open_format(struct disk_image *m, const struct disk_image_config *cfg, int fd,
		       struct err *e)
{
	struct disk_chain c = { .cfg = cfg, .image = m, .file = { fd }, .n = 1 };
	struct disk_nbd_image image = { .path = cfg->path, .file = c.file };
	int ret;

	buf_init(&c.options);
	ret = chain_follow(&c, m->format, e);
	buf_u8(&c.options, 0);
	if (!ret && c.options.failed)
		ret = err_nomem(e);
	image.options = (const char *)c.options.data;
	image.nfiles = c.n;
	ret = ret ? ret : disk_nbd_open(&m->nbd, &image, cfg->confine, e);
	buf_deinit(&c.options);
	m->size = ret ? 0 : disk_nbd_size(m->nbd);
	return ret;
}

static int check_wanted(const struct disk_image_config *cfg, const char *found, struct err *e)
{
	if (!cfg->format || !strcmp(cfg->format, found ? found : "raw"))
		return 0;
	return err_set(e, EINVAL, "%s: this is %s%s image, not the %s image that was announced",
		       cfg->path, found ? "a " : "a raw", found ? found : "", cfg->format);
}

int disk_image_open(struct disk_image *m, const struct disk_image_config *cfg, struct err *e)
{
	bool detect = !cfg->format || strcmp(cfg->format, "raw") != 0;
	const struct disk_compression *how = NULL;
	uint8_t head[DISK_FORMAT_HEAD];
	ssize_t n = read_head(cfg->fd, head, sizeof(head));
	const char *format = NULL;
	struct stat st;
	int ret = 0;

	disk_image_init(m);
	m->fd = cfg->fd;
	if (n >= 0 && !cfg->format)
		how = disk_format_compression(head, (size_t)n);
	if (how) {
		struct disk_unpack from = { cfg->path, cfg->fd, how, cfg->confine };

		m->how = how->program;
		ret = disk_unpack(&m->unpacked, &from, e);
		if (ret)
			return ret;
		m->fd = m->unpacked;
		n = read_head(m->fd, head, sizeof(head));
		if (fstat(m->fd, &st) == 0)
			m->size = (uint64_t)st.st_size;
	}
	if (n < 0)
		return err_set(e, (int)-n, "%s: cannot read: %s", cfg->path, strerror((int)-n));
	if (detect) {
		format = disk_format_name(head, (size_t)n);
		ret = check_wanted(cfg, format, e);
	}
	if (ret || !format)
		return ret;
	m->format = format;
	ret = open_format(m, cfg, m->fd, e);
	m->fd = -1;
	return ret;
}
