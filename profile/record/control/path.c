/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/control/path.h"

#include "base/cleanup.h"
#include "base/signals.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#define BACKLOG 8
#define CONNECT_S 5

/*
 * Stores the directory of default sockets. Fails if it belongs to another user, or if others may
 * write to it.
 */
static int control_dir(char out[CONTROL_PATH_MAX], enum control_missing missing, struct err *e)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n;

	if (run && *run)
		n = snprintf(out, CONTROL_PATH_MAX, "%s", run);
	else
		n = snprintf(out, CONTROL_PATH_MAX, "/tmp/kvmprof-%u", (unsigned int)geteuid());
	if (n < 0 || (size_t)n >= CONTROL_PATH_MAX)
		return err_set(e, ENAMETOOLONG,
			       "XDG_RUNTIME_DIR is too long for a socket: give --control PATH");
	if (missing == CONTROL_MISSING_IS_MADE && !(run && *run) && mkdir(out, 0700) < 0 &&
	    errno != EEXIST)
		return err_set(e, errno, "%s: cannot create: %s", out, strerror(errno));
	if (lstat(out, &st) < 0)
		return err_set(e, errno, "%s: %s", out, strerror(errno));
	/* In /tmp any user could have created it, and would see our socket there. */
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(e, EPERM,
			       "%s: not a directory that only you can write to: give "
			       "--control PATH",
			       out);
	return 0;
}

int control_path_of(char out[CONTROL_PATH_MAX], pid_t pid, enum control_missing missing,
		    struct err *e)
{
	char dir[CONTROL_PATH_MAX];
	int ret = control_dir(dir, missing, e), n;

	if (ret)
		return ret;
	n = snprintf(out, CONTROL_PATH_MAX, "%s/kvmprof-%ld.sock", dir, (long)pid);
	return n < 0 || (size_t)n >= CONTROL_PATH_MAX
		       ? err_set(e, ENAMETOOLONG,
				 "%s: too long for a socket in it: give --control PATH", dir)
		       : 0;
}

static int set_address(struct sockaddr_un *a, const char *path, struct err *e)
{
	size_t len = strlen(path);

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!len)
		return err_set(e, EINVAL, "the path of a control socket may not be empty");
	if (len >= sizeof(a->sun_path))
		return err_set(e, ENAMETOOLONG,
			       "%s: a socket's path may have %zu bytes, this one has %zu: use a "
			       "shorter one",
			       path, sizeof(a->sun_path) - 1, len);
	memcpy(a->sun_path, path, len + 1);
	return 0;
}

/* Handles a path that exists: removes it if it is a socket on which no process listens. */
static int clear_path(const struct sockaddr_un *a, struct err *e)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (lstat(a->sun_path, &st) < 0)
		return errno == ENOENT ? 0
				       : err_set(e, errno, "%s: %s", a->sun_path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, EEXIST, "%s: exists and is not a socket: give another path",
			       a->sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(e, errno, "cannot create a socket: %s", strerror(errno));
	/* EAGAIN: a process listens, with a full queue. */
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 || errno != ECONNREFUSED)
		return err_set(e, EADDRINUSE, "%s: another program listens there%s%s", a->sun_path,
			       errno == EACCES ? ", or it is another user's" : "",
			       ": give another path");
	if (unlink(a->sun_path) < 0 && errno != ENOENT)
		return err_set(e, errno, "%s: cannot remove the socket of a run that has ended: %s",
			       a->sun_path, strerror(errno));
	return 0;
}

