/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/outfile.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STDOUT_NAME "standard output"

char *outfile_target(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st) == 0)
		return realpath(path, NULL);
	return strdup(path);
}

static bool is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static int in_place(struct outfile *o, int flags, struct err *e)
{
	o->fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | flags, 0644);
	return o->fd < 0 ? err_set(e, errno, "%s: cannot open for writing: %s", o->name,
				   strerror(errno))
			 : 0;
}

/*
 * Opens a temporary file beside the target. mode is that of the file to be replaced; 0: there is
 * none.
 */
static int beside(struct outfile *o, mode_t mode, struct err *e)
{
	if (asprintf(&o->tmp, "%s.tmp-%d", o->path, (int)getpid()) < 0) {
		o->tmp = NULL;
		return err_set(e, ENOMEM, "%s: out of memory", o->name);
	}
	/* A killed process that had our pid may have left this file, which was not complete. */
	unlink(o->tmp);
	o->fd = open(o->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (o->fd >= 0) {
		o->tmp_noted = signals_remove(o->tmp);
		if (mode)
			fchmod(o->fd, mode & 0777);
		return 0;
	}
	if (mode && (errno == EACCES || errno == EPERM || errno == EROFS)) {
		free(take_ptr(o->tmp));
		return in_place(o, O_TRUNC, e);
	}
	return err_set(e, errno, "%s: cannot create: %s", o->name, strerror(errno));
}

static int open_target(struct outfile *o, struct err *e)
{
	struct stat st;

	/* The target of a dangling link is created in place. */
	if (is_link(o->path))
		return in_place(o, O_CREAT | O_TRUNC, e);
	if (stat(o->path, &st) < 0)
		return errno == ENOENT ? beside(o, 0, e)
				       : err_set(e, errno, "%s: cannot create: %s", o->name,
						 strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(e, EISDIR, "%s: is a directory, expected the name of a file",
			       o->name);
	if (!S_ISREG(st.st_mode))
		return in_place(o, 0, e);
	if (access(o->path, W_OK) < 0)
		return err_set(e, errno, "%s: cannot open for writing: %s", o->name,
			       strerror(errno));
	return beside(o, st.st_mode, e);
}

static void outfile_deinit(struct outfile *o)
{
	if (o->fd >= 0 && o->fd != STDOUT_FILENO)
		close(o->fd);
	free(o->name);
	free(o->path);
	signals_keep(o->tmp_noted);
	free(o->tmp);
	*o = (struct outfile){ .fd = -1, .tmp_noted = -1 };
}

int outfile_open(struct outfile *o, const char *path, struct err *e)
{
	int ret = 0;

	*o = (struct outfile){ .fd = STDOUT_FILENO, .tmp_noted = -1 };
	o->name = strdup(strcmp(path, "-") ? path : STDOUT_NAME);
	if (strcmp(path, "-")) {
		o->fd = -1;
		o->path = outfile_target(path);
	}
	if (!o->name || (o->fd < 0 && !o->path))
		ret = err_set(e, ENOMEM, "%s: out of memory", path);
	else if (o->fd < 0)
		ret = open_target(o, e);
	if (ret)
		outfile_deinit(o);
	return ret;
}

int outfile_finish(struct outfile *o, int ret, struct err *e)
{
	if (o->path && close(cleanup_take_fd(&o->fd)) < 0 && !ret)
		ret = -errno;
	if (o->tmp && !ret && rename(o->tmp, o->path) < 0)
		ret = -errno;
	if (ret) {
		if (o->tmp)
			unlink(o->tmp);
		err_set(e, -ret, "%s: cannot write: %s", o->name, strerror(-ret));
	}
	outfile_deinit(o);
	return ret;
}

int outfile_write(const char *path, const void *data, size_t len, struct err *e)
{
	struct outfile o;
	int ret = outfile_open(&o, path, e);

	return ret ? ret : outfile_finish(&o, file_write_all(o.fd, data, len), e);
}

static int check_directory(const char *name, const char *path, struct err *e)
{
	cleanup_free char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	const char *in = slash ? dir : ".";
	struct stat st;

	if (!dir)
		return err_set(e, ENOMEM, "%s: out of memory", name);
	if (slash)
		slash[slash == dir] = '\0';
	if (!*path || (slash && !slash[1] && path[strlen(path) - 1] == '/'))
		return err_set(e, EISDIR, "%s: expected the name of a file", name);
	if (stat(in, &st) < 0)
		return err_set(e, errno, "%s: cannot create: %s: %s", name, in, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ENOTDIR, "%s: cannot create: %s is not a directory", name, in);
	return access(in, W_OK | X_OK) < 0
		       ? err_set(e, errno, "%s: cannot create: %s: %s", name, in, strerror(errno))
		       : 0;
}

int outfile_check(const char *path, enum outfile_kind kind, struct err *e)
{
	cleanup_free char *to = outfile_target(path);
	struct stat st;

	if (!to)
		return err_set(e, ENOMEM, "%s: out of memory", path);
	if (!strcmp(path, "-"))
		return kind == OUTFILE_ANY ? 0
					   : err_set(e, EINVAL, "-: expected the name of a file");
	if (stat(to, &st) < 0)
		return errno == ENOENT
			       ? check_directory(path, to, e)
			       : err_set(e, errno, "%s: cannot create: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(e, EISDIR, "%s: is a directory, expected the name of a file", path);
	if (kind == OUTFILE_REGULAR && !S_ISREG(st.st_mode))
		return err_set(e, EEXIST, "%s: exists and is not a regular file; give another name",
			       path);
	return access(to, W_OK) < 0
		       ? err_set(e, errno, "%s: cannot open for writing: %s", path, strerror(errno))
		       : 0;
}
