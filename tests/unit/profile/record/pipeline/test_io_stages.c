/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way of a disk's request: which interrupt and which sign of a task belong to it, and which do not. */
#include "profile/record/pipeline/io_stages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TID 7u
#define TOKEN 0x1000000000005

static struct io_stages_log *log_create(void)
{
	struct io_stages_log *l = NULL;
	struct err e = { 0 };

	assert_int_equal(io_stages_create(&l, &e), 0);
	return l;
}

/* Taken at taken_ns, done 10 ns later, by task TID. */
static void add_request(struct io_stages_log *l, uint64_t taken_ns, uint8_t device)
{
	static struct io_who who; /* large */
	const struct io_record r = { .token = TOKEN,
				     .submit_ns = taken_ns,
				     .complete_ns = taken_ns + 10,
				     .device = device };

	who.task = (struct sample_task){ .state = SAMPLE_TASK_FOUND, .tid = TID };
	io_stages_request(l, &r, &who);
}

static void add_interrupt(struct io_stages_log *l, uint8_t type, uint64_t taken_ns, uint64_t ns,
			  uint8_t device)
{
	io_stages_interrupt(l, &(struct io_record){ .type = type,
						    .submit_ns = taken_ns,
						    .complete_ns = ns,
						    .device = device });
}

static void add_sign(struct io_stages_log *l, uint32_t tid, uint64_t ns, uint64_t token)
{
	const struct sample s = {
		.reason = token ? SAMPLE_IO : SAMPLE_TIMER,
		.mode = SAMPLE_KERNEL,
		.time_ns = ns,
		.exit_addr = token,
		.task = { .state = SAMPLE_TASK_FOUND, .tid = tid },
	};

	io_stages_sample(l, &s);
}

static struct io_stages next(struct io_stages_log *l, uint64_t now_ns)
{
	struct io_stages s;

	assert_true(io_stages_next(l, now_ns, &s));
	return s;
}

static void stages_are_those_that_follow(void **state)
{
	struct io_stages_log *l = log_create();
	struct io_stages s;

	(void)state;
	add_sign(l, TID, 105, 0); /* while it was carried out */
	add_interrupt(l, IO_HANDLED, 0, 109, 0);
	add_request(l, 100, 0);
	add_interrupt(l, IO_HANDLED, 0, 111, 0);  /* one before it */
	add_interrupt(l, IO_RAISED, 90, 112, 0);  /* another request's */
	add_interrupt(l, IO_RAISED, 100, 113, 1); /* another disk's */
	add_interrupt(l, IO_RAISED, 100, 115, 0);
	add_interrupt(l, IO_HANDLED, 0, 116, 1);
	add_interrupt(l, IO_HANDLED, 0, 120, 0);
	add_sign(l, TID, 118, 0);     /* before the interrupt was handled */
	add_sign(l, TID, 125, TOKEN); /* its own notification */
	add_sign(l, TID + 1, 126, 0);
	add_sign(l, TID, 130, 0);
	add_sign(l, TID, 140, TOKEN + 1);
	s = next(l, 110 + IO_STAGES_HOLD_NS);
	assert_int_equal(s.raised_ns, 115);
	assert_int_equal(s.handled_ns, 120);
	assert_int_equal(s.sign_ns, 130);
	io_stages_destroy(l);
}

static void what_was_not_seen_is_zero(void **state)
{
	struct io_stages_log *l = log_create();
	struct io_stages s;

	(void)state;
	/* No interrupt was made: one that the guest handles later is another request's. */
	add_request(l, 100, 0);
	add_interrupt(l, IO_HANDLED, 0, 200, 0);
	add_sign(l, TID, 150, TOKEN + 1);
	s = next(l, UINT64_MAX);
	assert_int_equal(s.raised_ns, 0);
	assert_int_equal(s.handled_ns, 0);
	assert_int_equal(s.sign_ns, 150);
	/* An MSI: it was made, and nobody sees that it was handled. */
	add_request(l, 300, 0);
	add_interrupt(l, IO_RAISED, 300, 311, 0);
	s = next(l, UINT64_MAX);
	assert_int_equal(s.raised_ns, 311);
	assert_int_equal(s.handled_ns, 0);
	assert_int_equal(s.sign_ns, 0);
	/* Nobody's. */
	io_stages_request(l, &(struct io_record){ .submit_ns = 400, .complete_ns = 401 }, NULL);
	add_sign(l, 0, 410, 0);
	s = next(l, UINT64_MAX);
	assert_int_equal(s.sign_ns, 0);
	assert_int_not_equal(s.task.state, SAMPLE_TASK_FOUND);
	io_stages_destroy(l);
}

static void they_wait_and_come_in_order(void **state)
{
	struct io_stages_log *l = log_create();
	struct io_stages s;

	(void)state;
	add_request(l, 5000, 0); /* ended later than the one behind it */
	add_request(l, 100, 0);
	assert_false(io_stages_next(l, 5009 + IO_STAGES_HOLD_NS, &s));
	assert_int_equal(next(l, 5010 + IO_STAGES_HOLD_NS).r.submit_ns, 5000);
	assert_int_equal(next(l, 5010 + IO_STAGES_HOLD_NS).r.submit_ns, 100);
	assert_false(io_stages_next(l, UINT64_MAX, &s));
	/* Without more room the oldest goes early, and none is lost. */
	for (uint64_t i = 1; i <= IO_STAGES_WAITING; i++)
		add_request(l, i, 0);
	assert_int_equal(next(l, 0).r.submit_ns, 1);
	assert_false(io_stages_next(l, 0, &s));
	for (uint64_t i = 2; i <= IO_STAGES_WAITING; i++)
		assert_int_equal(next(l, UINT64_MAX).r.submit_ns, i);
	io_stages_destroy(l);
}

static void what_was_forgotten_is_not_guessed(void **state)
{
	struct io_stages_log *l = log_create();

	(void)state;
	add_request(l, 100, 0);
	for (uint64_t i = 0; i < IO_STAGES_EVENTS + 1; i++)
		add_sign(l, TID, 120 + i, 0); /* 120 is forgotten: 121 is not the first */
	assert_int_equal(next(l, UINT64_MAX).sign_ns, 0);
	add_request(l, 120, 0);
	assert_int_equal(next(l, UINT64_MAX).sign_ns, 130);
	io_stages_destroy(l);
}

static void the_list_has_an_end(void **state)
{
	struct io_requests q;
	struct io_stages s = { 0 };

	(void)state;
	io_stages_init(&q);
	for (unsigned int i = 0; i < IO_REQUESTS_MAX + 5; i++)
		io_stages_add(&q, &s);
	assert_int_equal(q.n, IO_REQUESTS_MAX);
	assert_int_equal(q.beyond, 5);
	io_stages_deinit(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_are_those_that_follow),
		cmocka_unit_test(what_was_not_seen_is_zero),
		cmocka_unit_test(they_wait_and_come_in_order),
		cmocka_unit_test(what_was_forgotten_is_not_guessed),
		cmocka_unit_test(the_list_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
