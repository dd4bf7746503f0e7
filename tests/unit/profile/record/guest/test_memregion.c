/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/memregion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define TEXT UINT64_C(0xffffffff9a000000) /* moved by KASLR */
#define ETEXT (TEXT + 0x800000)
#define END (TEXT + 0x1800000)
#define DIRECT UINT64_C(0xffff9a4b40000000)
#define VMALLOC UINT64_C(0xffffb0c100000000)
#define VMEMMAP UINT64_C(0xffffe1a040000000)
#define GS UINT64_C(0xffff9a4b7e600000)
#define RSP (VMALLOC + 0x13e58)
#define TASK_STACK (VMALLOC + 0x10000)

static uint64_t borders[3]; /* at TEXT + 0x1000000 */

static size_t read_borders(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	if (space != MEMORY_KERNEL || va - (TEXT + 0x1000000) > sizeof(borders) - len)
		return 0;
	memcpy(dst, (const uint8_t *)borders + (va - (TEXT + 0x1000000)), len);
	return len;
}

static const struct memory memory = { .read = read_borders };
static struct symtab *symbols;

static void symbol(const char *name, uint64_t va)
{
	assert_int_equal(symtab_add(symbols, va, 0, 'D', name), 0);
}

static int setup(void **state)
{
	(void)state;
	symbols = symtab_create();
	symbol("_etext", ETEXT);
	symbol("page_offset_base", TEXT + 0x1000000);
	symbol("vmalloc_base", TEXT + 0x1000008);
	symbol("vmemmap_base", TEXT + 0x1000010);
	symbol("__per_cpu_offset", TEXT + 0x1000100);
	symbol("__per_cpu_start", 0);
	symbol("__per_cpu_end", 0x2f000);
	borders[0] = DIRECT;
	borders[1] = VMALLOC;
	borders[2] = VMEMMAP;
	return symtab_freeze(symbols, NULL);
}

static int teardown(void **state)
{
	(void)state;
	symtab_destroy(symbols);
	return 0;
}

static struct sample in_kernel(void)
{
	struct sample s = { .regs = { .gs_base = GS },
			    .task = { .state = SAMPLE_TASK_FOUND, .stack = TASK_STACK } };

	s.regs.gpr[GPR_RSP] = RSP;
	return s;
}

static void kernel(void **state)
{
	static const struct {
		uint64_t va;
		uint8_t region;
	} rows[] = {
		{ TEXT, MEM_KERNEL_TEXT },
		{ ETEXT - 1, MEM_KERNEL_TEXT },
		{ ETEXT, MEM_KERNEL_DATA },
		{ END - 1, MEM_KERNEL_DATA },
		{ UINT64_C(0xffffffffc0123000), MEM_MODULE },
		{ UINT64_C(0xffffffffff5fb000), MEM_FIXMAP },
		{ RSP, MEM_KERNEL_STACK },
		{ TASK_STACK, MEM_KERNEL_STACK },
		{ TASK_STACK + 16384, MEM_VMALLOC },
		{ GS, MEM_PERCPU },
		{ GS + 0x2efff, MEM_PERCPU },
		{ GS + 0x2f000, MEM_DIRECT_MAP },
		{ DIRECT, MEM_DIRECT_MAP },
		{ DIRECT - 1, MEM_KERNEL_OTHER },
		{ VMALLOC, MEM_VMALLOC },
		{ VMEMMAP + 64, MEM_VMEMMAP },
		{ UINT64_C(0xfffffe0000001000), MEM_ENTRY_AREA },
	};
	struct sample s = in_kernel();
	struct mem_layout l;

	(void)state;
	memregion_layout_init(&l, MEM_LAYOUT_LINUX, symbols, TEXT, END);
	assert_int_equal(memregion_of(&l, &s, NULL, NULL, DIRECT), MEM_KERNEL_OTHER);
	memregion_layout_read(&l, &memory, 4);
	assert_true(l.borders_known);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t got = memregion_of(&l, &s, NULL, NULL, rows[i].va);

		if (got != rows[i].region)
			fail_msg("%#llx: %s, not %s", (unsigned long long)rows[i].va,
				 memref_region_name(got), memref_region_name(rows[i].region));
	}
	l.stack_size = 32768; /* KASAN */
	assert_int_equal(memregion_of(&l, &s, NULL, NULL, TASK_STACK + 16384), MEM_KERNEL_STACK);
	l.stack_size = 16384;
	/* Through GS it is a per-CPU variable, wherever the dynamic ones lie. */
	assert_int_equal(memregion_of(&l, &s, NULL, &(struct memop){ .segment = MEMOP_GS },
				      GS + 0x40000),
			 MEM_PERCPU);
	/* GS is still the program's. */
	s.regs.gs_base = 0x7f0000000000;
	assert_int_equal(memregion_of(&l, &s, NULL, NULL, GS), MEM_DIRECT_MAP);
}

