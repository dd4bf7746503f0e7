/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This program's own debug information against what the compiler says of the same
 * types. Kernels' are in test_btf_kernel.
 */
#include "symbolizer/types/dwarf.h"

#include "base/file.h"
#include "tests/unit/tiny_elf.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct dw_list {
	struct dw_list *next, *prev;
};

typedef const volatile int dw_int;

struct dw_task {
	char comm[16];
	dw_int pid;
	unsigned int low : 3, high : 7;
	union {
		short number;
		struct {
			char x, y;
		};
	};
	struct dw_list run[3];
	long grid[2][5];
	enum dw_sign { DW_TEST_MINUS = -7, DW_TEST_PLUS = 7 } sign;
	enum { DW_TEST_HIGH = 0x80000000u } high_value;
	void *pointer;
	struct dw_list tail[];
} dw_task_object; /* used: its type is kept */

static const struct {
	const char *path;
	struct type_member m;
} members[] = {
#define MEMBER(p)                                                                   \
	{                                                                           \
#p,                                                                 \
		{                                                                   \
			offsetof(struct dw_task, p), sizeof(dw_task_object.p), 0, 0 \
		}                                                                   \
	}
	MEMBER(comm),
	MEMBER(comm[5]),
	MEMBER(pid),
	MEMBER(number),
	MEMBER(x),
	MEMBER(y),
	MEMBER(run),
	MEMBER(run[2]),
	MEMBER(run[1].prev),
	MEMBER(grid),
	MEMBER(sign),
	MEMBER(high_value),
	MEMBER(pointer),
	{ "low", { 20, 4, 0, 3 } },
	{ "high", { 20, 4, 3, 7 } },
	/* As in BTF, an array of arrays is one. */
	{ "grid[7]", { offsetof(struct dw_task, grid[1][2]), sizeof(long), 0, 0 } },
	{ "tail", { offsetof(struct dw_task, tail), 0, 0, 0 } },
};

static void own_types(void **state)
{
	static const char *const missing[] = { "",	    "com",	  "comm[16]",
					       "comm.x",    "run.next",	  "run[3]",
					       "pointer.x", "tail[0]",	  "grid[10]",
					       "pid[0]",    "grid[1][2]", "run[0].next.next" };
	struct types_dwarf *d = NULL;
	struct file_map map = { 0 };
	struct err e = { 0 };
	struct type_member m;
	struct types t;
	uint64_t size;
	int64_t v;
	int ret;

	(void)state;
	dw_task_object.sign = DW_TEST_PLUS;
	assert_int_equal(file_map_open(&map, "/proc/self/exe", 1u << 30, &e), 0);
	ret = types_dwarf_open(&d, map.data, map.len, "this test", &e);
	if (ret == -ENOENT) {
		file_map_close(&map);
		SKIP("built without -g");
	}
	if (ret < 0)
		fail_msg("%s", e.text);
	t = types_dwarf_types(d);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const struct type_member *w = &members[i].m;

		if (t.member(t.ctx, "dw_task", members[i].path, &m) < 0)
			fail_msg("%s is missing", members[i].path);
		if (m.off != w->off || m.size != w->size || m.bit_count != w->bit_count ||
		    m.bit_off != w->bit_off)
			fail_msg("%s: byte %u, size %u, bits %u:%u", members[i].path, m.off, m.size,
				 m.bit_off, m.bit_count);
	}
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
		if (t.member(t.ctx, "dw_task", missing[i], &m) != -ENOENT)
			fail_msg("%s was found", missing[i]);
	assert_int_equal(t.size(t.ctx, "dw_task", &size), 0);
	assert_int_equal(size, sizeof(struct dw_task));
	assert_int_equal(t.size(t.ctx, "dw_int", &size), -ENOENT);
	assert_int_equal(t.member(t.ctx, "dw_none", "x", &m), -ENOENT);
	assert_int_equal(t.enumerator(t.ctx, "DW_TEST_MINUS", &v), 0);
	assert_int_equal(v, -7);
	assert_int_equal(t.enumerator(t.ctx, "DW_TEST_HIGH", &v), 0);
	assert_int_equal(v, 0x80000000);
	assert_int_equal(t.enumerator(t.ctx, "DW_TEST_NONE", &v), -ENOENT);
	types_dwarf_destroy(d);
	file_map_close(&map);
}

static void refusals(void **state)
{
	const struct tiny_elf shape = { .id = 1 }, with_section = { .id = 1, .orc = true };
	struct types_dwarf *d = NULL;
	uint8_t elf[TINY_SIZE];
	struct err e = { 0 };
	char *name;

	(void)state;
	tiny_build(&shape, elf);
	assert_int_equal(types_dwarf_open(&d, elf, sizeof(elf), "tiny", &e), -ENOENT);
	assert_non_null(strstr(e.text, "no debug information"));
	err_clear(&e);
	assert_int_equal(types_dwarf_open(&d, elf, 40, "cut", &e), -EINVAL);
	assert_true(e.text[0]);
	/* A section by that name with bytes that are no DWARF. */
	tiny_build(&with_section, elf);
	name = memmem(elf, sizeof(elf), ".orc_unwind", 11);
	assert_non_null(name);
	memcpy(name, ".debug_info", 11);
	err_clear(&e);
	if (types_dwarf_open(&d, elf, sizeof(elf), "tiny", &e) == 0) {
		struct types t = types_dwarf_types(d);
		struct type_member m;

		assert_true(t.member(t.ctx, "task_struct", "comm", &m) < 0);
	} else {
		assert_true(e.text[0]);
	}
	types_dwarf_destroy(d);
	types_dwarf_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_types),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
