/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code that a made-up kernel has made: its lists, and lists that lie. */
#include "symbolizer/linux/dyncode.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0xffff888000100000ull
#define KERNEL 0xffffffff81000000ull
#define MADE 0xffffffffc0000000ull
#define CALLER (KERNEL + 0x1000)
#define REGS_CALLER (KERNEL + 0x1200)
#define SAVE_REGS 4

/* Heads of the lists, and what is in them. */
#define BPF BASE
#define FTRACE (BASE + 0x40)
#define SLOTS (BASE + 0x80)
#define OPT_SLOTS (BASE + 0xc0)
#define KSYM(i) (BASE + 0x1000 + 0x400 * (uint64_t)(i))
#define OPS(i) (BASE + 0x2000 + 0x200 * (uint64_t)(i))
#define PAGE (BASE + 0x3000)

enum { K_START = 0, K_END = 8, K_NAME = 16, K_NAME_SIZE = 512, K_LNODE = 528 };
enum { O_FLAGS = 8, O_LIST = 64, O_TRAMPOLINE = 96, O_SIZE = 104 };
enum { C_PAGES = 48, P_LIST = 0, P_INSNS = 16 };

static const struct {
	const char *structure, *path;
	uint32_t off, size;
} members[] = {
	{ "bpf_ksym", "start", K_START, 8 },
	{ "bpf_ksym", "end", K_END, 8 },
	{ "bpf_ksym", "name", K_NAME, K_NAME_SIZE },
	{ "bpf_ksym", "lnode", K_LNODE, 16 },
	{ "ftrace_ops", "flags", O_FLAGS, 8 },
	{ "ftrace_ops", "list", O_LIST, 16 },
	{ "ftrace_ops", "trampoline", O_TRAMPOLINE, 8 },
	{ "ftrace_ops", "trampoline_size", O_SIZE, 8 },
	{ "kprobe_insn_cache", "pages", C_PAGES, 16 },
	{ "kprobe_insn_page", "list", P_LIST, 16 },
	{ "kprobe_insn_page", "insns", P_INSNS, 8 },
};

static uint8_t bytes[0x4000];
static const char *lacking; /* a structure that the types do not know */
static struct linux_dyncode_layout l;
static struct linux_dyncode_list list;
static struct symtab *symbols;

static size_t read_bytes(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	if (space != MEMORY_KERNEL || va < BASE || va - BASE >= sizeof(bytes))
		return 0;
	if (len > sizeof(bytes) - (size_t)(va - BASE))
		len = sizeof(bytes) - (size_t)(va - BASE);
	memcpy(dst, bytes + (va - BASE), len);
	return len;
}

static const struct memory mem = { read_bytes, NULL };

static int find_member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	(void)ctx;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!strcmp(members[i].structure, structure) && !strcmp(members[i].path, path) &&
		    (!lacking || strcmp(lacking, structure) != 0)) {
			*out = (struct type_member){ .off = members[i].off,
						     .size = members[i].size };
			return 0;
		}
	return -ENOENT;
}

static int find_size(void *ctx, const char *structure, uint64_t *out)
{
	(void)ctx;
	(void)structure;
	*out = 0;
	return -ENOENT;
}

static int find_enumerator(void *ctx, const char *name, int64_t *out)
{
	(void)ctx;
	*out = SAVE_REGS;
	return strcmp(name, "FTRACE_OPS_FL_SAVE_REGS") ? -ENOENT : 0;
}

static const struct types types = { find_member, find_size, find_enumerator, NULL };

static void put(uint64_t va, uint64_t v)
{
	memcpy(bytes + (va - BASE), &v, 8);
}

/* A list of n list_heads; the first is its head. */
static void link_list(const uint64_t *at, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		put(at[i], at[(i + 1) % n]);
		put(at[(i + 1) % n] + 8, at[i]);
	}
}

static void put_program(unsigned int i, uint64_t start, uint64_t end, const char *name)
{
	put(KSYM(i) + K_START, start);
	put(KSYM(i) + K_END, end);
	strcpy((char *)bytes + (KSYM(i) + K_NAME - BASE), name);
}

static void put_trampoline(unsigned int i, uint64_t flags, uint64_t start, uint64_t size)
{
	put(OPS(i) + O_FLAGS, flags);
	put(OPS(i) + O_TRAMPOLINE, start);
	put(OPS(i) + O_SIZE, size);
}

