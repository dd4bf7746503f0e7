/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/record/run/kernel.h"
#include "tests/unit/tiny_elf.h"

/* A target as target_open() leaves it, with init text at [start, end). */
static void prepare(struct target *t, uint8_t elf[TINY_SIZE], uint64_t start, uint64_t end)
{
	const struct tiny_elf shape = { .id = 1 };

	tiny_build(&shape, elf);
	memset(t, 0, sizeof(*t));
	assert_int_equal(kimage_parse(&t->kernel, "tiny", elf, TINY_SIZE, NULL), 0);
	t->elf = elf;
	t->elf_len = TINY_SIZE;
	t->init_start = start;
	t->init_end = end;
}

static void test_init_text_survives(void **state)
{
	uint8_t elf[TINY_SIZE], got[16], want[16];
	struct target t;

	(void)state;
	prepare(&t, elf, TINY_TEXT + 16, TINY_TEXT + 64);
	assert_int_equal(kimage_read(&t.kernel, TINY_TEXT + 32, want, sizeof(want)), 0);
	target_settle(&t);
	assert_null(t.kernel.elf);
	memset(elf, 0xcc, sizeof(elf)); /* the file is gone */
	assert_int_equal(target_read_text(&t, TINY_TEXT + 32, got, sizeof(got)), sizeof(got));
	assert_memory_equal(got, want, sizeof(got));
	/* cut at the end of the range */
	assert_int_equal(target_read_text(&t, TINY_TEXT + 56, got, sizeof(got)), 8);
	target_close(&t);
}

/* Symbols may claim more init text than the file has, or absurdly much. */
static void test_wrong_init_text_is_not_made_up(void **state)
{
	static const uint64_t len[] = { 0x800, 1 << 30, UINT64_MAX - TINY_TEXT };
	uint8_t elf[TINY_SIZE], got[16];

	(void)state;
	for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		struct target t;

		prepare(&t, elf, TINY_TEXT, TINY_TEXT + len[i]);
		target_settle(&t);
		assert_int_equal(target_read_text(&t, TINY_TEXT + 32, got, 16), 16);
		assert_memory_equal(got, elf + TINY_OFF_TEXT + 32, 16);
		/* behind the bytes of the file */
		assert_int_equal(target_read_text(&t, TINY_TEXT + 0x400, got, 16), 0);
		t.elf = NULL;
		target_close(&t);
	}
}

static void write_file(char *name, const void *data, size_t len)
{
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

/* kernel_open() on a kernel with these symbols besides its own; closes nothing. */
static void open_with(struct target *t, const char *symbols)
{
	char image[] = "/tmp/kvmprof-test-image-XXXXXX", map[] = "/tmp/kvmprof-test-map-XXXXXX";
	const struct tiny_elf shape = { .no_symbols = true };
	const uint64_t entry = 0x1000000;
	struct boot_image boot;
	uint8_t elf[TINY_SIZE];
	struct err e = { 0 };
	char text[4096];
	size_t n;

	tiny_build(&shape, elf);
	memcpy(elf + offsetof(Elf64_Ehdr, e_entry), &entry, sizeof(entry));
	n = tiny_map(text, sizeof(text), 0);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", symbols);
	assert_true(n < sizeof(text));
	write_file(image, elf, sizeof(elf));
	write_file(map, text, n);
	if (kernel_open(&boot, t, image, map, &e))
		fail_msg("%s", e.text);
	unlink(image);
	unlink(map);
}

/* Where the interrupt stack's address is kept, and whether each CPU has its own. */
static void test_irq_stack(void **state)
{
	static const struct {
		const char *symbols;
		uint64_t ptr;
		bool percpu;
	} cases[] = {
		/* 6.1, several CPUs */
		{ "0000000000000000 D __per_cpu_start\n"
		  "000000000001fb48 D hardirq_stack_ptr\n"
		  "0000000000031000 D __per_cpu_end\n",
		  0x1fb48, true },
		/* 6.1, one CPU */
		{ "ffffffff81002050 D hardirq_stack_ptr\n"
		  "ffffffff81003000 D __per_cpu_start\n"
		  "ffffffff81003000 D __per_cpu_end\n",
		  0xffffffff81002050, false },
		/* 6.15, several CPUs */
		{ "ffffffff81002000 D __per_cpu_start\n"
		  "ffffffff81002050 D hardirq_stack_ptr\n"
		  "ffffffff81003000 D __per_cpu_end\n",
		  0xffffffff81002050, true },
		/* the first and the last variable of the range, and what is beside it */
		{ "ffffffff81002000 D __per_cpu_start\n"
		  "ffffffff81002000 D hardirq_stack_ptr\n"
		  "ffffffff81003000 D __per_cpu_end\n",
		  0xffffffff81002000, true },
		{ "ffffffff81002000 D __per_cpu_start\n"
		  "ffffffff81003000 D hardirq_stack_ptr\n"
		  "ffffffff81003000 D __per_cpu_end\n",
		  0xffffffff81003000, false },
		{ "ffffffff81002000 D hardirq_stack_ptr\n", 0xffffffff81002000, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture_plan plan;
		struct target t;

		open_with(&t, cases[i].symbols);
		plan = target_capture_plan(&t, 4096);
		assert_int_equal(plan.irq_stack_ptr, cases[i].ptr);
		assert_int_equal(plan.irq_stack_percpu, cases[i].percpu);
		target_close(&t);
	}
}

/* A program's stack may be as deep below a system call as while it runs. */
static void test_user_stack(void **state)
{
	struct target t;

	(void)state;
	open_with(&t, "ffffffff81000000 T _text\n");
	t.is_linux = true;
	assert_int_equal(target_capture_plan(&t, 16384).user_stack_max, 16384);
	assert_int_equal(target_capture_plan(&t, 256).user_stack_max, 256);
	t.is_linux = false;
	assert_int_equal(target_capture_plan(&t, 16384).user_stack_max, 0);
	target_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_text_survives),
		cmocka_unit_test(test_wrong_init_text_is_not_made_up),
		cmocka_unit_test(test_irq_stack),
		cmocka_unit_test(test_user_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
