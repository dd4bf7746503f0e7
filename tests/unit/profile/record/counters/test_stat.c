/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters out of known facts, what is told when a source is missing, and the three forms. */
#include "profile/record/counters/stat.h"
#include "tests/unit/skip.h"
#include "vmm/devices.h"
#include "vmm/device.h"

#include <linux/kvm.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define SEC (1000 * MS)

/* In place of the machine's: two ranges of ports of one device, and one more. */
const char *vm_device_name(const struct vm *vm, unsigned int device)
{
	static const char *const name[] = { "serial", "i8042", "i8042" };

	(void)vm;
	return device < 3 ? name[device] : NULL;
}

bool vm_disk(const struct vm *vm, unsigned int i, struct vm_disk_info *out)
{
	(void)vm;
	(void)i;
	(void)out;
	return false;
}

const char *vm_exit_name(unsigned int kind)
{
	return kind == KVM_EXIT_IO ? "IO" : kind == KVM_EXIT_X86_RDMSR ? "X86_RDMSR" : "other";
}

#define DESC(n, off, u)                                                                      \
	{                                                                                    \
		.name = n, .type = KVMSTATS_CUMULATIVE, .unit = u, .exponent = (u) ? -9 : 0, \
		.size = 1, .offset = off                                                     \
	}
static struct kvmstats_desc desc[] = {
	DESC("exits", 0, KVMSTATS_NONE),
	DESC("halt_wait_ns", 8, KVMSTATS_SECONDS),
	DESC("halt_poll_success_ns", 16, KVMSTATS_SECONDS),
	DESC("seldom", 24, KVMSTATS_NONE),
	{ .name = "a_peak", .type = KVMSTATS_PEAK, .size = 1, .offset = 0 },
	{ .name = "a_hist", .type = KVMSTATS_LOG_HIST, .size = 4, .offset = 0 },
};
static struct kvmstats kvm = { .fd = -1, .data_len = 32, .n = 6, .desc = desc };
static const uint64_t kvm_data[2][4] = { { 1000, 300 * MS, 100 * MS, 0 }, { 500, 0, 0, 0 } };

static struct vcpu_stats own[2];
static struct stat_vcpu vcpu[2];
static struct stat_table t;

/* One vCPU that did all sorts of things for 2 s, and one that was never started. */
static int setup(void **state)
{
	(void)state;
	memset(own, 0, sizeof(own));
	own[0].exits[KVM_EXIT_IO] = 30;
	own[0].exits[KVM_EXIT_X86_RDMSR] = 3;
	own[0].exits[40] = 1;
	own[0].exits[41] = 1;
	own[0].device[0] = (struct vcpu_device_stats){ .exits = 25, .ns = 200 * MS };
	own[0].device[1] = (struct vcpu_device_stats){ .exits = 2, .ns = 1 * MS };
	own[0].device[2] = (struct vcpu_device_stats){ .exits = 3, .ns = 2 * MS };
	for (unsigned int i = 0; i < 2; i++)
		vcpu[i] = (struct stat_vcpu){
			.own = &own[i],
			.thread = { .have_sched = true, .have_times = true },
			.kvm = &kvm,
			.kvm_data = (const uint8_t *)kvm_data[i],
		};
	vcpu[0].thread.guest_ns = 800 * MS;
	vcpu[0].account = (struct account){
		.begun_ns = 1,
		.now_ns = 1 + 1990 * MS,
		.wall = { 1700 * MS, 250 * MS, 40 * MS },
		.delay = { 80 * MS, 10 * MS, 1 * MS },
		.blocked = { 350 * MS, 5 * MS },
		.elsewhere = 3 * MS,
	};
	vcpu[1].account = (struct account){
		.begun_ns = 1,
		.now_ns = 1 + 2 * SEC,
		.wall = { 2 * SEC },
		.blocked = { 2 * SEC },
	};
	stat_build(&t, NULL, vcpu, 2, 2 * SEC);
	return 0;
}

static const struct stat_row *row(const char *name)
{
	for (unsigned int i = 0; i < t.n; i++)
		if (!strcmp(t.row[i].name, name))
			return &t.row[i];
	return NULL;
}

static void expect(const char *name, uint64_t first, uint64_t second)
{
	const struct stat_row *r = row(name);

	assert_non_null(r);
	assert_true(r->supported);
	if (r->v[0] != first || r->v[1] != second)
		fail_msg("%s: %lu, %lu", name, (unsigned long)r->v[0], (unsigned long)r->v[1]);
}

