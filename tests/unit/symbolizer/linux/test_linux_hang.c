/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offsets of the members that explain a stall: known, unknown, and not to be believed. */
#include "symbolizer/linux/hang.h"

#include "tests/memory_bytes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define BASE 0xffff888000001000ull

static uint8_t bytes[256];
static struct memory_bytes guest = { BASE, bytes, sizeof(bytes) };
static const struct memory mem = { memory_bytes_read, &guest };

/* What a source of types says of each member but one. */
static struct type_member answer;
static const char *missing;

static int member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	(void)ctx;
	if (missing && !strcmp(structure, "mutex") && !strcmp(path, missing))
		return -ENOENT;
	*out = answer;
	return 0;
}

static int size(void *ctx, const char *structure, uint64_t *out)
{
	(void)ctx;
	*out = !strcmp(structure, "zone") ? UINT64_C(1) << 40 : 512;
	return 0;
}

static int enumerator(void *ctx, const char *name, int64_t *out)
{
	(void)ctx;
	*out = !strcmp(name, "SYSTEM_RUNNING") ? 3 : -7;
	return !strcmp(name, "OOM_KILL") ? -ENOENT : 0;
}

static const struct types types = { member, size, enumerator, NULL };

static void no_types(void **state)
{
	struct linux_hang_layout l;
	uint64_t v = 42;

	(void)state;
	linux_hang_layout(&l, NULL);
	for (unsigned int i = 0; i < LINUX_HANG_MEMBERS; i++)
		assert_false(linux_hang_has(&l, (enum linux_hang_member)i));
	assert_int_equal(l.running, -1);
	assert_int_equal(l.oom_kill, -1);
	assert_int_equal(l.pool_size, 0);
	assert_false(linux_hang_read(&l, &mem, BASE, LINUX_HANG_MUTEX_OWNER, &v));
	assert_int_equal(v, 42);
}

static void offsets(void **state)
{
	struct linux_hang_layout l;

	(void)state;
	answer = (struct type_member){ .off = 16, .size = 8 };
	missing = "first_waiter";
	linux_hang_layout(&l, &types);
	missing = NULL;
	assert_true(linux_hang_has(&l, LINUX_HANG_MUTEX_OWNER));
	assert_int_equal(l.off[LINUX_HANG_MUTEX_OWNER], 16);
	assert_false(linux_hang_has(&l, LINUX_HANG_MUTEX_FIRST_WAITER));
	assert_int_equal(l.running, 3);
	assert_int_equal(l.in_flight, -1); /* a negative enumerator is none of these */
	assert_int_equal(l.oom_kill, -1);
	assert_int_equal(l.pool_size, 512);
	assert_int_equal(l.zone_size, 0); /* no structure is that large */
	answer.off = 1 << 21;
	linux_hang_layout(&l, &types);
	assert_false(linux_hang_has(&l, LINUX_HANG_MUTEX_OWNER));
	answer = (struct type_member){ .off = 16, .size = 4, .bit_count = 3 };
	linux_hang_layout(&l, &types);
	assert_false(linux_hang_has(&l, LINUX_HANG_MUTEX_OWNER));
}

static void reads(void **state)
{
	static const struct {
		uint32_t size;
		uint64_t v;
	} as[] = {
		{ 8, 0x0807060504030201 },
		{ 16, 0x0807060504030201 },
		{ 4, 0x04030201 },
		{ 6, 0x04030201 },
		{ 2, 0x0201 },
		{ 1, 0x01 },
	};
	struct linux_hang_layout l;
	uint64_t v;

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		bytes[16 + i] = (uint8_t)(i + 1);
	for (size_t i = 0; i < sizeof(as) / sizeof(as[0]); i++) {
		answer = (struct type_member){ .off = 16, .size = as[i].size };
		linux_hang_layout(&l, &types);
		v = 0;
		assert_true(linux_hang_read(&l, &mem, BASE, LINUX_HANG_MUTEX_OWNER, &v));
		assert_true(v == as[i].v);
	}
	v = 42;
	assert_false(linux_hang_read(&l, &mem, 0x1000, LINUX_HANG_MUTEX_OWNER, &v));
	assert_false(linux_hang_read(&l, &mem, BASE + sizeof(bytes), LINUX_HANG_MUTEX_OWNER, &v));
	assert_false(linux_hang_read(&l, &mem, UINT64_MAX - 7, LINUX_HANG_MUTEX_OWNER, &v));
	assert_int_equal(v, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_types),
		cmocka_unit_test(offsets),
		cmocka_unit_test(reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