static int setup(void **state)
{
	(void)state;
	memset(bytes, 0, sizeof(bytes));
	lacking = NULL;
	symbols = symtab_create();
	symtab_add(symbols, KERNEL, 0, 'T', "_stext");
	symtab_add(symbols, CALLER, 16, 'T', "ftrace_caller");
	symtab_add(symbols, REGS_CALLER, 16, 'T', "ftrace_regs_caller");
	symtab_add(symbols, KERNEL + 0x100000, 0, 'T', "_etext");
	symtab_add(symbols, BPF, 16, 'd', "bpf_kallsyms");
	symtab_add(symbols, FTRACE, 16, 'd', "ftrace_ops_trampoline_list");
	symtab_add(symbols, SLOTS, 64, 'D', "kprobe_insn_slots");
	symtab_add(symbols, OPT_SLOTS, 64, 'D', "kprobe_optinsn_slots");
	put_program(0, MADE + 0x5000, MADE + 0x5200, "bpf_prog_0123456789abcdef_count_up");
	put_program(1, MADE + 0x1000, MADE + 0x1040, "bpf_trampoline_6442");
	put_trampoline(0, 1, MADE + 0x2000, 0x80);
	put_trampoline(1, 1 | SAVE_REGS, MADE + 0x3000, 0x180);
	put(PAGE + P_INSNS, MADE + 0x8000);
	link_list((uint64_t[]){ BPF, KSYM(0) + K_LNODE, KSYM(1) + K_LNODE }, 3);
	link_list((uint64_t[]){ FTRACE, OPS(0) + O_LIST, OPS(1) + O_LIST }, 3);
	link_list((uint64_t[]){ SLOTS + C_PAGES, PAGE + P_LIST }, 2);
	link_list((uint64_t[]){ OPT_SLOTS + C_PAGES }, 1);
	return symtab_freeze(symbols, NULL) || linux_dyncode_layout(&l, &types, symbols, NULL);
}

static int teardown(void **state)
{
	(void)state;
	linux_dyncode_list_deinit(&list);
	symtab_destroy(symbols);
	return 0;
}

static void expect(size_t n, size_t skipped, size_t cut)
{
	linux_dyncode_list_deinit(&list);
	assert_int_equal(linux_dyncode_list(&l, &mem, &list, NULL), 0);
	assert_int_equal(list.n, n);
	assert_int_equal(list.skipped, skipped);
	assert_int_equal(list.cut, cut);
}

static void listed(void **state)
{
	static const struct {
		const char *name;
		uint64_t start, end, copy_of;
		enum unwind_form form;
	} want[] = {
		{ "bpf_trampoline_6442", 0x1000, 0x1040, 0, UNWIND_FORM_FRAMES },
		{ "ftrace_trampoline", 0x2000, 0x2080, CALLER, UNWIND_FORM_COPY },
		{ "ftrace_trampoline", 0x3000, 0x3180, REGS_CALLER, UNWIND_FORM_COPY },
		{ "bpf_prog_0123456789abcdef_count_up", 0x5000, 0x5200, 0, UNWIND_FORM_FRAMES },
		{ "kprobe_insn_page", 0x8000, 0x9000, 0, UNWIND_FORM_PLAIN },
	};

	(void)state;
	expect(5, 0, 0);
	for (unsigned int i = 0; i < 5; i++) {
		const struct linux_dyncode *c = &list.code[i];
		struct unwind_region r = linux_dyncode_region(c, symbols);

		assert_string_equal(c->name, want[i].name);
		assert_int_equal(r.start, MADE + want[i].start);
		assert_int_equal(r.end, MADE + want[i].end);
		assert_int_equal(r.form, want[i].form);
		assert_int_equal(r.copy_of, want[i].copy_of);
		assert_ptr_equal(r.symbols, symbols);
	}
	link_list((uint64_t[]){ SLOTS + C_PAGES }, 1);
	link_list((uint64_t[]){ OPT_SLOTS + C_PAGES, PAGE + P_LIST }, 2);
	expect(5, 0, 0);
	assert_string_equal(list.code[4].name, "kprobe_optinsn_page");
	assert_int_equal(linux_dyncode_region(&list.code[4], NULL).form, UNWIND_FORM_REGS);
}

