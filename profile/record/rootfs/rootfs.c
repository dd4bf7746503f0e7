/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/rootfs/rootfs.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define COPY_LEN (128u << 10)

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

int rootfs_init(struct rootfs *r, struct err *e)
{
	*r = (struct rootfs){ .next_ino = 1 };
	r->fd = memfd_create("kvmprof-rootfs", MFD_CLOEXEC);
	if (r->fd < 0)
		return err_set(e, errno, "memfd_create: %s", strerror(errno));
	cpio_write_begin(&r->cpio, r->fd, ROOTFS_MAX_BYTES);
	return 0;
}

void rootfs_deinit(struct rootfs *r)
{
	if (r->fd < 0)
		return;
	cpio_write_deinit(&r->cpio);
	tdestroy(r->names, free);
	tdestroy(r->links, free);
	close(r->fd);
	r->fd = -1;
}

void rootfs_count_skipped(struct rootfs *r, const char *name, const char *why)
{
	if (!r->left_out++)
		snprintf(r->first_left, sizeof(r->first_left), "%.180s: %s", name, why);
}

/*
 * Makes "a/b" from "/a/./b/" in `to`. Returns the name, or NULL if it leads out of the root or is
 * too long. The root itself is "".
 */
static const char *clean_name(const char *from, char to[CPIO_NAME_MAX + 1])
{
	size_t n = 0;

	for (;;) {
		size_t len;

		from += strspn(from, "/");
		len = strcspn(from, "/");
		if (!len)
			break;
		if (len == 2 && from[0] == '.' && from[1] == '.')
			return NULL;
		if (len != 1 || from[0] != '.') {
			if (n + len + 1 > CPIO_NAME_MAX)
				return NULL;
			if (n)
				to[n++] = '/';
			memcpy(to + n, from, len);
			n += len;
		}
		from += len;
	}
	to[n] = 0;
	return to;
}

bool rootfs_has(const struct rootfs *r, const char *name)
{
	char clean[CPIO_NAME_MAX + 1];

	return clean_name(name, clean) && tfind(clean, &r->names, compare_names);
}

static int rootfs_remember(struct rootfs *r, const char *name, struct err *e)
{
	char *copy;

	if (tfind(name, &r->names, compare_names))
		return 0;
	copy = strdup(name);
	if (!copy || !tsearch(copy, &r->names, compare_names)) {
		free(copy);
		return err_nomem(e);
	}
	return 0;
}

static int write_entry(struct rootfs *r, const struct cpio_entry *x, struct err *e)
{
	int ret = rootfs_remember(r, x->name, e);

	if (++r->entries > ROOTFS_MAX_ENTRIES)
		return err_set(e, E2BIG, "the root file system has more than %u entries",
			       ROOTFS_MAX_ENTRIES);
	return ret ? ret : cpio_write_entry(&r->cpio, x, e);
}

/* Adds the directories above a name: the kernel drops files whose directory does not exist yet. */
static int make_parents(struct rootfs *r, const char *name, struct err *e)
{
	char path[CPIO_NAME_MAX + 1];

	for (size_t i = 0; name[i]; i++) {
		struct cpio_entry dir = { .name = path, .mode = S_IFDIR | 0755, .links = 2 };
		int ret;

		path[i] = 0;
		if (name[i] == '/' && !tfind(path, &r->names, compare_names)) {
			dir.ino = r->next_ino++;
			ret = write_entry(r, &dir, e);
			if (ret)
				return ret;
		}
		path[i] = name[i];
	}
	return 0;
}

int rootfs_entry(struct rootfs *r, struct cpio_entry *x, struct err *e)
{
	char name[CPIO_NAME_MAX + 1];
	struct cpio_entry y = *x;
	int ret;

	y.name = clean_name(x->name, name);
	if (!y.name)
		return err_set(e, EINVAL,
			       "the entry %.200s has a name that leads out of the root, "
			       "or is too long",
			       x->name);
	if (!*y.name) /* the root, which the kernel has created */
		return x->size ? err_set(e, EINVAL, "an entry without a name has data") : 0;
	ret = make_parents(r, name, e);
	if (!y.ino)
		y.ino = r->next_ino++;
	if (!y.links)
		y.links = S_ISDIR(y.mode) ? 2 : 1;
	return ret ? ret : write_entry(r, &y, e);
}

int rootfs_add_bytes(struct rootfs *r, const char *name, uint32_t mode, const void *data,
		     size_t len, struct err *e)
{
	struct cpio_entry x = { .name = name, .mode = mode, .size = len };
	int ret = rootfs_entry(r, &x, e);

	return ret ? ret : cpio_write_data(&r->cpio, data, len, e);
}

