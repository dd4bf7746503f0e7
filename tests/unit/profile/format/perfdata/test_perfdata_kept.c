/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf.data files whose writer was killed or had no room, and the order of records in all. */
#include "tests/unit/perfdata_fixture.h"

#include "profile/format/perfdata/write.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>

/* -- order ------------------------------------------------------------------------------- */

/* Walk the raw records: no record may be older than the round before last. */
static void check_rounds(const char *path, unsigned int *rounds)
{
	uint64_t max = 0, round = 0, before = 0;
	struct file_map m = { 0 };
	struct err e = { 0 };
	uint64_t off, end;

	assert_int_equal(file_map_open(&m, path, 1u << 30, &e), 0);
	memcpy(&off, m.data + PERFDATA_HDR_DATA, 8);
	memcpy(&end, m.data + PERFDATA_HDR_DATA + 8, 8);
	for (end += off, *rounds = 0; off < end;) {
		uint32_t type;
		uint16_t size;
		uint64_t t;

		memcpy(&type, m.data + off, 4);
		memcpy(&size, m.data + off + 6, 2);
		if (type == PERFDATA_RECORD_FINISHED_ROUND) {
			before = round;
			round = max;
			++*rounds;
		} else if (type == PERFDATA_RECORD_SAMPLE) {
			memcpy(&t, m.data + off + 24, 8);
			assert_true(t >= before);
			max = t > max ? t : max;
		}
		off += size;
	}
	file_map_close(&m);
}

static void test_rounds(void **state)
{
	static const uint64_t ip[16] = { TEXT, TEXT + 8 };
	struct sink *s;
	unsigned int rounds;
	struct err e = { 0 };

	(void)state;
	/* Bursts of 10,000: each vCPU's ring is drained whole. */
	s = make_sink(in_root("rounds"), true);
	assert_int_equal(begin(s, NULL), 0);
	for (unsigned int i = 0; i < 200000; i++) {
		unsigned int burst = i / 10000, cpu = burst & 1;

		add_sample(s, 1000 + ((burst / 2) * 10000 + i % 10000) * 10ull + cpu, cpu, ip, 16,
			   16);
	}
	assert_int_equal(s->ops->end(s, NULL, &e), 0);
	s->ops->destroy(s);
	check_rounds(in_root("rounds"), &rounds);
	assert_true(rounds >= 3);

	/* A vCPU that is late by more than the window: no round may claim otherwise afterwards. */
	s = make_sink(in_root("late"), true);
	assert_int_equal(begin(s, NULL), 0);
	for (unsigned int i = 0; i < 150000; i++)
		add_sample(s, 1000000 + i * 10ull, 0, ip, 16, 16);
	add_sample(s, 5, 1, ip, 16, 16);
	assert_int_equal(s->ops->end(s, NULL, &e), 0);
	s->ops->destroy(s);
	struct perfdata *p = NULL;
	struct perfdata_record r;

	assert_int_equal(perfdata_open(&p, in_root("late"), &e), 0);
	assert_int_equal(p->nsamples, 150001);
	assert_true(perfdata_next(p, &r)); /* kernel map */
	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.time_ns, 5);
	perfdata_close(p);
}

/* -- a writer that is killed --------------------------------------------------------------- */

/* The file that make_sink() writes into, in either form. */
static const char *unfinished(const char *name, bool single)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s.tmp-%d%s", in_root(name), (int)getpid(),
		 single ? "" : "/data");
	return path;
}

