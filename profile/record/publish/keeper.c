/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/publish/keeper.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/helper.h"
#include "base/patience.h"
#include "base/signals.h"
#include "profile/record/publish/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Time limits for an answer, or for a sign of progress: before and after keeper_limit_wait(). The keeper
 * reports progress while it removes a large profile that is replaced.
 */
#define ANSWER_WAIT_MS 30000u
#define HURRY_WAIT_MS 1000u
#define PROGRESS_MS 200u

enum keeper_what { ASK_ADD, ASK_SEAL, ASK_PUBLISH, ASK_REMOVE, ASK_ENTRY };

/* Sent by a run once its guest runs; struct keeper_entry is also sent if it has a stage. */
struct keeper_request {
	uint32_t what;
	uint32_t index;
};

/* Sent by a run before its guest runs, with ASK_ADD. */
struct keeper_new {
	struct keeper_request head; /* index: enum keeper_kind */
	char dir[PATH_MAX];
	char tmp[NAME_MAX + 1], name[NAME_MAX + 1];
};

/* Sent by a run with a stage, with ASK_ENTRY. */
struct keeper_entry {
	struct keeper_request head; /* index: that of the stage */
	char entry[NAME_MAX + 1];
	char path[PATH_MAX];
};

struct keeper_answer {
	/* 0 or -errno with its text; for ASK_ADD the number of the place; or ANSWER_BUSY */
	int32_t ret;
	char text[sizeof(((struct err *)NULL)->text)];
};

/* A sign of progress, not yet an answer. */
#define ANSWER_BUSY INT32_MAX

struct keeper {
	struct helper helper;
	pthread_mutex_t lock; /* one request at a time */
	bool sealed;
	atomic_bool hurry;
};

/* -- in the keeper's process ------------------------------------------------------------ */

struct server {
	struct place place[KEEPER_MAX_PLACES];
	struct keeper_dir dir[2 * KEEPER_MAX_PLACES];
	unsigned int n, ndirs;
	bool sealed;
	struct keeper_confine confine;
	uint64_t told_ns; /* time of the last sign of progress */
	int fd;		  /* descriptor that came with the request; -1: none */
	union {
		struct keeper_request head;
		struct keeper_new new;
		struct keeper_entry entry;
	} in;
};

