/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Builds that differ in the names of compilers' clones alone: no rule of either gate, and no row of a diff, sees a
 * difference; one that is there is found whatever the names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/diff/diff.h"
#include "profile/compare/gate/exact.h"
#include "tests/unit/stackset_fixture.h"

#include <math.h>
#include <stdio.h>

#define PAIRS 1000u
#define FUNCS 7u
#define DEPTH 5u
#define STACKS 12u
#define RUNS 8u

static uint64_t seed;

static unsigned int draw(unsigned int below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned int)(seed >> 33) % below;
}

/* The work of a program, whatever its functions are called. */
struct work {
	struct {
		uint32_t n, func[DEPTH]; /* outermost first */
		uint64_t weight;
		unsigned int task;
	} stack[STACKS];
};

static void draw_work(struct work *w)
{
	for (unsigned int i = 0; i < STACKS; i++) {
		w->stack[i].n = 1 + draw(DEPTH);
		for (unsigned int k = 0; k < DEPTH; k++)
			w->stack[i].func[k] = draw(FUNCS); /* also recursion */
		w->stack[i].weight = 2000 + draw(100000);
		w->stack[i].task = draw(2);
	}
}

static const char *const endings[] = { "",
				       ".isra.0",
				       ".constprop.1",
				       ".part.0",
				       ".cold",
				       ".llvm.7",
				       ".lto_priv.2",
				       ".localalias",
				       ".isra.0.constprop.3.cold" };

/* A build: two endings for each function, which its callers share out. */
struct build {
	struct fixture f;
	unsigned int ending[FUNCS][2];
};

