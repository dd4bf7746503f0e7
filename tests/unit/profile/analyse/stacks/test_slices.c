/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile's time cut by markers, written and read back: each sample is in one slice. */
#include "profile/analyse/stacks/slices.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/sink.h"

#define T0 UINT64_C(5000000000)
#define MS UINT64_C(1000000)
#define IP UINT64_C(0xffffffff81000010)

static char dir[] = "/tmp/kvmprof-slices.XXXXXX";
static char path[64], cache[64];

/* 100 samples, one each ms from T0 on. */
static void write_profile(bool room, const struct profile_marker *m, size_t n)
{
	static struct stack stack = { .n = 2, .n_kernel = 2, .ip = { IP, IP + 0x100 } };
	const struct profile_info info = {
		.event = { PROFILE_EVENT_WALL(1000) }, .nevents = 1, .markers = room, .vcpus = 1
	};
	const struct sink_perfdata_options opt = { .path = path,
						   .single_file = true,
						   .buildid_dir = cache };
	struct sink *sink;
	struct err e = { 0 };

	if (perfdata_sink_create(&sink, &opt, &e))
		fail_msg("%s", e.text);
	assert_int_equal(sink->ops->begin(sink, &info, &e), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(sink->ops->marker(sink, &m[i], &e), 0);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(sink->ops->sample(sink,
						   &(struct profile_sample){ .pid = 1,
									     .tid = 1,
									     .time_ns = T0 + i * MS,
									     .period = MS,
									     .mode = 1,
									     .stack = &stack },
						   &e),
				 0);
	assert_int_equal(sink->ops->end(sink, NULL, &e), 0);
	sink->ops->destroy(sink);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/p", dir);
	snprintf(cache, sizeof(cache), "%s/cache", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

static struct stack reached = { .n = 1, .n_kernel = 1, .ip = { IP } };

static const struct profile_marker three[] = {
	{ .kind = MARKER_START, .name = "go", .time_ns = T0 - MS / 2 },
	{ .kind = MARKER_BREAKPOINT, .name = "f+0x10", .time_ns = T0 + 20 * MS, .stack = &reached },
	{ .kind = MARKER_CONSOLE, .name = "a: b", .time_ns = T0 + 50 * MS + 1 },
	{ .kind = MARKER_BREAKPOINT, .name = "f+0x10", .time_ns = T0 + 80 * MS, .stack = &reached },
};

static void slices_of_markers(void **state)
{
	static const unsigned int want[] = { 21, 30, 30, 19 };
	struct slices s;
	struct err e = { 0 };
	const struct slice *one;

	(void)state;
	write_profile(true, three, 4);
	assert_int_equal(slices_load(&s, path, cache, &e), 0);
	assert_int_equal(s.n, 4);
	assert_int_equal(s.samples, 100);
	assert_true(s.weight_is_ns);
	for (unsigned int i = 0; i < 4; i++) {
		assert_string_equal(s.slice[i].name, three[i].name);
		assert_int_equal(s.slice[i].kind, three[i].kind);
		assert_int_equal(s.slice[i].samples, want[i]);
		assert_int_equal(s.slice[i].weight, want[i] * MS);
		assert_false(s.slice[i].phase);
	}
	assert_int_equal(s.slice[3].nth, 2);
	assert_int_equal(s.slice[3].to_ns, T0 + 99 * MS);
	assert_int_equal(slices_choose(&s, "f+0x10#2", &one, &e), 0);
	assert_ptr_equal(one, &s.slice[3]);
	assert_int_equal(slices_choose(&s, "a: b", &one, &e), 0);
	assert_ptr_equal(one, &s.slice[2]);
	assert_int_equal(slices_choose(&s, "f+0x10#3", &one, &e), -ENOENT);
	err_clear(&e);
	assert_int_equal(slices_choose(&s, "none", &one, &e), -ENOENT);
	assert_string_equal(e.text,
			    "there is no phase or marker 'none': there is go, f+0x10, a: b");
	slices_deinit(&s);
}

/* Each way to the samples gives the same ones. */
static void windows(void **state)
{
	static const struct {
		const char *name;
		unsigned int samples;
	} want[] = { { "go", 21 }, { "f+0x10", 30 }, { "a: b", 30 }, { "f+0x10#2", 19 } };

	(void)state;
	write_profile(true, three, 4);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct selection selection = { .phase = want[i].name };
		struct selection_window window;
		struct stackset_options opt = { 0 };
		struct perfdata_record r;
		struct stackset *set;
		struct perfdata *p;
		unsigned int samples = 0, markers = 0;

		opt.input = path;
		opt.buildid_dir = cache;
		opt.selection = &selection;
		assert_int_equal(stackset_load(&set, &opt, NULL), 0);
		assert_int_equal(set->samples, want[i].samples);
		assert_int_equal(set->nmarkers, 4);
		stackset_destroy(set);

		assert_int_equal(perfdata_open(&p, path, NULL), 0);
		assert_int_equal(slices_set_window(p, path, cache, want[i].name, &window, NULL), 0);
		while (perfdata_next(p, &r)) {
			samples += r.kind == PERFDATA_SAMPLE;
			markers += r.kind == PERFDATA_MARKER;
		}
		assert_int_equal(samples, want[i].samples);
		assert_int_equal(markers, 4);
		perfdata_close(p);
	}
}

/* As samples of an event of their own, with their stacks. */
static void markers_as_samples(void **state)
{
	struct perfdata_record r;
	struct perfdata_frame f;
	struct perfdata_walk w;
	struct perfdata *p;
	unsigned int n = 0;

	(void)state;
	write_profile(true, three, 4);
	assert_int_equal(perfdata_open(&p, path, NULL), 0);
	assert_string_equal(p->event, "wall");
	assert_int_equal(p->nevents, 2);
	assert_int_equal(p->nsamples, 100);
	perfdata_close(p);
	assert_int_equal(perfdata_open_event(&p, path, PERFDATA_MARKER_EVENT, NULL), 0);
	assert_int_equal(p->nsamples, 4);
	while (perfdata_next(p, &r)) {
		if (r.kind != PERFDATA_SAMPLE)
			continue;
		assert_string_equal(r.marker_name, three[n].name);
		assert_int_equal(r.time_ns, three[n].time_ns);
		assert_false(r.idle);
		perfdata_walk_begin(&w, &r);
		assert_true(perfdata_walk_next(&w, &f));
		assert_int_equal(f.ip, three[n].stack ? IP : 0);
		n++;
	}
	assert_int_equal(n, 4);
	perfdata_close(p);
}

/* Without room for them the file is what it would be without markers. */
static void nothing_of_them_without_room(void **state)
{
	struct file_map with = { 0 }, without = { 0 };
	struct slices s;
	struct perfdata *p;

	(void)state;
	write_profile(false, NULL, 0);
	assert_int_equal(file_map_open(&without, path, 1u << 20, NULL), 0);
	write_profile(false, three, 4);
	assert_int_equal(file_map_open(&with, path, 1u << 20, NULL), 0);
	assert_int_equal(with.len, without.len);
	file_map_close(&with);
	file_map_close(&without);
	assert_int_equal(perfdata_open(&p, path, NULL), 0);
	assert_int_equal(p->nevents, 1);
	perfdata_close(p);
	assert_int_equal(slices_load(&s, path, cache, NULL), 0);
	assert_int_equal(s.n, 0);
	slices_deinit(&s);
}

static void standard_input_cannot_be_read_twice(void **state)
{
	struct slices s;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(slices_load(&s, "-", cache, &e), -EINVAL);
	assert_non_null(strstr(e.text, "twice"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(slices_of_markers),
		T(windows),
		T(markers_as_samples),
		T(nothing_of_them_without_room),
		T(standard_input_cannot_be_read_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
