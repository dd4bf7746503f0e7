/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A task_struct, its cred and its mm_struct in an array of words, with rss_stat in its three forms. */
#include "symbolizer/linux/usage.h"

#include "base/cleanup.h"
#include "symbolizer/linux/task.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define BASE UINT64_C(0xffff888000000000)
#define SIZE 4096u
/* Addresses of what the array has. */
#define TASK (BASE + 0)
#define CRED (BASE + 256)
#define MM (BASE + 512)
#define OFFSETS (BASE + 1024)
#define IDS (BASE + 1536)
#define PER_CPU (BASE + 2048)
#define CPU_SIZE 256u

static uint8_t bytes[SIZE];

static size_t read_bytes(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	size_t n = va < BASE || va - BASE > SIZE ? 0 : SIZE - (size_t)(va - BASE);

	(void)ctx;
	(void)space;
	n = n < len ? n : len;
	memcpy(dst, bytes + (n ? va - BASE : 0), n);
	return n;
}

static const struct memory mem = { read_bytes, NULL };

static void put(uint64_t at, uint64_t v, size_t size)
{
	memcpy(bytes + (at - BASE), &v, size);
}

enum form { ATOMIC, PERCPU, ONE_CPU, NONE_KNOWN };

static int find_member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	static const struct {
		const char *structure, *path;
		unsigned int forms; /* by enum form */
		uint32_t off, size;
	} members[] = {
		{ "task_struct", "cred", 7, 16, 8 },
		{ "task_struct", "mm", 7, 24, 8 },
		{ "task_struct", "rss_stat.count[1]", 1 << ATOMIC, 104, 4 },
		{ "cred", "uid.val", 7, 8, 4 },
		{ "mm_struct", "total_vm", 7, 8, 8 },
		{ "mm_struct", "rss_stat.count[0].counter", 1 << ATOMIC, 64, 8 },
		{ "mm_struct", "rss_stat.count[1].counter", 1 << ATOMIC, 72, 8 },
		{ "mm_struct", "rss_stat.count[3].counter", 1 << ATOMIC, 88, 8 },
		{ "mm_struct", "rss_stat[0].count", 1 << PERCPU, 72, 8 },
		{ "mm_struct", "rss_stat[1].count", 1 << PERCPU, 112, 8 },
		{ "mm_struct", "rss_stat[3].count", 1 << PERCPU, 192, 8 },
		{ "mm_struct", "rss_stat[0].count", 1 << ONE_CPU, 64, 8 },
		{ "mm_struct", "rss_stat[1].count", 1 << ONE_CPU, 72, 8 },
		{ "mm_struct", "rss_stat[3].count", 1 << ONE_CPU, 88, 8 },
		{ "percpu_counter", "count", 7, 8, 8 },
		{ "percpu_counter", "counters", 1 << PERCPU | 1 << ATOMIC, 32, 8 },
	};
	enum form form = *(const enum form *)ctx;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (members[i].forms & 1u << form && !strcmp(members[i].structure, structure) &&
		    !strcmp(members[i].path, path)) {
			*out = (struct type_member){ .off = members[i].off,
						     .size = members[i].size };
			return 0;
		}
	return -ENOENT;
}

static void read_form(enum form form, const struct linux_usage_cpus *cpus, struct linux_usage *out)
{
	const struct types types = { .member = find_member, .ctx = &form };
	struct linux_usage_layout l;

	linux_usage_none(&l);
	assert_int_equal(linux_usage_from_types(&l, &types), 0);
	linux_usage_read(&l, cpus, &mem, TASK, out);
}

static void make(void)
{
	memset(bytes, 0, sizeof(bytes));
	put(TASK + 16, CRED, 8);
	put(TASK + 24, MM, 8);
	put(CRED + 8, 1000, 4);
	put(MM + 8, 700, 8);
}

static void atomic_numbers(void **state)
{
	const struct linux_usage_cpus one = { 0 };
	struct linux_usage u;

	(void)state;
	make();
	put(MM + 64, 3, 8);
	put(MM + 72, 50, 8);
	put(MM + 80, 1000, 8); /* swapped pages are not in memory */
	put(MM + 88, 7, 8);
	read_form(ATOMIC, &one, &u);
	assert_int_equal(u.uid, 1000);
	assert_int_equal(u.vsz, 700 << 12);
	assert_int_equal(u.rss, 60 << 12);
	read_form(ONE_CPU, &one, &u);
	assert_int_equal(u.rss, 60 << 12);
	put(TASK + 104, 40, 4);
	read_form(ATOMIC, &one, &u);
	assert_int_equal(u.rss, 100 << 12);
	put(TASK + 104, 0, 4);
	/* A number below zero is a moment in which the parts did not fit. */
	put(MM + 88, (uint64_t)-7, 8);
	read_form(ATOMIC, &one, &u);
	assert_int_equal(u.rss, 53 << 12);
	put(MM + 64, UINT64_C(1) << 50, 8);
	read_form(ATOMIC, &one, &u);
	assert_int_equal(u.rss, LINUX_USAGE_UNKNOWN);
	read_form(NONE_KNOWN, &one, &u);
	assert_int_equal(u.uid, LINUX_USAGE_UNKNOWN);
	assert_int_equal(u.vsz, LINUX_USAGE_UNKNOWN);
	assert_int_equal(u.rss, LINUX_USAGE_UNKNOWN);
	/* A kernel thread has no memory of its own. */
	put(TASK + 24, 0, 8);
	read_form(ATOMIC, &one, &u);
	assert_int_equal(u.vsz, 0);
	assert_int_equal(u.rss, 0);
	put(TASK + 24, 0x1000, 8);
	put(TASK + 16, BASE + SIZE, 8);
	read_form(ATOMIC, &one, &u);
	assert_int_equal(u.uid, LINUX_USAGE_UNKNOWN);
	assert_int_equal(u.rss, LINUX_USAGE_UNKNOWN);
}

static void percpu_counters(void **state)
{
	struct linux_usage_cpus cpus = { OFFSETS, IDS };
	static const uint32_t rss[] = { 72, 112, 192 };
	struct linux_usage u;

	(void)state;
	make();
	put(IDS, 3, 4);
	for (uint64_t cpu = 0; cpu < 3; cpu++)
		put(OFFSETS + 8 * cpu, PER_CPU + cpu * CPU_SIZE, 8);
	for (uint64_t i = 0; i < 3; i++) {
		put(MM + rss[i], 100, 8);
		put(MM + rss[i] + 24, 16 * (i + 1), 8); /* offset of its parts */
		for (uint64_t cpu = 0; cpu < 3; cpu++)
			put(PER_CPU + cpu * CPU_SIZE + 16 * (i + 1), cpu ? 5 : (uint32_t)-20, 4);
	}
	read_form(PERCPU, &cpus, &u);
	assert_int_equal(u.rss, 3 * (100 - 20 + 5 + 5) << 12);
	assert_int_equal(u.vsz, 700 << 12);
	/* Without the number of CPUs some parts would be missing. */
	cpus.nr_cpu_ids = 0;
	read_form(PERCPU, &cpus, &u);
	assert_int_equal(u.rss, LINUX_USAGE_UNKNOWN);
	cpus.nr_cpu_ids = IDS;
	put(IDS, LINUX_USAGE_MAX_CPUS + 1, 4);
	read_form(PERCPU, &cpus, &u);
	assert_int_equal(u.rss, LINUX_USAGE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atomic_numbers),
		cmocka_unit_test(percpu_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
