/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/p9_process.h"

#include "base/helper.h"
#include "vmm/dev/p9_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum p9_turn_kind { P9_BEGIN, P9_HANDLE, P9_RESET, P9_SAVE, P9_TAKE, P9_GIVE, P9_RESTORE };

/* A message on the socket, in either direction. */
struct p9_turn {
	uint32_t kind;
	int32_t ret;	   /* reply: 0 or -errno, then with its text in `text` */
	uint32_t len, cap; /* bytes of the request, room for the reply; reply: bytes of the reply */
};

struct p9_area {
	uint8_t request[P9_MSIZE], reply[P9_MSIZE];
	char text[sizeof(((struct err *)NULL)->text)];
};

struct p9_process {
	struct p9_area *area;
	struct helper helper;
};

/*
 * Maximum bytes of a session's state (P9_MAX_FIDS paths), together with the state of devices behind
 * it, which is passed along.
 */
#define P9_MAX_STATE (64u << 20)

/* Sends a whole message. Returns false on an error. Used by both sides, like p9_receive(). */
static bool p9_send(int fd, const struct p9_turn *t)
{
	ssize_t n;

	do
		n = write(fd, t, sizeof(*t));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*t);
}

static bool p9_receive(int fd, struct p9_turn *t)
{
	ssize_t n;

	do
		n = read(fd, t, sizeof(*t));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*t);
}

/* -- in the process --------------------------------------------------------------------------- */

struct p9_server {
	struct p9_area *area;
	struct p9 *p9;
	struct buf state; /* saved and not yet fetched, or received and not yet restored */
	/* A copy of the request, because the other side may change its own meanwhile. */
	uint8_t request[P9_MSIZE];
};

static int server_handle(struct p9_server *s, struct p9_turn *t)
{
	if (t->len > P9_MSIZE || t->cap > P9_MSIZE)
		return -EINVAL;
	memcpy(s->request, s->area->request, t->len);
	t->len = (uint32_t)p9_handle(s->p9, s->request, t->len, s->area->reply, t->cap);
	return 0;
}

static int server_save(struct p9_server *s, struct p9_turn *t, struct err *e)
{
	int ret;

	buf_deinit(&s->state);
	buf_init(&s->state);
	ret = p9_save(s->p9, &s->state, e);
	t->len = (uint32_t)s->state.len;
	return ret || s->state.len <= P9_MAX_STATE
		       ? ret
		       : err_set(e, EFBIG, "the share's state is too large");
}

/* Copies the next part of the saved state to the reply; t->cap is its offset. */
static int server_take(struct p9_server *s, struct p9_turn *t)
{
	if (t->cap > s->state.len)
		return -EINVAL;
	t->len = s->state.len - t->cap < P9_MSIZE ? (uint32_t)(s->state.len - t->cap) : P9_MSIZE;
	memcpy(s->area->reply, s->state.data + t->cap, t->len);
	return 0;
}

static int server_give(struct p9_server *s, const struct p9_turn *t)
{
	if (t->len > P9_MSIZE || s->state.len > P9_MAX_STATE)
		return -EINVAL;
	buf_add(&s->state, s->area->request, t->len);
	return s->state.failed ? -ENOMEM : 0;
}

/*
 * Restores the received state. The reply's len is the number of bytes that belonged to the session.
 */
static int server_restore(struct p9_server *s, struct p9_turn *t, struct err *e)
{
	struct cursor in;
	int ret;

	cursor_init(&in, s->state.data, s->state.len);
	ret = p9_restore(s->p9, &in, e);
	t->len = (uint32_t)in.pos;
	buf_deinit(&s->state);
	buf_init(&s->state);
	return ret;
}

static int server_answer(struct p9_server *s, struct p9_turn *t, struct err *e)
{
	switch (t->kind) {
	case P9_HANDLE:
		return server_handle(s, t);
	case P9_RESET:
		p9_reset(s->p9);
		return 0;
	case P9_SAVE:
		return server_save(s, t, e);
	case P9_TAKE:
		return server_take(s, t);
	case P9_GIVE:
		return server_give(s, t);
	case P9_RESTORE:
		return server_restore(s, t, e);
	default:
		return -EINVAL;
	}
}

/* Sends a reply. Returns false if the other side has closed the socket. */
static bool server_reply(struct p9_server *s, int fd, struct p9_turn *t, const struct err *e)
{
	memcpy(s->area->text, e->text, sizeof(s->area->text));
	return p9_send(fd, t);
}

struct server_work {
	struct p9_process *p;
	const struct p9_share *share;
	const struct p9_confine *confine;
};

/* Runs the process. Returns its exit status: 0 after the socket was closed. */
static int server_main(void *ctx)
{
	const struct server_work *w = ctx;
	struct p9_share mine = *w->share;
	struct p9_server *s = calloc(1, sizeof(*s));
	struct p9_turn t = { .kind = P9_BEGIN };
	struct err e = { 0 };
	bool go_on;

	if (!s)
		return 1;
	s->area = w->p->area;
	buf_init(&s->state);
	t.ret = w->confine->bind ? w->confine->bind(w->confine->ctx, &mine, &e) : 0;
	t.ret = t.ret ? t.ret : p9_create(&s->p9, &mine, &e);
	go_on = server_reply(s, HELPER_SOCKET, &t, &e) && !t.ret;
	while (go_on && p9_receive(HELPER_SOCKET, &t)) {
		err_clear(&e);
		t.ret = server_answer(s, &t, &e);
		go_on = server_reply(s, HELPER_SOCKET, &t, &e);
	}
	return 0;
}

