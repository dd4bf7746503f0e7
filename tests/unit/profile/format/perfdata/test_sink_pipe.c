/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile through a pipe: the form that perf reads, and all that was told comes out again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/sample.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/perfdata/sink_pipe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT 0xffffffff81000000u
#define SAMPLES 50u

static char root[64], cache[96], out[96];
static struct sink *sink;

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/kvmprof-test.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(cache, sizeof(cache), "%s/cache", root);
	snprintf(out, sizeof(out), "%s/out", root);
	return setenv("TMPDIR", root, 1);
}

static int teardown(void **state)
{
	(void)state;
	if (sink)
		sink->ops->destroy(sink);
	sink = NULL;
	return file_remove_tree(root, NULL);
}

static int run(int fd, struct err *e)
{
	static struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
					    .nevents = 1,
					    .vcpus = 2 };
	const struct sink_perfdata_options opt = { .buildid_dir = cache };
	const struct profile_kernel kernel = { .text = TEXT,
					       .end = TEXT + 0x10000,
					       .osrelease = "6.1.0" };
	const struct profile_totals totals = { .json = "{\"made_up\":true}" };
	struct stack st = { .n = 2, .n_kernel = 2, .ip = { TEXT + 4, TEXT + 0x44 } };
	int ret = sink_pipe_create(&sink, fd, &opt, e);

	if (ret)
		return ret;
	assert_int_equal(sink->ops->begin(sink, &info, e), 0);
	assert_int_equal(sink->ops->kernel(sink, &kernel, e), 0);
	assert_int_equal(sink->ops->fork(sink, &(struct profile_fork){ 7, 7, 1, 1, 5 }, e), 0);
	assert_int_equal(sink->ops->comm(sink, &(struct profile_comm){ 7, 7, "task", true, 6 }, e),
			 0);
	for (unsigned int i = 0; i < SAMPLES; i++) {
		const struct profile_sample s = {
			.pid = 7, .tid = 7, .time_ns = 100 + i, .period = 3, .stack = &st
		};

		assert_int_equal(sink->ops->sample(sink, &s, e), 0);
	}
	assert_int_equal(sink->ops->lost(sink, 1, 4, 200, e), 0);
	return sink->ops->end(sink, &totals, e);
}

static unsigned int entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void test_round_trip(void **state)
{
	cleanup_close int fd = open(out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct perfdata *p = NULL;
	struct perfdata_record r;
	struct err e = { 0 };
	uint64_t samples = 0;

	(void)state;
	assert_int_equal(run(fd, &e), 0);
	sink->ops->destroy(sink);
	sink = NULL;
	/* Nothing but the output: no names were there to be cached. */
	assert_int_equal(entries(root), 1);
	assert_int_equal(perfdata_open(&p, out, &e), 0);
	assert_string_equal(p->message, "");
	assert_true(p->ours);
	assert_string_equal(p->event, "wall");
	assert_string_equal(p->osrelease, "6.1.0");
	assert_int_equal(p->ncpus, 2);
	assert_int_equal(p->nsamples, SAMPLES);
	assert_int_equal(p->nlost, 4);
	assert_int_equal(p->nbuild_ids, 1);
	assert_true(p->build_ids[0].kernel);
	assert_null(p->json);
	while (perfdata_next(p, &r)) {
		if (r.kind == PERFDATA_COMM)
			assert_string_equal(r.comm, "task");
		if (r.kind != PERFDATA_SAMPLE)
			continue;
		assert_int_equal(r.time_ns, 100 + samples++);
		assert_int_equal(r.sample.period, 3);
		assert_int_equal(r.pid, 7);
	}
	assert_int_equal(samples, SAMPLES);
	perfdata_close(p);
}

/* perf ends with an error at features that it does not know, and takes them before the samples. */
static void test_form(void **state)
{
	cleanup_close int fd = open(out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct file_map m = { 0 };
	struct cursor c;
	struct err e = { 0 };
	bool attr = false, build_id = false, sample = false;

	(void)state;
	assert_int_equal(run(fd, &e), 0);
	assert_int_equal(file_map_open(&m, out, 1 << 24, &e), 0);
	cursor_init(&c, m.data, m.len);
	cursor_seek(&c, 8);
	assert_int_equal(cursor_u64(&c), PERFDATA_PIPE_HEADER_SIZE);
	while (cursor_left(&c)) {
		size_t start = c.pos;
		uint32_t type = cursor_u32(&c), misc_and_size = cursor_u32(&c);
		uint16_t size = (uint16_t)(misc_and_size >> 16);

		assert_in_range(size, 8, cursor_left(&c) + 8);
		/* perf refuses others since 7.0, build ids among them. */
		assert_int_equal(size % 8, 0);
		attr |= type == PERFDATA_RECORD_HEADER_ATTR;
		build_id |= type == PERFDATA_RECORD_HEADER_BUILD_ID;
		sample |= type == PERFDATA_RECORD_SAMPLE;
		if (type == PERFDATA_RECORD_HEADER_FEATURE)
			assert_true(cursor_u64(&c) <= PERFDATA_FEAT_CLOCK_DATA && !sample);
		/* Nothing can be said of a sample before its event and its kernel are known. */
		assert_true(!sample || (attr && build_id));
		cursor_seek(&c, start + size);
	}
	assert_false(c.bad);
	assert_true(sample);
	file_map_close(&m);
}

static void test_failures(void **state)
{
	cleanup_close int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	static const uint8_t nothing[200] = PERFDATA_MAGIC;
	struct err e = { 0 };

	(void)state;
	assert_true(run(full, &e) < 0);
	assert_non_null(strstr(e.text, "standard output: cannot write"));
	sink->ops->destroy(sink);
	sink = NULL;
	assert_int_equal(entries(root), 0);
	/* Given up in the middle. */
	assert_int_equal(sink_pipe_create(&sink, full,
					  &(struct sink_perfdata_options){ .buildid_dir = cache },
					  &e),
			 0);
	assert_int_equal(entries(root), 1);
	sink->ops->destroy(sink);
	sink = NULL;
	assert_int_equal(entries(root), 0);
	assert_int_equal(perfdata_write_pipe(full, "pipe", nothing, sizeof(nothing), &e), -EINVAL);
	setenv("TMPDIR", "/nonexistent", 1);
	err_clear(&e);
	assert_true(run(full, &e) < 0);
	assert_non_null(strstr(e.text, "/nonexistent/kvmprof."));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_form, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