int rootfs_add_node(struct rootfs *r, const char *name, uint32_t mode, uint32_t major,
		    uint32_t minor, struct err *e)
{
	struct cpio_entry x = { .name = name, .mode = mode, .major = major, .minor = minor };

	return rootfs_has(r, name) ? 0 : rootfs_entry(r, &x, e);
}

/*
 * Adds exactly x->size bytes: it is an error if the file has become shorter, and additional bytes
 * are ignored.
 */
static int add_content(struct rootfs *r, struct cpio_entry *x, int fd, const char *shown,
		       struct err *e)
{
	cleanup_free uint8_t *bytes = malloc(COPY_LEN);
	int ret = bytes ? rootfs_entry(r, x, e) : err_nomem(e);
	uint64_t left = x->size;

	while (!ret && left) {
		ssize_t n = read(fd, bytes, left < COPY_LEN ? left : COPY_LEN);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, n ? errno : EIO, "%.200s: %s", shown,
				       n ? strerror(errno) : "became shorter while it was packed");
		ret = cpio_write_data(&r->cpio, bytes, (size_t)n, e);
		left -= (uint64_t)n;
	}
	r->files++;
	return ret;
}

static uint32_t clamp_time(int64_t s)
{
	return s < 0 ? 0 : s > UINT32_MAX ? UINT32_MAX : (uint32_t)s;
}

int rootfs_add_file(struct rootfs *r, const char *name, const char *host_path, uint32_t mode,
		    struct err *e)
{
	struct stat st;
	cleanup_close int fd = file_open_regular(host_path, &st, e);
	struct cpio_entry x = { .name = name };

	if (fd < 0)
		return fd;
	x.mode = S_IFREG | (mode ? mode : st.st_mode & 07777);
	x.mtime = clamp_time(st.st_mtime);
	x.size = (uint64_t)st.st_size;
	return add_content(r, &x, fd, host_path, e);
}

/* -- a directory ---------------------------------------------------------------------- */

struct rootfs_link {
	dev_t dev;
	ino_t host;
	uint32_t ino;
};

static int compare_links(const void *a, const void *b)
{
	const struct rootfs_link *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->host < y->host ? -1 : x->host > y->host;
}

/*
 * Returns in *again whether this is another name of a file that was added. Sets x->ino in both
 * cases.
 */
static int find_link(struct rootfs *r, const struct stat *st, struct cpio_entry *x, bool *again,
		     struct err *e)
{
	struct rootfs_link key = { st->st_dev, st->st_ino, 0 }, *new;
	void *found = tfind(&key, &r->links, compare_links);

	x->links = (uint32_t)st->st_nlink;
	*again = found != NULL;
	if (found) {
		x->ino = (*(struct rootfs_link **)found)->ino;
		return 0;
	}
	new = malloc(sizeof(*new));
	if (new) {
		*new = key;
		new->ino = x->ino = r->next_ino++;
	}
	if (!new || !tsearch(new, &r->links, compare_links)) {
		free(new);
		return err_nomem(e);
	}
	return 0;
}

struct dir_walk {
	struct rootfs *r;
	dev_t dev;
	char path[CPIO_NAME_MAX + 1]; /* relative to the directory that is added */
};

static int rootfs_walk(struct dir_walk *w, int dir_fd, unsigned int depth, struct err *e);

static int add_regular(struct dir_walk *w, int dir_fd, const char *name, const struct stat *st,
		       struct cpio_entry *x, struct err *e)
{
	cleanup_close int fd = -1;
	struct stat now;
	bool again = false;
	int ret;

	/* A file that cannot be read is left out before anything refers to it. */
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		rootfs_count_skipped(w->r, w->path, strerror(errno));
		return 0;
	}
	if (fstat(fd, &now) < 0 || !S_ISREG(now.st_mode)) {
		rootfs_count_skipped(w->r, w->path, "changed while it was packed");
		return 0;
	}
	ret = st->st_nlink > 1 ? find_link(w->r, &now, x, &again, e) : 0;
	if (ret || again)
		return ret ? ret : rootfs_entry(w->r, x, e);
	x->size = (uint64_t)now.st_size;
	return add_content(w->r, x, fd, w->path, e);
}

static int enter_directory(struct dir_walk *w, int dir_fd, const char *name, unsigned int depth,
			   struct err *e)
{
	int fd;

	if (depth == ROOTFS_MAX_DEPTH)
		return err_set(e, ELOOP, "%.200s: directories are nested more than %u deep",
			       w->path, ROOTFS_MAX_DEPTH);
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		rootfs_count_skipped(w->r, w->path, strerror(errno));
		return 0;
	}
	return rootfs_walk(w, fd, depth + 1, e);
}

