/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/pipeline/io_stages.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The threads that fill the log are out of order by at most this many events. */
#define IO_STAGES_DISORDER 64u
/*
 * The interrupt of a request follows its end, with at most this many interrupts of other requests
 * in between.
 */
#define IO_STAGES_RAISED 1024u

/* An event of a task (a sign) or of a disk (an interrupt). */
struct io_event {
	uint64_t ns, token;
	uint64_t key; /* tid of a sign; submit_ns of the request of IO_RAISED; else 0 */
	uint8_t type, device;
};

/* A ring of the last IO_STAGES_EVENTS events. */
struct io_events {
	struct io_event *at;
	uint64_t n;
};

struct io_stages_log {
	/* a ring of added - taken requests: request i is at i % IO_STAGES_WAITING */
	struct io_stages *waiting;
	uint64_t added, taken;
	struct io_events signs, interrupts;
};

int io_stages_create(struct io_stages_log **out, struct err *e)
{
	struct io_stages_log *l = calloc(1, sizeof(*l));

	if (l) {
		l->waiting = calloc(IO_STAGES_WAITING, sizeof(*l->waiting));
		l->signs.at = calloc(IO_STAGES_EVENTS, sizeof(*l->signs.at));
		l->interrupts.at = calloc(IO_STAGES_EVENTS, sizeof(*l->interrupts.at));
	}
	if (!l || !l->waiting || !l->signs.at || !l->interrupts.at) {
		io_stages_destroy(l);
		return err_set(e, ENOMEM, "out of memory for requests of disks");
	}
	*out = l;
	return 0;
}

void io_stages_destroy(struct io_stages_log *l)
{
	if (!l)
		return;
	free(l->waiting);
	free(l->signs.at);
	free(l->interrupts.at);
	free(l);
}

static void events_add(struct io_events *e, const struct io_event *event)
{
	e->at[e->n++ % IO_STAGES_EVENTS] = *event;
}

static const struct io_event *event_at(const struct io_events *e, uint64_t i)
{
	return &e->at[i % IO_STAGES_EVENTS];
}

/*
 * Returns the time of the first event at from_ns or later that has the key, type and device of
 * *like and another token, or 0 if there is none. At most `among` events are examined. Returns 0 as
 * well if the first such event may already be overwritten.
 */
static uint64_t events_find(const struct io_events *e, uint64_t from_ns,
			    const struct io_event *like, unsigned int among)
{
	uint64_t oldest = e->n > IO_STAGES_EVENTS ? e->n - IO_STAGES_EVENTS : 0;
	uint64_t low = oldest, high = e->n;

	/* Events were overwritten, and the first one that fits may be one of them. */
	if (oldest && event_at(e, oldest)->ns >= from_ns)
		return 0;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (event_at(e, middle)->ns < from_ns)
			low = middle + 1;
		else
			high = middle;
	}
	low = low > oldest + IO_STAGES_DISORDER ? low - IO_STAGES_DISORDER : oldest;
	for (high = low + among; low < e->n && low < high; low++) {
		const struct io_event *at = event_at(e, low);

		if (at->ns >= from_ns && at->key == like->key && at->type == like->type &&
		    at->device == like->device && (!at->token || at->token != like->token))
			return at->ns;
	}
	return 0;
}

void io_stages_request(struct io_stages_log *l, const struct io_record *r, const struct io_who *who)
{
	struct io_stages *s;

	if (l->added - l->taken == IO_STAGES_WAITING)
		return; /* see io_stages.h: the caller makes room with io_stages_next() */
	s = &l->waiting[l->added++ % IO_STAGES_WAITING];
	*s = (struct io_stages){ .r = *r };
	if (who) {
		s->task = who->task;
		s->vcpu = who->sample.cpu;
	}
}

void io_stages_interrupt(struct io_stages_log *l, const struct io_record *r)
{
	events_add(&l->interrupts,
		   &(struct io_event){ .ns = r->complete_ns,
				       .key = r->type == IO_RAISED ? r->submit_ns : 0,
				       .type = r->type,
				       .device = r->device });
}

void io_stages_sample(struct io_stages_log *l, const struct sample *s)
{
	if (s->task.state != SAMPLE_TASK_FOUND || s->mode == SAMPLE_IDLE || !s->task.tid)
		return;
	events_add(&l->signs,
		   &(struct io_event){ .ns = s->time_ns,
				       .token = s->reason == SAMPLE_IO ? s->exit_addr : 0,
				       .key = s->task.tid });
}

static void find_stages(const struct io_stages_log *l, struct io_stages *s)
{
	struct io_event raised = { .key = s->r.submit_ns,
				   .type = IO_RAISED,
				   .device = s->r.device };
	struct io_event handled = { .type = IO_HANDLED, .device = s->r.device };
	struct io_event sign = { .key = s->task.tid, .token = s->r.token };
	uint64_t after = s->r.complete_ns;

	s->raised_ns = events_find(&l->interrupts, after, &raised, IO_STAGES_RAISED);
	after = s->raised_ns ? s->raised_ns : after;
	if (s->raised_ns)
		s->handled_ns = events_find(&l->interrupts, after, &handled, IO_STAGES_EVENTS);
	after = s->handled_ns ? s->handled_ns : after;
	if (s->task.state == SAMPLE_TASK_FOUND && s->task.tid)
		s->sign_ns = events_find(&l->signs, after, &sign, IO_STAGES_EVENTS);
}

bool io_stages_next(struct io_stages_log *l, uint64_t now_ns, struct io_stages *out)
{
	struct io_stages *s = &l->waiting[l->taken % IO_STAGES_WAITING];
	bool full = l->added - l->taken == IO_STAGES_WAITING;

	if (l->added == l->taken)
		return false;
	if (!full && now_ns != UINT64_MAX &&
	    (now_ns < s->r.complete_ns || now_ns - s->r.complete_ns < IO_STAGES_HOLD_NS))
		return false;
	find_stages(l, s);
	*out = *s;
	l->taken++;
	return true;
}

/* -- the requests of a whole run --------------------------------------------------------------- */

void io_stages_init(struct io_requests *q)
{
	memset(q, 0, sizeof(*q));
	pthread_mutex_init(&q->lock, NULL);
}

void io_stages_deinit(struct io_requests *q)
{
	free(q->list);
	pthread_mutex_destroy(&q->lock);
}

void io_stages_add(struct io_requests *q, const struct io_stages *s)
{
	pthread_mutex_lock(&q->lock);
	if (q->n == IO_REQUESTS_MAX || ARRAY_ROOM(q->list, q->n, q->cap))
		q->beyond++;
	else
		q->list[q->n++] = *s;
	pthread_mutex_unlock(&q->lock);
}

char io_stages_type_letter(uint8_t type)
{
	return type < IO_TYPES ? "RWFDZ"[type] : '?';
}

void io_stages_json(const struct io_stages *s, struct json_writer *w)
{
	const struct {
		const char *name;
		uint64_t ns;
	} stage[] = {
		{ "notified_ns", s->r.notified_ns }, { "taken_ns", s->r.submit_ns },
		{ "begun_ns", s->r.begun_ns },	     { "done_ns", s->r.complete_ns },
		{ "raised_ns", s->raised_ns },	     { "handled_ns", s->handled_ns },
		{ "sign_ns", s->sign_ns },
	};

	for (size_t i = 0; i < ARRAY_SIZE(stage); i++)
		if (stage[i].ns)
			json_u64(w, stage[i].name, stage[i].ns);
		else
			json_str(w, stage[i].name, NULL);
}