static int bind_private(int fd, const struct sockaddr_un *a)
{
	mode_t old = umask(0177);
	int ret = bind(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 ? -errno : 0;

	umask(old);
	return ret;
}

int control_listen(struct control_listener *l, const char *path, struct err *e)
{
	cleanup_close int fd = -1;
	struct sockaddr_un a;
	struct stat st;
	int ret;

	l->fd = -1;
	if (!strcmp(path, CONTROL_PATH_AUTO)) {
		ret = control_path_of(l->path, getpid(), CONTROL_MISSING_IS_MADE, e);
		if (ret)
			return ret;
		path = l->path;
	}
	ret = set_address(&a, path, e);
	if (ret)
		return ret;
	memmove(l->path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(e, errno, "cannot create a socket: %s", strerror(errno));
	ret = bind_private(fd, &a);
	if (ret == -EADDRINUSE) {
		ret = clear_path(&a, e);
		if (ret)
			return ret;
		ret = bind_private(fd, &a);
	}
	if (ret)
		return err_set(e, -ret, "%s: cannot create a socket: %s", path, strerror(-ret));
	l->file = signals_remove(path);
	if (lstat(path, &st) < 0 || listen(fd, BACKLOG) < 0)
		return err_set(e, errno, "%s: cannot listen: %s", path, strerror(errno));
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	l->uid = geteuid();
	l->fd = cleanup_take_fd(&fd);
	return 0;
}

void control_unlisten(struct control_listener *l)
{
	struct stat st;

	if (l->fd < 0)
		return;
	if (lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
	signals_keep(l->file);
	close(l->fd);
	l->fd = -1;
}

int control_connect_failed(const char *path, int cause, struct err *e)
{
	struct stat st;

	if (cause == ENOENT)
		return err_set(e, ENOENT,
			       "%s: there is no control socket: was the run started with "
			       "--control, and is it still running?",
			       path);
	if (cause == ECONNREFUSED && stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return err_set(e, ENOTSOCK, "%s: not a control socket", path);
	if (cause == ECONNREFUSED)
		return err_set(e, ECONNREFUSED, "%s: the run that listened there has ended", path);
	if (cause == EAGAIN)
		return err_set(e, ETIMEDOUT, "%s: the program that listens there does not answer",
			       path);
	return err_set(e, cause, "%s: cannot connect: %s", path, strerror(cause));
}

void control_limit_waits(int fd)
{
	const struct timeval most = { .tv_sec = CONNECT_S };

	/* This limits connect(2), too: a full queue belongs to a program that does not accept. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

int control_connect(const char *path, struct err *e)
{
	cleanup_close int fd = -1;
	struct sockaddr_un a;
	int ret = set_address(&a, path, e);

	if (ret)
		return ret;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(e, errno, "cannot create a socket: %s", strerror(errno));
	control_limit_waits(fd);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return cleanup_take_fd(&fd);
	return control_connect_failed(path, errno, e);
}

int control_run_of(const char *path, pid_t *pid, struct err *e)
{
	char only[CONTROL_PATH_MAX];
	struct ucred peer;
	socklen_t len = sizeof(peer);
	cleanup_close int fd = -1;
	int ret = 0;

	if (!strcmp(path, CONTROL_PATH_AUTO)) {
		ret = control_path_only(only, e);
		path = only;
	}
	if (ret)
		return ret;
	fd = control_connect(path, e);
	if (fd < 0)
		return fd;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return err_set(e, errno, "%s: SO_PEERCRED: %s", path, strerror(errno));
	*pid = peer.pid;
	return 0;
}

unsigned int control_find(pid_t pid[CONTROL_MAX_FOUND])
{
	char dir[CONTROL_PATH_MAX];
	struct dirent *d;
	unsigned int n = 0;
	DIR *list;

	if (control_dir(dir, CONTROL_MISSING_FAILS, NULL))
		return 0;
	list = opendir(dir);
	while (list && n < CONTROL_MAX_FOUND && (d = readdir(list))) {
		char path[CONTROL_PATH_MAX], tail[8];
		int fd;
		long p;

		if (sscanf(d->d_name, "kvmprof-%ld.%7s", &p, tail) != 2 || strcmp(tail, "sock") ||
		    control_path_of(path, (pid_t)p, CONTROL_MISSING_FAILS, NULL))
			continue;
		fd = control_connect(path, NULL);
		if (fd < 0)
			continue;
		close(fd);
		pid[n++] = (pid_t)p;
	}
	if (list)
		closedir(list);
	return n;
}

int control_path_only(char path[CONTROL_PATH_MAX], struct err *e)
{
	pid_t pid[CONTROL_MAX_FOUND];
	unsigned int n = control_find(pid);

	if (!n)
		return err_set(e, ENOENT,
			       "no run was started with --control auto; for one with --control "
			       "PATH give the same here");
	if (n > 1)
		return err_set(
			e, EINVAL,
			"%u runs can be controlled: choose one with --control PATH; `kvmprof ctl "
			"list` shows them",
			n);
	return control_path_of(path, pid[0], CONTROL_MISSING_FAILS, e);
}
