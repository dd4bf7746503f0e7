/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of disks, which a run with the event io stores in its totals (`requests`): a slice for
 * each, from the guest's notification to its last recorded step, which contains a slice for each
 * step. Packets of a run with the event net (`packets`) are treated likewise, with other steps.
 * Simultaneous requests of one device are on several tracks of one name, which a reader shows as
 * one.
 *
 * The totals come from a file: invalid entries are omitted.
 */
#include "profile/analyse/export/perfetto_requests.h"

#include "base/cleanup.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 1000000u /* maximum number in a profile, of each kind */
#define LANES_MAX 4096u	      /* maximum number of simultaneous requests, of all devices */
#define STAGES_MAX 6u
#define NOTES_MAX 8u

/* A step begins where the previous recorded step ended. */
struct stage {
	const char *member, *name; /* member with the end of the step; NULL: its beginning */
};

struct request {
	const json_t *json;
	const char *device;
	uint64_t at[STAGES_MAX]; /* 0: not recorded */
	uint64_t from, to;
};

/* The differences between requests and packets. */
struct kind {
	const char *list, *device; /* members of the totals */
	enum perfetto_group group;
	enum perfetto_kind track;
	const char *title, *told;
	struct stage stage[STAGES_MAX];
	const char *note[NOTES_MAX]; /* members shown as details of a slice */
	const char *failed;	     /* text for a request that is not `ok` */
	const char *(*name)(const json_t *json);
};

struct perfetto_requests_lane {
	const char *device;
	uint64_t end;
};

static bool request_of(const struct kind *k, const json_t *json, struct request *r)
{
	*r = (struct request){ .json = json,
			       .device = json_string_value(json_object_get(json, k->device)) };
	for (size_t i = 0; i < STAGES_MAX && k->stage[i].member; i++) {
		json_int_t v = json_integer_value(json_object_get(json, k->stage[i].member));

		if (v <= 0 || (uint64_t)v < r->to)
			continue;
		r->at[i] = r->to = (uint64_t)v;
		r->from = r->from ? r->from : r->to;
	}
	return r->device && strlen(r->device) < 32 && r->from;
}

static int compare_requests(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	return x->from != y->from ? (x->from < y->from ? -1 : 1)
				  : (x->to < y->to) - (x->to > y->to);
}

static void put_notes(struct perfetto *p, const struct kind *k, const json_t *json)
{
	for (size_t i = 0; i < NOTES_MAX && k->note[i]; i++) {
		const json_t *v = json_object_get(json, k->note[i]);

		if (json_is_string(v))
			perfetto_annotate(p, k->note[i], json_string_value(v));
		else if (json_is_integer(v) && json_integer_value(v) >= 0)
			perfetto_annotate_number(p, k->note[i], (uint64_t)json_integer_value(v));
	}
	if (json_is_false(json_object_get(json, "ok")))
		perfetto_annotate(p, "error", k->failed);
}

static const char *type_name(const json_t *json)
{
	static const char *const names[] = { "read", "write", "flush", "discard", "zeroes" };
	static const char letters[] = "RWFDZ";
	const char *type = json_string_value(json_object_get(json, "type"));
	const char *at = type && *type ? strchr(letters, *type) : NULL;

	return at ? names[at - letters] : "request";
}

static const char *request_way_name(const json_t *json)
{
	const char *way = json_string_value(json_object_get(json, "way"));

	return way && !strcmp(way, "sent")	 ? "sent"
	       : way && !strcmp(way, "received") ? "received"
						 : "packet";
}

static const struct kind disks = {
	.list = "requests",
	.device = "disk",
	.group = PERFETTO_DISKS,
	.track = PERFETTO_DISK,
	.title = "disks",
	.told = "requests of the guest, whatever is filtered",
	.stage = { { "notified_ns", NULL },
		   { "taken_ns", "queue" },
		   { "begun_ns", "thread" },
		   { "done_ns", "host" },
		   { "handled_ns", "interrupt" },
		   { "sign_ns", "task" } },
	.note = { "type", "sector", "bytes", "comm", "pid", "tid", "vcpu" },
	.failed = "the disk could not do it",
	.name = type_name,
};

static const struct kind cards = {
	.list = "packets",
	.device = "card",
	.group = PERFETTO_NETWORK,
	.track = PERFETTO_CARD,
	.title = "network",
	.told = "packets of the guest, whatever is filtered",
	.stage = { { "notified_ns", NULL },
		   { "taken_ns", "queue" },
		   { "done_ns", "host" },
		   { "raised_ns", "interrupt" } },
	.note = { "way", "bytes", "comm", "pid", "tid", "vcpu" },
	.failed = "the packet was lost",
	.name = request_way_name,
};

static void put_request(struct perfetto *p, const struct kind *k, const struct request *r,
			uint64_t track)
{
	uint64_t from = r->from;
	size_t slice = perfetto_slice_begin(p, track, r->from, k->name(r->json));

	put_notes(p, k, r->json);
	perfetto_slice_begun(p, slice);
	for (size_t i = 0; i < STAGES_MAX && k->stage[i].member; i++) {
		if (!r->at[i])
			continue;
		if (k->stage[i].name && r->at[i] > from)
			perfetto_slice(p, track, from, r->at[i], k->stage[i].name);
		from = r->at[i];
	}
	perfetto_slice_end(p, track, r->to);
}

/*
 * Returns the number of a lane that is free, adding one if necessary; n if there is no room for
 * more.
 */
static size_t free_lane(struct perfetto *p, const struct kind *k,
			struct perfetto_requests_lane *lane, size_t *n, const struct request *r)
{
	size_t i = 0;

	while (i < *n && (strcmp(lane[i].device, r->device) != 0 || lane[i].end > r->from))
		i++;
	if (i == *n && *n < LANES_MAX) {
		const struct perfetto_track t = {
			.uuid = perfetto_uuid(k->track, (uint32_t)i),
			.parent = perfetto_uuid(PERFETTO_GROUP, k->group),
			.name = r->device,
		};

		perfetto_track(p, &t);
		lane[(*n)++].device = r->device;
	}
	return i;
}

static int put_requests(struct perfetto *p, const struct kind *k, const json_t *list)
{
	size_t all = json_array_size(list), n = 0, lanes = 0;
	cleanup_free struct request *request = NULL;
	cleanup_free struct perfetto_requests_lane *lane = NULL;

	all = all < REQUESTS_MAX ? all : REQUESTS_MAX;
	if (!all)
		return 0;
	request = calloc(all, sizeof(*request));
	lane = calloc(LANES_MAX + 1, sizeof(*lane));
	if (!request || !lane)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++)
		n += request_of(k, json_array_get(list, i), &request[n]);
	if (!n)
		return 0;
	qsort(request, n, sizeof(*request), compare_requests);
	perfetto_group(p, k->group, k->title, k->told);
	for (size_t i = 0; i < n; i++) {
		size_t at = free_lane(p, k, lane, &lanes, &request[i]);

		/* an invalid file: a device has at most some hundreds of simultaneous requests */
		if (at == lanes)
			continue;
		lane[at].end = request[i].to;
		put_request(p, k, &request[i], perfetto_uuid(k->track, (uint32_t)at));
	}
	return 0;
}

int perfetto_requests(struct perfetto *p, const struct stackset *s)
{
	json_t *totals = s->json ? json_loads(s->json, JSON_REJECT_DUPLICATES, NULL) : NULL;
	int ret = put_requests(p, &disks, json_object_get(totals, disks.list));

	ret = ret ? ret : put_requests(p, &cards, json_object_get(totals, cards.list));
	json_decref(totals);
	return ret;
}
