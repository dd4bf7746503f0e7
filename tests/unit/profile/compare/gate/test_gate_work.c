/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exact gates of boots: one more system call moves the guest's end, and with it how far a kernel thread comes that
 * has nothing to do with the call. The call is named first, what ran beside it last, and firmware is in no default total.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/compare/gate/exact.h"
#include "profile/compare/gate/write.h"
#include "profile/compare/gate/write_json.h"
#include "tests/unit/stackset_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define KERNEL "[kernel.kallsyms]"
#define SYSCALL "entry_SYSCALL_64_after_hwframe do_syscall_64 "
#define THREAD "ret_from_fork_asm ret_from_fork kthread cryptomgr_test mpihelp_submul_1"

/* The work of a boot, in instructions. */
struct boot {
	uint64_t firmware, start_kernel, initcalls, pipe, close, test, interrupts;
	uint64_t pipes, closes; /* calls */
};

static const struct boot ten_pipes = { .firmware = 99000000,
				       .start_kernel = 50000000,
				       .initcalls = 70000000,
				       .pipe = 35450,
				       .close = 17870,
				       .test = 387000000,
				       .interrupts = 6000000,
				       .pipes = 10,
				       .closes = 20 };

struct side {
	struct fixture f, entries;
};

static const char *dso_of(const char *name)
{
	return strstr(name, "firmware") ? "[firmware]" : KERNEL;
}

/* Times of samples are when their phase begins, as in counts. */
static void add(struct fixture *f, const char *frames, uint64_t weight, uint64_t time_ns)
{
	uint32_t at;

	fixture_names(f, frames, dso_of);
	at = fixture_stack(f, 0, STACKSET_KERNEL, weight, frames);
	f->sample[f->set.nsamples++] =
		(struct stackset_sample){ .time_ns = time_ns, .weight = weight, .stack = at };
}

static void make(struct side *s, const struct boot *b)
{
	static const char json[] =
		"{\"engine\":{\"name\":\"exact\",\"counts\":true,\"instructions\":1,\"phases\":["
		"{\"name\":\"start_kernel\",\"mono_ns\":1000},{\"name\":\"initcalls\",\"mono_ns\":"
		"2000},"
		"{\"name\":\"/init\",\"mono_ns\":3000}]}}";
	struct fixture *f = &s->f;

	fixture_init(f);
	f->set.event = "instructions";
	f->set.weight_is_ns = false;
	f->set.counted = true;
	f->set.json = json;
	fixture_task(f, "swapper", 0);
	add(f, "firmware", b->firmware, 10);
	add(f, "start_kernel setup_arch", b->start_kernel, 1500);
	add(f, "ret_from_fork_asm ret_from_fork kernel_init kernel_init_freeable", b->initcalls,
	    2500);
	add(f, THREAD, b->test, 3500);
	add(f, "asm_sysvec_apic_timer_interrupt sysvec_apic_timer_interrupt", b->interrupts, 3500);
	add(f, SYSCALL "__x64_sys_pipe2 do_pipe2", b->pipe, 3500);
	add(f, SYSCALL "__x64_sys_close", b->close, 3500);
	f->set.first_ns = 10;
	f->set.last_ns = 3500;
	fixture_init(&s->entries);
	fixture_task(&s->entries, "swapper", 0);
	add(&s->entries, SYSCALL "__x64_sys_pipe2", b->pipes, 1);
	add(&s->entries, SYSCALL "__x64_sys_close", b->closes, 1);
}

static void forget(struct side *s)
{
	fixture_forget(&s->f);
	fixture_forget(&s->entries);
}

static struct side base, head;
static struct gate *g;
static struct gate_rules *rules;

/* text: NULL: the default rules. */
static struct gate_report *compare(const struct boot *a, const struct boot *b, const char *text)
{
	const struct gate_exact_input in[GATE_SIDE_MAX] = {
		{ "base", &base.f.set, &base.entries.set },
		{ "head", &head.f.set, &head.entries.set }
	};
	struct gate_report *r = NULL;
	struct err e = { 0 };

