/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history of a gate: entries as files that are only added, and steps in their series. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "profile/compare/gate/series.h"
#include "tests/unit/stackset_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES                                                        \
	"[[rule]]\nmetric = \"time\"\nthreshold = \"2 %\"\n"         \
	"[[rule]]\nmetric = \"symbols\"\nthreshold = \"1 points\"\n" \
	"[[rule]]\nmetric = \"exits\"\nthreshold = \"2 %\"\noptional = true\n"

#define NOVEMBER_1 1793491200 /* 2026-11-01T00:00:00Z */
#define DAY 86400

static struct gate_rules *rules_of(const char *text)
{
	struct gate_rules *r = NULL;
	struct err e = { 0 };

	if (gate_rules_parse(&r, "rules", text, strlen(text), &e) < 0)
		fail_msg("%s", e.text);
	return r;
}

static struct gate_run *run_of(const struct gate_rules *rules, uint64_t leaf, uint64_t rest)
{
	static struct fixture f;
	struct gate_run *run = NULL;
	struct err e = { 0 };
	uint32_t task;

	fixture_init(&f);
	fixture_func(&f, "leaf", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "rest", "/bin/a", STACKSET_KIND_USER);
	task = fixture_task(&f, "t", 1);
	fixture_stack(&f, task, STACKSET_KERNEL, leaf, "leaf");
	fixture_stack(&f, task, STACKSET_USER, rest, "rest");
	f.set.first_ns = 1000;
	f.set.last_ns = 1000 + leaf + rest;
	if (gate_run_make(&run, "run", &f.set, rules, &e) < 0)
		fail_msg("%s", e.text);
	return run;
}

struct place {
	char dir[64];
	struct gate_rules *rules;
};

static void begin(struct place *p)
{
	snprintf(p->dir, sizeof(p->dir), "/tmp/kvmprof-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->rules = rules_of(RULES);
}

static void end(struct place *p)
{
	struct err e = { 0 };

	assert_int_equal(file_remove_tree(p->dir, &e), 0);
	gate_rules_destroy(p->rules);
}

static void record(const struct place *p, const char *label, unsigned int day, uint64_t leaf,
		   char *file)
{
	struct gate_run *run[2] = { run_of(p->rules, leaf - 100, 100000),
				    run_of(p->rules, leaf + 100, 100000) };
	struct err e = { 0 };

	if (gate_history_record(p->dir,
				&(struct gate_history_runs){ label, NOVEMBER_1 + day * DAY,
							     p->rules, run, 2, NULL, 0 },
				file, &e))
		fail_msg("%s", e.text);
	gate_run_destroy(run[0]);
	gate_run_destroy(run[1]);
}

static struct gate_history *load(const struct place *p, size_t last)
{
	struct gate_history *h = NULL;
	struct err e = { 0 };

	if (gate_history_load(&h, p->dir, last, &e) < 0)
		fail_msg("%s", e.text);
	return h;
}

static void keeps_what_was_measured(void **state)
{
	const struct gate_history_value *v;
	char file[GATE_HISTORY_FILE];
	struct gate_history *h;
	struct place p;

	(void)state;
	begin(&p);
	record(&p, "later", 1, 30000, file);
	record(&p, "first", 0, 20000, file);
	assert_int_equal(strncmp(file, "20261101T000000Z-", 17), 0);
	h = load(&p, 0);
	assert_int_equal(h->n, 2);
	assert_string_equal(h->entry[0]->label, "first");
	assert_string_equal(h->entry[0]->file, file);
	assert_string_equal(h->entry[0]->time, "2026-11-01T00:00:00Z");
	assert_int_equal(h->entry[0]->runs, 2);
	v = gate_history_find(h->entry[0], "time", NULL, NULL);
	assert_true(v && v->mean == 120000);
	v = gate_history_find(h->entry[0], "leaf", "[kernel.kallsyms]", "kernel");
	assert_true(v && fabs(v->mean - 1.0 / 6) < 1e-3);
	assert_null(gate_history_find(h->entry[0], "leaf", "[kernel.kallsyms]", "user"));
	assert_null(gate_history_find(h->entry[0], "exits", NULL, NULL));
	gate_history_destroy(h);
	h = load(&p, 1);
	assert_int_equal(h->n, 1);
	assert_string_equal(h->entry[0]->label, "later");
	gate_history_destroy(h);
	end(&p);
}

/* They have one value, which is written once: a reader refuses an object that has a key twice. */
static void rules_of_one_metric_are_read_back(void **state)
{
	char file[GATE_HISTORY_FILE];
	struct gate_history *h;
	struct place p;

	(void)state;
	begin(&p);
	gate_rules_destroy(p.rules);
	p.rules = rules_of("[[rule]]\nname = \"warn\"\nmetric = \"time\"\nthreshold = \"2 %\"\n"
			   "[[rule]]\nname = \"fail\"\nmetric = \"time\"\nthreshold = \"5 %\"\n");
	record(&p, "both", 0, 20000, file);
	h = load(&p, 0);
	assert_int_equal(h->n, 1);
	assert_non_null(gate_history_find(h->entry[0], "time", NULL, NULL));
	gate_history_destroy(h);
	end(&p);
}

static void nothing_is_rewritten(void **state)
{
	char file[GATE_HISTORY_FILE], path[256];
	struct gate_run *two[2];
	struct err e = { 0 };
	struct stat before, after;
	struct place p;
	int fd;

	(void)state;
	begin(&p);
	record(&p, "a", 0, 20000, file);
	snprintf(path, sizeof(path), "%s/%s", p.dir, file);
	assert_int_equal(stat(path, &before), 0);
	/* The same again is there already. */
	record(&p, "a", 0, 20000, file);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino == after.st_ino && before.st_nlink == 1 && after.st_nlink == 1);
	/* Another file of its name is not replaced. */
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	two[0] = run_of(p.rules, 19900, 100000);
	two[1] = run_of(p.rules, 20100, 100000);
	assert_int_equal(gate_history_record(p.dir,
					     &(struct gate_history_runs){ "a", NOVEMBER_1, p.rules,
									  two, 2, NULL, 0 },
					     NULL, &e),
			 -EEXIST);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_size, 1);
	gate_run_destroy(two[0]);
	gate_run_destroy(two[1]);
	end(&p);
}

