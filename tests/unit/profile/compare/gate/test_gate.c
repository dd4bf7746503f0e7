/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A gate over runs with known truth: numbers of rules, verdicts, functions, what is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/gate/gate.h"
#include "profile/compare/gate/text.h"
#include "profile/compare/gate/write_json.h"
#include "tests/unit/stackset_fixture.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static struct gate_rules *rules_of(const char *text)
{
	struct gate_rules *r = NULL;
	struct err e = { 0 };

	if (gate_rules_parse(&r, "rules", text, strlen(text), &e) < 0)
		fail_msg("%s", e.text);
	return r;
}

/* main calls leaf and rest; leaf takes `leaf' ns of a million, fresh `fresh'. */
static struct gate_run *run_of(const struct gate_rules *rules, uint64_t leaf, uint64_t fresh,
			       const char *json)
{
	static struct fixture f;
	struct gate_run *run = NULL;
	struct err e = { 0 };
	uint32_t task;

	fixture_init(&f);
	fixture_func(&f, "main", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "leaf", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "rest", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "fresh", "/bin/new\xff", STACKSET_KIND_USER);
	fixture_func(&f, "idle", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	task = fixture_task(&f, "t", 1);
	fixture_stack(&f, task, STACKSET_KERNEL, leaf, "main leaf");
	fixture_stack(&f, task, STACKSET_KERNEL, 1000000 - leaf - fresh, "main rest");
	if (fresh)
		fixture_stack(&f, task, STACKSET_USER, fresh, "fresh");
	fixture_stack(&f, task, STACKSET_IDLE, 1000000, "idle");
	f.set.json = json;
	f.set.first_ns = 1000;
	f.set.last_ns = 2001000;
	if (gate_run_make(&run, "run", &f.set, rules, &e) < 0)
		fail_msg("%s", e.text);
	return run;
}

static double value_of(const char *rule, const char *json)
{
	struct gate_rules *rules = rules_of(rule);
	struct gate_run *run = run_of(rules, 250000, 1000, json);
	double v = run->value[0];

	assert_true(isnan(v) == (run->why[0] != NULL && v != 0));
	gate_run_destroy(run);
	gate_rules_destroy(rules);
	return v;
}

#define RULE(m, more) "[[rule]]\nmetric = \"" m "\"\nthreshold = \"1 %\"\n" more "\n"

static void numbers_are_right(void **state)
{
	static const char totals[] =
		"{\"run_seconds\":2,\"first_entry_ns\":500,\"exits\":{\"2_IO\":30,\"10_INTR\":"
		"10},"
		"\"host\":{\"x\":8},\"io\":{\"read_bytes\":100,\"written_bytes\":20},\"markers\":["
		"{\"name\":\"a\",\"time_ns\":2000000},{\"name\":\"b\",\"time_ns\":3000000},"
		"{\"name\":\"bad\"},7]}";
	static const char started[] =
		"{\"run_seconds\":2,\"attach\":{\"start\":{\"vmm_ns\":70,\"kvm_ns\":0,"
		"\"held_ns\":100,\"guest_ns\":830,\"elapsed_ns\":1000}}}";

	(void)state;
	assert_true(value_of(RULE("time", ""), totals) == 2e9);
	assert_true(value_of(RULE("time", ""), NULL) == 2e6);
	assert_true(value_of(RULE("time", "until = \"a\""), totals) == 2e6);
	assert_true(value_of(RULE("time", "until = \"b\""), totals) == 3e6);
	assert_true(value_of(RULE("time", "from = \"a\"\nuntil = \"b\""), totals) == 1e6);
	assert_true(isnan(value_of(RULE("time", "from = \"b\"\nuntil = \"a\""), totals)));
	assert_true(isnan(value_of(RULE("time", "until = \"bad\""), totals)));
	assert_true(isnan(value_of(RULE("time", "until = \"a\""), NULL)));
	assert_true(isnan(value_of(RULE("boot-time", ""), totals)));
	assert_true(isnan(value_of(RULE("vmm-time", ""), totals)));
	assert_true(isnan(value_of(RULE("time", "phase = \"vmm\""), totals)));
	assert_true(value_of(RULE("vmm-time", ""), started) == 900);
	assert_true(value_of(RULE("time", "phase = \"vmm\""), started) == 70);
	assert_true(value_of(RULE("time", "phase = \"kvm\""), started) == 0);
	assert_true(isnan(value_of(RULE("time", "phase = \"init\""), totals)));
	assert_true(value_of(RULE("exits", ""), totals) == 20);
	assert_true(value_of(RULE("exits", "exit = \"IO\""), totals) == 15);
	assert_true(value_of(RULE("exits", "exit = \"10\""), totals) == 5);
	assert_true(isnan(value_of(RULE("exits", ""), "{}")));
	assert_true(value_of(RULE("io-bytes", ""), totals) == 120);
	assert_true(value_of(RULE("io-bytes", ""), "{\"io_bytes\":7}") == 7);
	assert_true(value_of(RULE("counter", "counter = \"host.x\""), totals) == 8);
	assert_true(value_of(RULE("counter", "counter = \"host.x\"\nper-second = true"), totals) ==
		    4);
	assert_true(isnan(value_of(RULE("counter", "counter = \"host\""), totals)));
	assert_true(isnan(value_of(RULE("counter", "counter = \"host.x.y\""), totals)));
	assert_true(isnan(value_of(RULE("counter", "counter = \".\""), "no json")));
	/* A weight of two million, half of it idle. */
	assert_true(value_of(RULE("share", "symbol = \"leaf\""), NULL) == 0.125);
	assert_true(value_of(RULE("share", "symbol = \"main\""), NULL) == 0);
	assert_true(value_of(RULE("share", "subtree = \"main\""), NULL) == 0.4995);
	assert_true(value_of(RULE("share", "subtree-regex = \"a\""), NULL) == 0.4995);
	assert_true(value_of(RULE("share", "regex = \"^(leaf|fresh)$\""), NULL) == 0.1255);
	assert_true(value_of(RULE("share", "symbol = \"none\""), NULL) == 0);
	assert_true(value_of(RULE("share", "symbol = \"leaf\"") "[gate]\nno-idle = true", NULL) ==
		    0.25);
	assert_true(value_of(RULE("function-time", "symbol = \"leaf\""), NULL) == 250000);
}

/* -- verdicts ---------------------------------------------------------------------------------- */

/* n runs a side; leaf is 250000 and `more' in head; they differ by some thousands. */
static struct gate *gate_of(const struct gate_rules *rules, unsigned int n, uint64_t more,
			    uint64_t fresh)
{
	struct gate *g = NULL;
	struct err e = { 0 };

	assert_int_equal(gate_create(&g, rules, &e), 0);
	for (unsigned int i = 0; i < n; i++) {
		uint64_t noise = i * 7919 % 10 * 200;

		assert_int_equal(
			gate_add_run(g, GATE_BASE, run_of(rules, 250000 + noise, 0, NULL), &e), 0);
		assert_int_equal(gate_add_run(g, GATE_HEAD,
					      run_of(rules, 250000 + more + (noise + 600) % 2000,
						     fresh, NULL),
					      &e),
				 0);
	}
	return g;
}

static struct gate_report *evaluate(const struct gate *g)
{
	const struct gate_eval_options opt = { 0 };
	struct gate_report *r = NULL;
	struct err e = { 0 };

	if (gate_evaluate(g, &opt, &r, &e) < 0)
		fail_msg("%s", e.text);
	return r;
}

#define SYMBOLS \
	"[gate]\nno-idle = true\n[[rule]]\nmetric = \"symbols\"\nthreshold = \"0.5 points\"\n"

static void the_function_is_named(void **state)
{
	struct gate_rules *rules = rules_of(SYMBOLS);
	struct gate *g = gate_of(rules, 10, 10000, 0);
	struct gate_report *r = evaluate(g);
	const struct gate_outcome *o = &r->outcome[0];

	(void)state;
	assert_int_equal(gate_exit_status(r), 1);
	assert_int_equal(o->status, GATE_FAILED);
	assert_int_equal(o->nworse, 1);
	assert_string_equal(o->finding[0].name, "leaf");
	assert_true(fabs(o->finding[0].result.diff - 0.01) < 0.001);
	/* It sees less than it found, and no less than the threshold. */
	assert_true(o->finding[0].seen >= 0.5 && o->finding[0].seen < 1);
	assert_true(r->nmoved >= 2);
	assert_string_equal(r->moved[0].mode, "kernel");
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

static void equal_code_passes(void **state)
{
	struct gate_rules *rules = rules_of(SYMBOLS RULE("share", "symbol = \"leaf\""));
	struct gate *g = gate_of(rules, 10, 0, 0);
	struct gate_report *r = evaluate(g);

	(void)state;
	assert_int_equal(gate_exit_status(r), 0);
	assert_int_equal(r->outcome[0].status, GATE_OK);
	assert_int_equal(r->outcome[1].status, GATE_OK);
	assert_int_equal(r->nmoved, 0);
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

static void warnings_pass(void **state)
{
	struct gate_rules *rules = rules_of(SYMBOLS "level = \"warn\"\n");
	struct gate *g = gate_of(rules, 10, 10000, 0);
	struct gate_report *r = evaluate(g);

	(void)state;
	assert_int_equal(r->outcome[0].status, GATE_WARNED);
	assert_int_equal(r->status, GATE_WARNED);
	assert_int_equal(gate_exit_status(r), 0);
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

static void few_runs_cannot_tell(void **state)
{
	struct gate_rules *rules = rules_of(SYMBOLS);

	(void)state;
	for (unsigned int n = 1; n <= 3; n += 2) {
		struct gate *g = gate_of(rules, n, 10000, 0);
		struct gate_report *r = evaluate(g);

		assert_int_equal(gate_exit_status(r), 3);
		assert_int_equal(r->outcome[0].status, GATE_UNSURE);
		assert_true(r->outcome[0].why[0]);
		gate_report_destroy(r);
		gate_destroy(g);
	}
	gate_rules_destroy(rules);
}

static void new_functions_are_new(void **state)
{
	struct gate_rules *rules = rules_of("[[rule]]\nmetric = \"new-symbols\"\nthreshold = "
					    "\"0.5 points\"\n");
	struct gate *g = gate_of(rules, 10, 100000, 0);
	struct gate_report *r = evaluate(g);

	(void)state;
	/* leaf grew by ten times as much, but is old. */
	assert_int_equal(r->outcome[0].status, GATE_OK);
	gate_report_destroy(r);
	gate_destroy(g);
	g = gate_of(rules, 10, 0, 20000);
	r = evaluate(g);
	assert_int_equal(r->outcome[0].status, GATE_FAILED);
	assert_int_equal(r->outcome[0].nworse, 1);
	assert_string_equal(r->outcome[0].finding[0].name, "fresh");
	/* U+FFFD for what is no UTF-8. */
	assert_string_equal(r->outcome[0].finding[0].dso, "/bin/new\xef\xbf\xbd");
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

static void what_is_missing_is_told(void **state)
{
	struct gate_rules *rules =
		rules_of(RULE("share", "symbol = \"none\"") RULE("exits", "optional = true")
				 RULE("boot-time", "level = \"warn\""));
	struct gate *g = gate_of(rules, 8, 0, 0);
	struct gate_report *r = evaluate(g);
	struct err e = { 0 };

	(void)state;
	assert_int_equal(gate_exit_status(r), 3);
	assert_int_equal(r->outcome[0].status, GATE_UNSURE);
	assert_non_null(strstr(r->outcome[0].why, "no function that matches"));
	assert_int_equal(r->outcome[1].status, GATE_SKIPPED);
	assert_int_equal(r->outcome[2].status, GATE_UNSURE);
	gate_report_destroy(r);
	/* In some runs: that may be the regression. */
	assert_int_equal(
		gate_add_run(g, GATE_HEAD,
			     run_of(rules, 250000, 0, "{\"run_seconds\":1,\"exits\":{\"2_IO\":1}}"),
			     &e),
		0);
	r = evaluate(g);
	assert_int_equal(r->outcome[1].status, GATE_UNSURE);
	assert_non_null(strstr(r->outcome[1].why, "8 of 8 base and 8 of 9 head"));
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

static void skipping_all_is_no_pass(void **state)
{
	struct gate_rules *rules = rules_of(RULE("exits", "optional = true"));
	struct gate *g = gate_of(rules, 8, 0, 0);
	struct gate_report *r = evaluate(g);

	(void)state;
	assert_int_equal(r->outcome[0].status, GATE_SKIPPED);
	assert_int_equal(gate_exit_status(r), 3);
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

/* A second evaluation after more runs, as a bench makes it. */
static void grows(void **state)
{
	struct gate_rules *rules = rules_of(SYMBOLS);
	struct gate *g = gate_of(rules, 4, 10000, 0);
	struct gate_report *r = evaluate(g);
	struct err e = { 0 };

	(void)state;
	assert_int_equal(gate_exit_status(r), 3);
	gate_report_destroy(r);
	for (unsigned int i = 0; i < 6; i++) {
		assert_int_equal(gate_add_run(g, GATE_BASE,
					      run_of(rules, 250000 + i * 100, 0, NULL), &e),
				 0);
		assert_int_equal(gate_add_run(g, GATE_HEAD,
					      run_of(rules, 260000 + i * 100, 0, NULL), &e),
				 0);
	}
	r = evaluate(g);
	assert_int_equal(gate_exit_status(r), 1);
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

static void sides_need_runs(void **state)
{
	struct gate_rules *rules = rules_of(SYMBOLS);
	const struct gate_eval_options opt = { 0 };
	struct gate_report *r = NULL;
	struct gate *g = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(gate_create(&g, rules, &e), 0);
	assert_int_equal(gate_add_run(g, GATE_BASE, run_of(rules, 1, 0, NULL), &e), 0);
	assert_int_equal(gate_evaluate(g, &opt, &r, &e), -EINVAL);
	assert_string_equal(e.text, "no runs of the head");
	err_clear(&e);
	assert_int_equal(gate_add(g, GATE_HEAD, "/nonexistent", NULL, &e), -ENOENT);
	assert_int_equal(gate_runs(g, GATE_HEAD), 0);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

/* A copy is no run; how runs were made is named, and a run on both sides. */
static void runs_are_independent(void **state)
{
	static const char one[] = "{\"vcpus\":1,\"machine\":{\"cmdline\":\"work=6\"}}",
			  two[] = "{\"vcpus\":2,\"machine\":{\"cmdline\":\"work=6 x\"}}";
	static const char differs[] = "vCPUs 1 and 2, command line with \"\" and with \"x\"";
	struct gate_rules *rules = rules_of(SYMBOLS);
	struct gate_run *copy = run_of(rules, 5, 0, one);
	struct gate *g = NULL;
	struct gate_report *r;
	struct err e = { 0 };
	char text[GATE_SENTENCE];

	(void)state;
	assert_int_equal(gate_create(&g, rules, &e), 0);
	assert_int_equal(gate_add_run(g, GATE_BASE, run_of(rules, 5, 0, one), &e), 0);
	assert_int_equal(gate_check_fresh(g, GATE_BASE, copy, &e), -EINVAL);
	assert_non_null(strstr(e.text, "run is given twice for the base"));
	err_clear(&e);
	copy->path = "other";
	assert_int_equal(gate_check_fresh(g, GATE_BASE, copy, &e), -EINVAL);
	assert_non_null(strstr(e.text, "run and other of the base are the same run"));
	err_clear(&e);
	assert_int_equal(gate_check_fresh(g, GATE_HEAD, copy, &e), 0);
	assert_int_equal(gate_add_run(g, GATE_HEAD, run_of(rules, 7, 0, two), &e), 0);
	r = evaluate(g);
	assert_string_equal(r->means, differs);
	assert_null(r->same);
	gate_text_design(text, sizeof(text), r);
	assert_non_null(strstr(text, differs));
	gate_report_destroy(r);
	/* A second difference of this kind is reported once. */
	assert_int_equal(gate_add_run(g, GATE_HEAD, run_of(rules, 8, 0, two), &e), 0);
	assert_int_equal(gate_add_run(g, GATE_HEAD, copy, &e), 0);
	r = evaluate(g);
	assert_string_equal(r->means, differs);
	assert_string_equal(r->same, "other");
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

/* Says the first line of n runs a side of two commands, whose work is as given, and differs by a thousandth. */
static void say_work(char *text, size_t size, unsigned int n, double base, double head)
{
	struct gate_rules *rules = rules_of(SYMBOLS);
	struct gate *g = NULL;
	struct gate_report *r;
	struct err e = { 0 };
	struct buf b;

	assert_int_equal(gate_create(&g, rules, &e), 0);
	for (unsigned int i = 0; i < 2 * n; i++) {
		struct gate_run *run = run_of(rules, 5 + i, 0, "{\"command\":\"./a\"}");

		assert_string_equal(run->command, "./a");
		/* This is no boot of a Linux. */
		assert_true(isnan(run->work));
		run->weight_is_ns = true;
		run->work = (i % 2 ? head : base) * (1 + 1e-3 * (i / 2 * 7 % 10) / 10);
		assert_int_equal(gate_add_run(g, i % 2 ? GATE_HEAD : GATE_BASE, run, &e), 0);
	}
	r = evaluate(g);
	gate_text_work(text, size, r);
	buf_init(&b);
	assert_int_equal(gate_write_text(&b, r, &(struct gate_write_options){ 0 }, &e), 0);
	assert_memory_equal(b.data, "# ", 2);
	assert_memory_equal(b.data + 2, text, strlen(text));
	buf_deinit(&b);
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

static void commands_are_compared_as_a_whole(void **state)
{
	char text[GATE_SENTENCE];

	(void)state;
	say_work(text, sizeof(text), 10, 2e9, 0.974e9);
	assert_memory_equal(text, "head does 51.3 % less work from /init on (974.", 46);
	assert_non_null(strstr(text, " ms, base 2.001 s of processor time; 95 %: -51."));
	say_work(text, sizeof(text), 10, 1e9, 2e9);
	assert_memory_equal(text, "head does 100 % more work", 25);
	say_work(text, sizeof(text), 10, 1e9, 1e9);
	assert_memory_equal(text, "these runs do not tell whether head does less work", 50);
	say_work(text, sizeof(text), 1, 2e9, 1e9);
	assert_memory_equal(text, "these runs do not tell whether head does less work", 50);
}

/* A noisy runner: the gate says by how much, and how many runs would do. */
static void noise_is_told(void **state)
{
	struct gate_rules *rules =
		rules_of(RULE("share", "symbol = \"leaf\"") RULE("exits", "optional = true"));
	struct gate *g = NULL;
	struct gate_report *r;
	struct err e = { 0 };
	char text[GATE_SENTENCE];

	(void)state;
	assert_int_equal(gate_create(&g, rules, &e), 0);
	/* Seven runs a side, which differ by some 2 %. */
	for (unsigned int i = 0; i < 14; i++)
		assert_int_equal(gate_add_run(g, i % 2 ? GATE_HEAD : GATE_BASE,
					      run_of(rules,
						     245000 + (i * i * 7919 + i * 13) % 11 * 1000,
						     0, NULL),
					      &e),
				 0);
	r = evaluate(g);
	assert_int_equal(gate_exit_status(r), 3);
	assert_ptr_equal(r->noise.outcome, &r->outcome[0]);
	assert_in_range(r->noise.runs, 8, 120);
	gate_text_noise(text, sizeof(text), r);
	assert_memory_equal(text, "runs of one side differ by ", 27);
	assert_non_null(strstr(text, " and the threshold is 1 %: "));
	assert_non_null(strstr(text, " runs a side would suffice, and there are 7"));
	gate_report_destroy(r);
	gate_destroy(g);
	/* A rule that passes has no sentence. */
	g = gate_of(rules, 10, 0, 0);
	r = evaluate(g);
	assert_int_equal(gate_exit_status(r), 0);
	gate_text_noise(text, sizeof(text), r);
	assert_string_equal(text, "");
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

/* The characters of a name never end the text around it. */
static void reports_quote_names(void **state)
{
	struct gate_rules *rules = rules_of("[[rule]]\nname = \"a<b>&\\\"|`*%::,]]>\"\n"
					    "metric = \"share\"\nsymbol = \"leaf\"\n"
					    "threshold = \"1 points\"\n");
	struct gate *g = gate_of(rules, 8, 90000, 0);
	struct gate_report *r = evaluate(g);
	const struct gate_write_options opt = { .flamegraph = "a (b).svg" };
	struct err e = { 0 };
	struct buf b;
	json_t *j;

	(void)state;
	buf_init(&b);
	assert_int_equal(gate_write_junit(&b, r, &opt, &e), 0);
	buf_u8(&b, 0);
	assert_non_null(strstr((char *)b.data, "name=\"a&lt;b&gt;&amp;&quot;|`*%::,]]&gt;\""));
	b.len = 0;
	assert_int_equal(gate_write_github(&b, r, &opt, &e), 0);
	buf_u8(&b, 0);
	assert_non_null(strstr((char *)b.data, "file=rules,line=1,title=kvmprof gate%3A "
					       "a<b>&\"|`*%25%3A%3A%2C]]> (fail)::"));
	b.len = 0;
	assert_int_equal(gate_write_markdown(&b, r, &opt, &e), 0);
	buf_u8(&b, 0);
	assert_non_null(strstr((char *)b.data, "a&lt;b&gt;&amp;\"\\|\\`\\*%::,\\]\\]&gt;"));
	assert_non_null(strstr((char *)b.data, "(a%20%28b%29.svg)"));
	b.len = 0;
	assert_int_equal(gate_write_sarif(&b, r, &opt, &e), 0);
	j = json_loadb((char *)b.data, b.len, 0, NULL);
	assert_non_null(j);
	json_decref(j);
	b.len = 0;
	assert_int_equal(gate_write_json(&b, r, &opt, &e), 0);
	j = json_loadb((char *)b.data, b.len, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(j, "rules"), 0), "rule")),
			    rules->rule[0].name);
	json_decref(j);
	buf_deinit(&b);
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_right),
		cmocka_unit_test(the_function_is_named),
		cmocka_unit_test(equal_code_passes),
		cmocka_unit_test(warnings_pass),
		cmocka_unit_test(few_runs_cannot_tell),
		cmocka_unit_test(new_functions_are_new),
		cmocka_unit_test(what_is_missing_is_told),
		cmocka_unit_test(skipping_all_is_no_pass),
		cmocka_unit_test(grows),
		cmocka_unit_test(sides_need_runs),
		cmocka_unit_test(noise_is_told),
		cmocka_unit_test(runs_are_independent),
		cmocka_unit_test(commands_are_compared_as_a_whole),
		cmocka_unit_test(reports_quote_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
