/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of disks, which a run with the event io has in its totals (`requests`): a slice for
 * each, from the guest's notification to the last that was seen of it, and in it the parts of
 * its way. Requests of a disk that overlap are on tracks of one name, which a reader shows as one.
 *
 * The totals are a file's: what is not as it should be is left out.
 */
#include "profile/export/perfetto.h"

#include "base/cleanup.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 1000000u /* of a profile */
#define LANES_MAX 4096u	      /* requests at once, of all disks */

/* A part of the way begins where the one before it ended, or where that was not seen, before that. */
static const struct {
	const char *member, *name; /* of its end; NULL: there it begins */
} stages[] = {
	{ "notified_ns", NULL }, { "taken_ns", "queue" },	{ "begun_ns", "thread" },
	{ "done_ns", "host" },	 { "handled_ns", "interrupt" }, { "sign_ns", "task" },
};
#define STAGES ARRAY_SIZE(stages)

struct request {
	const json_t *json;
	const char *disk;
	uint64_t at[STAGES]; /* 0: not seen */
	uint64_t from, to;
};

struct lane {
	const char *disk;
	uint64_t end;
};

static bool request_of(const json_t *json, struct request *r)
{
	*r = (struct request){ .json = json,
			       .disk = json_string_value(json_object_get(json, "disk")) };
	for (size_t i = 0; i < STAGES; i++) {
		json_int_t v = json_integer_value(json_object_get(json, stages[i].member));

		if (v <= 0 || (uint64_t)v < r->to)
			continue;
		r->at[i] = r->to = (uint64_t)v;
		r->from = r->from ? r->from : r->to;
	}
	return r->disk && strlen(r->disk) < 32 && r->from;
}

static int compare_requests(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	return x->from != y->from ? (x->from < y->from ? -1 : 1)
				  : (x->to < y->to) - (x->to > y->to);
}

static void put_notes(struct perfetto *p, const json_t *json)
{
	static const char *const members[] = { "type", "sector", "bytes", "comm",
					       "pid",  "tid",	 "vcpu" };

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		const json_t *v = json_object_get(json, members[i]);

		if (json_is_string(v))
			perfetto_note(p, members[i], json_string_value(v));
		else if (json_is_integer(v) && json_integer_value(v) >= 0)
			perfetto_note_number(p, members[i], (uint64_t)json_integer_value(v));
	}
	if (json_is_false(json_object_get(json, "ok")))
		perfetto_note(p, "error", "the disk could not do it");
}

static const char *type_name(const json_t *json)
{
	static const char *const names[] = { "read", "write", "flush", "discard", "zeroes" };
	static const char letters[] = "RWFDZ";
	const char *type = json_string_value(json_object_get(json, "type"));
	const char *at = type && *type ? strchr(letters, *type) : NULL;

	return at ? names[at - letters] : "request";
}

static void put_request(struct perfetto *p, const struct request *r, uint64_t track)
{
	uint64_t from = r->from;
	size_t slice = perfetto_slice_begin(p, track, r->from, type_name(r->json));

	put_notes(p, r->json);
	perfetto_slice_begun(p, slice);
	for (size_t i = 0; i < STAGES; i++) {
		if (!r->at[i])
			continue;
		if (stages[i].name && r->at[i] > from)
			perfetto_slice(p, track, from, r->at[i], stages[i].name);
		from = r->at[i];
	}
	perfetto_slice_end(p, track, r->to);
}

/* Its number; n: none is free, and there is no more room. */
static size_t free_lane(struct perfetto *p, struct lane *lane, size_t *n, const struct request *r)
{
	size_t i = 0;

	while (i < *n && (strcmp(lane[i].disk, r->disk) != 0 || lane[i].end > r->from))
		i++;
	if (i == *n && *n < LANES_MAX) {
		const struct perfetto_track t = {
			.uuid = perfetto_uuid(PERFETTO_DISK, (uint32_t)i),
			.parent = perfetto_uuid(PERFETTO_GROUP, PERFETTO_DISKS),
			.name = r->disk,
		};

		perfetto_track(p, &t);
		lane[(*n)++].disk = r->disk;
	}
	return i;
}

int perfetto_disks(struct perfetto *p, const struct stackset *s)
{
	json_t *totals = s->json ? json_loads(s->json, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *list = json_object_get(totals, "requests");
	size_t all = json_array_size(list), n = 0, lanes = 0;
	cleanup_free struct request *request = NULL;
	cleanup_free struct lane *lane = NULL;
	int ret = 0;

	all = all < REQUESTS_MAX ? all : REQUESTS_MAX;
	if (all) {
		request = calloc(all, sizeof(*request));
		lane = calloc(LANES_MAX + 1, sizeof(*lane));
		ret = request && lane ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < all && !ret; i++)
		n += request_of(json_array_get(list, i), &request[n]);
	if (n && !ret) {
		qsort(request, n, sizeof(*request), compare_requests);
		perfetto_group(p, PERFETTO_DISKS, "disks",
			       "requests of the guest, whatever is filtered");
		for (size_t i = 0; i < n; i++) {
			size_t k = free_lane(p, lane, &lanes, &request[i]);

			if (k == lanes) /* hostile: a disk has at most some hundreds at once */
				continue;
			lane[k].end = request[i].to;
			put_request(p, &request[i], perfetto_uuid(PERFETTO_DISK, (uint32_t)k));
		}
	}
	json_decref(totals);
	return ret;
}