static void broken_files_are_told(void **state)
{
	static const char *const name[] = { "20261101T000000Z-0123456789abcdef.json",
					    "20261101T000000Z-0123456789abcdef.txt",
					    "20261101T000000Z-0123456789ABCDEF.json", "README" };
	struct gate_history *h;
	struct place p;
	char path[256];

	(void)state;
	begin(&p);
	record(&p, "a", 0, 20000, NULL);
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s", p.dir, name[i]);
		fd = open(path, O_WRONLY | O_CREAT, 0644);
		assert_int_equal(write(fd, "{}", 2), 2);
		close(fd);
	}
	h = load(&p, 0);
	assert_int_equal(h->n, 1);
	assert_int_equal(h->refused, 1);
	assert_non_null(strstr(h->why.text, "0123456789abcdef.json: no entry of a history"));
	gate_history_destroy(h);
	end(&p);
}

static void labels_are_checked(void **state)
{
	static const char *const bad[] = { "", "a\nb", "\xff" };
	struct gate_run *run;
	struct place p;

	(void)state;
	begin(&p);
	run = run_of(p.rules, 1000, 1000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = { 0 };

		assert_int_equal(
			gate_history_record(p.dir,
					    &(struct gate_history_runs){
						    bad[i], NOVEMBER_1, p.rules, &run, 1, NULL, 0 },
					    NULL, &e),
			-EINVAL);
	}
	gate_run_destroy(run);
	end(&p);
}

