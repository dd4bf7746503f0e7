/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/publish/merge.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DIR_MODE 0755
#define MAX_DEPTH 64u
#define ID_MIN 4u
#define ID_MAX 40u
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* A path in the staging directory: NAME/HEX, as it will be in the cache. */
struct staged {
	char path[PATH_MAX];
	size_t len;
	const char *last; /* the last component of path */
	unsigned int depth;
	int stage; /* descriptor of the staging directory */
};

static bool is_id(const char *name)
{
	size_t len = strlen(name);

	return len >= ID_MIN && len <= ID_MAX && strspn(name, "0123456789abcdef") == len;
}

static bool is_file_of_cache(const char *name)
{
	return !strcmp(name, "elf") || !strcmp(name, "vdso") || !strcmp(name, "kallsyms");
}

/*
 * Opens a directory below the cache and creates what is missing. Returns the descriptor or -errno.
 */
static int open_below(int top, const char *path)
{
	cleanup_close int at = openat(top, ".", OPEN_DIR);
	char part[NAME_MAX + 1];

	while (at >= 0 && *path) {
		size_t len = strcspn(path, "/");
		int next;

		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(part, path, len);
		part[len] = 0;
		path += len + (path[len] == '/');
		if (mkdirat(at, part, DIR_MODE) < 0 && errno != EEXIST)
			return -errno;
		next = openat(at, part, OPEN_DIR);
		if (next < 0)
			return -errno;
		close(at);
		at = next;
	}
	return at < 0 ? -errno : cleanup_take_fd(&at);
}

/* Returns whether the link of the id in the staging directory leads to another path. */
static bool is_linked_elsewhere(const struct staged *s, const char *bucket, const char *target)
{
	char path[NAME_MAX], to[PATH_MAX + 8];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", bucket, s->last + 2);
	n = readlinkat(s->stage, path, to, sizeof(to));
	return n > 0 && ((size_t)n != strlen(target) || memcmp(to, target, (size_t)n) != 0);
}

static int link_id(int top, const struct staged *s)
{
	char bucket[] = ".build-id/HH", target[PATH_MAX + 8];
	cleanup_close int fd = -1;

	memcpy(strchr(bucket, 'H'), s->last, 2);
	snprintf(target, sizeof(target), "../../%s", s->path);
	/* Several names may have the same id: the first one that was added has the link. */
	if (is_linked_elsewhere(s, bucket, target))
		return 0;
	fd = open_below(top, bucket);
	if (fd < 0)
		return fd;
	/* An existing link leads to the same bytes under another name. */
	return symlinkat(target, fd, s->last + 2) < 0 && errno != EEXIST ? -errno : 0;
}

static int move_file(int from, int to, const char *name)
{
	struct stat st;

	if (renameat2(from, name, to, name, RENAME_NOREPLACE) == 0 || errno == EEXIST)
		return 0;
	if (errno != EINVAL) /* the file system does not support the flag */
		return -errno;
	if (fstatat(to, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return renameat(from, name, to, name) < 0 ? -errno : 0;
}

/* Moves one file. A file that does not belong in a cache stays, and the result is 0. */
static int merge_file(const struct publish_merge *m, int dir, const struct staged *s,
		      const char *name)
{
	cleanup_close int fd = openat(dir, name, OPEN_FILE), to = -1;
	struct stat st;
	int ret;

	if (m->progress)
		m->progress(m->ctx);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
	    s->depth < 2 || !is_id(s->last) || !is_file_of_cache(name))
		return 0;
	if (fchmod(fd, st.st_mode & 0644) < 0)
		return -errno;
	if (st.st_uid != m->uid && st.st_uid == m->run && fchown(fd, m->uid, m->gid) < 0)
		return -errno;
	to = open_below(m->to, s->path);
	ret = to < 0 ? to : move_file(dir, to, name);
	return ret ? ret : link_id(m->to, s);
}

/* Closes fd. */
static int merge_level(const struct publish_merge *m, int fd, struct staged *s)
{
	cleanup_closedir DIR *list = fdopendir(fd);
	struct dirent *d;
	int ret = 0;

	if (!list) {
		ret = -errno;
		close(fd);
		return ret;
	}
	for (errno = 0; (d = readdir(list)); errno = 0) {
		struct staged at;
		int sub, n, one;

		/* Hidden entries at the top are ., .. and the links, which are created again. */
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
		    (!s->depth && d->d_name[0] == '.'))
			continue;
		sub = openat(dirfd(list), d->d_name, OPEN_DIR);
		if (sub < 0) {
			one = merge_file(m, dirfd(list), s, d->d_name);
			ret = ret ? ret : one;
			continue;
		}
		at = *s;
		n = snprintf(at.path + at.len, sizeof(at.path) - at.len, "%s%s",
			     at.depth ? "/" : "", d->d_name);
		if (at.depth++ >= MAX_DEPTH || (size_t)n >= sizeof(at.path) - at.len) {
			close(sub);
			continue;
		}
		at.last = at.path + at.len + (s->depth ? 1 : 0);
		at.len += (size_t)n;
		one = merge_level(m, sub, &at);
		ret = ret ? ret : one;
	}
	return ret ? ret : -errno;
}

int publish_merge_cache(const struct publish_merge *m, int from, struct err *e)
{
	cleanup_close int stage = openat(from, ".", OPEN_DIR);
	struct staged top = { .last = "", .stage = stage };
	int ret = merge_level(m, from, &top);

	return ret ? err_set(e, -ret, "perf's build-id cache: %s", strerror(-ret)) : 0;
}
