/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One event's samples as PerfSample packets, whose stacks trace_processor imports as callstacks; VM
 * exits, if they are the event, also as slices on tracks of their own.
 *
 * Functions, images, frames and stacks are interned under their numbers in the stackset, plus 1.
 * timebase_count is the event's count on that vCPU so far: the sum of the weights.
 */
#include "profile/analyse/export/perfetto_samples.h"

#include "base/sample.h"
#include "base/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDS_PER_PACKET 256u

/* Fields of TracePacket and InternedData, and of the messages in the latter. */
enum { PACKET_TRACK_EVENT = 11, PACKET_INTERNED = 12, PACKET_PERF_SAMPLE = 66 };
enum {
	INTERNED_FUNCTION = 5,
	INTERNED_FRAME = 6,
	INTERNED_STACK = 7,
	INTERNED_PATH = 17,
	INTERNED_MAPPING = 19,
};
enum { EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_NAME = 23, EVENT_STACK = 56 };
enum { EVENT_BEGIN = 1, EVENT_END = 2, EVENT_INSTANT = 3 };
enum { MODE_KERNEL = 1, MODE_USER = 2 };

struct samples {
	struct perfetto *p;
	const struct stackset *s;
	unsigned int sequence;
	struct table dsos;	  /* const char * */
	uint32_t *dso_of;	  /* indexed by function */
	struct export_tree *cpus; /* weight of a node: count so far */
};

static bool equal_pointer(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const char *const *)a == *(const char *const *)b;
}

/* -- interned data ----------------------------------------------------------------------------- */

static void put_string(struct samples *m, unsigned int field, size_t i, const char *text)
{
	size_t at = proto_begin(&m->p->packet, field);

	proto_uint(&m->p->packet, 1, i + 1);
	proto_text(&m->p->packet, 2, text);
	proto_end(&m->p->packet, at);
}

static void put_path(struct samples *m, size_t i)
{
	put_string(m, INTERNED_PATH, i, ((const char **)m->dsos.item)[i]);
}

static void put_mapping(struct samples *m, size_t i)
{
	size_t at = proto_begin(&m->p->packet, INTERNED_MAPPING);

	proto_uint(&m->p->packet, 1, i + 1);
	proto_uint(&m->p->packet, 7, i + 1);
	proto_end(&m->p->packet, at);
}

static void put_function(struct samples *m, size_t i)
{
	put_string(m, INTERNED_FUNCTION, i, m->s->func[i].name);
}

static void put_frame(struct samples *m, size_t i)
{
	const struct stackset_frame *f = &m->s->frame[i];
	size_t at = proto_begin(&m->p->packet, INTERNED_FRAME);

	proto_uint(&m->p->packet, 1, i + 1);
	proto_uint(&m->p->packet, 2, f->func + UINT64_C(1));
	proto_uint(&m->p->packet, 3, m->dso_of[f->func] + UINT64_C(1));
	proto_uint(&m->p->packet, 4, f->image);
	proto_end(&m->p->packet, at);
}

static void put_stack(struct samples *m, size_t i)
{
	const struct stackset_stack *st = &m->s->stack[i];
	size_t at = proto_begin(&m->p->packet, INTERNED_STACK);

	proto_uint(&m->p->packet, 1, i + 1);
	for (uint32_t k = st->n; k-- > 0;) /* outermost first */
		proto_uint(&m->p->packet, 2, st->frame[k] + UINT64_C(1));
	proto_end(&m->p->packet, at);
}

/* Writes n objects of a kind in packets. */
static void put_all(struct samples *m, size_t n, void (*put)(struct samples *, size_t))
{
	for (size_t i = 0; i < n;) {
		size_t packet = perfetto_begin(m->p, m->sequence, 0);
		size_t interned = proto_begin(&m->p->packet, PACKET_INTERNED);

		do
			put(m, i++);
		while (i < n && i % IDS_PER_PACKET);
		proto_end(&m->p->packet, interned);
		perfetto_end(m->p, packet);
	}
}

static int find_dsos(struct samples *m)
{
	int ret = 0;

	for (size_t i = 0; i < m->s->nfuncs && !ret; i++) {
		const char *dso = m->s->func[i].dso;
		bool fresh;

		ret = table_add(&m->dsos, table_mix((uint64_t)(uintptr_t)dso, 0), &dso,
				&m->dso_of[i], &fresh);
	}
	return ret;
}

/* -- samples ----------------------------------------------------------------------------------- */