static void server_progress(void *ctx)
{
	static const struct keeper_answer busy = { .ret = ANSWER_BUSY };
	struct server *s = ctx;
	uint64_t now = clock_mono_ns();

	if (now - s->told_ns < PROGRESS_MS * UINT64_C(1000000))
		return;
	s->told_ns = now;
	(void)!send(HELPER_SOCKET, &busy, sizeof(busy), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Adds the directory of a new place, and the one that contains a cache. Returns 0 or -ENOMEM. */
static int server_add_dir(struct server *s, const struct place *p, const char *path, struct err *e)
{
	char *dir = strdup(path), *up = NULL;

	if (!dir || (p->kind == PLACE_CACHE && *p->name && asprintf(&up, "%s/..", path) < 0)) {
		free(dir);
		return err_nomem(e);
	}
	s->dir[s->ndirs++] = (struct keeper_dir){ dir, false };
	if (up)
		s->dir[s->ndirs++] = (struct keeper_dir){ up, true };
	return 0;
}

static int server_add(struct server *s, struct err *e)
{
	static const enum place_kind kinds[] = {
		[KEEPER_PROFILE] = PLACE_PROFILE, [KEEPER_FILE] = PLACE_FILE,
		[KEEPER_SCRATCH] = PLACE_SCRATCH, [KEEPER_CACHE] = PLACE_CACHE,
		[KEEPER_STAGE] = PLACE_STAGE,	  [KEEPER_SNAPSHOT] = PLACE_SNAPSHOT,
		[KEEPER_SOCKET] = PLACE_SOCKET,
	};
	const struct keeper_new *in = &s->in.new;
	struct place *p = &s->place[s->n];
	int ret;

	if (s->n == KEEPER_MAX_PLACES)
		return err_set(e, E2BIG, "more than %u results", KEEPER_MAX_PLACES);
	if (in->head.index >= sizeof(kinds) / sizeof(*kinds) ||
	    strnlen(in->dir, sizeof(in->dir)) == sizeof(in->dir))
		return err_set(e, EINVAL, "not the name of a result");
	*p = (struct place){ .kind = kinds[in->head.index],
			     .run = s->confine.run,
			     .file = s->fd,
			     .progress = server_progress,
			     .ctx = s };
	memcpy(p->tmp, in->tmp, sizeof(p->tmp));
	memcpy(p->name, in->name, sizeof(p->name));
	/* The user named the directory, so symbolic links in its path are followed. */
	p->dir = open(in->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir < 0)
		return err_set(e, errno, "%s: cannot open: %s", in->dir, strerror(errno));
	ret = place_check(p, e);
	ret = ret ? ret : server_add_dir(s, p, in->dir, e);
	if (ret) {
		close(p->dir);
		return ret;
	}
	s->fd = -1; /* it belongs to the place now */
	return (int)s->n++;
}

static int server_seal(struct server *s, struct err *e)
{
	s->sealed = true;
	return s->confine.bind ? s->confine.bind(s->confine.ctx, s->dir, s->ndirs, e) : 0;
}

static int server_entry(const struct server *s, struct err *e)
{
	const struct keeper_entry *in = &s->in.entry;

	if (in->head.what != ASK_ENTRY || in->head.index >= s->n ||
	    strnlen(in->path, sizeof(in->path)) == sizeof(in->path))
		return err_set(e, EINVAL, "not a request");
	return place_publish_entry(&s->place[in->head.index], in->entry, in->path, e);
}

/* Carries out the message of len bytes in s->in. Returns the answer. */
static int server_answer(struct server *s, size_t len, struct err *e)
{
	const struct keeper_request *r = &s->in.head;
	bool add = len == sizeof(s->in.new) && r->what == ASK_ADD && !s->sealed;

	if (add)
		return server_add(s, e);
	if (len == sizeof(s->in.entry))
		return server_entry(s, e);
	if (len != sizeof(*r))
		return err_set(e, EINVAL, "not a request");
	if (r->what == ASK_SEAL && !s->sealed)
		return server_seal(s, e);
	if (r->index >= s->n)
		return err_set(e, EINVAL, "no such result");
	if (r->what == ASK_PUBLISH)
		return place_publish(&s->place[r->index], e);
	if (r->what == ASK_REMOVE)
		return place_remove(&s->place[r->index], e);
	return err_set(e, EINVAL, "not a request");
}

/*
 * Ends a keeper that could not be confined: it must not serve a guest's run with the rights that it
 * still has, and such a run ends before its guest starts. It may be confined itself already and
 * unable to remove what it created, so that is done here, after the run's next request or its end:
 * until then the run may use these names.
 */
static void server_give_up(struct server *s)
{
	ssize_t n;

	do
		n = recv(HELPER_SOCKET, &s->in, sizeof(s->in), 0);
	while (n < 0 && errno == EINTR);
	for (unsigned int i = 0; i < s->n; i++)
		(void)place_remove(&s->place[i], NULL);
}

/*
 * Receives a message into s->in, and before the keeper is sealed a descriptor with it; the kernel
 * closes later ones. A message that is longer than the buffer is cut, and its length is then not
 * accepted.
 */
static ssize_t server_receive(struct server *s)
{
	struct fds fds = { .n = 1 };
	ssize_t len;

	if (s->sealed)
		return recv(HELPER_SOCKET, &s->in, sizeof(s->in), MSG_TRUNC);
	if (s->fd >= 0)
		close(s->fd);
	len = fds_receive(HELPER_SOCKET, &s->in, sizeof(s->in), &fds, MSG_TRUNC);
	s->fd = fds.n ? fds.fd[0] : -1;
	return len;
}

/* Serves until the socket ends, or the process could not be confined. Returns the exit status. */
static int server_main(void *ctx)
{
	const struct keeper_confine *confine = ctx;
	static struct server s; /* too large for the stack */
	static struct keeper_answer answer;
	ssize_t len;

	s.confine = *confine;
	s.fd = -1;
	for (;;) {
		struct err e = { 0 };
		bool seal;

		len = server_receive(&s);
		if (len <= 0)
			return 0;
		seal = (size_t)len == sizeof(s.in.head) && s.in.head.what == ASK_SEAL;
		s.told_ns = clock_mono_ns();
		answer.ret = server_answer(&s, (size_t)len, &e);
		memcpy(answer.text, e.text, sizeof(answer.text));
		if (send(HELPER_SOCKET, &answer, sizeof(answer), MSG_NOSIGNAL) !=
		    (ssize_t)sizeof(answer))
			return 0;
		if (seal && answer.ret) {
			server_give_up(&s);
			return 1;
		}
	}
}

/* -- in the run's process --------------------------------------------------------------- */

/*
 * Ends the process, so that it renames nothing later. Until its first answer it may still hold the
 * run's end of the pipe; but then the run is not confined yet and may send a signal.
 */
static void keeper_lose(struct keeper *k)
{
	helper_abandon(&k->helper);
	if (!k->helper.reaped && !k->sealed)
		kill(k->helper.pid, SIGKILL);
}

static int keeper_lost(struct keeper *k, struct err *e)
{
	keeper_lose(k);
	return err_set(e, EPIPE, "the process that renames results %s", k->helper.how);
}

/* Waits until there is an answer or a sign of progress. Returns false if none will come. */
static bool keeper_wait(struct keeper *k)
{
	struct patience left = { 0 };

	for (;;) {
		struct pollfd fd = { .fd = k->helper.socket, .events = POLLIN };
		unsigned int limit = atomic_load(&k->hurry) || signals_pending() ? HURRY_WAIT_MS
										 : ANSWER_WAIT_MS;
		int n;

		if (!patience_is_left(&left, clock_mono_ns(), limit * UINT64_C(1000000)))
			return poll(&fd, 1, 0) > 0;
		n = poll(&fd, 1, PATIENCE_LOOK_NS / 1000000);
		if (n > 0 || (n < 0 && errno != EINTR))
			return n > 0;
	}
}

static int keeper_answered(struct keeper *k, struct err *e)
{
	struct keeper_answer a;
	ssize_t n;

	do {
		if (k->helper.lost || !keeper_wait(k))
			return keeper_lost(k, e);
		n = read(k->helper.socket, &a, sizeof(a));
	} while ((n < 0 && errno == EINTR) || (n == (ssize_t)sizeof(a) && a.ret == ANSWER_BUSY));
	if (n != (ssize_t)sizeof(a) || a.ret < -HELPER_MAX_ERRNO ||
	    a.ret >= (int32_t)KEEPER_MAX_PLACES)
		return keeper_lost(k, e);
	a.text[sizeof(a.text) - 1] = 0;
	return a.ret < 0 ? err_set(e, -a.ret, "%s", a.text) : a.ret;
}

static int keeper_send(struct keeper *k, const void *message, size_t len, struct err *e)
{
	ssize_t n;

	if (k->helper.lost)
		return keeper_lost(k, e);
	do
		n = send(k->helper.socket, message, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : keeper_lost(k, e);
}

/* Sends a request to a sealed keeper and waits for its answer. Returns 0 or -errno. Any thread. */
static int keeper_ask(struct keeper *k, const void *request, size_t len, struct err *e)
{
	int ret;

	pthread_mutex_lock(&k->lock);
	ret = keeper_send(k, request, len, e);
	ret = ret ? ret : keeper_answered(k, e);
	ret = ret > 0 ? keeper_lost(k, e) : ret;
	pthread_mutex_unlock(&k->lock);
	return ret;
}

int keeper_start(struct keeper **out, const struct keeper_confine *confine, struct err *e)
{
	struct keeper_confine own = *confine;
	struct keeper *k = calloc(1, sizeof(*k));
	int ret;

	if (!k)
		return err_nomem(e);
	pthread_mutex_init(&k->lock, NULL);
	ret = helper_fork(&k->helper,
			  &(struct helper_work){ "results", THREAD_KEEPER, server_main, &own }, e);
	if (ret)
		free(k);
	else
		*out = k;
	return ret;
}

/* Splits path into a directory and a component of at most NAME_MAX bytes. */
static int split(const char *path, char dir[PATH_MAX], char name[NAME_MAX + 1], struct err *e)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t len = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);

	if (strlen(base) > NAME_MAX || len >= PATH_MAX)
		return err_set(e, ENAMETOOLONG, "%s: path too long", path);
	strcpy(name, base);
	snprintf(dir, PATH_MAX, "%.*s", slash ? (int)len : 1, slash ? path : ".");
	return 0;
}

/* Sends a request with a descriptor. */
static int keeper_send_fd(struct keeper *k, const void *message, size_t len, int fd, struct err *e)
{
	const struct fds fds = { { fd }, 1 };
	const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;

	if (k->helper.lost || fds_send(k->helper.socket, message, len, &fds, flags) != (ssize_t)len)
		return keeper_lost(k, e);
	return 0;
}

static int keeper_register(struct keeper *k, enum keeper_kind kind, int fd, const char *tmp,
			   const char *name, struct err *e)
{
	cleanup_free struct keeper_new *m = calloc(1, sizeof(*m));
	cleanup_free char *dir = calloc(1, PATH_MAX);
	bool named = kind == KEEPER_PROFILE || kind == KEEPER_FILE || kind == KEEPER_SNAPSHOT;
	int ret;

	if (!m || !dir)
		return err_nomem(e);
	if (k->sealed)
		return err_set(e, EPERM, "the keeper is sealed");
	m->head = (struct keeper_request){ ASK_ADD, kind };
	ret = split(tmp, m->dir, m->tmp, e);
	if (!ret && named)
		ret = split(name, dir, m->name, e);
	if (!ret && named && strcmp(dir, m->dir))
		ret = err_set(e, EINVAL, "%s and %s: not in one directory", tmp, name);
	if (!ret && kind == KEEPER_CACHE && name)
		ret = split(name, dir, m->name, e);
	if (!ret)
		ret = fd < 0 ? keeper_send(k, m, sizeof(*m), e)
			     : keeper_send_fd(k, m, sizeof(*m), fd, e);
	return ret ? ret : keeper_answered(k, e);
}

int keeper_add(struct keeper *k, enum keeper_kind kind, const char *tmp, const char *name,
	       struct err *e)
{
	return keeper_register(k, kind, -1, tmp, name, e);
}

int keeper_add_file(struct keeper *k, int fd, const char *tmp, const char *name, struct err *e)
{
	return keeper_register(k, KEEPER_SNAPSHOT, fd, tmp, name, e);
}

int keeper_seal(struct keeper *k, struct err *e)
{
	const struct keeper_request r = { ASK_SEAL, 0 };

	k->sealed = true;
	return keeper_send(k, &r, sizeof(r), e);
}

int keeper_sealed(struct keeper *k, struct err *e)
{
	int ret = keeper_answered(k, e);

	return ret > 0 ? keeper_lost(k, e) : ret;
}

int keeper_publish(struct keeper *k, unsigned int index, struct err *e)
{
	const struct keeper_request r = { ASK_PUBLISH, index };

	return keeper_ask(k, &r, sizeof(r), e);
}

int keeper_remove(struct keeper *k, unsigned int index, struct err *e)
{
	const struct keeper_request r = { ASK_REMOVE, index };

	return keeper_ask(k, &r, sizeof(r), e);
}

int keeper_publish_entry(struct keeper *k, unsigned int index, const char *entry, const char *path,
			 struct err *e)
{
	cleanup_free struct keeper_entry *m = calloc(1, sizeof(*m));

	if (!m)
		return err_nomem(e);
	if (strlen(entry) >= sizeof(m->entry) || strlen(path) >= sizeof(m->path))
		return err_set(e, ENAMETOOLONG, "%s: path too long", path);
	m->head = (struct keeper_request){ ASK_ENTRY, index };
	strcpy(m->entry, entry);
	strcpy(m->path, path);
	return keeper_ask(k, m, sizeof(*m), e);
}

void keeper_limit_wait(struct keeper *k)
{
	if (k)
		atomic_store(&k->hurry, true);
}

void keeper_end(struct keeper *k)
{
	if (!k)
		return;
	keeper_lose(k);
	helper_end(&k->helper);
	pthread_mutex_destroy(&k->lock);
	free(k);
}
