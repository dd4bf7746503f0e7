/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of a bench, and how it watches a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/bench/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_words(void **state)
{
	static const struct {
		const char *text, *words[4];
	} known[] = {
		{ "", { NULL } },
		{ " \t\n ", { NULL } },
		{ "a  b", { "a", "b" } },
		{ "--append 'x=1 y=2' -q", { "--append", "x=1 y=2", "-q" } },
		{ "a'b c'd \"\" ", { "ab cd", "" } },
		{ "\"a 'b\\\" c\" \\'x\\ y", { "a 'b\" c", "'x y" } },
		{ "'a\\' b", { "a\\", "b" } },
		{ "a\\", { "a\\" } },
	};
	struct bench_args a;
	struct err e = { 0 };
	char *many = calloc(1, 2 * BENCH_ARGS_MAX + 3);

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_int_equal(bench_args_parse(&a, known[i].text, &e), 0);
		for (size_t k = 0; k < 4; k++) {
			if (!known[i].words[k]) {
				assert_int_equal(a.n, k);
				break;
			}
			assert_string_equal(a.word[k], known[i].words[k]);
		}
		assert_null(a.word[a.n]);
		bench_args_deinit(&a);
	}
	assert_int_equal(bench_args_parse(&a, "a 'b", &e), -EINVAL);
	assert_int_equal(bench_args_parse(&a, "a \"b'", &e), -EINVAL);
	for (size_t i = 0; i <= BENCH_ARGS_MAX; i++)
		memcpy(many + 2 * i, "x ", 2);
	assert_int_equal(bench_args_parse(&a, many, &e), -E2BIG);
	many[2 * BENCH_ARGS_MAX] = '\0';
	assert_int_equal(bench_args_parse(&a, many, &e), 0);
	assert_int_equal(a.n, BENCH_ARGS_MAX);
	bench_args_deinit(&a);
	free(many);
}

static void test_cpus(void **state)
{
	static const char *const bad[] = { "",	  "x",	  "1,", ",1",  "1-",
					   "3-1", "1024", "-1", "1 2", "1-2-3" };
	struct err e = { 0 };
	cpu_set_t set;

	(void)state;
	assert_int_equal(bench_cpus_parse(&set, "0,2-3,1023", &e), 0);
	assert_int_equal(CPU_COUNT(&set), 4);
	assert_true(CPU_ISSET(0, &set) && CPU_ISSET(2, &set) && CPU_ISSET(3, &set) &&
		    CPU_ISSET(1023, &set));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(bench_cpus_parse(&set, bad[i], &e), -EINVAL);
}

static struct bench_outcome run(char *const *argv, double timeout_s, int stop_fd)
{
	struct bench_exec x = { .argv = argv,
				.log = "/dev/null",
				.timeout_s = timeout_s,
				.stop_fd = stop_fd,
				.grace_ms = 1200 };
	struct bench_outcome o;
	struct err e = { 0 };

	if (bench_exec(&x, &o, &e))
		fail_msg("%s", e.text);
	return o;
}

static void test_exec(void **state)
{
	char sh[] = "/bin/sh", c[] = "-c", three[] = "exit 3", killed[] = "kill -9 $$",
	     fine[] = "read x; test -z \"$x\"", slow[] = "exec sleep 60",
	     none[] = "/no/such/program";
	struct bench_exec missing = {
		.argv = (char *[]){ none, NULL }, .log = "/dev/null", .timeout_s = 10, .stop_fd = -1
	};
	struct bench_outcome o;
	struct err e = { 0 };
	int ends[2];

	(void)state;
	o = run((char *[]){ sh, c, three, NULL }, 60, -1);
	assert_true(o.end == BENCH_FAILED && o.status == 3);
	o = run((char *[]){ sh, c, killed, NULL }, 60, -1);
	assert_true(o.end == BENCH_KILLED && o.status == SIGKILL);
	/* There is no input. */
	o = run((char *[]){ sh, c, fine, NULL }, 60, -1);
	assert_true(o.end == BENCH_FINE && o.status == 0);
	o = run((char *[]){ sh, c, slow, NULL }, 0.1, -1);
	assert_true(o.end == BENCH_TIMED_OUT && o.seconds < 30);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	o = run((char *[]){ sh, c, slow, NULL }, 60, ends[0]);
	assert_true(o.end == BENCH_INTERRUPTED && o.seconds < 30);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(bench_exec(&missing, &o, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
