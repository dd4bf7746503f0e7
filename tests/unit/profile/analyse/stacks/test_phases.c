/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The phases of a boot, found from stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/analyse/stacks/phases.h"
#include "tests/unit/stackset_fixture.h"

static struct fixture f;
static uint32_t entry, unpack, start, work, idle, init_task, initcall, helper, helper_call, exec,
	init_user, module, shell_user, shell_call, switching;

static void make(void)
{
	static const char *const kernel[] = {
		"startup_64",
		"start_kernel",
		"mm_init",
		"rest_init",
		"kernel_init",
		"kernel_init_freeable",
		"do_one_initcall",
		"kernel_execve",
		"kthread",
		"entry_SYSCALL_64_after_hwframe",
		"__switch_to_asm",
		"default_idle",
		"start_kernel_thing",
	};
	uint32_t swapper, init, shell;

	fixture_init(&f);
	for (size_t i = 0; i < sizeof(kernel) / sizeof(kernel[0]); i++)
		fixture_func(&f, kernel[i], "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "decompressor", "[decompressor]", STACKSET_KIND_MODULE);
	fixture_func(&f, "main", "/init", STACKSET_KIND_USER);
	swapper = fixture_task(&f, "swapper", 0);
	init = fixture_task(&f, "init", 1);
	shell = fixture_task(&f, "sh", 99);
	entry = fixture_stack(&f, swapper, STACKSET_KERNEL, 1, "startup_64");
	unpack = fixture_stack(&f, swapper, STACKSET_KERNEL, 1, "decompressor");
	start = fixture_stack(&f, swapper, STACKSET_KERNEL, 1, "startup_64 start_kernel mm_init");
	idle = fixture_stack(&f, swapper, STACKSET_IDLE, 1, "start_kernel rest_init default_idle");
	work = fixture_stack(&f, shell, STACKSET_KERNEL, 1, "kthread");
	init_task = fixture_stack(&f, init, STACKSET_KERNEL, 1, "kernel_init kernel_init_freeable");
	initcall = fixture_stack(&f, init, STACKSET_KERNEL, 1, "do_one_initcall");
	helper = fixture_stack(&f, shell, STACKSET_KERNEL, 1, "kthread kernel_execve");
	helper_call = fixture_stack(&f, shell, STACKSET_USER, 1, "main");
	exec = fixture_stack(&f, init, STACKSET_KERNEL, 1, "kernel_init kernel_execve");
	init_user = fixture_stack(&f, init, STACKSET_USER, 1, "main");
	module = fixture_stack(&f, init, STACKSET_KERNEL, 1,
			       "main entry_SYSCALL_64_after_hwframe do_one_initcall");
	shell_user = fixture_stack(&f, shell, STACKSET_USER, 1, "main");
	shell_call = fixture_stack(&f, shell, STACKSET_KERNEL, 1, "entry_SYSCALL_64_after_hwframe");
	switching = fixture_stack(&f, shell, STACKSET_KERNEL, 1,
				  "entry_SYSCALL_64_after_hwframe __switch_to_asm");
}

static struct phases find(void)
{
	struct phases p;

	assert_int_equal(phases_find(&p, &f.set, NULL), 0);
	return p;
}

static void expect(const struct phases *p, enum phase which, uint64_t from_ms, uint64_t to_ms,
		   uint64_t samples)
{
	assert_true(p->span[which].seen);
	assert_int_equal(p->span[which].from_ns, 1000000000 + from_ms * 1000000);
	assert_int_equal(p->span[which].to_ns, 1000000000 + to_ms * 1000000);
	assert_int_equal(p->span[which].samples, samples);
	assert_int_equal(p->span[which].weight, samples * 1000000);
}

static void test_whole_boot(void **state)
{
	struct phases p;

	(void)state;
	make();
	fixture_samples(&f, entry, 0, 2);
	fixture_samples(&f, unpack, 0, 5);
	fixture_samples(&f, entry, 0, 1); /* proves nothing: still the decompressor's */
	fixture_samples(&f, start, 0, 10);
	fixture_samples(&f, init_task, 0, 3);
	fixture_samples(&f, initcall, 0, 4);
	fixture_samples(&f, helper, 0, 1); /* the kernel's own helpers are no /init */
	fixture_samples(&f, helper_call, 0, 1);
	fixture_samples(&f, start, 1, 1); /* nothing goes back */
	fixture_samples(&f, idle, 0, 2);
	fixture_samples(&f, exec, 0, 3);
	fixture_samples(&f, init_user, 0, 4);
	fixture_samples(&f, module, 0, 2);    /* its initcall is none of the kernel's */
	fixture_samples(&f, work, 0, 2);      /* a kernel thread */
	fixture_samples(&f, switching, 0, 1); /* init's stack under another's pid */
	fixture_samples(&f, shell_call, 0, 5);
	fixture_samples(&f, shell_user, 0, 5);
	p = find();
	assert_true(p.boot);
	expect(&p, PHASE_FIRST, 0, 2, 2);
	expect(&p, PHASE_DECOMPRESSOR, 2, 8, 6);
	expect(&p, PHASE_START_KERNEL, 8, 18, 10);
	expect(&p, PHASE_INITCALLS, 18, 30, 12);
	expect(&p, PHASE_INIT, 30, 42, 12);
	expect(&p, PHASE_USER, 42, 52, 10);
	assert_int_equal(phases_at(&p, 0), PHASE_FIRST);
	assert_int_equal(phases_at(&p, 1000000000 + 8000000), PHASE_START_KERNEL);
	assert_int_equal(phases_at(&p, 1000000000 + 7999999), PHASE_DECOMPRESSOR);
	assert_int_equal(phases_at(&p, UINT64_MAX), PHASE_USER);
}

/* Entered at the kernel proper; ends before there is a program. */
static void test_part_of_boot(void **state)
{
	struct phases p;

	(void)state;
	make();
	fixture_samples(&f, start, 0, 10);
	fixture_samples(&f, initcall, 0, 4);
	p = find();
	assert_true(p.boot);
	assert_false(p.span[PHASE_FIRST].seen || p.span[PHASE_DECOMPRESSOR].seen);
	assert_false(p.span[PHASE_INIT].seen || p.span[PHASE_USER].seen);
	expect(&p, PHASE_START_KERNEL, 0, 10, 10);
	expect(&p, PHASE_INITCALLS, 10, 14, 4);
	assert_int_equal(phases_at(&p, 5), PHASE_START_KERNEL);
}

static void test_no_boot(void **state)
{
	const uint32_t first[] = { idle, shell_user, shell_call, initcall, module, init_user };

	(void)state;
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		make();
		fixture_samples(&f, first[i], 0, 3);
		fixture_samples(&f, start, 0, 3);
		assert_false(find().boot);
	}
	/* Nothing that proves anything; and no samples at all. */
	make();
	fixture_samples(&f, entry, 0, 3);
	fixture_samples(&f, work, 0, 3);
	assert_false(find().boot);
	f.set.nsamples = 0;
	assert_false(find().boot);
	f.set.sample = NULL;
	assert_false(find().boot);
}

