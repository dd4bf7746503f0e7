/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The task that ran on each vCPU, according to the samples: a slice on the vCPU's track for each
 * time that a task ran, and one on the thread's track with the number of the vCPU.
 *
 * A sample covers the time that is its weight. The samples of a vCPU follow each other without a
 * gap, so their slices add up to the weights of the profile. If the next sample is more than twice
 * its weight away, time continues at that sample. A switch is therefore known to within a period,
 * and a task that ran only between two samples is missing.
 */
#include "profile/analyse/export/perfetto_tasks.h"

#include "profile/format/sink/where.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The time [from, to) of a sample, and the values by which neighbours are compared. */
struct span {
	uint64_t from, to;
	uint32_t cpu, task;
	bool halted;
	enum sample_where where; /* event host only */
};

static const struct stackset_task *task_of(const struct stackset *s, const struct span *span)
{
	return &s->task[span->task];
}

/*
 * Returns the state given by the outermost frame that has one, since the host's frames are above
 * it.
 */
static enum sample_where where_was(const struct stackset *s, const struct stackset_stack *st)
{
	enum sample_where where = st->mode == STACKSET_IDLE ? SAMPLE_HALTED : SAMPLE_IN_GUEST;

	for (uint32_t i = 0; i < st->n; i++)
		(void)where_of(s->frame[st->frame[i]].addr, &where);
	return where;
}

/* Finds the spans of each vCPU, which do not overlap. */
static void find_spans(const struct stackset *s, const struct export_tracks *vcpus,
		       struct span *span)
{
	for (size_t v = 0; v < vcpus->n; v++) {
		uint64_t filled = 0; /* end of this vCPU's last span */

		for (size_t i = 0; i < vcpus->track[v].n; i++) {
			uint32_t at = vcpus->track[v].sample[i];
			const struct stackset_sample *sample = &s->sample[at];
			const struct stackset_stack *st = &s->stack[sample->stack];
			uint64_t t = sample->time_ns, to;

			if (t > filled && (t - filled) / 2 >= sample->weight)
				filled = t - sample->weight;
			if (__builtin_add_overflow(filled, sample->weight, &to))
				to = filled;
			span[at] = (struct span){
				.from = filled,
				.to = to,
				.cpu = sample->cpu,
				.task = st->task,
				.halted = st->mode == STACKSET_IDLE,
				.where = where_was(s, st),
			};
			filled = to;
		}
	}
}

enum lane { LANE_VCPU, LANE_THREAD, LANE_WHERE };

static bool goes_on(enum lane lane, const struct span *a, const struct span *b)
{
	if (a->to != b->from)
		return false;
	if (lane == LANE_VCPU)
		return a->task == b->task && a->halted == b->halted;
	return lane == LANE_THREAD ? a->cpu == b->cpu : a->where == b->where;
}

static void put_span(struct perfetto *p, const struct stackset *s, uint64_t uuid, enum lane lane,
		     const struct span *span)
{
	const struct stackset_task *task = task_of(s, span);
	char name[256];
	size_t slice;

	if (lane == LANE_THREAD)
		snprintf(name, sizeof(name), "vCPU %u", span->cpu);
	else if (lane == LANE_WHERE)
		snprintf(name, sizeof(name), "%s", where_name(span->where));
	else if (span->halted)
		snprintf(name, sizeof(name), "halted");
	else if (task->pid)
		snprintf(name, sizeof(name), "%s %u", task->comm, task->tid);
	else
		snprintf(name, sizeof(name), "%s", task->comm);
	slice = perfetto_slice_begin(p, uuid, span->from, name);
	if (lane == LANE_VCPU) {
		perfetto_annotate(p, "comm", task->comm);
		perfetto_annotate_number(p, "pid", task->pid);
		perfetto_annotate_number(p, "tid", task->tid);
	}
	perfetto_slice_begun(p, slice);
	perfetto_slice_end(p, uuid, span->to);
}

/* Writes one slice for consecutive samples with equal values. */
static void put_lane(struct perfetto *p, const struct stackset *s, const struct export_track *t,
		     uint64_t uuid, const struct span *spans, enum lane lane)
{
	struct span open = { 0 };

	for (size_t i = 0; i < t->n; i++) {
		struct span next = spans[t->sample[i]];

		/* A thread moved: the samples of two vCPUs overlap by a period. */
		next.from = next.from < open.to ? open.to : next.from;
		if (next.from >= next.to)
			continue;
		if (open.to && goes_on(lane, &open, &next)) {
			open.to = next.to;
			continue;
		}
		if (open.to)
			put_span(p, s, uuid, lane, &open);
		open = next;
	}
	if (open.to)
		put_span(p, s, uuid, lane, &open);
}

/* Writes the states of a vCPU's thread, which only the event host has. */
static void put_where(struct perfetto *p, const struct stackset *s, const struct export_track *vcpu,
		      const struct span *spans)
{
	const struct perfetto_track t = {
		.uuid = perfetto_uuid(PERFETTO_WHERE, vcpu->cpu),
		.parent = perfetto_uuid(PERFETTO_VCPU, vcpu->cpu),
		.name = "where",
		.told = "where the thread was, by samples: guest, KVM, VMM, off the processor",
	};

	perfetto_track(p, &t);
	put_lane(p, s, vcpu, t.uuid, spans, LANE_WHERE);
}

