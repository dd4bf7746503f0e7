/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Variables that a made-up image does not name, by their content and by code. */
#include "symbolizer/kernel/variables.h"

#include "base/cleanup.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define TEXT 0xffffffff81000000ull
#define TEXT_BYTES 0x4000u
#define DATA 0xffffffff82000000ull
#define DATA_BYTES 0x4000u
#define PERCPU_BYTES 0x1000u
#define INIT_TASK (DATA + 0x1000)
#define REAL_PARENT 0x8c8u
#define OFFSETS (DATA + 0x3000)
#define PAGES (DATA + 0x3100)
#define VMEMMAP (DATA + 0x3108)
#define MODULES (DATA + 0x3200)
#define OTHER_LIST (DATA + 0x3300)
/* Where an SMP kernel before 6.15 and others have the current task. */
#define PERCPU_CURRENT 0x40u
#define CURRENT (DATA + 0x3400)

static uint8_t elf[TEXT_BYTES + DATA_BYTES + PERCPU_BYTES];
static struct kimage k;
static struct symtab *symbols;
static uint32_t at; /* where the next instruction goes */

static void put8(uint64_t va, uint64_t v)
{
	memcpy(elf + TEXT_BYTES + (va - DATA), &v, 8);
}

static void put_instruction(const uint8_t *head, size_t n, uint32_t disp)
{
	memcpy(elf + at, head, n);
	memcpy(elf + at + n, &disp, 4);
	at += (uint32_t)n + 4;
}

/* mov VA(%rip),%rax; percpu: %gs:VA(%rip) */
static void load_relative(uint64_t va, bool percpu)
{
	static const uint8_t mov[] = { 0x65, 0x48, 0x8b, 0x05 };
	unsigned int skip = percpu ? 0 : 1;

	put_instruction(mov + skip, 4 - skip, (uint32_t)(va - (TEXT + at + (4 - skip) + 4)));
}

/* mov %gs:VA,%rbx */
static void load_percpu(uint32_t va)
{
	put_instruction((const uint8_t[]){ 0x65, 0x48, 0x8b, 0x1c, 0x25 }, 5, va);
}

/* mov VA(,%rax,8),%rcx */
static void load_array(uint64_t va)
{
	put_instruction((const uint8_t[]){ 0x48, 0x8b, 0x0c, 0xc5 }, 4, (uint32_t)va);
}

static void function(const char *name, uint64_t list)
{
	uint32_t start = at;

	/* mov $LIST,%rdi */
	put_instruction((const uint8_t[]){ 0x48, 0xc7, 0xc7 }, 3, (uint32_t)list);
	put_instruction((const uint8_t[]){ 0x48, 0xc7, 0xc7 }, 3, (uint32_t)INIT_TASK);
	/* mov $0,%rdi: zeroes, which are where per-CPU variables begin, too. */
	put_instruction((const uint8_t[]){ 0x48, 0xc7, 0xc7 }, 3, 0);
	assert_int_equal(symtab_add(symbols, TEXT + start, at - start, 't', name), 0);
}

static void put_list(uint64_t va)
{
	put8(va, va);
	put8(va + 8, va);
}

static void put_first_task(uint64_t task)
{
	uint64_t rp = task + REAL_PARENT;

	put8(rp, task);
	put8(rp + 8, task);
	put_list(rp + 16);
	put_list(rp + 32);
	put8(rp + 48, task);
}

