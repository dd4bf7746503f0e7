/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history of a gate: entries as files that are only added, and steps in their series. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "profile/compare/gate/series_write.h"
#include "profile/compare/stats/deals.h"
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
	/* An equal entry is there already. */
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
	assert_non_null(strstr(h->why.text, "0123456789abcdef.json: not an entry of a history"));
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

/*
 * A function shrank from 0.4 to 0.2, so that a share of 0.24 becomes 0.32. What the other one adds is its own step if it
 * reaches the threshold of a point, even if it is a quarter of what is explained.
 */
static void what_is_not_explained_stays(void **state)
{
	struct gate_rules *rules =
		rules_of("[[rule]]\nmetric = \"symbols\"\nthreshold = \"1 points\"\n");

	(void)state;
	for (unsigned int more = 0; more < 2; more++) {
		struct gate_history_value value[20][2];
		struct gate_history_entry entry[20];
		struct gate_history_entry *pointer[20];
		const struct gate_history h = { .entry = pointer, .n = 20 };
		struct gate_series *s = NULL;
		struct err e = { 0 };

		for (size_t i = 0; i < 20; i++) {
			const double wobbles = (double)(i * 7 % 10) * 1e-4;
			const double other = i < 10 ? 0.24 : more ? 0.34 : 0.322;

			for (size_t k = 0; k < 2; k++)
				value[i][k] =
					(struct gate_history_value){ .name = k ? "shrank" : "other",
								     .dso = "[kernel.kallsyms]",
								     .mode = "kernel",
								     .mean = (!k       ? other
									      : i < 10 ? 0.4
										       : 0.2) +
									     wobbles,
								     .runs = 1 };
			entry[i] = (struct gate_history_entry){ .runs = 1,
								.value = value[i],
								.nvalues = 2 };
			pointer[i] = &entry[i];
		}
		assert_int_equal(gate_series_find(&s, &h, rules, 10, 0, &e), 0);
		assert_int_equal(s->nsteps, 2);
		for (size_t i = 0; i < 2; i++)
			if (!strcmp(s->step[i].name, "other"))
				assert_int_equal(s->step[i].worse, more);
		gate_series_destroy(s);
	}
	gate_rules_destroy(rules);
}

/* Weight moved from one function to another: each explains the other's step as well, so that neither is explained. */
static void steps_that_explain_each_other_stay(void **state)
{
	struct gate_rules *rules =
		rules_of("[[rule]]\nmetric = \"symbols\"\nthreshold = \"1 points\"\n");
	struct gate_history_value value[20][2];
	struct gate_history_entry entry[20];
	struct gate_history_entry *pointer[20];
	const struct gate_history h = { .entry = pointer, .n = 20 };
	struct gate_series *s = NULL;
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < 20; i++) {
		const double grew = (i < 10 ? 0.45 : 0.53) + (double)(i * 7 % 10) * 1e-4;

		for (size_t k = 0; k < 2; k++)
			value[i][k] = (struct gate_history_value){ .name = k ? "shrank" : "grew",
								   .dso = "[kernel.kallsyms]",
								   .mode = "kernel",
								   .mean = k ? 0.9 - grew : grew,
								   .runs = 1 };
		entry[i] =
			(struct gate_history_entry){ .runs = 1, .value = value[i], .nvalues = 2 };
		pointer[i] = &entry[i];
	}
	assert_int_equal(gate_series_find(&s, &h, rules, 10, 0, &e), 0);
	assert_int_equal(s->nsteps, 2);
	for (size_t i = 0; i < 2; i++)
		assert_null(s->step[i].because);
	assert_int_equal(gate_series_exit_status(s), 1);
	gate_series_destroy(s);
	gate_rules_destroy(rules);
}

/* The runs have the steps of above, and somebody accepts them: with the commit itself, and one entry later. */
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

/* -- series ---------------------------------------------------------------------------------- */

#define MOST 120u

/* A history in memory of one time, in which value i is v[i]. */
static struct gate_history *of_values(const double *v, size_t n)
{
	static struct gate_history_value value[MOST];
	static struct gate_history_entry entry[MOST];
	static struct gate_history_entry *pointer[MOST];
	static struct gate_history h;
	static char file[] = "file";

