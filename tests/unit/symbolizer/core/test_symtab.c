/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/symtab.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
	uint64_t addr, size;
	char type;
	const char *name;
};

static struct symtab *make(const struct row *r, size_t n)
{
	struct symtab *t = symtab_create();
	struct err e = { 0 };

	assert_non_null(t);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(symtab_add(t, r[i].addr, r[i].size, r[i].type, r[i].name), 0);
	assert_int_equal(symtab_freeze(t, &e), 0);
	return t;
}

#define MAKE(...)                                 \
	make((const struct row[]){ __VA_ARGS__ }, \
	     sizeof((const struct row[]){ __VA_ARGS__ }) / sizeof(struct row))

static const char *name_at(const struct symtab *t, uint64_t addr)
{
	uint64_t off = 0;
	const struct symbol *s = symtab_lookup(t, addr, &off);

	if (s)
		assert_int_equal(s->addr + off, addr);
	return s ? s->name : "-";
}

static void empty(void **state)
{
	struct symtab *t = make(NULL, 0);

	(void)state;
	assert_null(symtab_lookup(t, 0, NULL));
	assert_null(symtab_lookup(t, UINT64_MAX, NULL));
	assert_null(symtab_find(t, "x"));
	assert_int_equal(symtab_count(t), 0);
	assert_null(symtab_at(t, 0));
	symtab_destroy(t);
	symtab_destroy(NULL);
}

static void edges(void **state)
{
	struct symtab *t = MAKE({ 0x1000, 0x10, 'T', "a" }, { 0x1010, 0x20, 't', "b" },
				{ 0x1040, 0x10, 'T', "c" }, { 0x1050, 0x10, 'D', "data" });

	(void)state;
	assert_string_equal(name_at(t, 0xfff), "-");
	assert_string_equal(name_at(t, 0x1000), "a");
	assert_string_equal(name_at(t, 0x100f), "a");
	assert_string_equal(name_at(t, 0x1010), "b");
	assert_string_equal(name_at(t, 0x102f), "b");
	assert_string_equal(name_at(t, 0x1030), "-");
	assert_string_equal(name_at(t, 0x104f), "c");
	assert_string_equal(name_at(t, 0x1050), "-");
	assert_int_equal(symtab_find(t, "data")->addr, 0x1050);
	assert_int_equal(symtab_count(t), 4);
	symtab_destroy(t);
}

