/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/file.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_CHUNK (1u << 20)

int file_open_regular(const char *path, struct stat *out, struct err *e)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return err_set(e, errno, "%s: cannot open: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: cannot stat: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(e, EISDIR, "%s: is a directory, expected a file", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, EINVAL, "%s: not a regular file", path);
	if (out)
		*out = st;
	return cleanup_take_fd(&fd);
}

FILE *file_stream(const char *path)
{
	struct err e = { 0 };
	int fd = file_open_regular(path, NULL, &e);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "re");

	if (fd < 0)
		errno = -fd;
	else if (!f)
		close(fd);
	return f;
}

int file_map_open(struct file_map *m, const char *path, size_t max_len, struct err *e)
{
	struct stat st;
	cleanup_close int fd = file_open_regular(path, &st, e);
	void *p;

	if (fd < 0)
		return fd;
	if (st.st_size == 0)
		return err_set(e, EINVAL, "%s: the file is empty", path);
	if ((uint64_t)st.st_size > max_len)
		return err_set(e, EFBIG, "%s: %llu bytes, more than the limit of %zu", path,
			       (unsigned long long)st.st_size, max_len);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_set(e, errno, "%s: cannot map: %s", path, strerror(errno));
	m->data = p;
	m->len = (size_t)st.st_size;
	return 0;
}

int file_map_copy(struct file_map *m, const void *data, size_t len, struct err *e)
{
	void *p;

	if (!len)
		return err_set(e, EINVAL, "no bytes");
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return err_set(e, ENOMEM, "out of memory: %zu bytes", len);
	memcpy(p, data, len);
	mprotect(p, len, PROT_READ);
	m->data = p;
	m->len = len;
	return 0;
}

void file_map_close(struct file_map *m)
{
	if (m->data)
		munmap((void *)m->data, m->len);
	m->data = NULL;
	m->len = 0;
}

int file_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

int file_read_rest(struct buf *b, int fd, size_t max, const char *name, struct err *e)
{
	for (;;) {
		uint8_t *room = buf_reserve(b, READ_CHUNK);
		ssize_t n;

		if (!room)
			return err_set(e, ENOMEM, "%s: out of memory", name);
		n = read(fd, room, READ_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, errno, "%s: cannot read: %s", name, strerror(errno));
		if (n == 0)
			return 0;
		b->len += (size_t)n;
		if (b->len > max)
			return err_set(e, EFBIG, "%s: longer than %zu MiB", name, max >> 20);
	}
}

int file_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int file_in_memory(const char *name, uint64_t size, int *out, struct err *e)
{
	*out = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*out < 0 || ftruncate(*out, (off_t)size))
		return err_set(e, errno, "no memory for the %s: %s", name, strerror(errno));
	return 0;
}

int file_seal(int fd, enum file_seal seal, const char *name, struct err *e)
{
	static const int seals[] = {
		[FILE_SEAL_SIZE] = F_SEAL_SHRINK | F_SEAL_GROW,
		[FILE_SEAL_LENGTH] = F_SEAL_SHRINK,
		[FILE_SEAL_ALL] = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL,
	};

	return fcntl(fd, F_ADD_SEALS, seals[seal]) < 0
		       ? err_set(e, errno, "cannot seal the %s: %s", name, strerror(errno))
		       : 0;
}

int file_replace(const char *tmp, const char *path, const void *data, size_t len, struct err *e)
{
	int fd, ret;

	unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_set(e, errno, "%s: cannot create: %s", tmp, strerror(errno));
	ret = file_write_all(fd, data, len);
	if (close(fd) < 0 && !ret)
		ret = -errno;
	if (!ret && rename(tmp, path) < 0)
		ret = -errno;
	if (ret) {
		unlink(tmp);
		return err_set(e, -ret, "%s: cannot write: %s", path, strerror(-ret));
	}
	return 0;
}

