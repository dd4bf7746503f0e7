/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/quirks_cache.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY "build 1\nboot 2\nprocessor 3\n"

static char dir[64], path[128];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test_quirks_cache.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/kvmprof/host-quirks", dir);
	return 0;
}

static int teardown(void **state)
{
	struct err e = { 0 };

	(void)state;
	return file_remove_tree(dir, &e);
}

static const struct quirks found = { .interpreted = true,
				     .hypercalls_hang = true,
				     .tsc_fixed = true,
				     .ring0_ps_per_insn = UINT64_C(705123456789),
				     .tsc_khz = 2599998,
				     .probed = true };

static void write_file(const char *text, size_t len, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_round_trip(void **state)
{
	struct quirks q = { .tsc_khz = 1 };

	(void)state;
	assert_false(quirks_cache_read(path, KEY, &q));
	assert_int_equal(q.tsc_khz, 1);
	assert_true(quirks_cache_write(path, KEY, &found));
	assert_true(quirks_cache_read(path, KEY, &q));
	assert_true(q.interpreted && q.hypercalls_hang && q.tsc_fixed && q.probed && q.from_cache);
	assert_false(q.syscall_keeps_cpl || q.refuses_insns || q.zero_counts_wrong ||
		     q.cpuid_leaks);
	assert_int_equal(q.ring0_ps_per_insn, UINT64_C(705123456789));
	assert_int_equal(q.tsc_khz, 2599998);
	assert_null(q.probe);
	/* A second result replaces the first one. */
	assert_true(quirks_cache_write(path, KEY, &(struct quirks){ .cpuid_leaks = true }));
	assert_true(quirks_cache_read(path, KEY, &q));
	assert_true(q.cpuid_leaks && !q.interpreted && !q.tsc_khz);
}

static void test_other_key(void **state)
{
	struct quirks q;

	(void)state;
	assert_true(quirks_cache_write(path, KEY, &found));
	assert_false(quirks_cache_read(path, "build 1\nboot 3\nprocessor 3\n", &q));
	assert_false(quirks_cache_read(path, "build 1\nboot 2\n", &q));
	assert_false(quirks_cache_read(path, KEY "more\n", &q));
}

/* A file that others may write to, or that is not a file, could switch work-arounds off. */
static void test_not_trusted(void **state)
{
	char other[160];
	struct quirks q;

	(void)state;
	assert_true(quirks_cache_write(path, KEY, &found));
	assert_int_equal(chmod(path, 0664), 0);
	assert_false(quirks_cache_read(path, KEY, &q));
	assert_int_equal(chmod(path, 0646), 0);
	assert_false(quirks_cache_read(path, KEY, &q));
	assert_int_equal(chmod(path, 0644), 0);
	assert_true(quirks_cache_read(path, KEY, &q));
	snprintf(other, sizeof(other), "%s.other", path);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_false(quirks_cache_read(path, KEY, &q));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(quirks_cache_read(path, KEY, &q));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(quirks_cache_read(path, KEY, &q));
	assert_false(quirks_cache_write(path, KEY, &found));
	if (geteuid() == 0) {
		assert_int_equal(rmdir(path), 0);
		assert_int_equal(rename(other, path), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_false(quirks_cache_read(path, KEY, &q));
	}
}

static void test_damaged(void **state)
{
	static const char *const bad[] = {
		"",
		KEY,
		KEY "result 1000000 5",
		KEY "result 1000000 5 6\nmore",
		KEY "result 1000002 5 6\n",
		KEY "result 100000 5 6\n",
		KEY "result 10000000 5 6\n",
		KEY "result -100000 5 6\n",
		KEY "results 1000000 5 6\n",
	};
	static char large[8192];
	struct quirks q;

	(void)state;
	assert_true(quirks_cache_write(path, KEY, &found));
	write_file(KEY "result 1000000 5 6\n", strlen(KEY "result 1000000 5 6\n"), 0600);
	assert_true(quirks_cache_read(path, KEY, &q));
	assert_int_equal(q.ring0_ps_per_insn, 5);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_file(bad[i], strlen(bad[i]), 0600);
		assert_false(quirks_cache_read(path, KEY, &q));
	}
	write_file(KEY "result 1000000 5 6\n\0", sizeof(KEY "result 1000000 5 6\n"), 0600);
	assert_false(quirks_cache_read(path, KEY, &q));
	memset(large, ' ', sizeof(large));
	memcpy(large, KEY "result 1000000 5 6\n", strlen(KEY "result 1000000 5 6\n"));
	write_file(large, sizeof(large), 0600);
	assert_false(quirks_cache_read(path, KEY, &q));
}

static void test_path(void **state)
{
	char want[192], *got, sub[128];

	(void)state;
	assert_int_equal(setenv("XDG_CACHE_HOME", dir, 1), 0);
	got = quirks_cache_path();
	assert_string_equal(got, path);
	free(got);
	/* A relative or a missing directory is not used, and none is created in its place. */
	assert_int_equal(setenv("HOME", dir, 1), 0);
	assert_int_equal(setenv("XDG_CACHE_HOME", "tmp", 1), 0);
	assert_null(quirks_cache_path());
	assert_int_equal(setenv("XDG_CACHE_HOME", "", 1), 0);
	got = quirks_cache_path();
	snprintf(want, sizeof(want), "%s/.cache/kvmprof/host-quirks", dir);
	assert_string_equal(got, want);
	free(got);
	snprintf(sub, sizeof(sub), "%s/none", dir);
	assert_int_equal(setenv("HOME", sub, 1), 0);
	assert_null(quirks_cache_path());
	assert_int_equal(unsetenv("HOME"), 0);
	assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
	assert_null(quirks_cache_path());
	/* The home directory of another user, as with sudo, is not used. */
	assert_int_equal(setenv("HOME", geteuid() ? "/root" : dir, 1), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(dir, 65534, 65534), 0);
	assert_null(quirks_cache_path());
}

static void test_key(void **state)
{
	char a[QUIRKS_CACHE_KEY], b[QUIRKS_CACHE_KEY];

	(void)state;
	assert_true(quirks_cache_key(a));
	assert_true(quirks_cache_key(b));
	assert_string_equal(a, b);
	assert_non_null(strstr(a, "\nboot "));
	assert_non_null(strstr(a, "\nmodules"));
	assert_non_null(strstr(a, "\nprocessor "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_trusted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_path, setup, teardown),
		cmocka_unit_test(test_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
