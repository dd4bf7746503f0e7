/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * speedscope: https://www.speedscope.app/file-format-schema.json (its file format 0.6 and
 * later): frames in a table that all profiles share, and a "sampled" profile for each
 * vCPU, or with --per-thread for each thread and each vCPU's halted time.
 *
 * Samples stay in order of time; equal ones in a row are one with the sum of the weights.
 * Without times there would be no "time order" view. In a vCPU's profile the outermost
 * frame is the thread's name.
 */
#include "profile/analyse/export/private.h"

#include "base/json.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

struct speedscope {
	const struct stackset *s;
	const struct export_options *opt;
	struct export_labels *labels;
	struct export_tracks tracks;
	struct export_out *o;
	struct json_writer w; /* writes to o */
	enum export_track_of track_of;
	struct table comms; /* const char *; their frames come after the labels */
	uint32_t *comm_of;  /* indexed by task */
};

static bool equal_pointer(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const char *const *)a == *(const char *const *)b;
}

/* Collects the threads' names. Equal texts of a stackset are one pointer. */
static int find_comms(struct speedscope *x)
{
	int ret = 0;

	x->comms = TABLE_OF(const char *, equal_pointer);
	x->comm_of = calloc(x->s->ntasks + 1, sizeof(*x->comm_of));
	if (!x->comm_of)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < x->s->ntasks; i++) {
		const char *comm = x->s->task[i].comm;
		bool fresh;

		ret = table_add(&x->comms, table_mix((uint64_t)(uintptr_t)comm, 1), &comm,
				&x->comm_of[i], &fresh);
	}
	return ret;
}

static void put_frames(struct speedscope *x)
{
	size_t n = export_labels_count(x->labels);

	json_object_begin(&x->w, "shared");
	json_array_begin(&x->w, "frames");
	for (size_t i = 0; i < n; i++) {
		const struct export_label *l = export_label(x->labels, (uint32_t)i);

		json_line(&x->w);
		json_put_object(&x->w, NULL, "name", l->text, "file", l->dso);
		export_out_flush(x->o);
	}
	/* After the labels come the threads, which are the outermost frames of a vCPU's stacks. */
	for (size_t i = 0; x->track_of == EXPORT_TRACK_OF_VCPU && i < x->comms.n; i++) {
		const char *comm = ((const char *const *)x->comms.item)[i];

		json_line(&x->w);
		json_put_object(&x->w, NULL, "name", *comm ? comm : "?");
	}
	json_array_end(&x->w);
	json_object_end(&x->w);
}

static void put_stack(struct speedscope *x, uint32_t stack)
{
	const struct stackset_stack *st = &x->s->stack[stack];
	const uint32_t *label;
	size_t n = export_stack_labels(x->labels, st, &label);

	json_line(&x->w);
	json_array_begin(&x->w, NULL);
	if (x->track_of == EXPORT_TRACK_OF_VCPU)
		json_u64(&x->w, NULL, export_labels_count(x->labels) + x->comm_of[st->task]);
	for (size_t i = 0; i < n; i++)
		json_u64(&x->w, NULL, label[i]);
	json_array_end(&x->w);
	export_out_flush(x->o);
}

/* Returns the end of the run of equal stacks that begins at sample i of a track. */
static size_t run_of(const struct speedscope *x, const struct export_track *t, size_t i,
		     uint64_t *weight)
{
	const struct stackset_sample *first = &x->s->sample[t->sample[i]];

	for (*weight = 0; i < t->n; i++) {
		const struct stackset_sample *sample = &x->s->sample[t->sample[i]];

		if (sample->stack != first->stack)
			break;
		*weight += export_weight(x->opt, sample->weight, 1);
	}
	return i;
}

static void put_profile(struct speedscope *x, const struct export_track *t)
{
	bool ns = x->s->weight_is_ns && !x->opt->count_samples;
	uint64_t weight, sum = 0;
	char name[256];

	export_track_name(t, x->s, x->track_of, name, sizeof(name));
	json_line(&x->w);
	json_object_begin(&x->w, NULL);
	json_put(&x->w, "type", "sampled", "name", name, "unit", ns ? "nanoseconds" : "none");
	json_array_begin(&x->w, "samples");
	for (size_t i = 0; i < t->n; i = run_of(x, t, i, &weight))
		put_stack(x, x->s->sample[t->sample[i]].stack);
	json_array_end(&x->w);
	json_array_begin(&x->w, "weights");
	for (size_t i = 0; i < t->n;) {
		i = run_of(x, t, i, &weight);
		sum += weight;
		json_u64(&x->w, NULL, weight);
		export_out_flush(x->o);
	}
	json_array_end(&x->w);
	json_put(&x->w, "startValue", 0u, "endValue", sum);
	json_object_end(&x->w);
}

EXPORT_WRITER(speedscope)
{
	struct speedscope x = { .s = s,
				.opt = opt,
				.o = o,
				.track_of = opt->per_thread ? EXPORT_TRACK_OF_THREAD
							    : EXPORT_TRACK_OF_VCPU };
	int ret = export_labels_create(&x.labels, s, opt->names, e);

	(void)path;
	if (!ret && find_comms(&x) < 0)
		ret = err_nomem(e);
	if (!ret)
		ret = export_tracks_create(&x.tracks, s, x.track_of, e);
	if (!ret) {
		json_begin(&x.w, &o->buf);
		json_object_begin(&x.w, NULL);
		json_str(&x.w, "$schema", "https://www.speedscope.app/file-format-schema.json");
		json_strf(&x.w, "exporter", "kvmprof %s", opt->version);
		json_put(&x.w, "name", *s->osrelease ? s->osrelease : "kvmprof",
			 "activeProfileIndex", 0u);
		put_frames(&x);
		json_array_begin(&x.w, "profiles");
		for (size_t i = 0; i < x.tracks.n; i++)
			put_profile(&x, &x.tracks.track[i]);
		json_array_end(&x.w);
		json_object_end(&x.w);
		export_out_char(o, '\n');
	}
	table_deinit(&x.comms);
	free(x.comm_of);
	export_tracks_destroy(&x.tracks);
	export_labels_destroy(x.labels);
	return ret;
}
