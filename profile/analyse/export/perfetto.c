/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfetto: a trace of Perfetto (protos/perfetto/trace/perfetto_trace.proto), as its UI and
 * trace_processor read it.
 *
 *   Trace := TracePacket (field 1) *
 *
 * One packet says that all times are CLOCK_MONOTONIC; the sequence PERFETTO_TRACKS has tracks
 * and slices; then each event has a sequence with its stacks, interned, and its samples.
 */
#include "profile/analyse/export/perfetto.h"

#include "profile/analyse/export/perfetto_requests.h"
#include "profile/analyse/export/perfetto_samples.h"
#include "profile/analyse/export/perfetto_tasks.h"
#include "profile/analyse/export/private.h"
#include "profile/analyse/stacks/phases.h"

#include <errno.h>
#include <string.h>

/* Fields of TracePacket. */
enum {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_SYSTEM_INFO = 45,
	PACKET_TIMESTAMP_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
};
#define TRACE_PACKET 1u
#define CLOCK_ID_MONOTONIC 3u /* BUILTIN_CLOCK_MONOTONIC */
/* TracePacket.SequenceFlags */
#define STATE_CLEARED 1u
#define NEEDS_STATE 2u

/* -- packets ----------------------------------------------------------------------------------- */

size_t perfetto_begin(struct perfetto *p, unsigned int sequence, uint64_t ns)
{
	size_t begun = proto_begin(&p->packet, TRACE_PACKET);

	if (ns)
		proto_uint(&p->packet, PACKET_TIMESTAMP, ns);
	proto_uint(&p->packet, PACKET_SEQUENCE, sequence);
	proto_uint(&p->packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
	return begun;
}

void perfetto_end(struct perfetto *p, size_t begun)
{
	proto_end(&p->packet, begun);
	if (p->packet.failed)
		return;
	export_out_mem(p->o, p->packet.data, p->packet.len);
	p->packet.len = 0;
}

/* Writes the packet that defines the clock of all times. */
static void put_clock(struct perfetto *p, uint64_t ns)
{
	struct buf *b = &p->packet;
	size_t packet = proto_begin(b, TRACE_PACKET), snapshot, clock;

	proto_uint(b, PACKET_SEQUENCE, PERFETTO_TRACKS);
	snapshot = proto_begin(b, PACKET_CLOCK_SNAPSHOT);
	clock = proto_begin(b, 1);
	proto_uint(b, 1, CLOCK_ID_MONOTONIC);
	proto_uint(b, 2, ns);
	proto_end(b, clock);
	proto_uint(b, 2, CLOCK_ID_MONOTONIC); /* primary_trace_clock */
	proto_end(b, snapshot);
	perfetto_end(p, packet);
}

static void put_system(struct perfetto *p, const struct stackset *s)
{
	struct buf *b = &p->packet;
	size_t packet = proto_begin(b, TRACE_PACKET), system, uname;

	proto_uint(b, PACKET_SEQUENCE, PERFETTO_TRACKS);
	system = proto_begin(b, PACKET_SYSTEM_INFO);
	uname = proto_begin(b, 1);
	proto_text(b, 1, "guest"); /* sysname */
	proto_text(b, 3, s->osrelease);
	proto_text(b, 4, "x86_64");
	proto_end(b, uname);
	proto_end(b, system);
	perfetto_end(p, packet);
}

void perfetto_sequence(struct perfetto *p, unsigned int sequence, const char *counted)
{
	struct buf *b = &p->packet;
	size_t packet = proto_begin(b, TRACE_PACKET), defaults;

	proto_uint(b, PACKET_SEQUENCE, sequence);
	proto_uint(b, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
	defaults = proto_begin(b, PACKET_DEFAULTS);
	proto_uint(b, PACKET_TIMESTAMP_CLOCK, CLOCK_ID_MONOTONIC);
	if (counted) {
		size_t samples = proto_begin(b, 12), timebase = proto_begin(b, 1);

		proto_uint(b, 1, 1); /* a period; the reader requires one */
		proto_text(b, 10, counted);
		proto_end(b, timebase);
		proto_end(b, samples);
	}
	proto_end(b, defaults);
	perfetto_end(p, packet);
}

/* -- tracks ------------------------------------------------------------------------------------ */

void perfetto_track(struct perfetto *p, const struct perfetto_track *t)
{
	struct buf *b = &p->packet;
	size_t packet = perfetto_begin(p, PERFETTO_TRACKS, 0);
	size_t track = proto_begin(b, PACKET_TRACK_DESCRIPTOR);

	proto_uint(b, 1, t->uuid);
	proto_text(b, 2, t->name);
	if (t->parent)
		proto_uint(b, 5, t->parent);
	proto_uint(b, 11, 3); /* child_ordering: EXPLICIT */
	proto_uint(b, 12, t->rank);
	if (t->told)
		proto_text(b, 14, t->told);
	proto_end(b, track);
	perfetto_end(p, packet);
}

/* TrackEvent: type 9, track_uuid 11, name 23, debug_annotations 4. */
enum { EVENT_NOTE = 4, EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_NAME = 23 };
enum { SLICE_BEGIN = 1, SLICE_END = 2 };

/*
 * Begins a slice. The event is closed with its packet: one mark serves for both, because the packet
 * begins the buffer.
 */
size_t perfetto_slice_begin(struct perfetto *p, uint64_t track, uint64_t ns, const char *name)
{
	size_t event;

	(void)perfetto_begin(p, PERFETTO_TRACKS, ns);
	event = proto_begin(&p->packet, PACKET_TRACK_EVENT);
	proto_uint(&p->packet, EVENT_TYPE, name ? SLICE_BEGIN : SLICE_END);
	proto_uint(&p->packet, EVENT_TRACK, track);
	if (name)
		proto_text(&p->packet, EVENT_NAME, name);
	return event;
}

void perfetto_annotate(struct perfetto *p, const char *name, const char *text)
{
	size_t note = proto_begin(&p->packet, EVENT_NOTE);

	proto_text(&p->packet, 10, name);
	proto_text(&p->packet, 6, text);
	proto_end(&p->packet, note);
}

void perfetto_annotate_number(struct perfetto *p, const char *name, uint64_t v)
{
	size_t note = proto_begin(&p->packet, EVENT_NOTE);

	proto_text(&p->packet, 10, name);
	proto_uint(&p->packet, 3, v);
	proto_end(&p->packet, note);
}

void perfetto_slice_begun(struct perfetto *p, size_t begun)
{
	proto_end(&p->packet, begun);
	perfetto_end(p, 1 + 4); /* the packet: its tag has one byte */
}

void perfetto_slice_end(struct perfetto *p, uint64_t track, uint64_t ns)
{
	perfetto_slice_begun(p, perfetto_slice_begin(p, track, ns, NULL));
}

void perfetto_slice(struct perfetto *p, uint64_t track, uint64_t from, uint64_t to,
		    const char *name)
{
	perfetto_slice_begun(p, perfetto_slice_begin(p, track, from, name));
	perfetto_slice_end(p, track, to);
}

/* -- phases and markers ------------------------------------------------------------------------ */

void perfetto_group(struct perfetto *p, enum perfetto_group group, const char *name,
		    const char *told)
{
	const struct perfetto_track t = { .uuid = perfetto_uuid(PERFETTO_GROUP, group),
					  .name = name,
					  .rank = group,
					  .told = told };

	perfetto_track(p, &t);
}

static int put_phases(struct perfetto *p, const struct stackset *s, struct err *e)
{
	struct phases phases;
	int ret = phases_find(&phases, s, e);

	if (ret || !phases.boot)
		return ret;
	perfetto_group(p, PERFETTO_PHASES, "boot", "phases of the boot");
	for (unsigned int i = 0; i < PHASES; i++) {
		const struct phase_span *span = &phases.span[i];

		if (span->seen && span->from_ns < span->to_ns)
			perfetto_slice(p, perfetto_uuid(PERFETTO_GROUP, PERFETTO_PHASES),
				       span->from_ns, span->to_ns, phase_name(i));
	}
	return 0;
}

/* Writes a slice from each marker to the next, as in `report --phase`. */
static void put_markers(struct perfetto *p, const struct stackset *s)
{
	if (!s->nmarkers)
		return;
	perfetto_group(p, PERFETTO_MARKERS, "markers", "from each marker to the next one");
	for (size_t i = 0; i < s->nmarkers; i++) {
		uint64_t from = s->marker[i].time_ns;
		uint64_t to = i + 1 < s->nmarkers ? s->marker[i + 1].time_ns : s->last_ns;

		perfetto_slice(p, perfetto_uuid(PERFETTO_GROUP, PERFETTO_MARKERS), from,
			       to > from ? to : from, s->marker[i].name);
	}
}

/* -- all --------------------------------------------------------------------------------------- */

static bool is_clock(const struct stackset *s)
{
	if (s->ours && (!strcmp(s->event, "cpu") || !strcmp(s->event, "host")))
		return true;
	return s->weight_is_ns && strcmp(s->event, "off-cpu") != 0 &&
	       strcmp(s->event, "host-threads") != 0;
}

static const struct stackset *event_at(const struct stackset *s, const struct export_options *opt,
				       size_t i)
{
	return i ? opt->others[i - 1] : s;
}

/* Returns the first event that is a clock, whose samples show which task ran. */
static size_t find_clock(const struct stackset *s, const struct export_options *opt)
{
	for (size_t i = 0; i <= opt->nothers; i++)
		if (is_clock(event_at(s, opt, i)))
			return i;
	return 0;
}

static int put_all(struct perfetto *p, const struct stackset *s, struct err *e)
{
	const struct export_options *opt = p->opt;
	size_t at = find_clock(s, opt);
	const struct stackset *clock = event_at(s, opt, at);
	int ret;

	put_clock(p, s->first_ns);
	put_system(p, s);
	perfetto_sequence(p, PERFETTO_TRACKS, NULL);
	perfetto_group(p, PERFETTO_VCPUS, "vCPUs", NULL);
	ret = opt->filtered ? 0 : put_phases(p, clock, e);
	if (ret)
		return ret;
	put_markers(p, clock);
	ret = perfetto_requests(p, s);
	if (ret)
		return ret;
	ret = perfetto_tasks(p, clock, is_clock(clock) ? PERFETTO_SPANS : PERFETTO_NO_SPANS);
	if (ret)
		return ret;
	for (size_t i = 0; i <= opt->nothers; i++) {
		const struct stackset *event = event_at(s, opt, i);

		if (i != at)
			ret = perfetto_tasks(p, event, PERFETTO_NO_SPANS);
		if (ret)
			return ret;
		ret = perfetto_samples(p, event, PERFETTO_SAMPLES + (unsigned int)i);
		if (ret)
			return ret;
	}
	return p->packet.failed ? -ENOMEM : 0;
}

int perfetto_intern(struct perfetto *p, uint32_t below, uint32_t number, uint32_t *node,
		    bool *fresh)
{
	size_t known = export_tree_count(p->known);
	int ret = export_tree_add(p->known, below, number, node);

	*fresh = !ret && export_tree_count(p->known) > known;
	return ret;
}

EXPORT_WRITER(perfetto)
{
	struct perfetto p = { .o = o, .opt = opt, .known = export_tree_create() };
	int ret;

	(void)path;
	buf_init(&p.packet);
	ret = p.known ? put_all(&p, s, e) : -ENOMEM;
	buf_deinit(&p.packet);
	export_tree_destroy(p.known);
	return ret ? err_set(e, -ret, "out of memory for %zu samples", s->nsamples) : 0;
}
