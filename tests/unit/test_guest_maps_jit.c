/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Executable memory without a file: which of it a program made, and which the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profile/guest_maps.h"
#include "tests/unit/linux_mm_fixture.h"

#include <stdio.h>

#define RX (LINUX_VM_READ | LINUX_VM_EXEC)
#define JIT_AT 0x7f1000000000u
#define VDSO_AT 0x7ffd00000000u

static struct lm guest;
static struct linux_mm_layout layout;
static struct linux_file_layout file_layout;
static struct memory memory;
static struct guest_dsos *dsos;
static struct guest_jit *jit;
static struct guest_maps *maps;
static uint64_t mm;

static char told[8][64];
static unsigned int ntold;

static int take_map(struct sink *s, const struct profile_map *m, struct err *e)
{
	(void)s;
	(void)e;
	assert_true(ntold < 8);
	snprintf(told[ntold++], sizeof(told[0]), "%s %llx %llx", m->path,
		 (unsigned long long)m->addr, (unsigned long long)m->len);
	return 0;
}

static const struct sink_ops ops = { .map = take_map };
static struct sink sink = { .ops = &ops };

static int setup(void **state)
{
	(void)state;
	memset(&guest, 0, sizeof(guest));
	guest.used = 4096;
	ntold = 0;
	memory = lm_memory(&guest);
	lm_layout(&layout, false);
	mm = lm_alloc(&guest, LM_MM_SIZE, 64);
	if (guest_dsos_create(&dsos, &layout, &file_layout, &memory, NULL, NULL) ||
	    guest_jit_create(&jit, NULL, &sink, NULL))
		return -1;
	return guest_maps_create(&maps, &layout, &memory, dsos, jit, &sink, NULL);
}

static int teardown(void **state)
{
	(void)state;
	guest_maps_destroy(maps);
	guest_jit_destroy(jit);
	guest_dsos_destroy(dsos);
	return 0;
}

static void see(uint64_t time_ns, uint64_t ip)
{
	assert_int_equal(guest_maps_see(maps, 22, mm, LM_CR3, time_ns, &ip, 1, NULL), 0);
}

static void test_jit(void **state)
{
	const uint64_t t = 1000000000;
	uint64_t vma[] = { lm_vma(&guest, mm, JIT_AT, JIT_AT + 0x1000, RX | LINUX_VM_WRITE, 0, 0) };

	(void)state;
	lm_list(&guest, mm, vma, 1);
	see(t, JIT_AT + 0x40);
	assert_int_equal(ntold, 1);
	assert_string_equal(told[0], "[jit:22] 7f1000000000 1000");
	/* Known: it is not told again, but when it has grown. */
	see(t + 1, JIT_AT + 0x80);
	see(t + 2 * GUEST_MAPS_REFRESH_NS, JIT_AT + 0x80);
	assert_int_equal(ntold, 1);
	lm_put64(&guest, vma[0] + 16, JIT_AT + 0x3000);
	see(t + 3 * GUEST_MAPS_REFRESH_NS, JIT_AT + 0x2040);
	assert_int_equal(ntold, 2);
	assert_string_equal(told[1], "[jit:22] 7f1000000000 3000");
	assert_int_equal(guest_jit_stats(jit)->regions, 1);
	assert_int_equal(guest_maps_stats(maps)->unmapped, 0);
}

/* In the middle of exec: the vDSO is mapped, but not noted in the mm_struct yet. */
static void test_vdso_of_exec(void **state)
{
	const uint64_t t = 1000000000;
	uint64_t vma[] = { lm_vma(&guest, mm, VDSO_AT, VDSO_AT + 0x1000, RX | LINUX_VM_DONTEXPAND,
				  0, 0) };

	(void)state;
	lm_list(&guest, mm, vma, 1);
	see(t, VDSO_AT + 0x40);
	assert_int_equal(ntold, 0);
	lm_put64(&guest, mm + 16, VDSO_AT);
	see(t + 2 * GUEST_MAPS_REFRESH_NS, VDSO_AT + 0x40);
	assert_int_equal(ntold, 1);
	assert_string_equal(told[0], "[vdso] 7ffd00000000 1000");
	see(t + 4 * GUEST_MAPS_REFRESH_NS, VDSO_AT + 0x40);
	assert_int_equal(ntold, 1);
	assert_int_equal(guest_jit_stats(jit)->regions, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_jit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vdso_of_exec, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