/* The run says when three of them began; it began to collect 1000 ms after its clock's 0. */
static void test_told_by_the_run(void **state)
{
	struct phases p;

	(void)state;
	make();
	f.set.weight_is_ns = false;
	f.set.json = "{\"engine\":{\"phases\":[{\"name\":\"start_kernel\",\"mono_ns\":1003000000},"
		     "{\"name\":\"bios\",\"mono_ns\":1001000000},{\"mono_ns\":1},5,"
		     "{\"name\":\"initcalls\",\"mono_ns\":1007000000},"
		     "{\"name\":\"/init\",\"mono_ns\":1009000000}]}}";
	fixture_samples(&f, entry, 0, 1);
	fixture_samples(&f, unpack, 0, 1);
	fixture_samples(&f, initcall, 0, 1); /* at 3 ms: still before */
	fixture_samples(&f, entry, 0, 3);    /* proves nothing by itself */
	fixture_samples(&f, start, 0, 2);    /* 7 and 8 ms: the initcalls have begun */
	fixture_samples(&f, shell_user, 0, 1);
	fixture_samples(&f, init_user, 0, 1);
	p = find();
	assert_true(p.boot);
	assert_int_equal(p.span[PHASE_FIRST].samples, 1);
	assert_int_equal(p.span[PHASE_DECOMPRESSOR].samples, 1);
	assert_int_equal(p.span[PHASE_START_KERNEL].samples, 4);
	assert_int_equal(p.span[PHASE_START_KERNEL].from_ns, 1003000000 - 1);
	assert_int_equal(p.span[PHASE_START_KERNEL].to_ns, 1007000000 - 1);
	assert_int_equal(p.span[PHASE_INITCALLS].samples, 2);
	/* Another task than /init's is there: which phase that is, only stacks say. */
	assert_false(p.span[PHASE_INIT].seen);
	assert_int_equal(p.span[PHASE_USER].samples, 2);
	assert_int_equal(phases_at(&p, 1006999999), PHASE_INITCALLS);
	assert_int_equal(phases_at(&p, 1006999998), PHASE_START_KERNEL);

	/* Counts have no order within a phase. */
	f.set.counted = true;
	p = find();
	assert_int_equal(p.span[PHASE_FIRST].samples, 2);
	assert_false(p.span[PHASE_DECOMPRESSOR].seen);
	assert_int_equal(p.span[PHASE_INIT].samples, 2);
	assert_false(p.span[PHASE_USER].seen);
	f.set.json = "{\"engine\":{\"phases\":7}}";
	f.set.counted = false;
	p = find();
	assert_false(p.boot); /* by its stacks alone: start_kernel comes after the initcalls */
	f.set.json = NULL;
}

static void test_names(void **state)
{
	enum phase p;

	(void)state;
	for (unsigned int i = 0; i < PHASES; i++) {
		assert_true(phase_parse(phase_name((enum phase)i), &p));
		assert_int_equal(p, i);
	}
	assert_true(phase_parse("init", &p));
	assert_int_equal(p, PHASE_INIT);
	assert_false(phase_parse("", &p));
	assert_string_equal(phase_name(PHASES), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_boot), cmocka_unit_test(test_part_of_boot),
		cmocka_unit_test(test_no_boot),	   cmocka_unit_test(test_told_by_the_run),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