static int start(void **state)
{
	(void)state;
	memset(elf, 0x90, TEXT_BYTES);
	memset(elf + TEXT_BYTES, 0, sizeof(elf) - TEXT_BYTES);
	k = (struct kimage){
		.elf = elf,
		.elf_len = sizeof(elf),
		.nseg = 3,
		.seg = { { .va = TEXT,
			   .file_len = TEXT_BYTES,
			   .mem_len = TEXT_BYTES,
			   .flags = PF_R | PF_X },
			 { .va = DATA,
			   .file_off = TEXT_BYTES,
			   .file_len = DATA_BYTES,
			   .mem_len = DATA_BYTES,
			   .flags = PF_R | PF_W },
			 { .va = 0,
			   .file_off = TEXT_BYTES + DATA_BYTES,
			   .file_len = PERCPU_BYTES,
			   .mem_len = PERCPU_BYTES,
			   .flags = PF_R | PF_W } },
	};
	at = 0x100;
	symbols = symtab_create();
	put_first_task(INIT_TASK);
	put8(PAGES, 0xffff888000000000);
	put8(VMEMMAP, 0xffffea0000000000);
	put_list(MODULES);
	put_list(OTHER_LIST);
	function("print_modules", MODULES);
	function("find_module_all", MODULES);
	function("module_get_kallsym", OTHER_LIST);
	for (unsigned int i = 0; i < 20; i++) {
		load_relative(PAGES, false);
		load_relative(VMEMMAP, false);
		load_array(OFFSETS);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	symtab_destroy(symbols);
	return 0;
}

static void add(void)
{
	struct err e = { 0 };

	assert_int_equal(symtab_freeze(symbols, NULL), 0);
	assert_int_equal(variables_add(&k, &symbols, &e), 0);
}

static void expect(const char *name, bool there, uint64_t va)
{
	const struct symbol *s = symtab_find(symbols, name);

	if (!s != !there || (s && s->addr != va))
		fail_msg("%s: %s at %llx", name, s ? "is" : "not",
			 s ? (unsigned long long)s->addr : 0);
}

static void expect_common(void)
{
	expect("init_task", true, INIT_TASK);
	expect("page_offset_base", true, PAGES);
	expect("vmemmap_base", true, VMEMMAP);
	expect("modules", true, MODULES);
	expect("print_modules", true, TEXT + 0x100);
}

/* Before 6.15: per-CPU variables are linked from 0 on. */
static void per_cpu(void **state)
{
	uint64_t task = INIT_TASK;

	(void)state;
	memcpy(elf + TEXT_BYTES + DATA_BYTES + PERCPU_CURRENT, &task, 8);
	for (unsigned int i = 0; i < 20; i++)
		load_percpu(PERCPU_CURRENT);
	for (unsigned int i = 0; i < 40; i++)
		load_percpu(0x28); /* the stack protector's, loaded more often */
	add();
	expect_common();
	expect("current_task", true, PERCPU_CURRENT);
	expect("__per_cpu_offset", true, OFFSETS);
}

/* Since 6.15: among the kernel's own addresses. The byte before a load may look like its prefix. */
static void per_cpu_in_kernel(void **state)
{
	(void)state;
	put8(CURRENT, INIT_TASK);
	for (unsigned int i = 0; i < 20; i++)
		load_relative(CURRENT, true);
	elf[at++] = 0x65;
	load_relative(PAGES, false);
	add();
	expect_common();
	expect("current_task", true, CURRENT);
	expect("__per_cpu_offset", true, OFFSETS);
}

/* For one CPU: then the array that is used most is another one. */
static void one_cpu(void **state)
{
	(void)state;
	put8(CURRENT, INIT_TASK);
	for (unsigned int i = 0; i < 20; i++)
		load_relative(CURRENT, false);
	add();
	expect_common();
	expect("current_task", true, CURRENT);
	expect("__per_cpu_offset", false, 0);
}

/* Two that may be it, or an array that may be another: none is named. */
static void not_certain(void **state)
{
	(void)state;
	put8(CURRENT, INIT_TASK);
	put8(CURRENT + 8, INIT_TASK);
	put8(PAGES + 0x40, 0xffff888000000000);
	for (unsigned int i = 0; i < 20; i++) {
		load_relative(CURRENT, true);
		load_relative(CURRENT + 8, true);
		load_relative(PAGES + 0x40, false);
	}
	function("module_kallsyms_on_each_symbol", OTHER_LIST);
	add();
	expect("init_task", true, INIT_TASK);
	expect("current_task", false, 0);
	expect("__per_cpu_offset", false, 0);
	expect("page_offset_base", false, 0);
	expect("vmemmap_base", false, 0);
	expect("modules", false, 0);
}

static void no_array(void **state)
{
	(void)state;
	put8(CURRENT, INIT_TASK);
	for (unsigned int i = 0; i < 20; i++) {
		load_relative(CURRENT, true);
		load_array(OFFSETS + 0x100);
	}
	add();
	expect("init_task", true, INIT_TASK);
	expect("current_task", false, 0);
}

/* Two first tasks; one that is shuffled (CONFIG_RANDSTRUCT). */
static void no_first_task(void **state)
{
	(void)state;
	put_first_task(DATA);
	put8(CURRENT, INIT_TASK);
	for (unsigned int i = 0; i < 20; i++)
		load_relative(CURRENT, true);
	add();
	expect("init_task", false, 0);
	expect("current_task", false, 0);
	expect("modules", true, MODULES);
	symtab_destroy(symbols);
	start(NULL);
	put8(INIT_TASK + REAL_PARENT + 48, 0);
	add();
	expect("init_task", false, 0);
}

/* Variables that the image names stay unchanged. */
static void named(void **state)
{
	(void)state;
	assert_int_equal(symtab_add(symbols, DATA + 8, 8, 'D', "modules"), 0);
	add();
	expect("modules", true, DATA + 8);
	expect("init_task", true, INIT_TASK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(per_cpu, start, end),
		cmocka_unit_test_setup_teardown(per_cpu_in_kernel, start, end),
		cmocka_unit_test_setup_teardown(one_cpu, start, end),
		cmocka_unit_test_setup_teardown(not_certain, start, end),
		cmocka_unit_test_setup_teardown(no_array, start, end),
		cmocka_unit_test_setup_teardown(no_first_task, start, end),
		cmocka_unit_test_setup_teardown(named, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