	for (size_t i = 0; i < n; i++) {
		value[i] = (struct gate_history_value){ .name = "time", .mean = v[i], .runs = 1 };
		entry[i] = (struct gate_history_entry){
			.file = file, .runs = 1, .value = &value[i], .nvalues = 1
		};
		snprintf(entry[i].label, sizeof(entry[i].label), "c%zu<&>", i);
		snprintf(entry[i].time, sizeof(entry[i].time), "<script src=//a.b></script>");
		pointer[i] = &entry[i];
	}
	h = (struct gate_history){ .entry = pointer, .n = n };
	return &h;
}

static struct gate_series *judge(const struct gate_rules *rules, const double *v, size_t n)
{
	struct gate_series *s = NULL;
	struct err e = { 0 };

	assert_int_equal(gate_series_find(&s, of_values(v, n), rules, GATE_SERIES_RECENT, 0, &e),
			 0);
	return s;
}

static double wobble(size_t i)
{
	uint64_t random = 77 + i;

	return (double)(stats_random(&random) >> 40) / (1 << 24) - 0.5;
}

#define TIME_RULE "[[rule]]\nmetric = \"time\"\nthreshold = \"2 %\"\n"

/* Where no change of any size could be found, the history does not pass. */
static void too_few_are_inconclusive(void **state)
{
	struct gate_rules *rules = rules_of(TIME_RULE);
	double v[MOST];

	(void)state;
	for (size_t i = 0; i < MOST; i++)
		v[i] = 1e9 + 1e6 * wobble(i);
	for (size_t n = 1; n <= 14; n++) {
		struct gate_series *s = judge(rules, v, n);

		assert_int_equal(gate_series_exit_status(s), n < GATE_SERIES_LEAST ? 3 : 0);
		assert_int_equal(s->nblind, n < GATE_SERIES_LEAST);
		gate_series_destroy(s);
	}
	gate_rules_destroy(rules);
	/* Nor does it if that is so of one rule of level fail; of a warning it may. */
	for (int warns = 0; warns < 2; warns++) {
		struct gate_series *s;

		rules = rules_of(
			warns ? TIME_RULE "[[rule]]\nmetric = \"exits\"\nthreshold = \"2 %\"\n"
					  "level = \"warn\"\n"
			      : TIME_RULE "[[rule]]\nmetric = \"exits\"\nthreshold = \"2 %\"\n");
		s = judge(rules, v, 40);
		assert_int_equal(gate_series_exit_status(s), warns ? 0 : 3);
		gate_series_destroy(s);
		gate_rules_destroy(rules);
	}
}

/* A change among the first entries is seen late; then it fails, however old it is, but not for ever. */
static void an_early_change_fails_once(void **state)
{
	struct gate_rules *rules = rules_of(TIME_RULE);

	(void)state;
	for (size_t at = 3; at <= 8; at += 5) {
		unsigned int failed = 0;
		double v[MOST];

		for (size_t i = 0; i < MOST; i++)
			v[i] = (1e9 + 1e6 * wobble(i)) * (i >= at ? 1.3 : 1);
		for (size_t n = at + 3; n <= at + 22; n++) {
			struct gate_series *s = judge(rules, v, n);

			failed += gate_series_exit_status(s) == 1;
			if (n == at + 22)
				assert_int_equal(gate_series_exit_status(s), 0);
			gate_series_destroy(s);
		}
		assert_true(failed >= 2);
	}
	gate_rules_destroy(rules);
}