static int add_any(struct dir_walk *w, int dir_fd, const char *name, unsigned int depth,
		   struct err *e)
{
	struct cpio_entry x = { .name = w->path };
	char target[ROOTFS_LINK_MAX + 1];
	struct stat st;
	ssize_t n;
	int ret;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		rootfs_count_skipped(w->r, w->path, strerror(errno));
		return 0;
	}
	x.mode = st.st_mode;
	x.mtime = clamp_time(st.st_mtime);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return add_regular(w, dir_fd, name, &st, &x, e);
	case S_IFDIR:
		ret = rootfs_entry(w->r, &x, e);
		/* Other file systems are not entered. */
		return ret || st.st_dev != w->dev ? ret
						  : enter_directory(w, dir_fd, name, depth, e);
	case S_IFLNK:
		n = readlinkat(dir_fd, name, target, sizeof(target));
		if (n <= 0 || n > (ssize_t)ROOTFS_LINK_MAX) {
			rootfs_count_skipped(w->r, w->path, "cannot be read as a link");
			return 0;
		}
		x.size = (uint64_t)n;
		ret = rootfs_entry(w->r, &x, e);
		return ret ? ret : cpio_write_data(&w->r->cpio, target, (size_t)n, e);
	case S_IFCHR:
	case S_IFBLK:
		x.major = gnu_dev_major(st.st_rdev);
		x.minor = gnu_dev_minor(st.st_rdev);
		return rootfs_entry(w->r, &x, e);
	case S_IFIFO:
		return rootfs_entry(w->r, &x, e);
	default:
		rootfs_count_skipped(w->r, w->path, "a socket");
		return 0;
	}
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

/* Reads the names in sorted order, so that the same directory gives the same archive. Closes fd. */
static int read_names(int fd, char ***out, size_t *count, struct err *e)
{
	cleanup_closedir DIR *d = fdopendir(fd);
	char **list = NULL;
	size_t n = 0, cap = 0;

	if (!d) {
		close(fd);
		return err_set(e, errno, "cannot read a directory: %s", strerror(errno));
	}
	for (struct dirent *x; (x = readdir(d));) {
		if (!strcmp(x->d_name, ".") || !strcmp(x->d_name, ".."))
			continue;
		if (ARRAY_ROOM(list, n, cap) || n > ROOTFS_MAX_ENTRIES ||
		    !(list[n] = strdup(x->d_name))) {
			free_list(list, n);
			return err_set(e, ENOMEM, "out of memory for the names of a directory");
		}
		n++;
	}
	if (n)
		qsort(list, n, sizeof(*list), compare_strings);
	*out = list;
	*count = n;
	return 0;
}

/* Closes dir_fd. */
static int rootfs_walk(struct dir_walk *w, int dir_fd, unsigned int depth, struct err *e)
{
	cleanup_close int own = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	size_t len = strlen(w->path), n = 0;
	char **list = NULL;
	int ret = read_names(dir_fd, &list, &n, e);

	if (!ret && own < 0)
		ret = err_set(e, errno, "%.200s: %s", w->path, strerror(errno));
	for (size_t i = 0; !ret && i < n; i++) {
		size_t k = strlen(list[i]);

		if (len + k + 2 > sizeof(w->path)) {
			ret = err_set(e, ENAMETOOLONG, "%.200s/...: a path of more than %u bytes",
				      w->path, CPIO_NAME_MAX);
			break;
		}
		snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "/" : "", list[i]);
		ret = add_any(w, own, list[i], depth, e);
		w->path[len] = 0;
	}
	free_list(list, n);
	return ret;
}

int rootfs_add_directory(struct rootfs *r, const char *dir, struct err *e)
{
	cleanup_free struct dir_walk *w = calloc(1, sizeof(*w));
	int fd = w ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct stat st;

	if (!w)
		return err_nomem(e);
	if (fd < 0)
		return err_set(e, errno, "%.200s: %s", dir, strerror(errno));
	if (fstat(fd, &st) < 0) {
		close(fd);
		return err_set(e, errno, "%.200s: %s", dir, strerror(errno));
	}
	w->r = r;
	w->dev = st.st_dev;
	return rootfs_walk(w, fd, 0, e);
}

int rootfs_finish(struct rootfs *r, struct file_map *out, struct err *e)
{
	int ret = cpio_write_end(&r->cpio, e);
	void *data;

	if (ret)
		return ret;
	data = mmap(NULL, r->cpio.len, PROT_READ, MAP_PRIVATE, r->fd, 0);
	if (data == MAP_FAILED)
		return err_set(e, errno, "cannot map the root file system: %s", strerror(errno));
	*out = (struct file_map){ .data = data, .len = r->cpio.len };
	return 0;
}
