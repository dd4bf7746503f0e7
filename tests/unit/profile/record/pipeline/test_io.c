/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Disks on the command line, the events of disks, and requests with the stacks of who brought them. */
#include "profile/record/counters/event_name.h"
#include "profile/record/pipeline/io_join.h"
#include "profile/record/options/disk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOKEN(vcpu, n) ((uint64_t)((vcpu) + 1) << 48 | (n))

static struct stack stack;

static void add_sample(struct io_join *j, uint64_t token, const char *comm)
{
	struct sample s = { .reason = SAMPLE_IO, .exit_addr = token };
	struct profile_sample out = { .cpu = (uint32_t)(token >> 48) - 1 };

	stack.n = 1;
	stack.ip[0] = token;
	s.task.state = SAMPLE_TASK_FOUND;
	snprintf(s.task.comm, sizeof(s.task.comm), "%s", comm);
	io_join_sample(j, &s, &out, &stack);
}

static void add_record(struct io_join *j, uint64_t token, uint64_t sector)
{
	assert_true(io_join_record(j, &(struct io_record){ .token = token, .sector = sector }));
}

/* The next one is that sector's, of that task (NULL: nobody's). */
static void expect(struct io_join *j, enum io_join_which which, uint64_t sector, const char *comm)
{
	const struct io_who *who;
	struct io_record r;

	assert_true(io_join_next(j, which, &r, &who));
	assert_int_equal(r.sector, sector);
	if (!comm) {
		assert_null(who);
		return;
	}
	assert_non_null(who);
	assert_string_equal(who->task.comm, comm);
	assert_ptr_equal(who->sample.stack, &who->stack);
	assert_int_equal(who->stack.ip[0], r.token);
}

static void expect_none(struct io_join *j, enum io_join_which which)
{
	const struct io_who *who;
	struct io_record r;

	assert_false(io_join_next(j, which, &r, &who));
}

static struct io_join *create(void)
{
	struct io_join *j = NULL;
	struct err e = { 0 };

	assert_int_equal(io_join_create(&j, 2, &e), 0);
	return j;
}

static void either_may_come_first(void **state)
{
	struct io_join *j = create();

	(void)state;
	add_record(j, TOKEN(0, 1), 10);
	expect_none(j, IO_JOIN_KNOWN);
	add_sample(j, TOKEN(0, 1), "one");
	add_record(j, TOKEN(0, 1), 11);
	expect(j, IO_JOIN_KNOWN, 10, "one");
	expect(j, IO_JOIN_KNOWN, 11, "one");
	expect_none(j, IO_JOIN_KNOWN);
	add_sample(j, TOKEN(1, 1), "two");
	add_sample(j, TOKEN(0, 2), "three");
	add_record(j, TOKEN(0, 2), 12);
	add_record(j, TOKEN(1, 1), 13);
	add_record(j, TOKEN(0, 1), 14); /* one that took long */
	expect(j, IO_JOIN_KNOWN, 12, "three");
	expect(j, IO_JOIN_KNOWN, 13, "two");
	expect(j, IO_JOIN_KNOWN, 14, "one");
	expect_none(j, IO_JOIN_REST);
	io_join_destroy(j);
}

static void those_that_wait_let_others_pass(void **state)
{
	struct io_join *j = create();

	(void)state;
	add_record(j, TOKEN(0, 1), 1);
	add_record(j, 0, 2); /* nobody knows */
	add_record(j, TOKEN(1, 5), 3);
	add_sample(j, TOKEN(1, 5), "other");
	expect(j, IO_JOIN_KNOWN, 2, NULL);
	expect(j, IO_JOIN_KNOWN, 3, "other");
	expect_none(j, IO_JOIN_KNOWN);
	expect(j, IO_JOIN_REST, 1, NULL);
	expect_none(j, IO_JOIN_REST);
	io_join_destroy(j);
}

/* Another kernel runs: what the one before had begun is nobody's. */
static void stacks_that_are_forgotten(void **state)
{
	struct io_join *j = create();

	(void)state;
	add_sample(j, TOKEN(0, 1), "one");
	add_sample(j, TOKEN(1, 1), "two");
	io_join_forget(j);
	add_record(j, TOKEN(0, 1), 1);
	add_record(j, TOKEN(1, 1), 2);
	add_record(j, TOKEN(1, 2), 3);
	add_sample(j, TOKEN(1, 2), "next");
	expect(j, IO_JOIN_KNOWN, 1, NULL);
	expect(j, IO_JOIN_KNOWN, 2, NULL);
	expect(j, IO_JOIN_KNOWN, 3, "next");
	expect_none(j, IO_JOIN_REST);
	io_join_destroy(j);
}