/* -- in the parent process -------------------------------------------------------------------- */

void p9_process_kill(struct p9_process *p)
{
	helper_kill(&p->helper);
}

static int process_lost(struct p9_process *p, struct err *e)
{
	helper_abandon(&p->helper);
	return err_set(e, EPIPE, "the process of the share %s", p->helper.how);
}

/*
 * Waits for a reply. A guest's own request may wait for a slow file system, because its thread is
 * not awaited at the end.
 */
static bool process_wait(const struct p9_process *p, enum p9_turn_kind kind)
{
	return kind == P9_HANDLE ||
	       helper_wait(&p->helper, kind == P9_BEGIN ? HELPER_BEGIN_MS : P9_ANSWER_MS);
}

/* Returns whether the reply is valid and of this kind; else the process may be compromised. */
static bool answer_is_right(const struct p9_turn *t, enum p9_turn_kind kind)
{
	return t->kind == kind && t->ret <= 0 && t->ret >= -HELPER_MAX_ERRNO &&
	       t->len <= P9_MAX_STATE;
}

static int process_answer(struct p9_process *p, struct p9_turn *t, struct err *e)
{
	enum p9_turn_kind kind = t->kind;

	if (!process_wait(p, kind) || !p9_receive(p->helper.socket, t) || !answer_is_right(t, kind))
		return process_lost(p, e);
	if (t->ret) {
		char text[sizeof(p->area->text)];

		memcpy(text, p->area->text, sizeof(text));
		text[sizeof(text) - 1] = 0;
		err_set(e, -t->ret, "%s", text);
	}
	return t->ret;
}

static int process_ask(struct p9_process *p, struct p9_turn *t, struct err *e)
{
	return p->helper.lost || !p9_send(p->helper.socket, t) ? process_lost(p, e)
							       : process_answer(p, t, e);
}

static int process_fork(struct p9_process *p, const struct p9_share *share,
			const struct p9_confine *confine, struct err *e)
{
	struct server_work w = { p, share, confine };
	struct p9_turn t = { .kind = P9_BEGIN };
	int ret = helper_fork(&p->helper,
			      &(struct helper_work){ "a share", THREAD_9P_FILES, server_main, &w },
			      e);

	if (ret)
		return ret;
	/* The process of the next share must not have it. */
	madvise(p->area, sizeof(*p->area), MADV_DONTFORK);
	return process_answer(p, &t, e);
}

int p9_process_start(struct p9_process **out, const struct p9_share *share,
		     const struct p9_confine *confine, struct err *e)
{
	struct p9_process *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return err_nomem(e);
	helper_init(&p->helper);
	p->area = mmap(NULL, sizeof(*p->area), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (p->area == MAP_FAILED) {
		free(p);
		return err_nomem(e);
	}
	ret = process_fork(p, share, confine, e);
	if (ret) {
		p9_process_end(p);
		return ret;
	}
	*out = p;
	return 0;
}

void p9_process_end(struct p9_process *p)
{
	if (!p)
		return;
	helper_end(&p->helper);
	munmap(p->area, sizeof(*p->area));
	free(p);
}

uint8_t *p9_process_request(struct p9_process *p)
{
	return p->area->request;
}

const uint8_t *p9_process_reply(const struct p9_process *p)
{
	return p->area->reply;
}

int p9_process_handle(struct p9_process *p, size_t len, size_t cap, size_t *out)
{
	struct p9_turn t = { .kind = P9_HANDLE, .len = (uint32_t)len, .cap = (uint32_t)cap };
	int ret = process_ask(p, &t, NULL);

	if (!ret && t.len > cap)
		ret = process_lost(p, NULL);
	*out = ret ? 0 : t.len;
	return ret;
}

int p9_process_reset(struct p9_process *p)
{
	return process_ask(p, &(struct p9_turn){ .kind = P9_RESET }, NULL);
}

int p9_process_save(struct p9_process *p, struct buf *out, struct err *e)
{
	struct p9_turn t = { .kind = P9_SAVE };
	int ret = process_ask(p, &t, e);
	uint32_t all = t.len, at = 0;

	while (!ret && at < all) {
		t = (struct p9_turn){ .kind = P9_TAKE, .cap = at };
		ret = process_ask(p, &t, e);
		if (!ret && (!t.len || t.len > P9_MSIZE || t.len > all - at))
			ret = process_lost(p, e);
		if (!ret)
			buf_add(out, p->area->reply, t.len);
		at += t.len;
	}
	return ret;
}

int p9_process_restore(struct p9_process *p, struct cursor *in, struct err *e)
{
	struct p9_turn t = { .kind = P9_RESTORE };
	struct cursor rest = *in; /* includes the state of devices behind it */
	int ret = 0;

	while (!ret && cursor_left(&rest)) {
		size_t len = cursor_left(&rest) < P9_MSIZE ? cursor_left(&rest) : P9_MSIZE;
		struct p9_turn give = { .kind = P9_GIVE, .len = (uint32_t)len };

		memcpy(p->area->request, cursor_bytes(&rest, len), len);
		ret = process_ask(p, &give, e);
	}
	ret = ret ? ret : process_ask(p, &t, e);
	if (!ret && t.len > cursor_left(in))
		ret = process_lost(p, e);
	if (!ret)
		cursor_skip(in, t.len);
	return ret;
}

const char *p9_process_how(struct p9_process *p)
{
	return p->helper.how;
}