/* For each vCPU they add up to all of the time. */
static void closes(void)
{
	for (unsigned int v = 0; v < 2; v++) {
		uint64_t sum = 0;

		for (unsigned int i = 0; i < t.n; i++)
			sum += strncmp(t.row[i].name, "time:", 5) ? 0 : t.row[i].v[v];
		assert_int_equal(sum, t.elapsed_ns);
	}
}

static void times(void **state)
{
	(void)state;
	expect("time:guest", 800 * MS, 0);
	expect("time:vmm", 240 * MS, 0);
	expect("time:stopped", 39 * MS, 0);
	expect("time:runnable", 91 * MS, 0);
	/* 300 as KVM says it, and 100 of polling. */
	expect("time:halted", 400 * MS, 0);
	expect("time:waiting", 50 * MS, 2 * SEC);
	/* 1700 in KVM_RUN: 430 off the processor, 3 perhaps, 100 of polling, 800 in the guest. */
	expect("time:kvm", 367 * MS, 0);
	/* These 3, and 10 that the thread was not there. */
	expect("time:untold", 13 * MS, 0);
	closes();
}

static void counts(void **state)
{
	(void)state;
	expect("exit:io", 30, 0);
	expect("exit:x86_rdmsr", 3, 0);
	expect("exit:other", 2, 0);
	expect("vmm:serial", 25, 0);
	expect("vmm:i8042", 5, 0);
	expect("vmm:i8042:time", 3 * MS, 0);
	expect("kvm:exits", 1000, 500);
	expect("kvm:halt_wait_ns", 300 * MS, 0);
	assert_null(row("kvm:a_peak"));
	assert_null(row("kvm:a_hist"));
	assert_int_equal(row("kvm:halt_wait_ns")->unit, STAT_NS);
	assert_false(row("kvm:halt_exits")->supported); /* this KVM counts them not */
}

static void without_sources(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		vcpu[i].kvm = NULL;
	vcpu[0].thread.have_times = false;
	stat_build(&t, NULL, vcpu, 2, 2 * SEC);
	assert_false(row("kvm:exits")->supported);
	assert_false(row("time:halted")->supported);
	assert_false(row("time:guest")->supported);
	assert_false(row("time:kvm")->supported);
	assert_false(row("time:waiting")->supported);
	assert_true(row("time:vmm")->supported);
	assert_true(row("time:runnable")->supported);
	assert_int_equal(row("time:untold")->v[1], 2 * SEC);
	closes();
	vcpu[1].thread.have_sched = false;
	stat_build(&t, NULL, vcpu, 2, 2 * SEC);
	assert_false(row("time:runnable")->supported); /* one of the two is not known */
}

static void an_interval(void **state)
{
	struct stat_table *before = malloc(sizeof(*before));

	(void)state;
	assert_non_null(before);
	*before = t;
	own[0].exits[KVM_EXIT_IO] += 12;
	own[1].device[0].exits = 4;
	/* It runs in the guest alone, of which its ticks say 4 ms too many; the other waits on. */
	vcpu[0].account.wall[ACCOUNT_RUN] += SEC;
	vcpu[0].thread.guest_ns += 1004 * MS;
	vcpu[1].account.wall[ACCOUNT_RUN] += SEC;
	vcpu[1].account.blocked[ACCOUNT_RUN] += SEC;
	stat_build(&t, NULL, vcpu, 2, 3 * SEC);
	stat_subtract(&t, before);
	assert_int_equal(t.elapsed_ns, SEC);
	expect("exit:io", 12, 0);
	expect("vmm:serial", 0, 4);
	expect("kvm:exits", 0, 0);
	expect("time:guest", SEC, 0);
	expect("time:waiting", 0, SEC);
	expect("time:untold", 0, 0);
	closes();
	free(before);
}

/* A wait that was taken for a sleep: its time was told, and is not told again. */
static void a_wait_that_went_on(void **state)
{
	struct stat_table *before = malloc(sizeof(*before));

	(void)state;
	assert_non_null(before);
	*before = t;
	vcpu[0].account.wall[ACCOUNT_RUN] += SEC;
	vcpu[0].account.blocked[ACCOUNT_RUN] -= 200 * MS;
	vcpu[0].account.delay[ACCOUNT_RUN] += 500 * MS;
	vcpu[1].account.wall[ACCOUNT_RUN] += SEC;
	vcpu[1].account.blocked[ACCOUNT_RUN] -= SEC;
	vcpu[1].account.delay[ACCOUNT_RUN] += 2 * SEC + 100 * MS;
	stat_build(&t, NULL, vcpu, 2, 3 * SEC);
	stat_subtract(&t, before);
	expect("time:runnable", 300 * MS, SEC);
	expect("time:waiting", 0, 0);
	closes();
	free(before);
}

