/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile that is copied while it is written: both are complete, and neither knows of the other. */
#include "tests/unit/profile_fixture.h"

#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/perfdata/sink_pipe.h"
#include "profile/format/perfdata/write.h"

#include <errno.h>
#include <sys/stat.h>

static struct fx f;

static int setup(void **state)
{
	(void)state;
	return fx_setup(&f);
}

static int teardown(void **state)
{
	(void)state;
	return fx_teardown(&f);
}

static void add(unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		fx_add(&f,
		       &(struct fx_sample){ .after_ns = 1000 * i,
					    .weight = 3,
					    .pid = i % 2 ? 7 : 8,
					    .cpu = i % 2,
					    .n = 3,
					    .ip = { fx_k(i % 3, 8), fx_m(0x50), fx_u(0, 0x10) } });
}

static int snapshot(const char *name, const char *json, struct err *e)
{
	struct profile_totals t = { .json = json };

	return sink_snapshot(f.sink, fx_path(&f, name), &t, e);
}

/* Samples in the profile, in order of time; each must have its chain. */
static unsigned int samples(const char *name, bool single)
{
	struct perfdata *p = NULL;
	struct perfdata_record r;
	struct err e = { 0 };
	unsigned int n = 0;
	uint64_t last = 0;

	if (perfdata_open(&p, fx_path(&f, name), &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(p->message, "");
	assert_true(p->ours);
	assert_int_equal(!single, p->dir != NULL);
	while (perfdata_next(p, &r))
		if (r.kind == PERFDATA_SAMPLE) {
			assert_true(r.time_ns >= last);
			last = r.time_ns;
			n++;
		}
	assert_int_equal(n, p->nsamples);
	perfdata_close(p);
	return n;
}

static void expect_file(const char *dir, const char *name, bool there)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", fx_path(&f, dir), name);
	assert_int_equal(stat(path, &st) == 0, there);
}

static void test_directory(void **state)
{
	static const char program[] = "dso/1122000000000000000000000000000000000000";

	(void)state;
	fx_begin(&f, "run.data", false);
	add(0, 100);
	assert_int_equal(snapshot("one.data", "{\"one\":1}", NULL), 0);
	assert_int_equal(samples("one.data", false), 100);
	expect_file("one.data", "kcore_dir/kallsyms", true);
	expect_file("one.data", "kcore_dir/modules", true);
	expect_file("one.data", "kcore_dir/modules.full", true);
	expect_file("one.data", "kvmprof.json", true);
	expect_file("one.data", program, true);
	expect_file("run.data", "data", false); /* not published */
	add(100, 150);
	assert_int_equal(snapshot("two.data", "{}", NULL), 0);
	assert_int_equal(samples("two.data", false), 150);
	/* A second copy of one name keeps the first one as .old. */
	add(150, 170);
	assert_int_equal(snapshot("one.data", "{}", NULL), 0);
	assert_int_equal(samples("one.data", false), 170);
	assert_int_equal(samples("one.data.old", false), 100);
	fx_end(&f);
	assert_int_equal(samples("run.data", false), 170);
	assert_int_equal(samples("one.data", false), 170);
	expect_file("run.data", program, true);
}

static void test_single_file(void **state)
{
	(void)state;
	fx_begin(&f, "run.data", true);
	add(0, 10);
	assert_int_equal(snapshot("one.data", "{}", NULL), 0);
	add(10, 30);
	fx_end(&f);
	assert_int_equal(samples("one.data", true), 10);
	assert_int_equal(samples("run.data", true), 30);
}

/* More than the window holds back, so that part of it is in the file and part is not. */
static void test_large(void **state)
{
	const unsigned int n = 120000;

	(void)state;
	fx_begin(&f, "run.data", false);
	add(0, n);
	assert_int_equal(snapshot("one.data", "{}", NULL), 0);
	add(n, n + 1000);
	fx_end(&f);
	assert_int_equal(samples("one.data", false), n);
	assert_int_equal(samples("run.data", false), n + 1000);
}

/* A kernel that is found only later is not taken for unknown by the one that goes on. */
static void test_before_kernel(void **state)
{
	static struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
					    .nevents = 1,
					    .vcpus = 1 };
	const struct profile_kernel k = { .symbols = f.kernel,
					  .text = FX_TEXT,
					  .end = FX_TEXT + 0x1000 };
	char path[128], cache[128];
	struct sink_perfdata_options opt = { .path = path, .buildid_dir = cache };

	(void)state;
	snprintf(path, sizeof(path), "%s", fx_path(&f, "run.data"));
	snprintf(cache, sizeof(cache), "%s", fx_path(&f, "cache"));
	assert_int_equal(perfdata_sink_create(&f.sink, &opt, NULL), 0);
	assert_int_equal(f.sink->ops->begin(f.sink, &info, NULL), 0);
	assert_int_equal(snapshot("early.data", "{}", NULL), 0);
	assert_int_equal(samples("early.data", false), 0);
	assert_int_equal(f.sink->ops->kernel(f.sink, &k, NULL), 0);
	add(0, 5);
	fx_end(&f);
	assert_int_equal(samples("run.data", false), 5);
}