/*
 * Lists that a kernel lacks are omitted; for a kernel that has none of them the reason is reported.
 */
static void lists_that_lack(void **state)
{
	struct symtab *none = symtab_create();
	struct err e = { 0 };

	(void)state;
	lacking = "bpf_ksym";
	assert_int_equal(linux_dyncode_layout(&l, &types, symbols, &e), 0);
	expect(3, 0, 0);
	lacking = "ftrace_ops";
	assert_int_equal(linux_dyncode_layout(&l, &types, symbols, &e), 0);
	expect(3, 0, 0);
	lacking = NULL;
	assert_int_equal(symtab_freeze(none, NULL), 0);
	assert_int_equal(linux_dyncode_layout(&l, &types, none, &e), -ENOENT);
	assert_non_null(strstr(e.text, "name no list"));
	err_clear(&e);
	assert_int_equal(linux_dyncode_layout(&l, NULL, symbols, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no type information"));
	symtab_destroy(none);
}

static void lies(void **state)
{
	(void)state;
	/* over the kernel's own text, of no length, too long, outside of the kernel's half */
	put(KSYM(0) + K_START, KERNEL + 0x5000);
	put(KSYM(0) + K_END, KERNEL + 0x5100);
	expect(4, 1, 0);
	put_program(0, MADE + 0x5000, MADE + 0x5000, "bpf_prog_0123456789abcdef_count_up");
	expect(4, 1, 0);
	put(KSYM(0) + K_END, MADE + 0x5001 + LINUX_DYNCODE_MAX_TEXT);
	expect(4, 1, 0);
	put(KSYM(0) + K_START, 0x5000);
	put(KSYM(0) + K_END, 0x6000);
	expect(4, 1, 0);
	put_trampoline(0, 1, UINT64_MAX - 8, 0x80);
	expect(3, 2, 0);
	put_trampoline(0, 1, MADE + 0x2000, 0x80);
	/* names */
	put_program(0, MADE + 0x5000, MADE + 0x5200, "");
	expect(4, 1, 0);
	put_program(0, MADE + 0x5000, MADE + 0x5200, "a\nname");
	expect(4, 1, 0);
	memset(bytes + (KSYM(0) + K_NAME - BASE), 'x', K_NAME_SIZE);
	expect(5, 0, 0);
	assert_int_equal(strlen(list.code[3].name), LINUX_DYNCODE_NAME - 1);
	/* two at one place */
	put_trampoline(0, 1, MADE + 0x1020, 0x80);
	expect(4, 1, 0);
}

static void broken_lists(void **state)
{
	uint64_t hash;

	(void)state;
	/* a way back to the middle, a way out of memory, a list that is not there yet */
	put(KSYM(1) + K_LNODE, KSYM(0) + K_LNODE);
	expect(5, 0, 1);
	assert_int_equal(linux_dyncode_hash(&l, &mem, &hash), -ENOENT);
	put(KSYM(1) + K_LNODE, BASE - 4096);
	expect(5, 0, 1);
	put(BPF, 0);
	expect(3, 0, 1);
	link_list((uint64_t[]){ BPF }, 1);
	expect(3, 0, 0);
}

static void hashes(void **state)
{
	uint64_t first, again;

	(void)state;
	assert_int_equal(linux_dyncode_hash(&l, &mem, &first), 0);
	assert_int_equal(linux_dyncode_hash(&l, &mem, &again), 0);
	assert_true(first == again);
	/* another program in the same place */
	put_program(0, MADE + 0x5000, MADE + 0x5200, "bpf_prog_0123456789abcdef_count_dn");
	assert_int_equal(linux_dyncode_hash(&l, &mem, &again), 0);
	assert_true(first != again);
	put_program(0, MADE + 0x5000, MADE + 0x5200, "bpf_prog_0123456789abcdef_count_up");
	link_list((uint64_t[]){ FTRACE, OPS(1) + O_LIST }, 2);
	assert_int_equal(linux_dyncode_hash(&l, &mem, &again), 0);
	assert_true(first != again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(listed, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_that_lack, setup, teardown),
		cmocka_unit_test_setup_teardown(lies, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(hashes, setup, teardown),
	};

	return cmocka_run_group_tests_name("linux_dyncode", tests, NULL, NULL);
}