	make(&base, a);
	make(&head, b);
	if (text ? gate_rules_parse(&rules, "rules", text, strlen(text), &e)
		 : gate_rules_load_exact(&rules, NULL, &e))
		fail_msg("%s", e.text);
	assert_int_equal(gate_create(&g, rules, &e), 0);
	if (gate_evaluate_exact_sets(g, in, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

static void done(struct gate_report *r)
{
	gate_report_destroy(r);
	gate_destroy(g);
	gate_rules_destroy(rules);
	forget(&base);
	forget(&head);
}

static char *text_of(const struct gate_report *r)
{
	const struct gate_write_options opt = { 0 };
	struct buf b;

	buf_init(&b);
	assert_int_equal(gate_write_text(&b, r, &opt, NULL), 0);
	buf_u8(&b, 0);
	return (char *)b.data;
}

static const struct gate_outcome *rule(const struct gate_report *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->outcome[i].rule->name, name))
			return &r->outcome[i];
	fail_msg("no rule %s", name);
	return NULL;
}

static void test_one_more_pipe(void **state)
{
	struct boot b = ten_pipes;
	struct gate_report *r;
	char *text;

	(void)state;
	b.pipe += 3545;
	b.close += 3574;
	b.pipes++;
	b.closes += 2;
	b.test += 457000000; /* more than all else together */
	b.interrupts += 70000;
	r = compare(&ten_pipes, &b, NULL);
	text = text_of(r);
	*strchr(text, '\n') = '\0';
	assert_non_null(strstr(text, "__x64_sys_pipe2, 10 -> 11 calls: +3545 (+10 %)"));
	assert_non_null(strstr(text, "__x64_sys_close, 20 -> 22 calls: +3574"));
	assert_non_null(strstr(text, "the workload: +7119 instructions"));
	assert_non_null(strstr(text, "kernel threads and interrupts beside it: +457070000"));
	free(text);
	/* A warning, which the total of the workload, of 0.006 %, is not. */
	assert_int_equal(gate_exit_status(r), 0);
	assert_int_equal(r->outcome[0].rule->metric, GATE_RULE_INSN_SYSCALLS);
	assert_int_equal(rule(r, "instructions")->status, GATE_OK);
	assert_true(rule(r, "instructions")->total.result.diff == 7119);
	assert_int_equal(rule(r, "functions")->status, GATE_OK);
	assert_int_equal(rule(r, "phases")->nfindings, 1);
	assert_true(rule(r, "phases")->finding[0].result.diff == 7119);
	assert_int_equal(rule(r, "stacks")->nfindings, 2);
	assert_string_equal(rule(r, "meanwhile")->finding[0].name, "cryptomgr_test");
	assert_string_equal(rule(r, "meanwhile")->finding[1].name, "interrupts");
	done(r);
}

/* A result of a default rule is in the file that has this rule. */
static void test_default_rules_have_a_file(void **state)
{
	struct gate_report *r = compare(&ten_pipes, &ten_pipes, NULL);
	const struct gate_write_options opt = { 0 };
	struct buf b;

	(void)state;
	buf_init(&b);
	assert_int_equal(gate_write_sarif(&b, r, &opt, NULL), 0);
	buf_u8(&b, 0);
	assert_non_null(strstr((char *)b.data, "gate-exact.toml"));
	assert_null(strstr((char *)b.data, "gate-default.toml"));
	buf_deinit(&b);
	done(r);
}

/* A call more comes before one that only executes more. */
static void test_calls_first(void **state)
{
	struct boot b = ten_pipes;
	struct gate_report *r;

	(void)state;
	b.close += 100;
	b.closes++;
	b.pipe += 900000;
	r = compare(&ten_pipes, &b, NULL);
	assert_string_equal(r->outcome[0].finding[0].name, "__x64_sys_close");
	assert_string_equal(r->outcome[0].finding[1].name, "__x64_sys_pipe2");
	assert_string_equal(r->outcome[0].finding[1].note, "10 calls");
	assert_true(!strncmp(r->changed, "changed: __x64_sys_close", 24));
	done(r);
}

static void test_firmware_is_outside(void **state)
{
	struct boot b = ten_pipes;
	struct gate_report *r;

	(void)state;
	/* 0.2 % of the kernel's own work, which are 0.05 % of all. */
	b.start_kernel += 250000;
	r = compare(&ten_pipes, &b, NULL);
	assert_int_equal(rule(r, "instructions")->status, GATE_FAILED);
	assert_true(rule(r, "instructions")->total.result.base == 120053320);
	done(r);
	b = ten_pipes;
	b.firmware += 50000000;
	r = compare(&ten_pipes, &b, NULL);
	assert_int_equal(rule(r, "instructions")->status, GATE_OK);
	assert_int_equal(rule(r, "functions")->status, GATE_OK);
	assert_int_equal(rule(r, "before the kernel")->status, GATE_WARNED);
	assert_int_equal(gate_exit_status(r), 0);
	done(r);
}

static void test_nothing_of_the_workload(void **state)
{
	struct boot b = ten_pipes;
	struct gate_report *r = compare(&ten_pipes, &b, NULL);

	(void)state;
	assert_string_equal(r->changed, "");
	assert_int_equal(r->status, GATE_OK);
	done(r);
	b.test--;
	r = compare(&ten_pipes, &b, NULL);
	assert_non_null(strstr(r->changed, "the workload did the same"));
	assert_int_equal(gate_exit_status(r), 0);
	done(r);
}

static void test_rules(void **state)
{
	static const char wrong[] = "[[rule]]\nmetric = \"instructions\"\nphase = \"first\"\n"
				    "work = \"workload\"\nthreshold = \"1\"\n";
	struct gate_rules *bad = NULL;
	struct boot b = ten_pipes;
	struct err e = { 0 };
	struct gate_report *r;

	(void)state;
	b.test += 5;
	r = compare(&ten_pipes, &b,
		    "[[rule]]\nmetric = \"instructions\"\nthreshold = \"1\"\n"
		    "[[rule]]\nmetric = \"instructions\"\nwork = \"meanwhile\"\nthreshold = \"1\"\n"
		    "[[rule]]\nmetric = \"instructions\"\nwork = \"workload\"\nthreshold = \"1\"\n"
		    "[[rule]]\nmetric = \"instructions\"\nwork = \"workload\"\nphase = \"init\"\n"
		    "symbol = \"do_pipe2\"\nthreshold = \"1\"\n");
	assert_int_equal(r->outcome[0].status, GATE_FAILED);
	assert_int_equal(r->outcome[1].status, GATE_FAILED);
	assert_int_equal(r->outcome[2].status, GATE_OK);
	assert_true(r->outcome[3].total.result.base == 35450);
	/* A history's value of the same rule. */
	assert_true(gate_run_at(g, GATE_BASE, 0)->value[2] == 120053320);
	assert_true(gate_run_at(g, GATE_BASE, 0)->value[3] == 35450);
	done(r);
	assert_int_equal(gate_rules_parse(&bad, "rules", wrong, strlen(wrong), &e), -EINVAL);
	assert_non_null(strstr(e.text, "work = \"all\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_more_pipe),
		cmocka_unit_test(test_default_rules_have_a_file),
		cmocka_unit_test(test_calls_first),
		cmocka_unit_test(test_firmware_is_outside),
		cmocka_unit_test(test_nothing_of_the_workload),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
