/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of events, and what becomes of them on hosts that have or refuse counters. */
#include "profile/record/counters/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/perf_mock.h"
#include "vmm/kvm.h"

static const struct kvm_host no_host = { .fd = -1 };
static const struct events_rate at_997 = { .freq_hz = 997, .jitter = true };

static int setup(void **state)
{
	(void)state;
	mock_reset();
	return 0;
}

static struct event_name parsed(const char *text)
{
	struct event_name n;
	struct err e = { 0 };

	if (event_name_parse(&n, text, strlen(text), &e) < 0)
		fail_msg("%s: %s", text, e.text);
	assert_string_equal(n.text, text);
	return n;
}

static void refused(const char *text, const char *why)
{
	struct event_name n;
	struct err e = { 0 };

	assert_int_equal(event_name_parse(&n, text, strlen(text), &e), -EINVAL);
	if (!strstr(e.text, why))
		fail_msg("%s: `%s' does not say `%s'", text, e.text, why);
}

/* -- names ---------------------------------------------------------------------------------- */

static void perf_names(void **state)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} row[] = {
		{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
		{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
		{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
		{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		{ "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000 },
		{ "l1-dcache-loads", PERF_TYPE_HW_CACHE, 0 },
		{ "LLC-store-misses", PERF_TYPE_HW_CACHE, 0x10102 },
		{ "dTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10003 },
		{ "iTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10004 },
		{ "node-prefetches", PERF_TYPE_HW_CACHE, 0x206 },
		{ "r1", PERF_TYPE_RAW, 1 },
		{ "r01C2", PERF_TYPE_RAW, 0x1c2 },
		{ "rffffffffffffffff", PERF_TYPE_RAW, UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct event_name n = parsed(row[i].name);

		assert_int_equal(n.type, row[i].type);
		assert_int_equal(n.config, row[i].config);
		assert_int_equal(n.class, row[i].type == PERF_TYPE_SOFTWARE ? EVENT_SOFTWARE
									    : EVENT_HARDWARE);
	}
	assert_true(parsed("cycles").is_time && !parsed("cycles").is_clock);
	assert_true(parsed("task-clock").is_time && parsed("task-clock").is_clock);
	assert_false(parsed("instructions").is_time);
	refused("r", "no such event");
	refused("r12345678901234567", "no such event");
	refused("r12g", "no such event");
	refused("LLC", "no such event");
	refused("LLC-", "no such event");
	refused("LLC-loadsx", "no such event");
	refused("cycle", "no such event");
}

static void with_modifiers(void **state)
{
	struct event_name n = parsed("cycles:ukhGHpp");

	(void)state;
	assert_true(n.user && n.kernel && n.hv && n.guest && n.host);
	assert_int_equal(n.precise, 2);
	assert_int_equal(n.base_len, 6);
	n = parsed("r3c:u");
	assert_true(n.user && !n.kernel);
	refused("cycles:", "no modifier");
	refused("cycles:x", "no such modifier");
	refused("cycles:pppp", "three p");
	refused("cycles:u:k", "no such modifier");
	refused("wall:u", "takes no modifiers");
	refused("cpu:k", "takes no modifiers");
}

static void exits_and_tracepoints(void **state)
{
	(void)state;
	assert_true(parsed("exit").exits == VM_EXIT_ANY);
	assert_int_equal(parsed("exit:io").exits, VM_EXIT_BIT(KVM_EXIT_IO));
	assert_int_equal(parsed("exit:msr").exits,
			 VM_EXIT_BIT(KVM_EXIT_X86_RDMSR) | VM_EXIT_BIT(KVM_EXIT_X86_WRMSR));
	assert_int_equal(parsed("exit:6").exits, VM_EXIT_BIT(KVM_EXIT_MMIO));
	assert_int_equal(parsed("exit:62").exits, UINT64_C(1) << 62);
	assert_int_equal(parsed("exit:hlt").class, EVENT_KERNEL_EXIT);
	assert_non_null(strstr(parsed("exit:hlt").filter, "exit_reason == 12"));
	assert_null(parsed("exit:kernel").filter);
	assert_int_equal(parsed("kvm:kvm_pio").class, EVENT_TRACEPOINT);
	refused("exit:", "no such kind");
	refused("exit:63", "no such kind");
	refused("exit:-1", "no such kind");
	refused("exit:io:io", "no such kind");
	refused(":kvm_pio", "no such event");
	refused("kvm:", "no such event");
	refused("a:b:c", "no such event");
}

static void bad_text(void **state)
{
	struct event_name n;
	struct err e = { 0 };
	char text[80];

	(void)state;
	refused("", "without a name");
	refused("a/b/", "letters");
	refused("../x", "letters");
	refused("a b", "letters");
	memset(text, 'a', sizeof(text));
	assert_int_equal(event_name_parse(&n, text, sizeof(text), &e), -EINVAL);
	assert_non_null(strstr(e.text, "at most 63"));
	/* no NUL is needed behind it */
	memcpy(text, "walls", 5);
	assert_int_equal(event_name_parse(&n, text, 4, &e), 0);
	assert_int_equal(n.class, EVENT_WALL);
}

/* Each name that is listed can be given, and comes once. */
static void every_listed_name_parses(void **state)
{
	char seen[200][EVENT_NAME_MAX];
	unsigned int i;

	(void)state;
	for (i = 0; event_word(i); i++) {
		char name[EVENT_NAME_MAX];

		assert_true(i < 200);
		snprintf(name, sizeof(name), "%s", event_word(i)->name);
		assert_int_equal(parsed(name).class, event_word(i)->class);
		for (unsigned int k = 0; k < i; k++)
			assert_string_not_equal(seen[k], name);
		memcpy(seen[i], name, sizeof(name));
	}
	assert_in_range(i, 80, 120);
}

/* -- lists ---------------------------------------------------------------------------------- */

static void lists(void **state)
{
	struct events ev = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(events_add(&ev, "wall,exit:io", &e), 0);
	assert_int_equal(events_add(&ev, "cycles:u", &e), 0);
	assert_int_equal(ev.n, 3);
	assert_string_equal(ev.at[2].asked, "cycles:u");
	assert_int_equal(events_add(&ev, "wall", &e), -EINVAL);
	assert_non_null(strstr(e.text, "twice"));
	memset(&e, 0, sizeof(e));
	assert_int_equal(events_add(&ev, "cpu,", &e), -EINVAL);
	assert_non_null(strstr(e.text, "without a name"));
	memset(&e, 0, sizeof(e));
	assert_int_equal(events_add(&ev, "r1,r2,r3,r4,r5", &e), -EINVAL);
	assert_non_null(strstr(e.text, "more than 8"));
}

static struct events prepared(const char *list, const struct events_rate *rate, int want)
{
	struct events ev = { 0 };
	struct err e = { 0 };

	assert_int_equal(events_add(&ev, list, &e), 0);
	assert_int_equal(events_prepare(&ev, rate, &no_host, &e), want);
	assert_int_equal(mock_open_now(), 0);
	return ev;
}

static void without_any_it_is_wall(void **state)
{
	struct events ev = { 0 };
	struct vm_event vm[VM_MAX_EVENTS];
	struct profile_event profile[VM_MAX_EVENTS];
	struct err e = { 0 };

	(void)state;
	assert_int_equal(events_prepare(&ev, &at_997, &no_host, &e), 0);
	assert_int_equal(events_for_vm(&ev, vm), 1);
	assert_int_equal(vm[0].kind, VM_EVENT_WALL);
	assert_int_equal(vm[0].period, 1003009);
	assert_true(vm[0].jitter);
	assert_int_equal(events_for_profile(&ev, 997, profile), 1);
	assert_string_equal(profile[0].name, "wall");
	assert_int_equal(profile[0].config, PERF_COUNT_SW_CPU_CLOCK);
	assert_true(profile[0].freq_hz > 996);
	assert_int_equal(mock.opens, 0);
}

static void what_the_host_has(void **state)
{
	struct events ev = prepared("cycles,task-clock,page-faults,cpu,exit:io", &at_997, 0);
	struct vm_event vm[VM_MAX_EVENTS];
	struct profile_event profile[VM_MAX_EVENTS];

	(void)state;
	assert_int_equal(events_for_vm(&ev, vm), 5);
	assert_int_equal(events_for_profile(&ev, 997, profile), 5);
	/* the kernel finds the period of what has no rate of its own; clocks have theirs from -F */
	assert_true(vm[0].counter.freq && vm[0].period == 997);
	assert_true(vm[0].counter.exclude_host);
	assert_true(!vm[1].counter.freq && vm[1].counter.clock && vm[1].period == 1003009);
	assert_false(vm[1].counter.exclude_host);
	assert_true(vm[2].counter.freq);
	assert_int_equal(vm[3].kind, VM_EVENT_CPU);
	assert_false(vm[3].timer);
	assert_int_equal(vm[4].kind, VM_EVENT_EXIT);
	assert_int_equal(vm[4].period, 1);
	assert_int_equal(profile[0].type, PERF_TYPE_HARDWARE);
	assert_int_equal(profile[3].config, PERF_COUNT_SW_TASK_CLOCK);
	assert_int_equal(profile[4].type, PERF_TYPE_RAW);
	assert_string_equal(profile[4].name, "exit:io");
	for (unsigned int i = 0; i < 5; i++)
		assert_string_equal(ev.at[i].why, "");
}

static void a_count_instead_of_a_rate(void **state)
{
	struct events_rate rate = at_997;
	struct vm_event vm[VM_MAX_EVENTS];
	struct events ev;
	struct err e = { 0 };

	(void)state;
	rate.period = 30000;
	ev = prepared("cycles,task-clock,exit,wall,cpu", &rate, 0);
	events_for_vm(&ev, vm);
	assert_true(!vm[0].counter.freq && vm[0].period == 30000);
	assert_int_equal(vm[1].period, 30000);
	assert_int_equal(vm[2].period, 30000);
	assert_int_equal(vm[3].period, 1003009);
	assert_int_equal(vm[4].period, 1003009);
	assert_int_equal(events_check(&ev, &rate, &e), 0);
	rate.period = 19999;
	assert_int_equal(events_check(&ev, &rate, &e), -EINVAL);
	assert_non_null(strstr(e.text, "task-clock"));
}

static void modifiers_become_attributes(void **state)
{
	struct vm_event vm[VM_MAX_EVENTS];
	struct events ev = prepared("cycles:u,cycles:k,cycles:H,cycles:GH,cycles:Gp", &at_997, 0);

	(void)state;
	events_for_vm(&ev, vm);
	assert_true(!vm[0].counter.exclude_user && vm[0].counter.exclude_kernel &&
		    vm[0].counter.exclude_hv && vm[0].counter.exclude_host);
	assert_true(vm[1].counter.exclude_user && !vm[1].counter.exclude_kernel);
	assert_true(!vm[2].counter.exclude_host && vm[2].counter.exclude_guest);
	assert_true(!vm[3].counter.exclude_host && !vm[3].counter.exclude_guest);
	assert_true(vm[4].counter.exclude_host && vm[4].counter.precise_ip == 1);
}

/* -- refusals ------------------------------------------------------------------------------- */

static void no_pmu(void **state)
{
	struct vm_event vm[VM_MAX_EVENTS];
	struct events ev;

	(void)state;
	mock.refuse = ENOENT;
	mock.refuse_type = PERF_TYPE_HARDWARE;
	ev = prepared("cycles,instructions", &at_997, 0);
	assert_int_equal(events_for_vm(&ev, vm), 1);
	assert_int_equal(vm[0].kind, VM_EVENT_CPU);
	assert_false(vm[0].timer);
	assert_true(vm[0].jitter);
	assert_string_equal(ev.at[0].name.text, "cpu");
	assert_string_equal(ev.at[0].asked, "cycles");
	assert_non_null(strstr(ev.at[0].why, "ENOENT"));
	assert_non_null(strstr(ev.at[0].why, "cpu stands in for it"));
	assert_true(ev.at[1].dropped);
	assert_non_null(strstr(ev.at[1].why, "left out"));
	assert_ptr_equal(events_of_vm(&ev, 0), &ev.at[0]);
	assert_null(events_of_vm(&ev, 1));
	/* numbers of the machine's events skip what was left out */
	ev = prepared("instructions,cycles,ref-cycles,exit", &at_997, 0);
	assert_int_equal(events_for_vm(&ev, vm), 2);
	assert_ptr_equal(events_of_vm(&ev, 0), &ev.at[1]);
	assert_ptr_equal(events_of_vm(&ev, 1), &ev.at[3]);
	assert_non_null(strstr(ev.at[2].why, "cpu is sampled already"));
	/* nothing that could stand in, and nothing else */
	prepared("instructions", &at_997, -ENOTSUP);
}

static void not_allowed(void **state)
{
	struct vm_event vm[VM_MAX_EVENTS];
	struct events ev;

	(void)state;
	mock.refuse = EACCES;
	ev = prepared("cycles", &at_997, 0);
	events_for_vm(&ev, vm);
	assert_int_equal(vm[0].kind, VM_EVENT_CPU);
	assert_true(vm[0].timer);
	assert_non_null(strstr(ev.at[0].why, "perf_event_paranoid is"));
	assert_non_null(strstr(ev.at[0].why, "host's ticks"));
	ev = prepared("cpu", &at_997, 0);
	events_for_vm(&ev, vm);
	assert_true(vm[0].timer);
	assert_non_null(strstr(ev.at[0].why, "host's ticks"));
}

static void strict(void **state)
{
	struct events_rate rate = at_997;
	struct events ev = { 0 };
	struct err e = { 0 };

	(void)state;
	rate.strict = true;
	mock.refuse = EOPNOTSUPP;
	assert_int_equal(events_add(&ev, "wall,cycles", &e), 0);
	assert_int_equal(events_prepare(&ev, &rate, &no_host, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "event cycles: "));
	assert_non_null(strstr(e.text, "mediated vPMU"));
}

static void host_that_cannot_be_left_out(void **state)
{
	struct vm_event vm[VM_MAX_EVENTS];
	struct events ev;

	(void)state;
	mock.refuse_guest_only = EINVAL;
	ev = prepared("cycles", &at_997, 0);
	events_for_vm(&ev, vm);
	assert_int_equal(vm[0].kind, VM_EVENT_PERF);
	assert_false(vm[0].counter.exclude_host);
	assert_non_null(strstr(ev.at[0].why, "its share"));
	/* asked for in so many words, it is a refusal */
	ev = prepared("cycles:G", &at_997, 0);
	assert_string_equal(ev.at[0].name.text, "cpu");
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup(t, setup)
	const struct CMUnitTest tests[] = {
		TEST(perf_names),
		TEST(with_modifiers),
		TEST(exits_and_tracepoints),
		TEST(bad_text),
		TEST(every_listed_name_parses),
		TEST(lists),
		TEST(without_any_it_is_wall),
		TEST(what_the_host_has),
		TEST(a_count_instead_of_a_rate),
		TEST(modifiers_become_attributes),
		TEST(no_pmu),
		TEST(not_allowed),
		TEST(strict),
		TEST(host_that_cannot_be_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
