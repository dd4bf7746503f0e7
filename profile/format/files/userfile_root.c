/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening a file below a directory that stands for "/", whatever links say. */
#include "profile/format/files/userfile.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* As the kernel's MAXSYMLINKS. */
#define MAX_LINKS 40u
/* What is still to be walked, links replaced. */
#define MAX_REST (2u * PATH_MAX)
#define MAX_DEPTH 64u

/*
 * The directories from the root to where the walk stands: ".." goes back to one
 * of them, so it can't be led past the root by directories that are moved.
 */
struct walk {
	int root;
	int dir[MAX_DEPTH];
	unsigned int depth;
	char rest[MAX_REST];
};

static int here(const struct walk *w)
{
	return w->depth ? w->dir[w->depth - 1] : w->root;
}

static void go_up(struct walk *w, unsigned int to)
{
	while (w->depth > to)
		close(w->dir[--w->depth]);
}

/* The link's text goes before what is still to be walked, which is empty or begins with '/'. */
static int userfile_root_follow(struct walk *w, int link)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(link, "", text, sizeof(text));
	size_t rest = strlen(w->rest);

	if (n <= 0 || (size_t)n >= sizeof(text))
		return n < 0 ? -errno : -ENAMETOOLONG;
	if ((size_t)n + rest + 1 > sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + n, w->rest, rest + 1);
	memcpy(w->rest, text, (size_t)n);
	if (text[0] == '/')
		go_up(w, 0);
	return 0;
}

/* The next component into name; false at the end. */
static bool next_name(struct walk *w, char name[NAME_MAX + 1], bool *too_long)
{
	size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/");

	*too_long = len > NAME_MAX;
	if (len == 0 || *too_long)
		return false;
	memcpy(name, w->rest + skip, len);
	name[len] = 0;
	memmove(w->rest, w->rest + skip + len, strlen(w->rest + skip + len) + 1);
	return true;
}

/* O_PATH descriptor of what the path leads to. */
static int walk_path(struct walk *w)
{
	cleanup_close int fd = -1;
	unsigned int links = 0;
	char name[NAME_MAX + 1];
	bool too_long;

	while (next_name(w, name, &too_long)) {
		struct stat st;
		int ret;

		if (!strcmp(name, "."))
			continue;
		if (!strcmp(name, "..")) {
			go_up(w, w->depth ? w->depth - 1 : 0);
			continue;
		}
		if (fd >= 0)
			close(take_fd(&fd));
		fd = openat(here(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		if (S_ISLNK(st.st_mode)) {
			if (++links > MAX_LINKS)
				return -ELOOP;
			ret = userfile_root_follow(w, fd);
			if (ret < 0)
				return ret;
		} else if (S_ISDIR(st.st_mode)) {
			if (w->depth == MAX_DEPTH)
				return -ENAMETOOLONG;
			w->dir[w->depth++] = take_fd(&fd);
		} else {
			/* "file/" and "file/.." are no files. */
			return w->rest[0] ? -ENOTDIR : take_fd(&fd);
		}
	}
	return too_long ? -ENAMETOOLONG : -EISDIR;
}

static int open_by_steps(int root_fd, const char *path)
{
	struct walk w = { .root = root_fd };
	int ret;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(w.rest, path);
	ret = walk_path(&w);
	go_up(&w, 0);
	return ret;
}

static int open_at_once(int root_fd, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd;

	/* EAGAIN: something below the root was renamed meanwhile; openat2(2) says to try again. */
	for (unsigned int try = 0; try < 8; try++) {
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

int userfile_open_in_root(int root_fd, const char *path, enum userfile_way way)
{
	int fd = way == USERFILE_BY_STEPS ? -ENOSYS : open_at_once(root_fd, path);
	char self[48];
	struct stat st;
	int ret = 0;

	/* EPERM: container runtimes' filters answer so to what they don't know. */
	if (fd == -ENOSYS || fd == -EPERM)
		fd = open_by_steps(root_fd, path);
	if (fd < 0)
		return fd;
	/* A device or a pipe may do things when opened: so far it is only pointed at. */
	if (fstat(fd, &st) < 0)
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
	if (ret == 0) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		ret = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (ret < 0)
			ret = -errno;
	}
	close(fd);
	return ret;
}
