/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Profiles that perf makes and we do not: pipes, several events, all fields, compressed records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

static struct buf b;
static struct perfdata *p;

static int setup(void **state)
{
	(void)state;
	buf_init(&b);
	buf_add(&b, PERFDATA_MAGIC, 8);
	buf_u64(&b, PERFDATA_PIPE_HEADER_SIZE);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	perfdata_close(p);
	p = NULL;
	buf_deinit(&b);
	return 0;
}

static void record(struct buf *out, uint32_t type, uint16_t misc, const struct buf *body)
{
	buf_u32(out, type);
	buf_u16(out, misc);
	buf_u16(out, (uint16_t)(8 + body->len));
	buf_add(out, body->data, body->len);
}

/* HEADER_ATTR with the ids id and id + 1. */
static void add_attr(uint64_t type, uint64_t id)
{
	struct buf a;

	buf_init(&a);
	buf_u32(&a, 1);
	buf_u32(&a, PERFDATA_ATTR_SIZE);
	buf_u64(&a, 0);
	buf_u64(&a, 100); /* period */
	buf_u64(&a, type);
	buf_u64(&a, PERFDATA_FORMAT_ID);
	buf_u64(&a, PERFDATA_ATTR_SAMPLE_ID_ALL);
	buf_add(&a, NULL, 24);
	buf_u64(&a, PERFDATA_BRANCH_HW_INDEX);
	buf_u64(&a, 7); /* three registers */
	buf_add(&a, NULL, 8);
	buf_u64(&a, 1); /* one */
	buf_add(&a, NULL, PERFDATA_ATTR_SIZE - a.len);
	buf_u64(&a, id);
	buf_u64(&a, id + 1);
	record(&b, PERFDATA_RECORD_HEADER_ATTR, 0, &a);
	buf_deinit(&a);
}

#define BASE (PERFDATA_SAMPLE_IDENTIFIER | PERFDATA_SAMPLE_IP | PERFDATA_SAMPLE_TIME)

static void put_sample(struct buf *out, uint64_t id, uint64_t ip, uint64_t time, uint64_t addr)
{
	struct buf s;

	buf_init(&s);
	buf_u64(&s, id);
	buf_u64(&s, ip);
	buf_u64(&s, time);
	if (addr)
		buf_u64(&s, addr);
	record(out, PERFDATA_RECORD_SAMPLE, PERFDATA_MISC_KERNEL, &s);
	buf_deinit(&s);
}

static void put_comm(struct buf *out, uint64_t time, uint64_t id)
{
	struct buf c;

	buf_init(&c);
	buf_u64(&c, 5ull << 32 | 5);
	buf_add(&c, "worker\0", 8);
	buf_u64(&c, time);
	buf_u64(&c, id);
	record(out, PERFDATA_RECORD_COMM, 0, &c);
	buf_deinit(&c);
}

static int try_open(struct err *e)
{
	struct cursor c;

	cursor_init(&c, b.data, b.len);
	return perfdata_open_split(&p, "bytes", &c, NULL, 0, e);
}

static void open_it(void)
{
	struct err e = { 0 };

	if (try_open(&e))
		fail_msg("%s", e.text);
}

static void expect_sample(uint64_t ip, uint64_t time)
{
	struct perfdata_record r;

	do
		assert_true(perfdata_next(p, &r));
	while (r.kind != PERFDATA_SAMPLE);
	assert_int_equal(r.sample.ip, ip);
	assert_int_equal(r.time_ns, time);
	assert_int_equal(r.sample.period, 100);
}

static void test_two_layouts(void **state)
{
	struct perfdata_record r;

	(void)state;
	add_attr(BASE, 10);
	add_attr(BASE | PERFDATA_SAMPLE_ADDR, 20);
	put_sample(&b, 20, 0x2000, 5, 0xadd);
	put_sample(&b, 11, 0x1000, 7, 0);
	put_comm(&b, 4, 21);
	put_sample(&b, 21, 0x2001, 8, 0xadd);
	put_sample(&b, 10, 0x1001, 6, 0);
	open_it();
	assert_false(p->partial);
	assert_int_equal(p->nevents, 2);
	assert_int_equal(p->events[0].samples, 2);
	assert_int_equal(p->events[1].samples, 2);
	assert_int_equal(p->nsamples, 2);
	assert_string_equal(p->event, "event-1");
	assert_int_equal(p->first_ns, 6);
	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.kind, PERFDATA_COMM);
	assert_string_equal(r.comm, "worker");
	expect_sample(0x1001, 6);
	expect_sample(0x1000, 7);
	assert_false(perfdata_next(p, &r));
}