static char *printed(const struct stat_style *style)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	stat_print(&t, style, f);
	fclose(f);
	return text;
}

static void has(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("no '%s' in:\n%s", what, text);
}

static void forms(void **state)
{
	char *text = printed(&(struct stat_style){ 0 });
	struct json_writer w;

	(void)state;
	has(text,
	    "           800.000 msec  time:guest                   #      20.000 % of the time\n");
	has(text, "             1,500       kvm:exits                    #     750.000 /sec\n");
	has(text, "   <not supported>       kvm:halt_exits              \n");
	assert_null(strstr(text, "kvm:seldom")); /* it never happened */
	assert_null(strstr(text, "CPU"));
	free(text);

	text = printed(&(struct stat_style){
		.sep = ",", .per_vcpu = true, .interval = true, .time_ns = 2 * SEC });
	has(text, "2.000000,CPU0,800.000,msec,time:guest,40.000,% of the time\n");
	has(text, "2.000000,CPU1,500,,kvm:exits,250.000,/sec\n");
	has(text, "2.000000,CPU1,<not supported>,,kvm:halt_exits,,\n");
	free(text);

	json_open(&w);
	stat_json(&w, &t);
	buf_u8(w.b, 0);
	text = (char *)w.b->data;
	has(text, "{\"elapsed_ns\":2000000000,\"vcpus\":2,\"counters\":{");
	has(text, "\"kvm:exits\":{\"unit\":\"\",\"sum\":1500,\"vcpu\":[1000,500]}");
	has(text, "\"kvm:halt_exits\":null");
	buf_deinit(w.b);
}

/* -- /proc -------------------------------------------------------------------------- */

static void thread_times(void **state)
{
	/* Each field holds its number; the name has what would end it. */
	static const char text[] =
		"7 (a) b (c) S 4 5 6 7 8 9 10 11 12 13 114 115 16 17 18 19 20 21 22 23 24 25 26 27 "
		"28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52\n";
	struct stat_thread th = { 0 };

	(void)state;
	assert_true(stat_thread_parse_times(&th, text, 100));
	assert_true(th.have_times);
	assert_int_equal(th.state, 'S');
	assert_int_equal(th.guest_ns, 430 * MS);
	assert_int_equal(th.user_ns, 710 * MS); /* utime has the guest's in it */
	assert_int_equal(th.system_ns, 1150 * MS);
	assert_false(stat_thread_parse_times(&th, "7 (short) S 1 2 3\n", 100));
	assert_false(th.have_times);
	assert_false(stat_thread_parse_times(&th, "", 100));
	assert_false(stat_thread_parse_times(&th, text, 0));
	assert_true(stat_thread_parse_sched(&th, "123 456 7\n"));
	assert_int_equal(th.run_ns, 123);
	assert_int_equal(th.delay_ns, 456);
	assert_false(stat_thread_parse_sched(&th, "no\n"));
	assert_false(th.have_sched);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void our_own_thread(void **state)
{
	struct stat_thread a, b;

	(void)state;
	stat_thread_read(&a, gettid());
	if (!a.have_sched)
		SKIP("this kernel has no schedstat");
	/* By the thread's own clock: as much as that, however long it takes. */
	for (uint64_t start = cpu_ns(); cpu_ns() - start < 20000000;)
		;
	sched_yield();
	stat_thread_read(&b, gettid());
	assert_in_range(b.run_ns - a.run_ns, 15000000, cpu_ns());
	assert_true(b.have_times);
	stat_thread_read(&b, 1 << 30);
	assert_false(b.have_sched);
	assert_false(b.have_times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(times, setup),
		cmocka_unit_test_setup(counts, setup),
		cmocka_unit_test_setup(without_sources, setup),
		cmocka_unit_test_setup(an_interval, setup),
		cmocka_unit_test_setup(a_wait_that_went_on, setup),
		cmocka_unit_test_setup(forms, setup),
		cmocka_unit_test(thread_times),
		cmocka_unit_test(our_own_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
