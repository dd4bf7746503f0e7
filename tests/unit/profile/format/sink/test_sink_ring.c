/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The newest samples stay, the others are counted; checked against a plain list. */
#include "tests/unit/profile_fixture.h"

#include "profile/format/perfdata/read.h"
#include "profile/format/sink/ring.h"

/* -- a sink that only remembers -------------------------------------------------------- */

#define MAX 20000

static struct memory {
	struct sink sink;
	uint64_t time[MAX];
	uint64_t lost[2];
	unsigned int n, comms;
	bool ended, broken;
} seen;

static int see_begin(struct sink *s, const struct profile_info *i, struct err *e)
{
	(void)s, (void)i, (void)e;
	return 0;
}

/* Checks the contents of the test's sample n: see add(). */
static void check_stack(const struct profile_sample *x)
{
	const struct stack *st = x->stack;
	unsigned int n = (unsigned int)x->time_ns;

	assert_int_equal(st->n, 1 + n % 200);
	assert_int_equal(st->n_kernel, n % 7 < st->n ? n % 7 : st->n);
	for (unsigned int i = 0; i < st->n; i++) {
		assert_int_equal(st->ip[i], (uint64_t)n * 1000 + i);
		assert_int_equal(st->exact[i], (n + i) % 3 == 0);
	}
	assert_int_equal(x->period, n * 3);
	assert_int_equal(x->cpu, n % 2);
	assert_int_equal(x->tid, n % 11);
	assert_int_equal(x->mem != NULL, n % 5 == 0);
	if (x->mem)
		assert_int_equal(x->mem->ref[1].va, (uint64_t)n << 20);
}

static int see_sample(struct sink *s, const struct profile_sample *x, struct err *e)
{
	(void)s;
	if (seen.broken)
		return err_set(e, 28, "no space");
	check_stack(x);
	seen.time[seen.n++] = x->time_ns;
	return 0;
}

static int see_comm(struct sink *s, const struct profile_comm *c, struct err *e)
{
	(void)s, (void)c, (void)e;
	seen.comms++;
	return 0;
}

static int see_lost(struct sink *s, uint32_t cpu, uint64_t n, uint64_t time_ns, struct err *e)
{
	(void)s, (void)e;
	/* Before the oldest that is left. */
	assert_int_equal(time_ns, seen.time[0]);
	seen.lost[cpu] += n;
	return 0;
}

static int see_end(struct sink *s, const struct profile_totals *t, struct err *e)
{
	(void)s, (void)t, (void)e;
	seen.ended = true;
	return 0;
}

static void see_destroy(struct sink *s)
{
	(void)s;
}

static const struct sink_ops memory_ops = { .begin = see_begin,
					    .sample = see_sample,
					    .comm = see_comm,
					    .lost = see_lost,
					    .end = see_end,
					    .destroy = see_destroy };

static struct sink *ring_of(size_t size)
{
	static const struct profile_info info = { .nevents = 1, .vcpus = 2 };
	struct sink *ring = NULL;

	memset(&seen, 0, sizeof(seen));
	seen.sink.ops = &memory_ops;
	assert_int_equal(sink_ring_create(&ring, &seen.sink, size, NULL), 0);
	assert_int_equal(ring->ops->begin(ring, &info, NULL), 0);
	return ring;
}

static void add(struct sink *ring, unsigned int n)
{
	static struct stack st;
	struct mem_refs mem = { .n = 2 };
	const struct profile_sample x = { .time_ns = n,
					  .period = n * 3,
					  .cpu = n % 2,
					  .tid = n % 11,
					  .stack = &st,
					  .mem = n % 5 == 0 ? &mem : NULL };

	mem.ref[1].va = (uint64_t)n << 20;
	memset(&st, 0, sizeof(st));
	st.n = (uint16_t)(1 + n % 200);
	st.n_kernel = (uint16_t)(n % 7 < st.n ? n % 7 : st.n);
	for (unsigned int i = 0; i < st.n; i++) {
		st.ip[i] = (uint64_t)n * 1000 + i;
		st.exact[i] = (n + i) % 3 == 0;
	}
	assert_int_equal(ring->ops->sample(ring, &x, NULL), 0);
}

/* The last ones without a gap, and with what gave way, all. */
static void expect_newest(const struct sink *ring, unsigned int total)
{
	unsigned int first = total - seen.n;

	assert_true(seen.ended && seen.n <= total && (!total || seen.n));
	for (unsigned int i = 0; i < seen.n; i++)
		assert_int_equal(seen.time[i], 1 + first + i);
	assert_int_equal(sink_ring_overwritten(ring), first);
	assert_int_equal(seen.lost[0] + seen.lost[1], first);
	assert_int_equal(seen.lost[1], (first + 1) / 2);
}

