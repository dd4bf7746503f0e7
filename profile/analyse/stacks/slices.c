/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/slices.h"

#include "base/cleanup.h"
#include "profile/analyse/stacks/phases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED 12u /* names in a message */

static void add_phases(struct slices *out, const struct phases *p)
{
	for (unsigned int i = 0; p->boot && i < PHASES; i++) {
		const struct phase_span *span = &p->span[i];
		struct slice *s = &out->slice[out->n];

		if (!span->seen)
			continue;
		*s = (struct slice){
			.phase = true, .nth = 1, .from_ns = span->from_ns, .to_ns = span->to_ns
		};
		snprintf(s->name, sizeof(s->name), "%s", phase_name((enum phase)i));
		out->n++;
	}
}

static void add_markers(struct slices *out, const struct stackset *set, size_t phases)
{
	for (size_t i = 0; i < set->nmarkers; i++) {
		const struct stackset_marker *m = &set->marker[i];
		struct slice *s = &out->slice[out->n];
		uint64_t end = i + 1 < set->nmarkers ? m[1].time_ns : out->last_ns;

		*s = (struct slice){ .kind = (enum marker_kind)m->kind,
				     .nth = 1,
				     .from_ns = m->time_ns,
				     .to_ns = end > m->time_ns ? end : m->time_ns };
		snprintf(s->name, sizeof(s->name), "%s", m->name);
		for (size_t k = out->n; k-- > phases;) {
			if (!strcmp(out->slice[k].name, s->name)) {
				s->nth = out->slice[k].nth + 1;
				break;
			}
		}
		out->n++;
	}
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = ((const struct stackset_sample *)a)->time_ns;
	uint64_t y = ((const struct stackset_sample *)b)->time_ns;

	return x < y ? -1 : x > y;
}

/* Returns the index of the first sample later than time_ns; samples are sorted by time. */
static size_t first_after(const struct stackset *set, uint64_t time_ns)
{
	size_t lo = 0, hi = set->nsamples;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct stackset_sample at = { .time_ns = time_ns };

		if (compare_times(&set->sample[mid], &at) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int compare_slices(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->phase != y->phase)
		return x->phase ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

/* Finds the slices of a stackset that has its samples and was not filtered. */
static int slices_find(struct slices *out, const struct stackset *set, struct err *e)
{
	struct phases phases;
	int ret = phases_find(&phases, set, e);

	if (ret)
		return ret;
	*out = (struct slices){ .samples = set->samples,
				.weight = set->weight,
				.weight_is_ns = set->weight_is_ns,
				.first_ns = set->nsamples ? set->sample[0].time_ns : set->first_ns,
				.last_ns = set->last_ns };
	out->slice = calloc(PHASES + set->nmarkers, sizeof(*out->slice));
	if (!out->slice)
		return err_set(e, ENOMEM, "out of memory for %zu slices", set->nmarkers);
	add_phases(out, &phases);
	add_markers(out, set, out->n);
	qsort(out->slice, out->n, sizeof(*out->slice), compare_slices);
	for (size_t i = 0; i < out->n; i++) {
		struct slice *s = &out->slice[i];
		size_t end = first_after(set, s->to_ns);

		for (size_t k = first_after(set, s->from_ns); k < end; k++) {
			s->samples++;
			s->weight += set->sample[k].weight;
		}
	}
	return 0;
}

int slices_load(struct slices *out, const char *input, const char *buildid_dir, struct err *e)
{
	struct stackset_options opt = { .input = input };
	struct stackset *set = NULL;
	int ret;

	if (input && !strcmp(input, "-"))
		return err_set(e, EINVAL,
			       "--phase reads the profile twice: give a file, not standard input");
	opt.buildid_dir = buildid_dir;
	opt.keep_samples = opt.no_demangle = true;
	ret = stackset_load(&set, &opt, e);
	ret = ret ? ret : slices_find(out, set, e);
	stackset_destroy(set);
	return ret;
}

void slices_deinit(struct slices *s)
{
	free(s->slice);
	*s = (struct slices){ 0 };
}

static bool is_named(const struct slice *s, const char *name, unsigned long nth)
{
	enum phase p;

	if (s->nth != nth)
		return false;
	return !strcmp(s->name, name) ||
	       (s->phase && phase_parse(name, &p) && !strcmp(s->name, phase_name(p)));
}

static int no_such(const struct slices *s, const char *name, struct err *e)
{
	char list[300] = "";
	size_t at = 0, shown = 0;

	for (size_t i = 0; i < s->n && shown < LISTED && at < sizeof(list); i++) {
		if (s->slice[i].nth > 1)
			continue;
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%.60s", shown ? ", " : "",
				       s->slice[i].name);
		shown++;
	}
	return err_set(e, ENOENT, "there is no phase or marker '%.100s': %s%s", name,
		       shown ? "there is " : "the profile has none", list);
}

int slices_choose(const struct slices *s, const char *name, const struct slice **out, struct err *e)
{
	const char *hash = strrchr(name, '#');
	cleanup_free char *bare = NULL;
	unsigned long nth = 1;
	char *end;

	/* A name may contain such a suffix itself. */
	for (size_t i = 0; i < s->n; i++) {
		if (is_named(&s->slice[i], name, 1)) {
			*out = &s->slice[i];
			return 0;
		}
	}
	if (!hash || hash[1] < '0' || hash[1] > '9')
		return no_such(s, name, e);
	nth = strtoul(hash + 1, &end, 10);
	bare = strndup(name, (size_t)(hash - name));
	if (!bare)
		return err_nomem(e);
	for (size_t i = 0; i < s->n && !*end; i++) {
		if (is_named(&s->slice[i], bare, nth)) {
			*out = &s->slice[i];
			return 0;
		}
	}
	return no_such(s, name, e);
}

int slices_set_window(struct perfdata *p, const char *input, const char *buildid_dir,
		      const char *name, struct selection_window *out, struct err *e)
{
	const struct slice *s = NULL;
	struct slices all = { 0 };
	int ret = slices_load(&all, input, buildid_dir, e);

	ret = ret ? ret : slices_choose(&all, name, &s, e);
	if (!ret) {
		*out = (struct selection_window){ s->from_ns + 1, s->to_ns + 1 };
		perfdata_set_window(p, out->from_ns, out->to_ns);
	}
	slices_deinit(&all);
	return ret;
}