int file_mkdirs(const char *dir, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;
	char *p;

	if (!*dir)
		return err_set(e, ENOENT, "cannot create a directory without a name");
	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return err_set(e, ENAMETOOLONG, "%s: path too long", dir);
	for (p = path + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return err_set(e, errno, "%s: cannot create directory: %s", path,
				       strerror(errno));
		if (!c)
			break;
		*p = c;
	}
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, ENOTDIR, "%s: exists but is not a directory", path);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int file_remove_tree(const char *path, struct err *e)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_set(e, errno, "%s: %s", path, strerror(errno));
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
		return err_set(e, errno, "%s: cannot remove: %s", path, strerror(errno));
	return 0;
}

static int link_or_copy(int from_dir, int to_dir, const char *from, const char *name, struct err *e)
{
	cleanup_free char *path = NULL;
	cleanup_close int fd = -1;
	struct file_map m = { 0 };
	int ret;

	if (linkat(from_dir, name, to_dir, name, 0) == 0)
		return 0;
	if (asprintf(&path, "%s/%s", from, name) < 0) {
		path = NULL;
		return err_set(e, ENOMEM, "%s: out of memory", from);
	}
	ret = file_map_open(&m, path, FILE_LINK_MAX, e);
	if (ret)
		return ret;
	fd = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	ret = fd < 0 ? -errno : file_write_all(fd, m.data, m.len);
	file_map_close(&m);
	return ret ? err_set(e, -ret, "%s: cannot copy: %s", path, strerror(-ret)) : 0;
}

int file_link_all(const char *from, const char *to, struct err *e)
{
	cleanup_close int to_dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = opendir(from);
	struct dirent *d;
	int ret = 0;

	if (!list || to_dir < 0)
		ret = err_set(e, errno, "%s: cannot open: %s", list ? to : from, strerror(errno));
	while (!ret && (d = readdir(list))) {
		struct stat st;

		if (fstatat(dirfd(list), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			ret = link_or_copy(dirfd(list), to_dir, from, d->d_name, e);
	}
	if (list)
		closedir(list);
	return ret;
}

/* Checks that path is missing, or is something that may be moved or removed. */
static int check_movable(const char *path, struct err *e)
{
	struct stat st;

	return lstat(path, &st) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ||
			       S_ISLNK(st.st_mode)
		       ? 0
		       : err_set(e, EEXIST, "%s: exists and is neither a file nor a directory",
				 path);
}

/*
 * Removes tmp. Its data goes first: if the process is killed midway, the remains must not look like
 * a profile.
 */
static int remove_old(const char *tmp, struct err *e)
{
	char data[PATH_MAX];

	if (snprintf(data, sizeof(data), "%s/data", tmp) < (int)sizeof(data))
		(void)unlink(data);
	return file_remove_tree(tmp, e);
}

/*
 * Replaces path by exchanging names, so that path is complete at each moment. Returns 1 if the file
 * system cannot exchange names, else 0 or -errno.
 */
static int publish_by_exchange(const char *tmp, const char *path, const char *old, struct err *e)
{
	if (renameat2(AT_FDCWD, tmp, AT_FDCWD, path, RENAME_EXCHANGE) < 0)
		return 1;
	if (renameat2(AT_FDCWD, tmp, AT_FDCWD, old, RENAME_EXCHANGE) == 0)
		return remove_old(tmp, e);
	return rename(tmp, old) < 0 ? err_set(e, errno, "%s: cannot rename %s to it: %s", old, tmp,
					      strerror(errno))
				    : 0;
}

int file_publish(const char *tmp, const char *path, struct err *e)
{
	char old[PATH_MAX];
	struct stat st;
	int ret;

	if (snprintf(old, sizeof(old), "%s.old", path) >= (int)sizeof(old))
		return err_set(e, ENAMETOOLONG, "%s: path too long", path);
	if (lstat(path, &st) == 0) {
		ret = check_movable(path, e);
		if (ret)
			return ret;
		ret = check_movable(old, e);
		if (ret)
			return ret;
		ret = publish_by_exchange(tmp, path, old, e);
		if (ret <= 0)
			return ret;
		ret = file_remove_tree(old, e);
		if (ret)
			return ret;
		if (rename(path, old) < 0)
			return err_set(e, errno, "%s: cannot rename to %s: %s", path, old,
				       strerror(errno));
	}
	if (rename(tmp, path) < 0)
		return err_set(e, errno, "%s: cannot rename %s to it: %s", path, tmp,
			       strerror(errno));
	return 0;
}