/* The function called so, made when it is first asked for. Texts last as long as the test. */
static uint32_t function_of(struct build *b, uint32_t func, unsigned int ending)
{
	static char text[FUNCS][sizeof(endings) / sizeof(*endings)][64];
	char *name = text[func][ending];

	snprintf(name, sizeof(text[0][0]), "%sf%u%s", func % 3 ? "" : "__x64_sys_", func,
		 endings[ending]);
	for (uint32_t i = 0; i < b->f.set.nfuncs; i++)
		if (!strcmp(b->f.func[i].name, name))
			return i;
	return fixture_func(&b->f, name, "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
}

static void add_stack(struct build *b, const uint32_t *outer_first, uint32_t n, uint32_t task,
		      uint64_t weight)
{
	uint32_t at = fixture_stack(&b->f, task, STACKSET_KERNEL, weight, "");

	for (uint32_t i = 0; i < n; i++)
		b->f.frames[at][i] = outer_first[n - 1 - i];
	b->f.stack[at].n = n;
}

static void draw_endings(struct build *b)
{
	for (unsigned int i = 0; i < FUNCS; i++)
		for (unsigned int k = 0; k < 2; k++)
			b->ending[i][k] = draw(sizeof(endings) / sizeof(*endings));
}

/* The work, by functions with names of this build; some of them cut in two. */
static void compile(struct build *b, const struct work *w)
{
	uint32_t task[2];

	fixture_init(&b->f);
	b->f.set.event = "instructions";
	b->f.set.weight_is_ns = false;
	b->f.set.counted = true;
	task[0] = fixture_task(&b->f, "init", 1);
	task[1] = fixture_task(&b->f, "kworker/0:1", 7);
	for (unsigned int i = 0; i < STACKS; i++) {
		uint32_t frame[2 * DEPTH], n = 0;
		uint64_t rest = w->stack[i].weight;

		for (unsigned int k = 0; k < w->stack[i].n; k++) {
			const uint32_t func = w->stack[i].func[k];
			const unsigned int *ending = b->ending[func], which = draw(2);

			frame[n++] = function_of(b, func, ending[which]);
			if (draw(4) || ending[0] == ending[1])
				continue;
			/* Its other half is called by the first, and does some of the work. */
			frame[n++] = function_of(b, func, ending[!which]);
			if (k + 1 == w->stack[i].n) {
				uint64_t first = draw(1000);

				add_stack(b, frame, n - 1, task[w->stack[i].task], first);
				rest -= first;
			}
		}
		add_stack(b, frame, n, task[w->stack[i].task], rest);
	}
}

static struct gate_rules *rules_of(const char *text)
{
	struct gate_rules *r = NULL;
	struct err e = { 0 };

	if (gate_rules_parse(&r, "rules", text, strlen(text), &e) < 0)
		fail_msg("%s", e.text);
	return r;
}

#define ANY(metric, more) \
	"[[rule]]\nmetric = \"" metric "\"\nthreshold = \"1\"\nworse = \"either\"\n" more
#define EXACT_RULES                                                                \
	ANY("instructions", "")                                                    \
	ANY("instructions", "symbol = 'f1'\noptional = true\n")                    \
	ANY("instructions", "symbol = 'f2.isra.0'\noptional = true\n")             \
	ANY("instructions", "subtree = 'f4'\noptional = true\n")                   \
	ANY("instructions", "regex = '^f[15]$'\noptional = true\n")                \
	ANY("instructions", "subtree-regex = '^__x64_sys_f.$'\noptional = true\n") \
	ANY("function-instructions", "")                                           \
	ANY("function-instructions", "children = true\n")                          \
	ANY("function-instructions", "exclude = '^f1$'\n")                         \
	ANY("stack-instructions", "") ANY("syscall-instructions", "") ANY("task-instructions", "")

static struct gate_report *compare(const struct gate_rules *rules, struct gate **g,
				   const struct build *base, const struct build *head)
{
	const struct gate_exact_input in[GATE_SIDE_MAX] = { { "base", &base->f.set, NULL },
							    { "head", &head->f.set, NULL } };
	struct gate_report *r = NULL;
	struct err e = { 0 };

	assert_int_equal(gate_create(g, rules, &e), 0);
	if (gate_evaluate_exact_sets(*g, in, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

static struct build base, head;

static void exact_gates_do_not_fail(void **state)
{
	struct gate_rules *rules = rules_of(EXACT_RULES);
	unsigned int failed = 0, missed = 0;

	(void)state;
	for (seed = 1; seed <= PAIRS; seed++) {
		const uint64_t from = seed;
		struct gate_report *r;
		struct work w;
		struct gate *g;
		bool differs;

		draw_work(&w);
		draw_endings(&base);
		draw_endings(&head);
		compile(&base, &w);
		compile(&head, &w);
		r = compare(rules, &g, &base, &head);
		differs = gate_exit_status(r) != 0;
		for (size_t i = 0; i < r->n; i++)
			differs |= r->outcome[i].nfindings > 0;
		for (size_t i = 0; i < r->n && differs && !failed; i++)
			if (r->outcome[i].nfindings || r->outcome[i].status != GATE_OK)
				print_message("pair %u, %s: %s %s\n", (unsigned int)from,
					      r->outcome[i].rule->name,
					      gate_status_name(r->outcome[i].status),
					      r->outcome[i].nfindings
						      ? r->outcome[i].finding[0].name
						      : r->outcome[i].why);
		failed += differs;
		gate_report_destroy(r);
		gate_destroy(g);
		/* One more instruction somewhere is found by total, function, stack and task. */
		w.stack[draw(STACKS)].weight++;
		compile(&head, &w);
		r = compare(rules, &g, &base, &head);
		for (size_t i = 0; i < r->n; i++) {
			const struct gate_outcome *o = &r->outcome[i];

			if (o->rule->metric == GATE_RULE_INSN_STACKS ||
			    (o->rule->metric == GATE_RULE_INSN_FUNCTIONS && !o->rule->exclude &&
			     !o->rule->children))
				missed += o->nfindings != 1 || o->finding[0].result.diff != 1 ||
					  strchr(o->finding[0].name, '.') != NULL;
		}
		missed += gate_exit_status(r) != 1;
		gate_report_destroy(r);
		gate_destroy(g);
		seed = from;
	}
	print_message("%u pairs: %u failed, %u changes missed\n", PAIRS, failed, missed);
	assert_int_equal(failed, 0);
	assert_int_equal(missed, 0);
	gate_rules_destroy(rules);
}

static struct gate_run *run_of(const struct gate_rules *rules, struct build *b,
			       const struct work *like)
{
	struct gate_run *run = NULL;
	struct err e = { 0 };
	struct work w = *like;

	for (unsigned int i = 0; i < STACKS; i++)
		w.stack[i].weight += draw(500);
	compile(b, &w);
	b->f.set.event = "wall";
	b->f.set.weight_is_ns = true;
	b->f.set.counted = false;
	if (gate_run_make(&run, "run", &b->f.set, rules, &e) < 0)
		fail_msg("%s", e.text);
	return run;
}

static void sampled_gates_do_not_fail(void **state)
{
	struct gate_rules *rules = rules_of(
		"[[rule]]\nmetric = \"symbols\"\nthreshold = \"1 points\"\n"
		"[[rule]]\nmetric = \"new-symbols\"\nthreshold = \"0.2 points\"\n"
		"[[rule]]\nmetric = \"share\"\nsymbol = \"f1\"\nthreshold = \"1 points\"\n"
		"[[rule]]\nmetric = \"function-time\"\nregex = \"^f[25]$\"\nthreshold = \"2 %\"\n"
		"optional = true\n");
	const struct gate_eval_options opt = { 0 };

	(void)state;
	for (seed = 1; seed <= 20; seed++) {
		const uint64_t from = seed;
		struct gate_report *r = NULL;
		struct gate *g = NULL;
		struct err e = { 0 };
		struct work w;

		draw_work(&w);
		w.stack[0].n = 1;
		w.stack[0].func[0] = 1;
		draw_endings(&base);
		draw_endings(&head);
		assert_int_equal(gate_create(&g, rules, &e), 0);
		for (unsigned int i = 0; i < RUNS; i++) {
			assert_int_equal(gate_add_run(g, GATE_BASE, run_of(rules, &base, &w), &e),
					 0);
			assert_int_equal(gate_add_run(g, GATE_HEAD, run_of(rules, &head, &w), &e),
					 0);
		}
		assert_int_equal(gate_evaluate(g, &opt, &r, &e), 0);
		for (size_t i = 0; i < r->n; i++)
			if (r->outcome[i].status == GATE_FAILED)
				fail_msg("rule %s of pair %u failed", r->outcome[i].rule->name,
					 (unsigned int)from);
		gate_report_destroy(r);
		gate_destroy(g);
		seed = from;
	}
	gate_rules_destroy(rules);
}

static void diffs_have_no_change(void **state)
{
	(void)state;
	for (seed = 1; seed <= PAIRS; seed++) {
		const uint64_t from = seed;
		struct work w;

		draw_work(&w);
		draw_endings(&base);
		draw_endings(&head);
		compile(&base, &w);
		compile(&head, &w);
		for (unsigned int stacks = 0; stacks < 2; stacks++) {
			const struct diff_options o = { .stacks = stacks, .seed = 1 };
			struct diff *d = NULL;

			assert_int_equal(diff_create(&d, 1, 1, &o, NULL), 0);
			assert_int_equal(diff_add(d, &base.f.set, NULL), 0);
			assert_int_equal(diff_add(d, &head.f.set, NULL), 0);
			assert_int_equal(diff_finish(d, NULL), 0);
			for (size_t i = 0; i < d->nrows; i++)
				if (fabs(d->row[i].stat.diff) > 1e-12)
					fail_msg("pair %u: %s %g", (unsigned int)from,
						 d->row[i].name, d->row[i].stat.diff);
			diff_destroy(d);
		}
		seed = from;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_gates_do_not_fail),
		cmocka_unit_test(sampled_gates_do_not_fail),
		cmocka_unit_test(diffs_have_no_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