static void test_chosen(void **state)
{
	char path[] = "/tmp/kvmprof-test.XXXXXX";
	cleanup_close int fd = mkstemp(path);
	struct err e = { 0 };

	(void)state;
	add_attr(BASE, 10);
	add_attr(BASE | PERFDATA_SAMPLE_ADDR, 20);
	put_sample(&b, 20, 0x2000, 5, 0xadd);
	assert_int_equal(file_write_all(fd, b.data, b.len), 0);
	/* Without a wish: the first that has samples. */
	assert_int_equal(perfdata_open(&p, path, &e), 0);
	assert_int_equal(p->chosen, 1);
	perfdata_close(p);
	p = NULL;
	assert_int_equal(perfdata_open_event(&p, path, "event-1", &e), 0);
	assert_int_equal(p->nsamples, 0);
	perfdata_close(p);
	p = NULL;
	assert_true(perfdata_open_event(&p, path, "cycles", &e) < 0);
	assert_non_null(strstr(e.text, "no event 'cycles': there is event-1, event-2"));
	unlink(path);
}

static void test_no_identifier(void **state)
{
	struct err e = { 0 };

	(void)state;
	add_attr(PERFDATA_SAMPLE_IP | PERFDATA_SAMPLE_TIME, 10);
	add_attr(PERFDATA_SAMPLE_IP, 20);
	assert_true(try_open(&e) < 0);
	assert_non_null(strstr(e.text, "cannot be told apart"));
}

/* Each field between the call chain and the page sizes has its length. */
static void test_all_fields(void **state)
{
	static const uint64_t all = BASE | PERFDATA_SAMPLE_READ | PERFDATA_SAMPLE_CALLCHAIN |
				    PERFDATA_SAMPLE_RAW | PERFDATA_SAMPLE_BRANCH_STACK |
				    PERFDATA_SAMPLE_REGS_USER | PERFDATA_SAMPLE_STACK_USER |
				    PERFDATA_SAMPLE_WEIGHT | PERFDATA_SAMPLE_DATA_SRC |
				    PERFDATA_SAMPLE_TRANSACTION | PERFDATA_SAMPLE_REGS_INTR |
				    PERFDATA_SAMPLE_PHYS_ADDR | PERFDATA_SAMPLE_CGROUP |
				    PERFDATA_SAMPLE_DATA_PAGE_SIZE | PERFDATA_SAMPLE_CODE_PAGE_SIZE;
	struct perfdata_record r;
	struct buf s;

	(void)state;
	add_attr(all, 10);
	buf_init(&s);
	buf_u64(&s, 10);
	buf_u64(&s, 0x1234);
	buf_u64(&s, 9);
	buf_u64(&s, 5); /* read: value, id */
	buf_u64(&s, 10);
	buf_u64(&s, 1);
	buf_u64(&s, 0x1234);
	buf_u32(&s, 4);
	buf_add(&s, NULL, 4); /* raw */
	buf_u64(&s, 2);
	buf_add(&s, NULL, 8 + 48); /* branches */
	buf_u64(&s, 2);
	buf_add(&s, NULL, 24); /* user registers */
	buf_u64(&s, 8);
	buf_add(&s, NULL, 16); /* user stack */
	buf_add(&s, NULL, 24); /* weight, source, transaction */
	buf_u64(&s, 0);	       /* no registers at the interrupt */
	buf_add(&s, NULL, 16); /* physical address, cgroup */
	buf_u64(&s, 4096);
	buf_u64(&s, 2 << 20);
	record(&b, PERFDATA_RECORD_SAMPLE, PERFDATA_MISC_USER, &s);
	buf_deinit(&s);
	open_it();
	assert_false(p->partial);
	assert_true(p->has_code_page && p->has_data_page);
	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.sample.nr, 1);
	assert_int_equal(r.sample.data_page, 4096);
	assert_int_equal(r.sample.code_page, 2 << 20);
}

/* One stream over records that are cut anywhere, with others in between. */
static void test_compressed(void **state)
{
	ZSTD_CStream *z = ZSTD_createCStream();
	struct buf plain, part;
	uint8_t out[8192];

	(void)state;
	assert_non_null(z);
	buf_init(&plain);
	buf_init(&part);
	for (unsigned int i = 0; i < 300; i++)
		put_sample(&plain, 10, 0x1000 + i, 100 + i, 0);
	add_attr(BASE, 10);
	for (size_t at = 0; at < plain.len;) {
		size_t n = plain.len - at < 1111 ? plain.len - at : 1111;
		ZSTD_inBuffer in = { plain.data + at, n, 0 };
		ZSTD_outBuffer to = { out, sizeof(out), 0 };

		assert_false(ZSTD_isError(ZSTD_compressStream(z, &to, &in)));
		assert_int_equal(in.pos, n);
		assert_int_equal(ZSTD_flushStream(z, &to), 0);
		part.len = 0;
		buf_add(&part, out, to.pos);
		record(&b, PERFDATA_RECORD_COMPRESSED, 0, &part);
		part.len = 0;
		record(&b, PERFDATA_RECORD_FINISHED_ROUND, 0, &part);
		at += n;
	}
	put_sample(&b, 10, 0x9999, 1000, 0);
	ZSTD_freeCStream(z);
	open_it();
	assert_false(p->partial);
	assert_int_equal(p->nsamples, 301);
	for (unsigned int i = 0; i < 300; i++)
		expect_sample(0x1000 + i, 100 + i);
	expect_sample(0x9999, 1000);
	/* Cut: what came before is there, and it is said. */
	perfdata_close(p);
	p = NULL;
	b.len -= 200;
	open_it();
	assert_true(p->partial && p->message[0]);
	assert_in_range(p->nsamples, 200, 299);
	buf_deinit(&plain);
	buf_deinit(&part);
}