static void test_refused(void **state)
{
	struct err e = { 0 };

	(void)state;
	fx_begin(&f, "run.data", false);
	add(0, 5);
	assert_int_equal(snapshot("no/such/place", "{}", &e), -ENOENT);
	assert_non_null(strstr(e.text, "no/such/place"));
	err_clear(&e);
	assert_int_equal(mkdir(fx_path(&f, "full"), 0755), 0);
	assert_int_equal(mkdir(fx_path(&f, "full/of"), 0755), 0);
	assert_int_equal(snapshot("full", "{}", &e), -EEXIST);
	add(5, 9);
	fx_end(&f);
	assert_int_equal(samples("run.data", false), 9);
}

/* A guest that loads modules without end: what there are no names of is counted and told. */
static void test_too_many_modules(void **state)
{
	static struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
					    .nevents = 1,
					    .vcpus = 1 };
	const struct profile_kernel k = { .symbols = f.kernel,
					  .text = FX_TEXT,
					  .end = FX_TEXT + 0x1000 };
	struct err note = { 0 };
	char path[128], cache[128];
	struct sink_perfdata_options opt = { .path = path, .buildid_dir = cache, .note = &note };

	(void)state;
	snprintf(path, sizeof(path), "%s", fx_path(&f, "run.data"));
	snprintf(cache, sizeof(cache), "%s", fx_path(&f, "cache"));
	assert_int_equal(perfdata_sink_create(&f.sink, &opt, NULL), 0);
	assert_int_equal(f.sink->ops->begin(f.sink, &info, NULL), 0);
	assert_int_equal(f.sink->ops->kernel(f.sink, &k, NULL), 0);
	for (unsigned int i = 0; i < 16384 + 3; i++)
		assert_int_equal(f.sink->ops->module(f.sink,
						     &(struct profile_module){
							     .name = "many",
							     .addr = 0xffffffffc0000000 + 4096 * i,
							     .len = 4096,
							     .time_ns = 5000000000 + i },
						     NULL),
				 0);
	fx_end(&f);
	assert_int_equal(note.code, E2BIG);
	assert_non_null(strstr(note.text, "3 loads of modules are left out"));
}

/* The list of build ids has a cap, an entry once, and a count of what is beyond. */
static void test_too_many_programs(void **state)
{
	struct perfdata_writer w, copy;
	uint8_t id[20] = { 7 };
	uint32_t n = PERFDATA_WRITE_MAX_IDS + 5;

	(void)state;
	assert_int_equal(perfdata_writer_open(&w, fx_path(&f, "ids"), NULL), 0);
	for (uint32_t i = 0; i < 2 * n; i++) {
		memcpy(id + 4, &(uint32_t){ i % n }, 4);
		assert_int_equal(
			perfdata_write_build_id(&w, PERFDATA_MISC_USER, id, 20, "/bin/p", NULL), 0);
	}
	assert_int_equal(w.ids.n, PERFDATA_WRITE_MAX_IDS);
	assert_int_equal(w.ids_left_out, 10);
	/* A copy has them all. */
	assert_int_equal(perfdata_writer_copy(&copy, &w, fx_path(&f, "copy"), NULL), 0);
	assert_int_equal(copy.ids.n, w.ids.n);
	assert_int_equal(perfdata_write_build_id(&w, PERFDATA_MISC_USER, id, 20, "/bin/q", NULL),
			 0);
	perfdata_writer_close(&copy);
	perfdata_writer_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_single_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_modules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_programs, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