static struct gate_series *find(const struct place *p, const struct gate_history *h,
				unsigned int recent)
{
	struct gate_series *s = NULL;
	struct err e = { 0 };

	if (gate_series_find(&s, h, p->rules, recent, 0, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

/* Ten entries of one level, six of a higher one: leaf got slower at `slow'. */
static void the_entry_is_named(void **state)
{
	struct gate_history *h;
	struct gate_series *s;
	struct place p;
	bool leaf = false, total = false;

	(void)state;
	begin(&p);
	for (unsigned int i = 0; i < 10; i++)
		record(&p, "fast", i, 20000 + i * 7 % 10 * 20, NULL);
	for (unsigned int i = 0; i < 6; i++)
		record(&p, i ? "slower" : "culprit", 10 + i, 26000 + i * 7 % 10 * 20, NULL);
	h = load(&p, 0);
	s = find(&p, h, 10);
	assert_int_equal(gate_series_exit_status(s), 1);
	for (size_t i = 0; i < s->nsteps; i++) {
		assert_string_equal(h->entry[s->step[i].entry]->label, "culprit");
		leaf |= s->step[i].name && !strcmp(s->step[i].name, "leaf") && s->step[i].worse;
		total |= !s->step[i].name && s->step[i].worse &&
			 s->step[i].rule->metric == GATE_RULE_TIME;
	}
	assert_true(leaf && total);
	gate_series_destroy(s);
	/* It is older than five entries: known, no failure. */
	s = find(&p, h, 5);
	assert_int_equal(gate_series_exit_status(s), 0);
	assert_true(s->nsteps >= 2);
	gate_series_destroy(s);
	gate_history_destroy(h);
	end(&p);
}

/* A function that grew makes the share of the other one smaller, which is no improvement; and the other way round. */
static void others_only_follow(void **state)
{
	(void)state;
	for (unsigned int grew = 0; grew < 2; grew++) {
		unsigned int follow = 0, own = 0;
		struct gate_history *h;
		struct gate_series *s;
		struct place p;

		begin(&p);
		for (unsigned int i = 0; i < 20; i++)
			record(&p, "c", i,
			       (i < 10 ? 30000
				: grew ? 42000
				       : 21000) +
				       i * 7 % 10 * 20,
			       NULL);
		h = load(&p, 0);
		s = find(&p, h, 10);
		for (size_t i = 0; i < s->nsteps; i++) {
			const struct gate_step *x = &s->step[i];

			if (!x->name)
				continue;
			own += !strcmp(x->name, "leaf") && !x->because && x->worse == (bool)grew;
			follow += !strcmp(x->name, "rest") && !x->worse && x->because &&
				  !strcmp(x->because, "leaf");
		}
		assert_int_equal(own, 1);
		assert_int_equal(follow, 1);
		gate_series_destroy(s);
		gate_history_destroy(h);
		end(&p);
	}
}

/* The same steps, which somebody accepts: with the commit itself, and one entry later. */
static void accepted_steps_do_not_fail(void **state)
{
	static const struct gate_acceptance yes[] = { { "time", "a person", "it \"pays\"" },
						      { "symbols", "a person", "for it" } };

	(void)state;
	for (unsigned int with = 10; with < 14; with++) {
		struct gate_history *h;
		struct gate_series *s;
		struct place p;

		begin(&p);
		for (unsigned int i = 0; i < 16; i++) {
			struct gate_run *run =
				run_of(p.rules, (i < 10 ? 20000 : 26000) + i * 7 % 10 * 20, 100000);
			struct gate_history_runs runs = {
				"c", NOVEMBER_1 + i * DAY, p.rules, &run, 1, yes, i == with ? 2 : 0
			};
			struct err e = { 0 };

			assert_int_equal(gate_history_record(p.dir, &runs, NULL, &e), 0);
			gate_run_destroy(run);
		}
		h = load(&p, 0);
		assert_int_equal(h->entry[with]->naccepted, 2);
		assert_string_equal(h->entry[with]->accepted[0].why, "it \"pays\"");
		s = find(&p, h, 10);
		assert_true(s->nsteps >= 2);
		/* One that is too far away belongs to something else. */
		assert_int_equal(gate_series_exit_status(s), with < 13 ? 0 : 1);
		for (size_t i = 0; i < s->nsteps; i++)
			assert_int_equal(s->step[i].accepted != NULL,
					 with < 13 && s->step[i].worse);
		gate_series_destroy(s);
		gate_history_destroy(h);
		end(&p);
	}
}

static void acceptances_are_checked(void **state)
{
	struct gate_rules *rules = rules_of(RULES);
	struct err e = { 0 };

	(void)state;
	assert_int_equal(gate_rules_accept(rules, &(struct gate_acceptance){ "tim", "me", "why" },
					   &e),
			 -EINVAL);
	assert_non_null(strstr(e.text, "there are \"time\", \"symbols\", \"exits\""));
	assert_int_equal(gate_rules_accept(rules, &(struct gate_acceptance){ "time", "", "why" },
					   &e),
			 -EINVAL);
	assert_int_equal(gate_rules_accept(rules, &(struct gate_acceptance){ "time", "me", "a\nb" },
					   &e),
			 -EINVAL);
	assert_int_equal(gate_rules_accept(rules, &(struct gate_acceptance){ "time", "me", NULL },
					   &e),
			 -EINVAL);
	assert_true(rules->rule[0].fail);
	assert_int_equal(
		gate_rules_accept(rules, &(struct gate_acceptance){ "time", "me", "why" }, &e), 0);
	assert_false(rules->rule[0].fail);
	assert_string_equal(rules->rule[0].accepted, "by me: why");
	assert_true(rules->rule[1].fail);
	gate_rules_destroy(rules);
}

static void small_and_short_are_quiet(void **state)
{
	struct gate_history *h;
	struct gate_series *s;
	struct place p;

	(void)state;
	begin(&p);
	for (unsigned int i = 0; i < 5; i++)
		record(&p, "x", i, 20000, NULL);
	h = load(&p, 0);
	s = find(&p, h, 5);
	assert_int_equal(gate_series_exit_status(s), 3);
	gate_series_destroy(s);
	gate_history_destroy(h);
	/* A certain step, but of 0.25 % of the time only. */
	for (unsigned int i = 5; i < 20; i++)
		record(&p, "x", i, i < 10 ? 20000 : 20300, NULL);
	h = load(&p, 0);
	s = find(&p, h, 20);
	assert_int_equal(s->nsteps, 0);
	assert_int_equal(gate_series_exit_status(s), 0);
	gate_series_destroy(s);
	gate_history_destroy(h);
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_was_measured),
		cmocka_unit_test(rules_of_one_metric_are_read_back),
		cmocka_unit_test(nothing_is_rewritten),
		cmocka_unit_test(broken_files_are_told),
		cmocka_unit_test(labels_are_checked),
		cmocka_unit_test(the_entry_is_named),
		cmocka_unit_test(others_only_follow),
		cmocka_unit_test(accepted_steps_do_not_fail),
		cmocka_unit_test(acceptances_are_checked),
		cmocka_unit_test(small_and_short_are_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
