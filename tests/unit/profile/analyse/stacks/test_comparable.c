/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/comparable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include "tests/unit/stackset_fixture.h"

#include <stdlib.h>
#include <string.h>

#define ENGINE(qemu, memory, machine)                                    \
	"{\"samples\":1,\"engine\":{\"name\":\"exact\",\"qemu\":\"" qemu \
	"\",\"plugin\":1,\"cpu\":\"qemu64\",\"memory_bytes\":" memory    \
	",\"vcpus\":1,\"machine\":\"" machine "\",\"cmdline\":\"a\",\"kernel_sha256\":\"1\"}}"

/* The period of exact counts is that of looks at processes. */
#define COUNTS(yes) "{\"engine\":{\"counts\":" yes ",\"period\":10}}"

static void compare(const char *a, const char *b, const char *wanted)
{
	struct buf words;

	buf_init(&words);
	assert_int_equal(comparable_differs(a, b, &words), *wanted != '\0');
	buf_u8(&words, 0);
	assert_string_equal((const char *)words.data, wanted);
	buf_deinit(&words);
}

static void means_are_named(void **state)
{
	const char *a = ENGINE("10.0.2", "268435456", "-m 256M");

	(void)state;
	compare(a, a, "");
	compare(a, ENGINE("10.0.13", "268435456", "-m 256M"), "QEMU 10.0.2 and 10.0.13");
	compare(a, ENGINE("10.0.13", "134217728", "-m 128M"),
		"QEMU 10.0.2 and 10.0.13, memory 256 and 128 MiB");
	compare(a, ENGINE("10.0.2", "268435456", "-m 256M -x"), "the machine's options");
	compare(a, "{\"samples\":1}", "engine exact and kvm");
	compare(NULL, a, "engine kvm and exact");
	compare("{\"engine\":{\"period\":10}}", "{\"engine\":{\"period\":20}}", "period 10 and 20");
	compare(COUNTS("true"), COUNTS("false"), "exact counts yes and no");
}

static void counts_have_no_period(void **state)
{
	(void)state;
	compare(COUNTS("true"), "{\"engine\":{\"counts\":true,\"period\":20}}", "");
}

#define KVM(vcpus, rate, memory, words, host, version)                                             \
	"{\"version\":\"" version "\",\"vcpus\":" vcpus ",\"freq_hz\":" rate                       \
	",\"machine\":{\"memory_bytes\":" memory ",\"cmdline\":\"" words "\",\"host_cpu\":\"" host \
	"\"}}"

/* Each fact of a KVM run by itself, as whole totals and as the facts that a gate keeps of them. */
static void a_kvm_run_has_means(void **state)
{
	static const char first[] = KVM("1", "997", "33554432", "a work=6 b", "X 1", "0.2.0");
	static const struct {
		const char *other, *wanted;
	} cases[] = {
		{ KVM("2", "997", "33554432", "a work=6 b", "X 1", "0.2.0"), "vCPUs 1 and 2" },
		{ KVM("1", "49.5", "33554432", "a work=6 b", "X 1", "0.2.0"),
		  "frequency 997 and 49.5 Hz" },
		{ KVM("1", "997", "67108864", "a work=6 b", "X 1", "0.2.0"),
		  "memory 32 and 64 MiB" },
		{ KVM("1", "997", "33554432", "a work=6 b user=1", "X 1", "0.2.0"),
		  "command line with \"\" and with \"user=1\"" },
		{ KVM("1", "997", "33554432", "work=60 a b", "X 1", "0.2.0"),
		  "command line with \"work=6\" and with \"work=60\"" },
		{ KVM("1", "997", "33554432", "b work=6 a", "X 1", "0.2.0"),
		  "command line \"a work=6 b\" and \"b work=6 a\"" },
		{ KVM("1", "997", "33554432", "a work=6 b", "Y 2", "0.2.0"),
		  "host processor \"X 1\" and \"Y 2\"" },
		{ KVM("1", "997", "33554432", "a work=6 b", "X 1", "0.3.0"),
		  "kvmprof version 0.2.0 and 0.3.0" },
		{ KVM("2", "997", "67108864", "a work=6 b", "X 1", "0.2.0"),
		  "memory 32 and 64 MiB, vCPUs 1 and 2" },
		/* An older version did not write the machine. */
		{ "{\"version\":\"0.1.0\",\"vcpus\":1,\"freq_hz\":997}",
		  "kvmprof version 0.2.0 and 0.1.0" },
		{ "{\"vcpus\":1}", "" },
	};

	(void)state;
	compare(first, first, "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *one = comparable_facts(first), *other = comparable_facts(cases[i].other);

		compare(first, cases[i].other, cases[i].wanted);
		assert_non_null(one);
		assert_non_null(other);
		compare(one, other, cases[i].wanted);
		free(one);
		free(other);
	}
	compare("{\"events\":[{\"unit\":\"count\",\"period\":100}]}",
		"{\"events\":[{\"unit\":\"count\",\"period\":200}]}", "period 100 and 200");
	compare("{\"events\":[{\"unit\":\"ns\",\"period\":100}]}",
		"{\"events\":[{\"unit\":\"ns\",\"period\":200}]}", "");
}

static uint64_t contents_of(uint64_t first_ns, uint64_t weight, const char *leaf)
{
	static struct fixture f;
	uint32_t task;

	fixture_init(&f);
	fixture_func(&f, "main", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, leaf, "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	task = fixture_task(&f, "t", 1);
	fixture_stack(&f, task, STACKSET_KERNEL, weight, leaf);
	f.set.first_ns = first_ns;
	return comparable_contents(&f.set);
}

static void a_copy_is_known_by_its_samples(void **state)
{
	(void)state;
	assert_true(contents_of(5, 100, "leaf") == contents_of(5, 100, "leaf"));
	assert_true(contents_of(5, 100, "leaf") != contents_of(6, 100, "leaf"));
	assert_true(contents_of(5, 100, "leaf") != contents_of(5, 101, "leaf"));
	/* A form of the run that has no symbols, say. */
	assert_true(contents_of(5, 100, "leaf") == contents_of(5, 100, "left"));
}

static void others_have_none(void **state)
{
	(void)state;
	compare(NULL, NULL, "");
	compare("{}", "{\"samples\":2}", "");
	compare("not json", "[1]", "");
	compare("{\"engine\":1}", "{\"engine\":2}", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_are_named),
		cmocka_unit_test(counts_have_no_period),
		cmocka_unit_test(a_kvm_run_has_means),
		cmocka_unit_test(a_copy_is_known_by_its_samples),
		cmocka_unit_test(others_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