/* A later sample of the same vCPU says that an earlier one will not come. */
static void lost_samples_are_noticed(void **state)
{
	struct io_join *j = create();

	(void)state;
	add_record(j, TOKEN(0, 1), 1);
	add_sample(j, TOKEN(1, 2), "other vcpu");
	expect_none(j, IO_JOIN_KNOWN);
	add_sample(j, TOKEN(0, 2), "next");
	expect(j, IO_JOIN_KNOWN, 1, NULL);
	for (unsigned int i = 3; i < 3 + IO_JOIN_STACKS; i++)
		add_sample(j, TOKEN(0, i), "many");
	add_record(j, TOKEN(0, 2), 2); /* so late that its stack is gone */
	expect(j, IO_JOIN_KNOWN, 2, NULL);
	add_record(j, TOKEN(7, 1), 3); /* the vCPU does not exist */
	expect(j, IO_JOIN_KNOWN, 3, NULL);
	io_join_destroy(j);
}

static void waiting_has_an_end(void **state)
{
	struct io_join *j = create();
	const struct io_who *who;
	struct io_record r;
	unsigned int n = 0;

	(void)state;
	for (unsigned int i = 0; i < IO_JOIN_WAITING; i++)
		add_record(j, TOKEN(0, 1), i);
	expect_none(j, IO_JOIN_KNOWN);
	assert_false(io_join_record(j, &(struct io_record){ .token = TOKEN(0, 1) }));
	while (io_join_next(j, IO_JOIN_REST, &r, &who))
		n++;
	assert_int_equal(n, IO_JOIN_WAITING);
	io_join_destroy(j);
}

static void names_of_events(void **state)
{
	struct event_name n;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(event_name_parse(&n, "io", 2, &e), 0);
	assert_int_equal(n.class, EVENT_IO);
	assert_false(n.latency);
	assert_int_equal(event_name_parse(&n, "io:bytes", 8, &e), 0);
	assert_false(n.latency);
	assert_int_equal(event_name_parse(&n, "io:latency", 10, &e), 0);
	assert_int_equal(n.class, EVENT_IO);
	assert_true(n.latency);
	assert_int_equal(event_name_parse(&n, "io:", 3, &e), -EINVAL);
	assert_int_equal(event_name_parse(&n, "io:u", 4, &e), -EINVAL);
	assert_int_equal(event_name_parse(&n, "net", 3, &e), 0);
	assert_int_equal(n.class, EVENT_NET);
	assert_int_equal(event_name_parse(&n, "net:u", 5, &e), -EINVAL);
	assert_int_equal(event_name_parse(&n, "nets", 4, &e), -EINVAL);
}

static void disks_are_parsed(void **state)
{
	static const char *const bad[] = {
		"",
		",readonly",
		"x,",
		"x,foo",
		"x,readonly,writable",
		"x,overlay=",
		"x,serial=",
		"x,overlay=a,writable",
		"x,serial=123456789012345678901",
		"x,READONLY",
	};
	struct run_disk d;
	struct err e = { 0 };
	char *text;

	(void)state;
	assert_int_equal(run_options_disk_parse(&d, "disk.img", &e), 0);
	assert_string_equal(d.path, "disk.img");
	assert_int_equal(d.write, DISK_OVERLAY);
	assert_string_equal(d.serial, "");
	assert_int_equal(
		run_options_disk_parse(&d, "a,,b.img,overlay=x,,y,serial=12345678901234567890", &e),
		0);
	assert_string_equal(d.path, "a,b.img");
	assert_string_equal(d.overlay, "x,y");
	assert_string_equal(d.serial, "12345678901234567890");
	assert_int_equal(d.write, DISK_OVERLAY_FILE);
	assert_int_equal(run_options_disk_parse(&d, "d,serial=1,readonly", &e), 0);
	assert_int_equal(d.write, DISK_READ_ONLY);
	assert_int_equal(run_options_disk_parse(&d, "d,writable", &e), 0);
	assert_int_equal(d.write, DISK_WRITABLE);
	assert_int_equal(d.limit.bytes | d.limit.operations, 0);
	assert_int_equal(run_options_disk_parse(&d, "d,rate=10M/s,readonly,iops=1000", &e), 0);
	assert_int_equal(d.limit.bytes, 10 << 20);
	assert_int_equal(d.limit.operations, 1000);
	assert_int_equal(run_options_disk_parse(&d, "d,iops=0", &e), -EINVAL);
	assert_int_equal(run_options_disk_parse(&d, "d,iops=x", &e), -EINVAL);
	assert_int_equal(run_options_disk_parse(&d, "d,rate=/s", &e), -EINVAL);
	assert_int_equal(run_options_disk_parse(&d, "d,pps=5", &e), -EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err_clear(&e);
		assert_int_equal(run_options_disk_parse(&d, bad[i], &e), -EINVAL);
		assert_int_equal(e.code, EINVAL);
		assert_null(strchr(e.text, '\n'));
	}
	text = malloc(2 * PATH_MAX);
	memset(text, 'x', 2 * PATH_MAX - 1);
	text[2 * PATH_MAX - 1] = '\0';
	err_clear(&e);
	assert_int_equal(run_options_disk_parse(&d, text, &e), -ENAMETOOLONG);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(either_may_come_first),
		cmocka_unit_test(those_that_wait_let_others_pass),
		cmocka_unit_test(lost_samples_are_noticed),
		cmocka_unit_test(stacks_that_are_forgotten),
		cmocka_unit_test(waiting_has_an_end),
		cmocka_unit_test(names_of_events),
		cmocka_unit_test(disks_are_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