static void borders_are_checked(void **state)
{
	struct mem_layout l;

	(void)state;
	/* Not set yet, and nonsense. */
	borders[0] = 0;
	memregion_layout_init(&l, MEM_LAYOUT_LINUX, symbols, TEXT, END);
	memregion_layout_read(&l, &memory, 4);
	assert_false(l.borders_known);
	borders[0] = VMEMMAP;
	memregion_layout_read(&l, &memory, 4);
	assert_false(l.borders_known);
	borders[0] = DIRECT;
	memregion_layout_read(&l, &memory, 4);
	assert_true(l.borders_known);

	/* A kernel that does not move its areas. */
	memregion_layout_init(&l, MEM_LAYOUT_LINUX, NULL, TEXT, END);
	memregion_layout_read(&l, &memory, 4);
	assert_int_equal(l.page_offset, UINT64_C(0xffff888000000000));
	memregion_layout_init(&l, MEM_LAYOUT_LINUX, NULL, TEXT, END);
	memregion_layout_read(&l, &memory, 5);
	assert_int_equal(l.page_offset, UINT64_C(0xff11000000000000));

	/* Not Linux: only image and stacks are known. */
	memregion_layout_init(&l, MEM_LAYOUT_UNKNOWN, NULL, TEXT, END);
	memregion_layout_read(&l, &memory, 4);
	assert_false(l.borders_known);
	assert_int_equal(memregion_of(&l, &(struct sample){ 0 }, NULL, NULL, DIRECT),
			 MEM_KERNEL_OTHER);
}

static void program(void **state)
{
	struct linux_vma v[] = {
		{ .start = 0x400000,
		  .end = 0x401000,
		  .file = 1,
		  .flags = LINUX_VM_READ | LINUX_VM_EXEC },
		{ .start = 0x401000, .end = 0x402000, .file = 1, .flags = LINUX_VM_READ },
		{ .start = 0x500000, .end = 0x600000, .flags = LINUX_VM_READ | LINUX_VM_WRITE },
		{ .start = 0x7f0000000000, .end = 0x7f0000100000, .flags = LINUX_VM_READ },
		{ .start = 0x7ffc00000000, .end = 0x7ffc00100000, .flags = LINUX_VM_READ },
	};
	const struct linux_vmas vmas = { .v = v, .n = 5, .cap = 5 };
	const struct mem_process p = { .vmas = &vmas, .brk_start = 0x500000, .brk_end = 0x600000 };
	struct sample s = { 0 };
	struct mem_layout l;

	(void)state;
	memregion_layout_init(&l, MEM_LAYOUT_LINUX, symbols, TEXT, END);
	s.regs.gpr[GPR_RSP] = 0x7ffc000ff000;
	assert_int_equal(memregion_of(&l, &s, &p, NULL, 0x400010), MEM_USER_TEXT);
	assert_int_equal(memregion_of(&l, &s, &p, NULL, 0x401010), MEM_USER_FILE);
	assert_int_equal(memregion_of(&l, &s, &p, NULL, 0x500010), MEM_USER_HEAP);
	assert_int_equal(memregion_of(&l, &s, &p, NULL, 0x7f0000000010), MEM_USER_ANON);
	assert_int_equal(memregion_of(&l, &s, &p, NULL, 0x7ffc00000010), MEM_USER_STACK);
	assert_int_equal(memregion_of(&l, &s, &p, NULL, 0x900000), MEM_USER_OTHER);
	/* Nothing known of the process: near rsp. */
	assert_int_equal(memregion_of(&l, &s, NULL, NULL, 0x7ffc000ff000 - 128), MEM_USER_STACK);
	assert_int_equal(memregion_of(&l, &s, NULL, NULL, 0x7ffc000ff000 - 129), MEM_USER_OTHER);
	assert_int_equal(memregion_of(&l, &s, NULL, NULL, 0x7ffc000ff000 + 65535), MEM_USER_STACK);
	assert_int_equal(memregion_of(&l, &s, NULL, NULL, 0x7ffc000ff000 + 65536), MEM_USER_OTHER);
	l.user_text = 0x400000;
	l.user_end = 0x401000;
	assert_int_equal(memregion_of(&l, &s, NULL, NULL, 0x400fff), MEM_USER_TEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(borders_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(program, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
