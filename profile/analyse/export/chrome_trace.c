/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chrome-trace: the "Trace Event Format" (JSON object form) that Perfetto, Chrome's
 * tracing and speedscope read: a begin ("B") and an end ("E") for each frame, by thread.
 *
 * A sample stands for the time that is its weight. On each vCPU these are put one behind
 * the other, which is where they were within a period, as weights add up to the time
 * that passed; after a gap time goes on at the sample. A frame that goes on in the next
 * sample without a gap is one event. ts is in microseconds, with three digits. The
 * halted time of vCPU n is thread n of pid 0.
 */
#include "profile/analyse/export/export.h"

#include <errno.h>
#include <stdlib.h>

#define NO_STACK UINT32_MAX /* the label of samples without frames */

struct chrome {
	const struct stackset *s;
	struct export_out *o;
	struct export_labels *labels;
	struct export_tracks tracks;
	uint64_t *start; /* of each sample, ns since the first one */
	uint32_t *open;	 /* labels of the frames that have begun, outermost first */
	size_t nopen;
	uint32_t pid, tid;
	bool more; /* an event is written already */
};

static int place_samples(struct chrome *c)
{
	/* How far each vCPU's time is filled: .weight of its node. */
	struct export_tree *cpus = export_tree_create();
	int ret = cpus ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < c->s->nsamples; i++) {
		const struct stackset_sample *sample = &c->s->sample[i];
		uint64_t t = sample->time_ns - c->s->first_ns, w = sample->weight, *filled;
		uint32_t node;

		ret = export_tree_add(cpus, EXPORT_ROOT, sample->cpu, &node);
		if (ret)
			break;
		filled = &export_node(cpus, node)->weight;
		if (t > *filled && t - *filled > w && t - *filled - w > w)
			*filled = t - w;
		c->start[i] = *filled;
		*filled += w;
	}
	export_tree_destroy(cpus);
	return ret;
}

static void put_event(struct chrome *c, char phase, uint32_t label, uint64_t ns)
{
	const struct export_label *l = label == NO_STACK ? NULL : export_label(c->labels, label);

	out_text(c->o, c->more ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	c->more = true;
	out_char(c->o, phase);
	out_text(c->o, "\",\"pid\":");
	out_u64(c->o, c->pid);
	out_text(c->o, ",\"tid\":");
	out_u64(c->o, c->tid);
	out_text(c->o, ",\"ts\":");
	out_fixed(c->o, ns, 3);
	out_text(c->o, ",\"name\":");
	out_json(c->o, l ? l->text : "[no stack]");
	if (phase == 'B') {
		out_text(c->o, ",\"cat\":");
		out_json(c->o, l ? l->dso : "[unknown]");
	}
	out_char(c->o, '}');
}

static void put_name(struct chrome *c, const char *what, const char *name)
{
	out_printf(c->o,
		   "%s{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":",
		   c->more ? ",\n" : "\n", c->pid, c->tid, what);
	c->more = true;
	out_json(c->o, name);
	out_text(c->o, "}}");
}

static void end_frames(struct chrome *c, size_t keep, uint64_t ns)
{
	while (c->nopen > keep)
		put_event(c, 'E', c->open[--c->nopen], ns);
}

static void put_track(struct chrome *c, const struct export_track *t)
{
	const struct stackset_task *task = &c->s->task[t->task];
	const uint32_t none = NO_STACK;
	uint64_t end = 0;
	char name[256];

	c->pid = task->pid;
	c->tid = t->idle ? t->cpu : task->tid;
	export_track_name(t, c->s, EXPORT_TRACK_OF_THREAD, name, sizeof(name));
	if (t->idle || task->pid == task->tid)
		put_name(c, "process_name", task->comm);
	put_name(c, "thread_name", name);
	for (size_t i = 0; i < t->n; i++) {
		const struct stackset_sample *sample = &c->s->sample[t->sample[i]];
		uint64_t start = c->start[t->sample[i]];
		const uint32_t *label;
		size_t n, same = 0;

		/* A thread that was moved between vCPUs: their times may overlap by a period. */
		start = start < end ? end : start;
		if (start != end)
			end_frames(c, 0, end);
		n = export_stack_labels(c->labels, &c->s->stack[sample->stack], &label);
		if (!n) {
			label = &none;
			n = 1;
		}
		while (same < n && same < c->nopen && c->open[same] == label[same])
			same++;
		end_frames(c, same, start);
		for (; c->nopen < n; c->nopen++) {
			c->open[c->nopen] = label[c->nopen];
			put_event(c, 'B', label[c->nopen], start);
		}
		end = start + sample->weight;
	}
	end_frames(c, 0, end);
}

static int chrome_trace_prepare(struct chrome *c)
{
	size_t deepest = 1;

	for (size_t i = 0; i < c->s->nstacks; i++)
		deepest = c->s->stack[i].n > deepest ? c->s->stack[i].n : deepest;
	c->open = calloc(deepest * 2, sizeof(*c->open)); /* with --names both */
	c->start = calloc(c->s->nsamples + 1, sizeof(*c->start));
	return c->open && c->start ? place_samples(c) : -ENOMEM;
}

EXPORT_WRITER(chrome_trace)
{
	struct chrome c = { .s = s, .o = o };
	int ret;

	(void)path;
	if (!s->weight_is_ns)
		return err_set(
			e, EINVAL,
			"chrome-trace shows time, but this profile counts %s; try speedscope",
			*s->event ? s->event : "events");
	ret = export_labels_create(&c.labels, s, opt->names, e);
	if (!ret)
		ret = export_tracks_create(&c.tracks, s, EXPORT_TRACK_OF_THREAD, e);
	if (!ret && chrome_trace_prepare(&c) < 0)
		ret = err_set(e, ENOMEM, "out of memory for %zu samples", s->nsamples);
	if (!ret) {
		out_text(o, "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"osrelease\":");
		out_json(o, s->osrelease);
		out_printf(o, ",\"creator\":\"kvmprof %s\"},\n\"traceEvents\":[", opt->version);
		for (size_t i = 0; i < c.tracks.n; i++)
			put_track(&c, &c.tracks.track[i]);
		out_text(o, "]}\n");
	}
	free(c.start);
	free(c.open);
	export_tracks_destroy(&c.tracks);
	export_labels_destroy(c.labels);
	return ret;
}
