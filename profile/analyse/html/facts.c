/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the page shows besides samples. Requests and packets come from the run's totals, a JSON text
 * of the file: entries of another form are omitted.
 *
 *   "markers":  [[time, name, kind], ...]
 *   "phases":   [[name, from, to], ...]
 *   "requests": [[device, what, bytes, comm, pid, vcpu, sector, ok, steps...], ...]
 *   "packets":  the same
 *
 * Steps are times, or null where a step was not recorded; "request_steps" and "packet_steps" name
 * them.
 */
#include "profile/analyse/html/private.h"

#include "profile/analyse/stacks/phases.h"
#include "profile/format/sink/markers.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define REQUESTS_MAX 200000u /* of each kind; a table and a track of more serve nobody */
#define STEPS 6u

/* The differences between requests and packets. */
struct html_kind {
	const char *list, *names, *device, *what, *beyond;
	const char *step[STEPS], *name[STEPS];
};

static const struct html_kind kinds[] = {
	{ "requests",
	  "request_steps",
	  "disk",
	  "type",
	  "requests_left_out",
	  { "notified_ns", "taken_ns", "begun_ns", "done_ns", "handled_ns", "sign_ns" },
	  { "notified", "queue", "thread", "host", "interrupt", "task" } },
	{ "packets",
	  "packet_steps",
	  "card",
	  "way",
	  "packets_left_out",
	  { "notified_ns", "taken_ns", "done_ns", "raised_ns" },
	  { "notified", "queue", "host", "interrupt" } },
};

static int64_t since(uint64_t ns, uint64_t begin_ns)
{
	return (int64_t)(ns - begin_ns);
}

static void put_request(struct json_writer *w, const struct html_kind *k, const json_t *r,
			uint64_t begin_ns)
{
	json_array_begin(w, NULL);
	json_str(w, NULL, json_string_value(json_object_get(r, k->device)));
	json_str(w, NULL, json_string_value(json_object_get(r, k->what)));
	json_i64(w, NULL, json_integer_value(json_object_get(r, "bytes")));
	json_str(w, NULL, json_string_value(json_object_get(r, "comm")));
	json_i64(w, NULL, json_integer_value(json_object_get(r, "pid")));
	json_i64(w, NULL, json_integer_value(json_object_get(r, "vcpu")));
	json_i64(w, NULL, json_integer_value(json_object_get(r, "sector")));
	json_bool(w, NULL, !json_is_false(json_object_get(r, "ok")));
	for (size_t i = 0; i < STEPS && k->step[i]; i++) {
		json_int_t ns = json_integer_value(json_object_get(r, k->step[i]));

		if (ns > 0)
			json_i64(w, NULL, since((uint64_t)ns, begin_ns));
		else
			json_str(w, NULL, NULL);
	}
	json_array_end(w);
}

static bool is_request(const struct html_kind *k, const json_t *r)
{
	bool timed = false;

	for (size_t i = 0; i < STEPS && k->step[i]; i++)
		timed |= json_integer_value(json_object_get(r, k->step[i])) > 0;
	return timed && json_is_string(json_object_get(r, k->device));
}

static void put_requests(struct json_writer *w, const struct html_kind *k, const json_t *totals,
			 uint64_t begin_ns)
{
	const json_t *list = json_object_get(totals, k->list);
	size_t n = json_array_size(list), most = n < REQUESTS_MAX ? n : REQUESTS_MAX;

	if (!n)
		return;
	json_array_begin(w, k->names);
	for (size_t i = 0; i < STEPS && k->name[i]; i++)
		json_str(w, NULL, k->name[i]);
	json_array_end(w);
	json_array_begin(w, k->list);
	for (size_t i = 0; i < most; i++)
		if (is_request(k, json_array_get(list, i)))
			put_request(w, k, json_array_get(list, i), begin_ns);
	json_array_end(w);
	json_u64(w, k->beyond, n - most);
}

static void put_markers(struct json_writer *w, const struct stackset *s, uint64_t begin_ns)
{
	json_array_begin(w, "markers");
	for (size_t i = 0; i < s->nmarkers; i++) {
		json_array_begin(w, NULL);
		json_i64(w, NULL, since(s->marker[i].time_ns, begin_ns));
		json_str(w, NULL, s->marker[i].name);
		json_str(w, NULL, markers_kind_name((enum marker_kind)s->marker[i].kind));
		json_array_end(w);
	}
	json_array_end(w);
}

static int put_phases(struct json_writer *w, const struct stackset *s, uint64_t begin_ns,
		      struct err *e)
{
	struct phases phases;
	int ret = phases_find(&phases, s, e);

	if (ret || !phases.boot)
		return ret;
	json_array_begin(w, "phases");
	for (unsigned int i = 0; i < PHASES; i++) {
		const struct phase_span *span = &phases.span[i];

		if (!span->seen || span->from_ns >= span->to_ns)
			continue;
		json_array_begin(w, NULL);
		json_str(w, NULL, phase_name((enum phase)i));
		json_i64(w, NULL, since(span->from_ns, begin_ns));
		json_i64(w, NULL, since(span->to_ns, begin_ns));
		json_array_end(w);
	}
	json_array_end(w);
	return 0;
}

/* Writes the sums of where the vCPUs' threads were over the whole run. */
static void put_where(struct json_writer *w, const json_t *totals)
{
	const json_t *where = json_object_get(totals, "where");
	const char *key;
	json_t *v;

	if (!json_is_object(where))
		return;
	json_object_begin(w, "where");
	json_object_foreach((json_t *)where, key, v) if (json_is_integer(v))
		json_i64(w, key, json_integer_value(v));
	json_object_end(w);
}

int html_facts(struct json_writer *w, const struct html_profile *p, uint64_t begin_ns,
	       struct err *e)
{
	const struct stackset *s = p->whole ? p->whole : p->n ? p->event[0] : NULL;
	json_t *totals;
	int ret;

	if (!s)
		return 0;
	json_put(w, "osrelease", s->osrelease, "guest", s->guest, "ours", s->ours, "partial",
		 s->partial, "message", s->message, "note", s->note ? s->note : "");
	put_markers(w, s, begin_ns);
	ret = put_phases(w, s, begin_ns, e);
	totals = s->json ? json_loads(s->json, JSON_REJECT_DUPLICATES, NULL) : NULL;
	put_where(w, totals);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		put_requests(w, &kinds[i], totals, begin_ns);
	json_decref(totals);
	return ret;
}