static void put_sample(struct samples *m, const struct stackset_sample *sample, uint64_t counted)
{
	const struct stackset_stack *st = &m->s->stack[sample->stack];
	const struct stackset_task *task = &m->s->task[st->task];
	struct buf *b = &m->p->packet;
	size_t packet = perfetto_begin(m->p, m->sequence, sample->time_ns);
	size_t at = proto_begin(b, PACKET_PERF_SAMPLE);

	if (sample->cpu != SAMPLE_NO_CPU)
		proto_uint(b, 1, sample->cpu);
	proto_uint(b, 2, task->pid);
	proto_uint(b, 3, task->tid);
	if (st->n)
		proto_uint(b, 4, sample->stack + UINT64_C(1));
	/* A packet without the field has an unknown mode. */
	if (st->mode != STACKSET_GUEST)
		proto_uint(b, 5, st->mode == STACKSET_USER ? MODE_USER : MODE_KERNEL);
	proto_uint(b, 6, counted);
	proto_end(b, at);
	perfetto_end(m->p, packet);
}

static void put_exit_end(struct samples *m, const struct stackset_sample *sample)
{
	struct buf *b = &m->p->packet;
	size_t packet = perfetto_begin(m->p, m->sequence, sample->time_ns);
	size_t event = proto_begin(b, PACKET_TRACK_EVENT);

	proto_uint(b, EVENT_TYPE, EVENT_END);
	proto_uint(b, EVENT_TRACK, perfetto_uuid(PERFETTO_EXITS, sample->cpu));
	proto_end(b, event);
	perfetto_end(m->p, packet);
}

/* Writes a slice for the duration of the host's work, or an instant if that is unknown. */
static void put_exit(struct samples *m, const struct stackset_sample *sample)
{
	struct buf *b = &m->p->packet;
	uint64_t took = sample->exit_ns < sample->time_ns ? sample->exit_ns : 0;
	size_t packet = perfetto_begin(m->p, m->sequence, sample->time_ns - took);
	size_t event = proto_begin(b, PACKET_TRACK_EVENT);

	proto_uint(b, EVENT_TYPE, took ? EVENT_BEGIN : EVENT_INSTANT);
	proto_uint(b, EVENT_TRACK, perfetto_uuid(PERFETTO_EXITS, sample->cpu));
	proto_text(b, EVENT_NAME, m->s->event);
	perfetto_annotate_number(m->p, "exits", sample->weight);
	if (m->s->stack[sample->stack].n)
		proto_uint(b, EVENT_STACK, sample->stack + UINT64_C(1));
	proto_end(b, event);
	perfetto_end(m->p, packet);
	if (took)
		put_exit_end(m, sample);
}

static void put_exits_track(struct samples *m, uint32_t cpu)
{
	const struct perfetto_track t = {
		.uuid = perfetto_uuid(PERFETTO_EXITS, cpu),
		.parent = perfetto_uuid(PERFETTO_VCPU, cpu),
		.name = "exits",
		.rank = 1,
	};

	perfetto_track(m->p, &t);
}

static int put_samples(struct samples *m)
{
	const bool exits = !strncmp(m->s->event, "exit", 4);
	int ret = 0;

	for (size_t i = 0; i < m->s->nsamples && !ret; i++) {
		const struct stackset_sample *sample = &m->s->sample[i];
		uint32_t node;
		bool fresh = false;

		ret = export_tree_add(m->cpus, EXPORT_ROOT, sample->cpu, &node);
		if (ret)
			break;
		export_node(m->cpus, node)->weight += export_weight(m->p->opt, sample->weight, 1);
		put_sample(m, sample, export_node(m->cpus, node)->weight);
		if (exits)
			ret = perfetto_intern(m->p, KNOWN_EXITS, sample->cpu, &node, &fresh);
		if (fresh)
			put_exits_track(m, sample->cpu);
		if (exits)
			put_exit(m, sample);
	}
	return ret;
}

int perfetto_samples(struct perfetto *p, const struct stackset *s, unsigned int sequence)
{
	struct samples m = { .p = p, .s = s, .sequence = sequence };
	int ret;

	m.dsos = TABLE_OF(const char *, equal_pointer);
	m.dso_of = calloc(s->nfuncs + 1, sizeof(*m.dso_of));
	m.cpus = export_tree_create();
	ret = m.dso_of && m.cpus ? find_dsos(&m) : -ENOMEM;
	if (!ret) {
		perfetto_sequence(p, sequence, *s->event ? s->event : "event");
		put_all(&m, m.dsos.n, put_path);
		put_all(&m, m.dsos.n, put_mapping);
		put_all(&m, s->nfuncs, put_function);
		put_all(&m, s->nframes, put_frame);
		put_all(&m, s->nstacks, put_stack);
		ret = put_samples(&m);
	}
	export_tree_destroy(m.cpus);
	table_deinit(&m.dsos);
	free(m.dso_of);
	return ret;
}