static int put_vcpus(struct perfetto *p, const struct stackset *s,
		     const struct export_tracks *vcpus, const struct span *spans)
{
	int ret = 0;

	for (size_t i = 0; i < vcpus->n && !ret; i++) {
		struct perfetto_track t = {
			.uuid = perfetto_uuid(PERFETTO_VCPU, vcpus->track[i].cpu),
			.parent = perfetto_uuid(PERFETTO_GROUP, PERFETTO_VCPUS),
			.rank = vcpus->track[i].cpu,
			.told = "the task that runs, by samples: a switch is known to within a "
				"period",
		};
		uint32_t node;
		char name[24];
		bool fresh;

		ret = perfetto_intern(p, KNOWN_VCPU, vcpus->track[i].cpu, &node, &fresh);
		snprintf(name, sizeof(name), "vCPU %u", vcpus->track[i].cpu);
		t.name = name;
		if (!ret && fresh)
			perfetto_track(p, &t);
		if (!ret && spans)
			put_lane(p, s, &vcpus->track[i], t.uuid, spans, LANE_VCPU);
		if (!ret && spans && !strcmp(s->event, "host"))
			put_where(p, s, &vcpus->track[i], spans);
	}
	return ret;
}

/* Writes a ProcessDescriptor, or a ThreadDescriptor with the process's track as parent. */
static void put_descriptor(struct perfetto *p, const struct stackset_task *task, uint64_t uuid,
			   uint64_t parent)
{
	struct buf *b = &p->packet;
	size_t packet = perfetto_begin(p, PERFETTO_TRACKS, 0);
	size_t track = proto_begin(b, 60), descriptor;

	proto_uint(b, 1, uuid);
	if (parent)
		proto_uint(b, 5, parent);
	descriptor = proto_begin(b, parent ? 4 : 3);
	proto_uint(b, 1, task->pid);
	if (parent)
		proto_uint(b, 2, task->tid);
	proto_text(b, parent ? 5 : 6, task->comm);
	proto_end(b, descriptor);
	proto_end(b, track);
	perfetto_end(p, packet);
}

/*
 * Returns false for pid 0, which is a task of each vCPU and has no track besides the vCPU's, and
 * for a task that could not be read, which has no number.
 */
static bool has_track(const struct stackset *s, const struct export_track *t)
{
	const struct stackset_task *task = &s->task[t->task];

	return !t->idle && task->pid <= INT32_MAX && task->tid <= INT32_MAX;
}

static int put_process(struct perfetto *p, const struct stackset_task *task, uint32_t *node)
{
	bool fresh;
	int ret = perfetto_intern(p, KNOWN_PROCESS, task->pid, node, &fresh);

	if (!ret && fresh)
		put_descriptor(p, task, perfetto_uuid(PERFETTO_PROCESS, *node), 0);
	return ret;
}

static int put_thread(struct perfetto *p, const struct stackset *s, const struct export_track *t,
		      const struct span *spans)
{
	const struct stackset_task *task = &s->task[t->task];
	uint32_t process, node;
	bool fresh;
	int ret = put_process(p, task, &process);

	if (ret)
		return ret;
	ret = perfetto_intern(p, process, task->tid, &node, &fresh);
	if (ret)
		return ret;
	if (fresh)
		put_descriptor(p, task, perfetto_uuid(PERFETTO_THREAD, node),
			       perfetto_uuid(PERFETTO_PROCESS, process));
	if (spans)
		put_lane(p, s, t, perfetto_uuid(PERFETTO_THREAD, node), spans, LANE_THREAD);
	return 0;
}

/* Writes the threads. A process has the name of its main thread, if that was sampled. */
static int put_threads(struct perfetto *p, const struct stackset *s,
		       const struct export_tracks *threads, const struct span *spans)
{
	int ret = 0;

	for (size_t i = 0; i < threads->n && !ret; i++) {
		const struct stackset_task *task = &s->task[threads->track[i].task];
		uint32_t node;

		if (has_track(s, &threads->track[i]) && task->pid == task->tid)
			ret = put_process(p, task, &node);
	}
	for (size_t i = 0; i < threads->n && !ret; i++)
		if (has_track(s, &threads->track[i]))
			ret = put_thread(p, s, &threads->track[i], spans);
	return ret;
}

int perfetto_tasks(struct perfetto *p, const struct stackset *s, enum perfetto_spans which)
{
	struct export_tracks vcpus = { 0 }, threads = { 0 };
	struct span *spans = NULL;
	int ret = export_tracks_create(&vcpus, s, EXPORT_TRACK_OF_VCPU, NULL);

	ret = ret ? ret : export_tracks_create(&threads, s, EXPORT_TRACK_OF_THREAD, NULL);
	if (!ret && which == PERFETTO_SPANS) {
		spans = calloc(s->nsamples + 1, sizeof(*spans));
		ret = spans ? 0 : -ENOMEM;
	}
	if (spans)
		find_spans(s, &vcpus, spans);
	ret = ret ? ret : put_vcpus(p, s, &vcpus, spans);
	ret = ret ? ret : put_threads(p, s, &threads, spans);
	free(spans);
	export_tracks_destroy(&threads);
	export_tracks_destroy(&vcpus);
	return ret;
}