static void test_newest(void **state)
{
	static const size_t size[] = { 1, SINK_RING_MIN, SINK_RING_MIN + 8, 20001, 50000, 1 << 20 };
	static const unsigned int total[] = { 0, 1, 2, 10, 37, 201, 1000, 5000 };

	(void)state;
	for (unsigned int k = 0; k < sizeof(size) / sizeof(size[0]); k++)
		for (unsigned int t = 0; t < sizeof(total) / sizeof(total[0]); t++) {
			struct sink *ring = ring_of(size[k]);

			for (unsigned int i = 1; i <= total[t]; i++)
				add(ring, i);
			assert_int_equal(seen.n, 0);
			assert_int_equal(ring->ops->end(ring, NULL, NULL), 0);
			expect_newest(ring, total[t]);
			ring->ops->destroy(ring);
		}
}

/* It is used well: what gives way is no more than has to. */
static void test_room(void **state)
{
	struct sink *ring = ring_of(1 << 20);
	size_t bytes = 0;

	(void)state;
	for (unsigned int i = 1; i <= 8000; i++)
		add(ring, i);
	assert_int_equal(ring->ops->end(ring, NULL, NULL), 0);
	for (unsigned int i = 0; i < seen.n; i++)
		bytes += 80 + 9 * (1 + seen.time[i] % 200) +
			 (seen.time[i] % 5 ? 0 : sizeof(struct mem_refs));
	assert_true(bytes > (1 << 20) - 8192 && bytes <= 1 << 20);
	ring->ops->destroy(ring);
}

static void test_rest_passes(void **state)
{
	struct sink *ring = ring_of(0);

	(void)state;
	assert_int_equal(ring->ops->comm(ring, &(struct profile_comm){ 1, 1, "x", false, 5 }, NULL),
			 0);
	assert_int_equal(seen.comms, 1);
	seen.time[0] = 9;
	assert_int_equal(ring->ops->lost(ring, 1, 4, 9, NULL), 0);
	assert_int_equal(seen.lost[1], 4);
	ring->ops->destroy(ring);
}

/* A write error is reported, but the profile is completed all the same. */
static void test_full_disk(void **state)
{
	struct sink *ring = ring_of(0);
	struct err e = { 0 };

	(void)state;
	add(ring, 1);
	seen.broken = true;
	assert_int_equal(ring->ops->end(ring, NULL, &e), -28);
	assert_string_equal(e.text, "no space");
	assert_true(seen.ended);
	ring->ops->destroy(ring);
}

/* -- with a real profile ---------------------------------------------------------------- */

static struct sink *put_ring(struct sink *s)
{
	struct sink *ring = NULL;

	assert_int_equal(sink_ring_create(&ring, s, 0, NULL), 0);
	return ring;
}

static void read_profile(const char *path, uint64_t *samples, uint64_t *lost, uint64_t *first)
{
	struct perfdata *p = NULL;
	struct perfdata_record r;
	struct err e = { 0 };

	if (perfdata_open(&p, path, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(p->message, "");
	*first = 0;
	while (perfdata_next(p, &r))
		if (r.kind == PERFDATA_SAMPLE && !*first)
			*first = r.time_ns;
	*samples = p->nsamples;
	*lost = p->nlost;
	perfdata_close(p);
}

static void test_profile(void **state)
{
	struct fx f;
	uint64_t samples, lost, first, now_samples, now_lost;
	const struct profile_totals t = { .json = "{}" };

	(void)state;
	assert_int_equal(fx_setup(&f), 0);
	f.wrap = put_ring;
	f.overwrite = true;
	fx_begin(&f, "run.data", false);
	for (unsigned int i = 0; i < 3000; i++) {
		/* Later than the samples that are left in the end. */
		if (i == 2990)
			f.sink->ops->comm(f.sink,
					  &(struct profile_comm){ 7, 7, "renamed", false,
								  FX_T0 + i * 10 },
					  NULL);
		fx_add(&f, &(struct fx_sample){ .after_ns = i * 10,
						.weight = 1,
						.pid = 7,
						.n = 1,
						.ip = { fx_k(0, 4) } });
		if (i == 999)
			assert_int_equal(sink_snapshot(f.sink, fx_path(&f, "now.data"), &t, NULL),
					 0);
	}
	fx_end(&f);
	read_profile(fx_path(&f, "now.data"), &now_samples, &now_lost, &first);
	assert_int_equal(now_samples + now_lost, 1000);
	assert_int_equal(first, FX_T0 + now_lost * 10);
	read_profile(fx_path(&f, "run.data"), &samples, &lost, &first);
	assert_int_equal(samples + lost, 3000);
	assert_true(samples > 100 && samples < 400);
	assert_int_equal(first, FX_T0 + lost * 10);
	fx_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest),	    cmocka_unit_test(test_room),
		cmocka_unit_test(test_rest_passes), cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