static void expect_unfinished(const char *name, bool single, uint64_t samples)
{
	struct perfdata *p = NULL;
	struct err e = { 0 };

	if (perfdata_open(&p, unfinished(name, single), &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(p->nsamples, samples);
	assert_true(p->partial);
	assert_non_null(strstr(p->message, "was not finished"));
	/* Callers are addresses inside of calls, which only our own profiles promise. */
	assert_true(p->ours);
	perfdata_close(p);
}

/* Flushed data can be read at any time, and none of it twice. */
static void test_killed(void **state)
{
	static const uint64_t ip[] = { TEXT, TEXT + 8 };

	(void)state;
	for (int single = 0; single < 2; single++) {
		const char *name = single ? "killed.data" : "killed";
		struct sink *s = make_sink(in_root(name), single);
		struct perfdata *p = NULL;
		struct err e = { 0 };

		assert_int_equal(begin(s, NULL), 0);
		for (unsigned int i = 0; i < 100; i++)
			add_sample(s, 1000 + (i ^ 1), i & 1, ip, 2, 2);
		expect_unfinished(name, single, 0);
		assert_int_equal(s->ops->flush(s, 1040, &e), 0);
		expect_unfinished(name, single, 40);
		assert_int_equal(s->ops->flush(s, 1040, &e), 0);
		expect_unfinished(name, single, 40);
		assert_int_equal(s->ops->flush(s, 2000, &e), 0);
		expect_unfinished(name, single, 100);
		/* One that comes later than what was flushed. */
		add_sample(s, 1020, 0, ip, 2, 2);
		assert_int_equal(s->ops->flush(s, 2000, &e), 0);
		expect_unfinished(name, single, 101);
		add_sample(s, 3000, 0, ip, 2, 2);
		assert_int_equal(s->ops->end(s, NULL, &e), 0);
		s->ops->destroy(s);
		assert_int_equal(perfdata_open(&p, in_root(name), &e), 0);
		assert_false(p->partial);
		assert_int_equal(p->nsamples, 102);
		perfdata_close(p);
	}
}

/* However often the window is written: rounds are as far apart as without that. */
static void test_flushed_rounds(void **state)
{
	static const uint64_t ip[16] = { TEXT, TEXT + 8 };
	struct sink *s = make_sink(in_root("flushed"), true);
	struct err e = { 0 };
	unsigned int rounds;

	(void)state;
	assert_int_equal(begin(s, NULL), 0);
	for (unsigned int i = 0; i < 200000; i++) {
		/* Each 100th is told 30,000 samples late, when later ones are in the file. */
		uint64_t t = 1000000 + i * 10ull;

		add_sample(s, i % 100 || i < 60000 ? t : t - 300000, i & 1, ip, 16, 16);
		if (i % 1000 == 0)
			assert_int_equal(s->ops->flush(s, t - 5000, &e), 0);
	}
	assert_int_equal(s->ops->end(s, NULL, &e), 0);
	s->ops->destroy(s);
	check_rounds(in_root("flushed"), &rounds);
	assert_true(rounds >= 3);
}

/* Leftovers of a killed run do not disturb the next run with the same pid, which keeps them. */
static void test_leftover_stays(void **state)
{
	struct sink *s = make_sink(in_root("again"), false), *next;
	static const uint64_t ip[] = { TEXT };
	char path[200];
	struct err e = { 0 };

	(void)state;
	assert_int_equal(begin(s, NULL), 0);
	add_sample(s, 1000, 0, ip, 1, 1);
	assert_int_equal(s->ops->flush(s, 2000, &e), 0);
	next = make_sink(in_root("again"), false);
	snprintf(path, sizeof(path), "%s.tmp-%d-1/data", in_root("again"), (int)getpid());
	assert_true(exists(path));
	next->ops->destroy(next);
	assert_false(exists(path));
	expect_unfinished("again", false, 1);
	s->ops->destroy(s);
}

/* -- a disk that is full ---------------------------------------------------------------------- */

/* No file may become longer; as on a full disk part of a write goes in. */
static void limit_files(rlim_t bytes)
{
	struct rlimit l = { 0, RLIM_INFINITY };

	l.rlim_cur = bytes;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void test_disk_full(void **state)
{
	static const uint64_t ip[] = { TEXT, TEXT + 8 };
	struct sink *s = make_sink(in_root("full"), true);
	struct profile_totals totals = { .json = "{}" };
	struct rlimit before, small;
	static struct stack st = { .n = 2, .n_kernel = 2 };
	struct profile_sample sample = { .pid = 1, .tid = 1, .period = 1, .stack = &st };
	struct perfdata *p = NULL;
	struct err e = { 0 };
	uint64_t given = 0;
	char tail[64];
	int ret = 0;

	(void)state;
	memcpy(st.ip, ip, sizeof(ip));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = (5u << 20) + 4321;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(begin(s, NULL), 0);
	for (unsigned int i = 0; i < 1000000 && !ret; i++) {
		sample.time_ns = 1000 + i;
		ret = s->ops->sample(s, &sample, &e);
		given++;
	}
	assert_int_equal(ret, -EFBIG);
	assert_int_equal(e.code, EFBIG);
	/* It goes on failing, and what was written whole can still be published. */
	assert_int_equal(s->ops->sample(s, &sample, NULL), -EFBIG);
	err_clear(&e);
	assert_int_equal(s->ops->end(s, &totals, &e), -EFBIG);
	s->ops->destroy(s);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);

	assert_int_equal(perfdata_open(&p, in_root("full"), NULL), 0);
	assert_true(p->partial);
	assert_true(p->ours);
	assert_true(p->nsamples > 50000);
	/* The lost samples are reported in the file and in the message. */
	assert_int_equal(p->nsamples + p->nlost, given);
	snprintf(tail, sizeof(tail), "%" PRIu64 " of %" PRIu64 " samples are missing", p->nlost,
		 given);
	assert_non_null(strstr(p->message, tail));
	snprintf(tail, sizeof(tail), "only %" PRIu64 " of %" PRIu64 " samples are in it",
		 p->nsamples, given);
	if (!strstr(e.text, tail))
		fail_msg("%s: no '%s'", e.text, tail);
	perfdata_close(p);
}

/* Samples that a file limited to so many bytes takes; all, when end() says so. */
static bool fits(uint64_t limit, bool single, uint64_t given)
{
	static const uint64_t ip[] = { TEXT, TEXT + 8 };
	struct symtab *t = make_symbols();
	struct sink *s = make_sink(in_root("sweep"), single);
	struct profile_totals totals = { .json = "{\"samples\":1}" };
	struct perfdata *p = NULL;
	struct err e = { 0 };
	int ret;

	assert_int_equal(begin(s, t), 0);
	limit_files(limit);
	for (uint64_t i = 0; i < given; i++) {
		add_sample(s, 1000 + i, 0, ip, 2, 2);
		/* A failure here must not be lost at the end. */
		if (i % 100 == 99 && s->ops->flush(s, 1000 + i, NULL))
			given = i + 1;
	}
	ret = s->ops->end(s, &totals, &e);
	limit_files(RLIM_INFINITY);
	s->ops->destroy(s);
	symtab_destroy(t);
	if (!exists(in_root("sweep"))) {
		assert_int_equal(ret, -EFBIG);
		assert_non_null(strstr(e.text, "there is no profile"));
		return false;
	}
	if (perfdata_open(&p, in_root("sweep"), &e) < 0)
		fail_msg("%" PRIu64 ": %s", limit, e.text);
	assert_true(p->ours);
	assert_true(ret == 0 || ret == -EFBIG);
	if (!ret)
		assert_int_equal(p->nsamples, given);
	else if (p->json)
		assert_int_equal(p->nsamples + p->nlost, given);
	assert_int_equal(p->partial, ret != 0);
	assert_true(p->nsamples > 0 || !ret);
	perfdata_close(p);
	assert_int_equal(file_remove_tree(in_root("sweep"), NULL), 0);
	return !ret;
}

/* Wherever the room ends: what fits is a profile, and only one that is whole counts as such. */
static void test_any_limit(void **state)
{
	(void)state;
	for (int single = 0; single < 2; single++) {
		bool whole = false;

		for (uint64_t limit = PERFDATA_EARLY; limit < 200000; limit += 1777) {
			bool now = fits(limit, single, 1000);

			assert_true(now || !whole);
			whole = now;
		}
		assert_true(whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flushed_rounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leftover_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any_limit, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