/* Each pair's first is preferred, whatever the order of input. */
static void aliases(void **state)
{
	static const struct row pair[][2] = {
		{ { 0x1000, 8, 't', "sized_local" }, { 0x1000, 0, 'T', "g" } },
		{ { 0x1000, 0, 'T', "global_long" }, { 0x1000, 0, 'W', "weak" } },
		{ { 0x1000, 0, 't', "local_long" }, { 0x1000, 0, 'W', "weak" } },
		{ { 0x1000, 0, 'W', "open" }, { 0x1000, 0, 't', "__GI_open" } },
		{ { 0x1000, 0, 'T', "longer_global" }, { 0x1000, 0, 't', "local" } },
		{ { 0x1000, 0, 't', "two_leading_lines" }, { 0x1000, 0, 'T', "__x" } },
		{ { 0x1000, 0, 'T', "_one" }, { 0x1000, 0, 'T', "__t" } },
		{ { 0x1000, 0, 'T', "io_schedule_timeout" },
		  { 0x1000, 0, 'T', "__sched_text_start" } },
		{ { 0x1000, 0, 't', "common_interrupt_return" },
		  { 0x1000, 0, 'T', "__irqentry_text_end" } },
		{ { 0x1000, 0, 't', "__x86_indirect_thunk_rax" },
		  { 0x1000, 0, 'T', "__softirqentry_text_end" } },
		{ { 0x1000, 0, 'W', "weak_function" }, { 0x1000, 0, 'T', "__start_x" } },
		{ { 0x1000, 0, 'T', "startup_64" }, { 0x1000, 0, 'T', "_text" } },
		{ { 0x1000, 0, 'T', "__stopped_late" }, { 0x1000, 0, 'T', "__stop_x" } },
		{ { 0x1000, 0, 'T', "ab" }, { 0x1000, 0, 'T', "abc" } },
		{ { 0x1000, 0, 'T', "aa" }, { 0x1000, 0, 'T', "ab" } },
		{ { 0x1000, 0, 't', "code_symbol" }, { 0x1000, 0, 'D', "d" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++)
		for (int turn = 0; turn < 2; turn++) {
			struct symtab *t =
				MAKE(pair[i][turn], pair[i][!turn], { 0x1008, 1, 'T', "end" });

			const struct symbol *s = symtab_lookup(t, 0x1004, NULL);

			assert_string_equal(s->name, pair[i][0].name);
			assert_int_equal(symtab_count(t), 3);
			/* The other name is its alias, if that is a function's. */
			if (pair[i][1].type == 'D')
				assert_null(s->alias);
			else
				assert_string_equal(s->alias->name, pair[i][1].name);
			assert_true(!s->alias || !s->alias->alias);
			symtab_destroy(t);
		}
}

static void missing_sizes(void **state)
{
	struct symtab *t = MAKE({ 0x1000, 0, 'T', "to_next" }, { 0x1100, 0, 'A', "absolute" },
				{ 0x1200, 0, 'R', "data" }, { 0x5010, 0, 't', "before_gap" },
				{ 0x5010 + SYMTAB_MAX_GAP + 1, 0, 'T', "last" });

	(void)state;
	assert_string_equal(name_at(t, 0x11ff), "to_next");
	assert_string_equal(name_at(t, 0x1200), "-");
	assert_string_equal(name_at(t, 0x5fff), "before_gap");
	assert_string_equal(name_at(t, 0x6000), "-");
	assert_string_equal(name_at(t, 0x5010 + SYMTAB_MAX_GAP + 1), "last");
	assert_string_equal(name_at(t, 0x5010 + SYMTAB_MAX_GAP + 0x1000), "-");
	symtab_destroy(t);
	t = MAKE({ UINT64_MAX - 10, 0, 'T', "top" }, { UINT64_MAX - 4, UINT64_MAX, 'T', "huge" });
	assert_string_equal(name_at(t, UINT64_MAX - 6), "top");
	assert_string_equal(name_at(t, UINT64_MAX - 2), "huge");
	symtab_destroy(t);
}

static void overlaps(void **state)
{
	struct symtab *t = MAKE({ 0x1000, 0x100, 'T', "outer" }, { 0x1040, 0x10, 'T', "inner" },
				{ 0x1060, 0, 'T', "label" }, { 0x10f0, 0x40, 't', "crossing" });

	(void)state;
	assert_string_equal(name_at(t, 0x103f), "outer");
	assert_string_equal(name_at(t, 0x1040), "inner");
	assert_string_equal(name_at(t, 0x1050), "outer");
	assert_string_equal(name_at(t, 0x1060), "outer");
	assert_string_equal(name_at(t, 0x10ff), "crossing");
	assert_string_equal(name_at(t, 0x112f), "crossing");
	assert_string_equal(name_at(t, 0x1130), "-");
	symtab_destroy(t);
}

static void duplicates_and_limits(void **state)
{
	struct symtab *t = symtab_create();
	char name[SYMTAB_MAX_NAME + 2];
	struct err e = { 0 };

	(void)state;
	memset(name, 'x', sizeof(name));
	name[SYMTAB_MAX_NAME + 1] = 0;
	assert_int_equal(symtab_add(t, 20, 1, 'T', name), 0);
	assert_int_equal(symtab_add(t, 1, 1, 'T', ""), -EINVAL);
	name[SYMTAB_MAX_NAME] = 0;
	assert_int_equal(symtab_add(t, 1, 1, 'T', name), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(symtab_add(t, 2, 1, 'T', "same"), 0);
	assert_int_equal(symtab_add(t, 9, 1, 'T', "same"), 0);
	assert_int_equal(symtab_freeze(t, &e), 0);
	assert_int_equal(symtab_count(t), 4);
	assert_int_equal(symtab_find(t, "same")->addr, 2);
	assert_int_equal(strlen(name_at(t, 20)), SYMTAB_MAX_NAME);
	assert_string_equal(name_at(t, 20) + SYMTAB_MAX_NAME - 4, "x...");
	assert_non_null(symtab_find(t, name));
	assert_int_equal(symtab_add(t, 3, 1, 'T', "late"), -EINVAL);
	symtab_destroy(t);
}

/* A name is cut between characters. */
static void cut_between_characters(void **state)
{
	struct symtab *t = symtab_create();
	char name[2 * SYMTAB_MAX_NAME + 1];

	(void)state;
	assert_non_null(t);
	for (size_t i = 0; i + 3 < sizeof(name); i += 3)
		memcpy(name + i, "\xe2\x82\xac", 4);
	assert_int_equal(symtab_add(t, 0x10, 1, 'T', name), 0);
	assert_int_equal(symtab_freeze(t, NULL), 0);
	assert_string_equal(name_at(t, 0x10) + strlen(name_at(t, 0x10)) - 6, "\xe2\x82\xac...");
	assert_in_range(strlen(name_at(t, 0x10)), SYMTAB_MAX_NAME - 2, SYMTAB_MAX_NAME);
	symtab_destroy(t);
}

/* Random tables against a search that looks at every symbol. */
static void like_exhaustive_search(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct symtab *t = symtab_create();
		int n = (int)(rand_r(&seed) % 40) + 1;
		struct err e = { 0 };

		for (int i = 0; i < n; i++) {
			char name[16];

			snprintf(name, sizeof(name), "s%d", i);
			symtab_add(t, 0x4000 + rand_r(&seed) % 300,
				   rand_r(&seed) % 3 ? rand_r(&seed) % 60 : 0,
				   "tTWd"[rand_r(&seed) % 4], name);
		}
		assert_int_equal(symtab_freeze(t, &e), 0);
		for (uint64_t a = 0x3ff0; a < 0x5100; a++) {
			const struct symbol *want = NULL;

			for (size_t i = 0; i < symtab_count(t); i++) {
				const struct symbol *s = symtab_at(t, i);

				if (s->type != 'd' && s->addr <= a && a - s->addr < s->size &&
				    (!want || s->addr > want->addr))
					want = s;
			}
			assert_ptr_equal(symtab_lookup(t, a, NULL), want);
		}
		symtab_destroy(t);
	}
}

/* Sorted input takes a shorter way: the table must be the same. */
static void order_of_input(void **state)
{
	enum { N = 5000 };
	static unsigned int perm[N];
	struct symtab *sorted = symtab_create(), *mixed = symtab_create();
	unsigned int seed = 7;
	char name[32];

	(void)state;
	for (unsigned int i = 0; i < N; i++)
		perm[i] = i;
	for (unsigned int i = N - 1; i; i--) {
		unsigned int k = (unsigned int)rand_r(&seed) % (i + 1), tmp = perm[i];

		perm[i] = perm[k];
		perm[k] = tmp;
	}
	/* Three at each address, every seventh name a duplicate of the one before. */
	for (unsigned int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "s%u", i % 7 ? i : i / 3 * 3);
		assert_int_equal(symtab_add(sorted, 0x1000 + i / 3 * 32, 0, "tTd"[i % 3], name), 0);
		snprintf(name, sizeof(name), "s%u", perm[i] % 7 ? perm[i] : perm[i] / 3 * 3);
		assert_int_equal(symtab_add(mixed, 0x1000 + perm[i] / 3 * 32, 0, "tTd"[perm[i] % 3],
					    name),
				 0);
	}
	assert_int_equal(symtab_freeze(sorted, NULL), 0);
	assert_int_equal(symtab_freeze(mixed, NULL), 0);
	assert_int_equal(symtab_count(sorted), symtab_count(mixed));
	for (size_t i = 0; i < symtab_count(sorted); i++) {
		const struct symbol *a = symtab_at(sorted, i), *b = symtab_at(mixed, i);

		assert_string_equal(a->name, b->name);
		assert_true(a->addr == b->addr && a->type == b->type && a->size == b->size);
		assert_int_equal(symtab_find(sorted, a->name)->addr,
				 symtab_find(mixed, a->name)->addr);
		assert_string_equal(symtab_find(mixed, a->name)->name, a->name);
		assert_string_equal(name_at(sorted, a->addr + 3), name_at(mixed, a->addr + 3));
	}
	symtab_destroy(sorted);
	symtab_destroy(mixed);
}

/* -- moved ------------------------------------------------------------------------ */

#define TEXT UINT64_C(0xffffffff81000000)
#define END (TEXT + 0x8000)
#define SLIDE UINT64_C(0x1c400000)

static struct symtab *small_kernel(void)
{
	struct symtab *t = symtab_create();

	/* per-CPU as before 6.15, and as since */
	assert_int_equal(symtab_add(t, 0, 0, 'A', "fixed_percpu_data"), 0);
	assert_int_equal(symtab_add(t, 0x1fb48, 8, 'd', "hardirq_stack_ptr"), 0);
	assert_int_equal(symtab_add(t, TEXT + 0x7000, 8, 'D', "this_cpu_off"), 0);
	assert_int_equal(symtab_add(t, TEXT, 0, 'T', "_text"), 0);
	assert_int_equal(symtab_add(t, TEXT, 0x40, 'T', "startup_64"), 0);
	assert_int_equal(symtab_add(t, TEXT + 0x10, 0, 't', "label"), 0);
	assert_int_equal(symtab_add(t, TEXT + 0x100, 0, 'T', "unsized"), 0);
	assert_int_equal(symtab_add(t, TEXT + 0x180, 0, 'T', "next"), 0);
	assert_int_equal(symtab_add(t, END, 0, 'B', "_end"), 0);
	assert_int_equal(symtab_add(t, 0xffffffffff600000, 0, 'A', "vsyscall"), 0);
	assert_int_equal(symtab_freeze(t, NULL), 0);
	return t;
}

static void moved(void **state)
{
	struct symtab *t = small_kernel(), *to = NULL;
	struct err e = { 0 };
	uint64_t off;

	(void)state;
	assert_int_equal(symtab_slide(t, TEXT, END, SLIDE, &to, &e), 0);
	assert_int_equal(symtab_count(to), symtab_count(t));
	/* the same table but for the addresses: order, sizes, aliases */
	for (size_t i = 0; i < symtab_count(t); i++) {
		const struct symbol *a = symtab_at(t, i), *b = symtab_at(to, i);
		bool moves = a->addr >= TEXT && a->addr <= END;

		assert_string_equal(a->name, b->name);
		assert_ptr_not_equal(a->name, b->name);
		assert_int_equal(b->addr, a->addr + (moves ? SLIDE : 0));
		assert_int_equal(b->size, a->size);
		assert_int_equal(b->type, a->type);
	}
	symtab_destroy(t);
	assert_string_equal(symtab_lookup(to, TEXT + SLIDE + 0x20, &off)->name, "startup_64");
	assert_int_equal(off, 0x20);
	assert_string_equal(symtab_lookup(to, TEXT + SLIDE + 0x17f, NULL)->name, "unsized");
	assert_null(symtab_lookup(to, TEXT + 0x20, NULL));
	assert_int_equal(symtab_find(to, "_end")->addr, END + SLIDE);
	assert_int_equal(symtab_find(to, "this_cpu_off")->addr, TEXT + SLIDE + 0x7000);
	assert_int_equal(symtab_find(to, "hardirq_stack_ptr")->addr, 0x1fb48);
	assert_int_equal(symtab_find(to, "vsyscall")->addr, 0xffffffffff600000);
	symtab_destroy(to);
}

static void moved_by_nothing_or_too_much(void **state)
{
	struct symtab *t = small_kernel(), *to = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(symtab_slide(t, TEXT, END, 0, &to, &e), 0);
	assert_int_equal(symtab_count(to), symtab_count(t));
	assert_string_equal(symtab_lookup(to, TEXT + 0x20, NULL)->name, "startup_64");
	symtab_destroy(to);
	to = NULL;
	assert_int_equal(symtab_slide(t, TEXT, END, UINT64_MAX - END + 1, &to, &e), -EINVAL);
	assert_non_null(strstr(e.text, "cannot be moved by"));
	assert_int_equal(symtab_slide(t, END, TEXT, 0, &to, NULL), -EINVAL);
	assert_null(to);
	/* what stays, but is then among the others, would be a wrong name */
	assert_int_equal(symtab_slide(t, TEXT, TEXT + 0x100, 0x180, &to, NULL), 0);
	assert_null(symtab_find(to, "next"));
	assert_string_equal(symtab_lookup(to, TEXT + 0x190, NULL)->name, "startup_64");
	assert_int_equal(symtab_find(to, "this_cpu_off")->addr, TEXT + 0x7000);
	symtab_destroy(to);
	symtab_destroy(t);
}

/* Local functions and variables that clang's ThinLTO made global. */
static void promoted(void **state)
{
	struct symtab *t =
		MAKE({ 0x1000, 0x10, 'T', "both" }, { 0x1010, 0x10, 't', "one.llvm.1234" },
		     { 0x1020, 0x10, 't', "two.llvm.1" }, { 0x1030, 0x10, 't', "two.llvm.2" },
		     { 0x1040, 0x10, 't', "both.llvm.77" }, { 0x1050, 0x10, 't', ".llvm.1" },
		     { 0x1060, 0x10, 't', "a.llvm.12.cold" }, { 0x1070, 0x10, 't', "b.llvm." },
		     { 0x1080, 0x10, 't', "c.0ab" }, { 0x1090, 0x10, 'd', "v.llvm.0af9" });

	(void)state;
	assert_int_equal(symtab_find(t, "one")->addr, 0x1010);
	assert_int_equal(symtab_find(t, "one.llvm.1234")->addr, 0x1010);
	assert_int_equal(symtab_find(t, "one")->promoted, 3);
	assert_null(symtab_find(t, "one.llvm.12345"));
	assert_null(symtab_find(t, "on"));
	assert_null(symtab_find(t, "one."));
	assert_int_equal(symtab_find(t, "v")->addr, 0x1090);
	/* The whole name goes first; of two nobody knows which. */
	assert_int_equal(symtab_find(t, "both")->addr, 0x1000);
	assert_int_equal(symtab_find(t, "both.llvm.77")->addr, 0x1040);
	assert_null(symtab_find(t, "two"));
	assert_int_equal(symtab_find(t, "two.llvm.2")->addr, 0x1030);
	assert_null(symtab_find(t, ""));
	assert_null(symtab_find(t, "a"));
	assert_null(symtab_find(t, "b"));
	assert_null(symtab_find(t, "c"));
	for (size_t i = 5; i < 9; i++) {
		assert_int_equal(symtab_at(t, i)->promoted, 0);
		assert_ptr_equal(symtab_find(t, symtab_at(t, i)->name), symtab_at(t, i));
	}
	symtab_destroy(t);
}

static const char *behind(const struct symtab *t, const char *name)
{
	const struct symbol *s = symtab_behind_prefix(t, symtab_find(t, name));

	return s ? s->name : "-";
}

/* The bytes in front of a function that are called after it, and functions called like these. */
static void prefixes(void **state)
{
	struct symtab *t =
		MAKE({ 0x1000, 0, 't', "__cfi_kfree" }, { 0x1010, 0, 'T', "kfree" },
		     { 0x1100, 0, 't', "__cfi_one.llvm.5" }, { 0x1110, 0, 't', "one.llvm.5" },
		     { 0x1200, 0, 't', "__pfx_local" }, { 0x1210, 0, 't', "local" },
		     { 0x1210, 0, 'T', "alias" }, { 0x1300, 0, 'T', "__cfi_slowpath" },
		     { 0x1400, 0, 'T', "slowpath_diag" }, { 0x1500, 0, 't', "__cfi_data" },
		     { 0x1510, 0, 'd', "data" }, { 0x1600, 0, 't', "__cfi_sized" },
		     { 0x1610, 0x20, 't', "sized" }, { 0x1700, 8, 't', "__cfi_apart" },
		     { 0x1750, 0x20, 't', "apart" }, { 0x1880, 0x20, 't', "__cfi_inside" },
		     { 0x1890, 0, 't', "inside" }, { 0x1900, 5, 't', "__cfi_short" },
		     { 0x1910, 0x20, 't', "short" }, { 0x1a00, 5, 't', "__cfi_other" },
		     { 0x1a08, 8, 't', "another" }, { 0x1a10, 0x20, 't', "other" },
		     { 0x1800, 0, 't', "__cfi_" });

	(void)state;
	assert_string_equal(behind(t, "__cfi_kfree"), "kfree");
	assert_string_equal(behind(t, "__cfi_one.llvm.5"), "one.llvm.5");
	/* By the name that the function itself has. */
	assert_string_equal(behind(t, "__pfx_local"), "alias");
	assert_string_equal(behind(t, "__cfi_sized"), "sized");
	assert_string_equal(behind(t, "kfree"), "-");
	assert_string_equal(behind(t, "__cfi_slowpath"), "-");
	assert_string_equal(behind(t, "__cfi_data"), "-");
	assert_string_equal(behind(t, "__cfi_apart"), "-");
	assert_string_equal(behind(t, "__cfi_inside"), "-");
	assert_string_equal(behind(t, "__cfi_other"), "-");
	assert_string_equal(behind(t, "__cfi_short"), "short");
	assert_string_equal(behind(t, "__cfi_"), "-");
	symtab_destroy(t);
}

/* A file lasts until the next one is set; tables that are made of this one have it. */
static void files(void **state)
{
	struct symtab *t = symtab_create(), *to;
	char name[SYMTAB_MAX_NAME + 2];

	(void)state;
	assert_non_null(t);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	assert_int_equal(symtab_set_file(t, name), -EINVAL);
	assert_int_equal(symtab_add(t, 0x1000, 8, 'T', "none"), 0);
	assert_int_equal(symtab_set_file(t, "b.c"), 0);
	assert_int_equal(symtab_add(t, 0x2000, 8, 't', "f"), 0);
	assert_int_equal(symtab_add(t, 0x3000, 8, 't', "g"), 0);
	assert_int_equal(symtab_set_file(t, "a.c"), 0);
	assert_int_equal(symtab_add(t, 0x4000, 8, 't', "f"), 0);
	/* A duplicate of another file. */
	assert_int_equal(symtab_add(t, 0x3000, 8, 't', "g"), 0);
	assert_int_equal(symtab_set_file(t, ""), 0);
	assert_int_equal(symtab_add(t, 0x5000, 8, 'T', "f"), 0);
	assert_int_equal(symtab_freeze(t, NULL), 0);
	assert_int_equal(symtab_slide(t, 0x1000, 0x6000, 0x10000, &to, NULL), 0);
	symtab_destroy(t);
	assert_int_equal(symtab_count(to), 5);
	assert_null(symtab_lookup(to, 0x11000, NULL)->file);
	assert_string_equal(symtab_lookup(to, 0x12000, NULL)->file, "b.c");
	assert_string_equal(symtab_lookup(to, 0x13000, NULL)->file, "a.c");
	assert_string_equal(symtab_lookup(to, 0x14000, NULL)->file, "a.c");
	assert_null(symtab_lookup(to, 0x15000, NULL)->file);
	symtab_destroy(to);
}

static void all_of_a_name(void **state)
{
	struct symtab *t = MAKE({ 0x3000, 8, 't', "f" }, { 0x1000, 8, 'd', "f" },
				{ 0x2000, 8, 't', "f.llvm.12" }, { 0x3000, 8, 'T', "f" },
				{ 0x2800, 8, 't', "g" }, { 0x4000, 8, 't', "f.llvm.13" });
	static const uint64_t want[] = { 0x1000, 0x2000, 0x3000, 0x4000 };
	const struct symbol *s = NULL;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		s = symtab_find_next(t, "f", s);
		assert_non_null(s);
		assert_int_equal(s->addr, want[i]);
	}
	assert_null(symtab_find_next(t, "f", s));
	s = symtab_find_next(t, "f.llvm.13", NULL);
	assert_int_equal(s->addr, 0x4000);
	assert_null(symtab_find_next(t, "f.llvm.13", s));
	assert_null(symtab_find_next(t, "h", NULL));
	symtab_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty),
		cmocka_unit_test(edges),
		cmocka_unit_test(aliases),
		cmocka_unit_test(missing_sizes),
		cmocka_unit_test(overlaps),
		cmocka_unit_test(duplicates_and_limits),
		cmocka_unit_test(cut_between_characters),
		cmocka_unit_test(like_exhaustive_search),
		cmocka_unit_test(order_of_input),
		cmocka_unit_test(moved),
		cmocka_unit_test(moved_by_nothing_or_too_much),
		cmocka_unit_test(promoted),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(files),
		cmocka_unit_test(all_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