/* Since perf 6.16: a record says how long its contents are, and is padded. */
static void compressed2(struct buf *out, const struct buf *plain, size_t claim)
{
	static uint8_t packed[64u << 10];
	size_t n = ZSTD_compress(packed, sizeof(packed), plain->data, plain->len, 1);
	struct buf body;

	assert_false(ZSTD_isError(n));
	buf_init(&body);
	buf_u64(&body, n + claim);
	buf_add(&body, packed, n);
	buf_add(&body, NULL, -n & 7);
	record(out, PERFDATA_RECORD_COMPRESSED2, 0, &body);
	buf_deinit(&body);
}

static void test_compressed2(void **state)
{
	struct buf plain;

	(void)state;
	buf_init(&plain);
	add_attr(BASE, 10);
	for (unsigned int i = 0; i < 9; i++) {
		plain.len = 0;
		put_sample(&plain, 10, 0x1000 + i, 100 + i, 0);
		compressed2(&b, &plain, 0);
	}
	open_it();
	assert_false(p->partial);
	assert_int_equal(p->nsamples, 9);
	for (unsigned int i = 0; i < 9; i++)
		expect_sample(0x1000 + i, 100 + i);
	/* Contents that are longer than the record. */
	perfdata_close(p);
	p = NULL;
	compressed2(&b, &plain, 64);
	open_it();
	assert_true(p->partial);
	assert_int_equal(p->nsamples, 9);
	buf_deinit(&plain);
}

/* perf record --threads: the records of each thread are in a file of their own, compressed or not. */
static void test_parts(void **state)
{
	struct buf plain, part[2];
	struct cursor file, parts[2];
	struct err e = { 0 };

	(void)state;
	buf_init(&plain);
	buf_init(&part[0]);
	buf_init(&part[1]);
	add_attr(BASE, 10);
	put_sample(&b, 10, 0x1000, 5, 0);
	put_sample(&part[0], 10, 0x1001, 2, 0);
	put_sample(&part[0], 10, 0x1002, 9, 0);
	put_sample(&plain, 10, 0x1003, 1, 0);
	compressed2(&part[1], &plain, 0);
	cursor_init(&file, b.data, b.len);
	for (unsigned int i = 0; i < 2; i++)
		cursor_init(&parts[i], part[i].data, part[i].len);
	assert_int_equal(perfdata_open_split(&p, "split", &file, parts, 2, &e), 0);
	assert_false(p->partial);
	assert_int_equal(p->nsamples, 4);
	expect_sample(0x1003, 1);
	expect_sample(0x1001, 2);
	expect_sample(0x1000, 5);
	expect_sample(0x1002, 9);
	perfdata_close(p);
	/* A damaged part leaves the others. */
	parts[0].len -= 4;
	assert_int_equal(perfdata_open_split(&p, "split", &file, parts, 2, &e), 0);
	assert_true(p->partial);
	assert_int_equal(p->nsamples, 3);
	buf_deinit(&plain);
	buf_deinit(&part[0]);
	buf_deinit(&part[1]);
}

/* Records that a later perf invents must not vanish without a word. */
static void test_unknown(void **state)
{
	struct buf none = { 0 };

	(void)state;
	add_attr(BASE, 10);
	record(&b, 200, 0, &none);
	record(&b, 41, 0, &none);
	put_sample(&b, 10, 0x1000, 5, 0);
	open_it();
	assert_true(p->partial);
	assert_non_null(strstr(p->message, "2 records"));
	assert_non_null(strstr(p->message, "type 200"));
	assert_int_equal(p->nsamples, 1);
}

/* Bytes that the size of a record does not count. */
static void test_payloads(void **state)
{
	struct buf body;

	(void)state;
	buf_init(&body);
	add_attr(BASE, 10);
	buf_u32(&body, 13);
	buf_u32(&body, 0);
	record(&b, PERFDATA_RECORD_HEADER_TRACING_DATA, 0, &body);
	buf_add(&b, NULL, 16);
	body.len = 0;
	buf_u64(&body, 40);
	buf_add(&body, NULL, 32);
	record(&b, PERFDATA_RECORD_AUXTRACE, 0, &body);
	buf_add(&b, NULL, 40);
	put_sample(&b, 10, 0x77, 1, 0);
	open_it();
	assert_false(p->partial);
	expect_sample(0x77, 1);
	perfdata_close(p);
	p = NULL;
	/* One that would go on behind the end. */
	body.len = 0;
	buf_u64(&body, UINT64_MAX - 7);
	buf_add(&body, NULL, 32);
	record(&b, PERFDATA_RECORD_AUXTRACE, 0, &body);
	open_it();
	assert_true(p->partial);
	expect_sample(0x77, 1);
	buf_deinit(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_two_layouts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chosen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_identifier, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compressed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compressed2, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_payloads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