/* Four steps of 1.2 %, a drift, and two of 1.2 %: each is more than 2 % in the end. */
static void what_creeps_is_found(void **state)
{
	struct gate_rules *rules = rules_of(TIME_RULE);

	(void)state;
	for (int how = 0; how < 4; how++) {
		struct gate_series *s;
		double v[MOST];
		bool crept = false;

		for (size_t i = 0; i < MOST; i++) {
			double by = how == 0   ? 0.012 * (double)(i / 25)
				    : how == 1 ? 0.06 * (double)i / MOST
				    : how == 2 ? 0.012 * (double)(i / 45)
					       : 0.012 * (double)(i / 70);

			v[i] = 1e9 * (1 + by) + 4e6 * wobble(i);
		}
		s = judge(rules, v, MOST);
		/* One step of 1.2 % is below the threshold. */
		assert_int_equal(s->nsteps > 0, how < 3);
		for (size_t i = 0; i < s->nsteps; i++) {
			crept |= s->step[i].crept;
			assert_true(s->step[i].worse && s->step[i].from < s->step[i].entry);
			assert_true(s->step[i].after > 1.02 * s->step[i].before);
			assert_int_equal(s->step[i].gradual, how == 1);
		}
		assert_int_equal(crept, how < 3);
		assert_true(s->line[0].nchanges >= (how == 3 ? 1 : 2));
		gate_series_destroy(s);
	}
	gate_rules_destroy(rules);
}

/* Up by less than the threshold and down again is nothing; down and up by more than it is both. */
static void what_returns_is_no_creeping(void **state)
{
	struct gate_rules *rules = rules_of(TIME_RULE);
	struct gate_series *s;
	double v[MOST];

	(void)state;
	for (size_t i = 0; i < MOST; i++)
		v[i] = 1e9 * (i / 30 % 2 ? 1.015 : 1) + 4e6 * wobble(i);
	s = judge(rules, v, MOST);
	assert_int_equal(s->nsteps, 0);
	assert_int_equal(s->line[0].nchanges, 3);
	gate_series_destroy(s);
	for (size_t i = 0; i < MOST; i++)
		v[i] = 1e9 * (i < 40 || i >= 80 ? 1 : 0.96) + 4e6 * wobble(i);
	s = judge(rules, v, MOST);
	assert_int_equal(s->nsteps, 2);
	/* Newest first. */
	assert_true(s->step[0].worse && s->step[0].entry == 80 && !s->step[0].crept);
	assert_true(!s->step[1].worse && s->step[1].entry == 40);
	gate_series_destroy(s);
	gate_rules_destroy(rules);
}

static void the_page_has_the_steps(void **state)
{
	struct gate_rules *rules = rules_of(TIME_RULE);
	struct gate_series *s;
	double v[MOST];
	struct err e = { 0 };
	struct buf b;
	const char *text;

	(void)state;
	for (size_t i = 0; i < MOST; i++)
		v[i] = 1e9 * (i < 40 ? 1 : 1.05) + 4e6 * wobble(i);
	s = judge(rules, v, MOST);
	buf_init(&b);
	assert_int_equal(gate_series_write_html(&b, s, "a<b>", &e), 0);
	buf_u8(&b, 0);
	text = (const char *)b.data;
	assert_non_null(strstr(text, "<title>History a&lt;b&gt;</title>"));
	assert_non_null(
		strstr(text, "<td class=\"older v\">older</td><td><a href=\"#g0\">time</a>"));
	assert_non_null(strstr(text, "c40&lt;&amp;&gt; +"));
	assert_null(strstr(text, "<&>"));
	assert_null(strstr(text, "http"));
	assert_null(strstr(text, "<script"));
	buf_deinit(&b);
	gate_series_destroy(s);
	/* One value, and none: graphs without a scale of their own. */
	for (size_t n = 0; n < 2; n++) {
		s = judge(rules, v, n);
		buf_init(&b);
		assert_int_equal(gate_series_write_html(&b, s, "x", &e), 0);
		buf_u8(&b, 0);
		assert_null(strstr((const char *)b.data, "nan"));
		assert_null(strstr((const char *)b.data, "inf"));
		buf_deinit(&b);
		gate_series_destroy(s);
	}
	gate_rules_destroy(rules);
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
		cmocka_unit_test(steps_that_explain_each_other_stay),
		cmocka_unit_test(what_is_not_explained_stays),
		cmocka_unit_test(accepted_steps_do_not_fail),
		cmocka_unit_test(acceptances_are_checked),
		cmocka_unit_test(small_and_short_are_quiet),
		cmocka_unit_test(too_few_are_inconclusive),
		cmocka_unit_test(an_early_change_fails_once),
		cmocka_unit_test(what_creeps_is_found),
		cmocka_unit_test(what_returns_is_no_creeping),
		cmocka_unit_test(the_page_has_the_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
