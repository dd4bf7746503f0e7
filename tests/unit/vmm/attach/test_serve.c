/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process of attach that traces refuses bad messages of the one without rights. */
#include "vmm/attach/serve.h"

#include <errno.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define AT UINT64_C(0x7f0000000000)
#define SIZE UINT64_C(0x20000)

static unsigned int reads;

static bool of_tables;

static int read_guest(void *ctx, bool tables, uint64_t host, void *dst, size_t len)
{
	(void)ctx;
	assert_true(host >= AT && host + len <= AT + SIZE);
	memset(dst, 0x5a, len);
	of_tables = tables;
	reads++;
	return 0;
}

static int ask_for(uint64_t host, uint32_t len, uint32_t tables)
{
	static struct serve_answer answer;
	struct serve_memory m = { .n = 1, .read = read_guest };
	const struct serve_request a = { .number = 9, .len = len, .host = host, .tables = tables };
	size_t n;

	m.region[0] = (struct gmem_region){ .host = (void *)(uintptr_t)AT, .size = SIZE };
	memset(&answer, 0, sizeof(answer));
	n = serve_memory(&m, &a, sizeof(a), &answer);
	if (!n)
		return 1;
	assert_int_equal(answer.number, 9);
	assert_int_equal(n, SERVE_ANSWER_HEAD + (answer.ret ? 0 : len));
	if (!answer.ret)
		assert_int_equal(answer.bytes[len - 1], 0x5a);
	return answer.ret;
}

static int ask(uint64_t host, uint32_t len)
{
	return ask_for(host, len, 0);
}

static void test_memory(void **state)
{
	(void)state;
	assert_int_equal(ask(AT, 1), 0);
	assert_int_equal(ask(AT + SIZE - SERVE_MAX, SERVE_MAX), 0);
	assert_int_equal(reads, 2);
	assert_int_equal(ask(AT - 1, 1), -EFAULT);
	assert_int_equal(ask(AT + SIZE, 1), -EFAULT);
	assert_int_equal(ask(AT + SIZE - 1, 2), -EFAULT);
	assert_int_equal(ask(UINT64_MAX, SERVE_MAX), -EFAULT);
	/* Not from kvmprof's code: the caller ends the connection. */
	assert_int_equal(ask(AT, 0), 1);
	assert_int_equal(ask(AT, SERVE_MAX + 1), 1);
	assert_int_equal(ask_for(AT, 1, 2), 1);
	assert_int_equal(reads, 2);
	assert_false(of_tables);
	assert_int_equal(ask_for(AT, 1, 1), 0);
	assert_true(of_tables);
}

static int order(const struct serve_order *o)
{
	struct serve_order out;
	int ret = serve_order(&out, o, sizeof(*o));

	assert_int_equal(serve_order(&out, o, sizeof(*o) - 1), -EINVAL);
	return ret;
}

static void test_orders(void **state)
{
	struct serve_order o = { .op = SERVE_START };

	(void)state;
	assert_int_equal(order(&o), 0);
	o.op = 0;
	assert_int_equal(order(&o), -EINVAL);
	o.op = SERVE_THREAD + 1;
	assert_int_equal(order(&o), -EINVAL);

	o = (struct serve_order){ .op = SERVE_CONTROL };
	o.u.control = (struct serve_control){ .period = 1000000, .stack_max = 4096, .collect = 1 };
	assert_int_equal(order(&o), 0);
	o.u.control.period = SERVE_LEAST_PERIOD - 1;
	assert_int_equal(order(&o), -EINVAL);
	o.u.control.period = 1000000;
	o.u.control.stack_max = SAMPLE_MAX_SLICE + 8;
	assert_int_equal(order(&o), -EINVAL);
	o.u.control.stack_max = 4096;
	o.u.control.armed = 2;
	assert_int_equal(order(&o), -EINVAL);
}

/* These offsets and lengths are used while samples are taken, where nothing checks them again. */
static void test_plans(void **state)
{
	struct serve_order o = { .op = SERVE_TASK };

	(void)state;
	o.u.task.comm_size = SAMPLE_COMM;
	assert_int_equal(order(&o), 0);
	o.u.task.comm_size = SAMPLE_COMM + 1;
	assert_int_equal(order(&o), -EINVAL);
	o.u.task.comm_size = 16;
	o.u.task.returns.entry = SAMPLE_MAX_RETURNS + 1;
	assert_int_equal(order(&o), -EINVAL);
	o.u.task.returns.entry = 8;
	o.u.task.stack_align = 3;
	assert_int_equal(order(&o), -EINVAL);

	o = (struct serve_order){ .op = SERVE_LAYOUT };
	o.u.layout = (struct capture_python_layout){ .span = 32,
						     .code = 0,
						     .previous = 8,
						     .instr = 16,
						     .owner = 31,
						     .is_entry = CAPTURE_NONE };
	assert_int_equal(order(&o), 0);
	o.u.layout.owner = 32;
	assert_int_equal(order(&o), -EINVAL);
	o.u.layout.owner = 31;
	o.u.layout.instr = UINT32_MAX - 3;
	assert_int_equal(order(&o), -EINVAL);
	o.u.layout.instr = 16;
	o.u.layout.span = CAPTURE_PYTHON_MAX_SPAN + 1;
	assert_int_equal(order(&o), -EINVAL);

	o = (struct serve_order){ .op = SERVE_THREAD };
	o.u.thread.layout = CAPTURE_PYTHON_LAYOUTS - 1;
	assert_int_equal(order(&o), 0);
	o.u.thread.layout = CAPTURE_PYTHON_LAYOUTS;
	assert_int_equal(order(&o), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_plans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
