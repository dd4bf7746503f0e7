/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Modules that come and go between samples, in a list made by hand. */
#include "profile/record/guest/code.h"

#include "tests/unit/guest_fixture.h"

#include <elf.h>
#include <setjmp.h>

#include <cmocka.h>

#define TEXT UINT64_C(0xffffffffa0000000)
#define ORCS UINT64_C(0xffffffffa1000000) /* near the code, as modules' own memory is */
#define KERNEL UINT64_C(0xffffffff81000000)
#define LONG (GUEST_CODE_CHECK_NS + 1)

static struct lm g;
static uint8_t orcs[4096];
static struct memory mem;
static struct linux_module_layout layout;
static struct gf_sink sink;
static struct guest_code *modules;
static uint64_t now;

static size_t read_all(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	if (va >= ORCS && space == MEMORY_KERNEL)
		return lm_copy(orcs, ORCS, sizeof(orcs), va, dst, len);
	return lm_read(ctx, space, va, dst, len);
}

static int setup(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	mem = (struct memory){ read_all, &g };
	layout = gf_module_layout(lm_alloc(&g, 16, 16));
	layout.kernel_start = KERNEL;
	layout.kernel_end = KERNEL + 0x1000000;
	layout.kallsyms = GF_M_KALLSYMS;
	layout.build_id = GF_M_BUILD_ID;
	layout.build_id_size = 20;
	layout.num_orcs = GF_M_NORCS;
	layout.orc_ip = GF_M_ORC_IP;
	layout.orc = GF_M_ORC;
	layout.num_symtab = 8;
	layout.strtab = 16;
	layout.typetab = 24;
	gf_sink_init(&sink);
	now = 1000 * LONG;
	if (guest_code_create(&modules, &mem, &sink.sink, NULL))
		return -1;
	guest_code_use_modules(modules, &layout);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	/* end() comes before. */
	gf_read_borrowed(&sink);
	guest_code_destroy(modules);
	gf_sink_deinit(&sink);
	return 0;
}

/* -- modules of the guest ---------------------------------------------------------- */

/* Two functions in the text, one more in the init text. */
static void put_symbols(uint64_t m, uint64_t text, uint64_t init)
{
	const char names[] = "\0first\0second\0starter";
	uint64_t ks = lm_alloc(&g, 32, 8), syms = lm_alloc(&g, 4 * sizeof(Elf64_Sym), 8);
	uint64_t strs = lm_alloc(&g, 1024, 8), types = lm_alloc(&g, 4, 1);
	const Elf64_Sym s[4] = {
		{ 0 },
		{ .st_name = 1, .st_shndx = 1, .st_value = text, .st_size = 16 },
		{ .st_name = 7, .st_shndx = 1, .st_value = text + 16, .st_size = 16 },
		{ .st_name = 14, .st_shndx = 1, .st_value = init, .st_size = 16 },
	};

	memcpy(lm_ptr(&g, syms, sizeof(s)), s, sizeof(s));
	memcpy(lm_ptr(&g, strs, sizeof(names)), names, sizeof(names));
	memcpy(lm_ptr(&g, types, 4), "?ttt", 4);
	lm_put64(&g, ks, syms);
	lm_put32(&g, ks + 8, init ? 4 : 3);
	lm_put64(&g, ks + 16, strs);
	lm_put64(&g, ks + 24, types);
	lm_put64(&g, m + GF_M_KALLSYMS, ks);
}

/* One entry for each 16 bytes, as a compiler's frames have them. */
static void put_orcs(uint64_t m, uint64_t text)
{
	static const uint8_t entry[6] = { 8, 0, 0, 0, 0x05, 0x02 };

	for (unsigned int i = 0; i < 4; i++) {
		int32_t rel = (int32_t)(text + 16 * i - (ORCS + 4 * i));

		memcpy(orcs + 4 * i, &rel, 4);
		memcpy(orcs + 64 + 6 * i, entry, 6);
	}
	lm_put32(&g, m + GF_M_NORCS, 4);
	lm_put64(&g, m + GF_M_ORC_IP, ORCS);
	lm_put64(&g, m + GF_M_ORC, ORCS + 64);
}

static uint64_t new_module(const char *name, uint64_t text, uint64_t init)
{
	uint64_t m = gf_new_module(&g, name, text);

	lm_put32(&g, m + GF_M_STATE, init ? LINUX_MODULE_COMING : LINUX_MODULE_LIVE);
	lm_put64(&g, m + GF_M_INIT, init);
	lm_put32(&g, m + GF_M_INIT_SIZE, init ? 0x400 : 0);
	put_symbols(m, text, init);
	return m;
}

static void set_list(const uint64_t *m, size_t n)
{
	gf_set_list(&g, layout.modules, GF_M_LIST, m, n);
}

/* init text goes when a module has come */
static void finish_init(uint64_t m)
{
	lm_put32(&g, m + GF_M_STATE, LINUX_MODULE_LIVE);
	lm_put64(&g, m + GF_M_INIT, 0);
	lm_put32(&g, m + GF_M_INIT_SIZE, 0);
}

static void see(uint64_t after_ns)
{
	struct err e = { 0 };

	now += after_ns;
	if (guest_code_update(modules, KERNEL, GUEST_IP_IN_IMAGE, now, &e) < 0)
		fail_msg("%s", e.text);
}

static const struct symbol *symbol_at_run_time(uint64_t va)
{
	size_t n;
	const struct unwind_region *r = guest_code_regions(modules, &n);

	for (size_t i = 0; i < n; i++)
		if (va >= r[i].start && va < r[i].end)
			return r[i].symbols ? symtab_lookup(r[i].symbols, va, NULL) : NULL;
	return NULL;
}

static size_t region_count(void)
{
	size_t n;

	guest_code_regions(modules, &n);
	return n;
}

/* -- tests ------------------------------------------------------------------------- */

static void comes_goes_live_and_away(void **state)
{
	uint64_t m = new_module("snd", TEXT, TEXT + 0x8000);

	(void)state;
	set_list(NULL, 0);
	see(LONG);
	gf_expect(&sink, "");
	*lm_ptr(&g, m + GF_M_BUILD_ID, 1) = 7;
	set_list(&m, 1);
	see(LONG);
	gf_expect(&sink, "module snd ffffffffa0000000+1000 3 id\n"
			 "module snd:init ffffffffa0008000+400 3\n");
	assert_int_equal(sink.last_ns, now);
	assert_int_equal(region_count(), 2);
	assert_string_equal(symbol_at_run_time(TEXT + 20)->name, "second");
	assert_string_equal(symbol_at_run_time(TEXT + 0x8004)->name, "starter");
	finish_init(m);
	see(LONG);
	gf_expect(&sink, "");
	assert_int_equal(region_count(), 1);
	assert_string_equal(symbol_at_run_time(TEXT)->name, "first");
	assert_null(symbol_at_run_time(TEXT + 0x8004));
	set_list(NULL, 0);
	see(LONG);
	gf_expect(&sink, "");
	assert_int_equal(region_count(), 0);
	assert_int_equal(gf_read_borrowed(&sink), 2 * strlen("firstsecondstarter"));
	assert_int_equal(guest_code_module_stats(modules)->seen, 1);
}

static void nothing_new_is_not_read(void **state)
{
	uint64_t m[] = { new_module("a", TEXT, 0), new_module("b", TEXT + 0x2000, 0) }, reads;

	(void)state;
	set_list(m, 2);
	see(LONG);
	sink.log.len = 0;
	reads = g.reads;
	see(10);
	assert_int_equal(g.reads, reads); /* not even looked at */
	see(LONG);
	assert_true(g.reads - reads <= 12); /* links, states, names */
	gf_expect(&sink, "");
}

/* A sample where no code is known is a reason to look, but not each time. */
static void unknown_code(void **state)
{
	uint64_t m = new_module("a", TEXT, 0), reads;

	(void)state;
	set_list(NULL, 0);
	see(LONG);
	set_list(&m, 1);
	now += GUEST_CODE_RETRY_NS + 1;
	assert_int_equal(guest_code_update(modules, KERNEL, GUEST_IP_IN_IMAGE, now, NULL), 0);
	gf_expect(&sink, "");
	assert_int_equal(guest_code_update(modules, TEXT + 5, GUEST_IP_ELSEWHERE, now, NULL), 0);
	gf_expect(&sink, "module a ffffffffa0000000+1000 2\n");
	reads = g.reads;
	now += GUEST_CODE_RETRY_NS + 1;
	assert_int_equal(guest_code_update(modules, TEXT + 5, GUEST_IP_ELSEWHERE, now, NULL), 0);
	assert_int_equal(g.reads, reads);
	/* eBPF programs and the like never become known */
	assert_int_equal(guest_code_update(modules, TEXT + 0x100000, GUEST_IP_ELSEWHERE, now, NULL),
			 0);
	reads = g.reads;
	assert_int_equal(
		guest_code_update(modules, TEXT + 0x100000, GUEST_IP_ELSEWHERE, now + 5, NULL), 0);
	assert_int_equal(g.reads, reads);
	/* a sample of another vCPU from a moment before */
	assert_int_equal(guest_code_update(modules, TEXT + 0x100000, GUEST_IP_ELSEWHERE, now - 500,
					   NULL),
			 0);
	assert_int_equal(g.reads, reads);
}

static void others_at_the_same_place(void **state)
{
	uint64_t m = new_module("a", TEXT, 0);

	(void)state;
	set_list(&m, 1);
	see(LONG);
	gf_put_name(&g, m + GF_M_NAME, 56, "b");
	see(LONG);
	gf_expect(&sink, "module a ffffffffa0000000+1000 2\n"
			 "module b ffffffffa0000000+1000 2\n");
	/* A module of this name is loaded elsewhere. */
	m = new_module("b", TEXT + 0x4000, 0);
	set_list(&m, 1);
	see(LONG);
	gf_expect(&sink, "module b ffffffffa0004000+1000 2\n");
	assert_null(symbol_at_run_time(TEXT));
	assert_non_null(symbol_at_run_time(TEXT + 0x4000));
	/* Another build of it. */
	*lm_ptr(&g, m + GF_M_BUILD_ID, 1) = 9;
	lm_put32(&g, m + GF_M_STATE, LINUX_MODULE_GOING);
	see(LONG);
	gf_expect(&sink, "module b ffffffffa0004000+1000 2 id\n");
	gf_read_borrowed(&sink);
}

static uint64_t moment;

static uint64_t clock_of_test(void *ctx)
{
	(void)ctx;
	return moment;
}

/* A look for a sample of time_ns in the module's code, at another moment of the clock. */
static void prove(uint64_t time_ns, uint64_t at_ns)
{
	const uint64_t ip[] = { KERNEL, TEXT + 5 };

	moment = at_ns;
	assert_int_equal(guest_code_prove(modules, ip, 2, time_ns, NULL), 0);
}

/* A name counts between two looks that found the same code, one before the sample and one after it. */
static void replaced_between_two_looks(void **state)
{
	uint64_t a = new_module("a", TEXT, 0), b = new_module("b", TEXT, 0), reads;

	(void)state;
	guest_code_set_clock(modules, clock_of_test, NULL);
	moment = now + 1;
	set_list(&a, 1);
	assert_int_equal(guest_code_update(modules, TEXT, GUEST_IP_ELSEWHERE, now, NULL), 0);
	gf_expect(&sink, "module a ffffffffa0000000+1000 2\n");
	prove(now + 100, now + 105);
	assert_false(guest_code_is_uncertain(modules, TEXT + 5, now + 100));
	/* The last look covers what was taken before it. */
	reads = g.reads;
	prove(now + 104, now + 106);
	assert_int_equal(g.reads, reads);
	set_list(&b, 1);
	prove(now + 200, now + 205);
	assert_true(guest_code_is_uncertain(modules, TEXT + 5, now + 200));
	assert_true(guest_code_is_uncertain(modules, TEXT + 5, now + 106));
	assert_false(guest_code_is_uncertain(modules, TEXT + 5, now + 105));
	assert_false(guest_code_is_uncertain(modules, KERNEL, now + 200));
	prove(now + 206, now + 207);
	assert_false(guest_code_is_uncertain(modules, TEXT + 5, now + 206));
	/* The other one's names begin where it is certain. */
	gf_expect(&sink, "module b ffffffffa0000000+1000 2\n");
	assert_int_equal(sink.last_ns, now + 205);
	/* It goes, and nothing comes: it may have been gone before the sample. */
	set_list(NULL, 0);
	prove(now + 300, now + 305);
	assert_true(guest_code_is_uncertain(modules, TEXT + 5, now + 300));
	assert_int_equal(guest_code_module_stats(modules)->replaced, 2);
	/* Where nothing was, the first one that is seen came before its sample. */
	set_list(&a, 1);
	moment = now + 1000 + LONG;
	assert_int_equal(
		guest_code_update(modules, TEXT, GUEST_IP_ELSEWHERE, now + 999 + LONG, NULL), 0);
	assert_int_equal(sink.last_ns, now + 999 + LONG);
	assert_false(guest_code_is_uncertain(modules, TEXT + 5, now + 999 + LONG));
	gf_read_borrowed(&sink);
}

/* A look that cannot read the list proves nothing, and is not repeated for each sample. */
static void list_cannot_be_read(void **state)
{
	uint64_t a = new_module("a", TEXT, 0), b = new_module("b", TEXT, 0), reads;

	(void)state;
	guest_code_set_clock(modules, clock_of_test, NULL);
	moment = now + 1;
	set_list(&a, 1);
	assert_int_equal(guest_code_update(modules, TEXT, GUEST_IP_ELSEWHERE, now, NULL), 0);
	lm_put64(&g, layout.modules, KERNEL);
	prove(now + 100, now + 105);
	assert_int_equal(guest_code_module_stats(modules)->failed, 1);
	assert_true(guest_code_is_uncertain(modules, TEXT + 5, now + 100));
	assert_false(guest_code_is_uncertain(modules, KERNEL, now + 100));
	reads = g.reads;
	prove(now + 200, now + 205);
	assert_int_equal(g.reads, reads);
	assert_true(guest_code_is_uncertain(modules, TEXT + 5, now + 200));
	/* Later modules may have been there since the last complete read. */
	set_list(&b, 1);
	prove(now + LONG, now + LONG + 5);
	assert_true(guest_code_is_uncertain(modules, TEXT + 5, now + 50));
	assert_true(guest_code_is_uncertain(modules, TEXT + 5, now + LONG));
	prove(now + LONG + 10, now + LONG + 15);
	assert_false(guest_code_is_uncertain(modules, TEXT + 5, now + LONG + 10));
	gf_expect(&sink, "module a ffffffffa0000000+1000 2\n"
			 "module b ffffffffa0000000+1000 2\n");
	gf_read_borrowed(&sink);
}

/* rmmod and insmod: its init text is there again. */
static void loaded_anew_at_the_same_place(void **state)
{
	uint64_t m = new_module("a", TEXT, TEXT + 0x8000);

	(void)state;
	set_list(&m, 1);
	see(LONG);
	finish_init(m);
	see(LONG);
	sink.log.len = 0;
	lm_put32(&g, m + GF_M_STATE, LINUX_MODULE_COMING);
	lm_put64(&g, m + GF_M_INIT, TEXT + 0x8000);
	lm_put32(&g, m + GF_M_INIT_SIZE, 0x400);
	see(LONG);
	gf_expect(&sink, "module a ffffffffa0000000+1000 3\n"
			 "module a:init ffffffffa0008000+400 3\n");
	gf_read_borrowed(&sink);
}

/* Symbols that were being moved when it came are read when it is live; never again then. */
static void symbols_that_come_late(void **state)
{
	uint64_t m = new_module("a", TEXT, TEXT + 0x8000), ks, none = 0;

	(void)state;
	memcpy(&ks, lm_ptr(&g, m + GF_M_KALLSYMS, 8), 8);
	lm_put64(&g, m + GF_M_KALLSYMS, none);
	set_list(&m, 1);
	see(LONG);
	gf_expect(&sink, "module a ffffffffa0000000+1000 0\n"
			 "module a:init ffffffffa0008000+400 0\n");
	lm_put64(&g, m + GF_M_KALLSYMS, ks);
	finish_init(m);
	see(LONG);
	gf_expect(&sink, "module a ffffffffa0000000+1000 2\n");
	assert_int_equal(guest_code_module_stats(modules)->without_symbols, 1);
	lm_put32(&g, m + GF_M_STATE, LINUX_MODULE_GOING);
	see(LONG);
	gf_expect(&sink, "");
}

static void code_without_a_name(void **state)
{
	uint64_t m[2] = { new_module("a", TEXT, 0), new_module("b", TEXT + 0x2000, 0) };

	(void)state;
	/* Names that would be something else in a file: not told. */
	gf_put_name(&g, m[0] + GF_M_NAME, 56, "a]\n[b");
	lm_put64(&g, m[1] + GF_M_KALLSYMS, 0x1000);
	set_list(m, 2);
	see(LONG);
	gf_expect(&sink, "module b ffffffffa0002000+1000 0\n");
	assert_int_equal(region_count(), 1);
	assert_null(symbol_at_run_time(TEXT + 0x2000));
}

static void longest_name(void **state)
{
	const char name[] = "a2345678901234567890123456789012345678901234567890123";
	uint64_t m = new_module(name, TEXT, TEXT + 0x8000);
	char expected[256];

	(void)state;
	set_list(&m, 1);
	see(LONG);
	snprintf(expected, sizeof(expected),
		 "module %s ffffffffa0000000+1000 3\nmodule %s:init ffffffffa0008000+400 3\n", name,
		 name);
	gf_expect(&sink, expected);
}

/* A list that is cut in the middle takes nothing away, and is read again. */
static void list_that_changes(void **state)
{
	uint64_t m[3] = { new_module("a", TEXT, 0), new_module("b", TEXT + 0x2000, 0),
			  new_module("c", TEXT + 0x4000, 0) };

	(void)state;
	set_list(m, 2);
	see(LONG);
	sink.log.len = 0;
	/* In the middle of an insertion: no way back. */
	set_list(m, 3);
	lm_put64(&g, m[1] + 8, m[2]);
	see(LONG);
	gf_expect(&sink, "");
	assert_int_equal(region_count(), 2);
	assert_int_equal(guest_code_module_stats(modules)->failed, 1);
	set_list(m, 3);
	see(LONG);
	gf_expect(&sink, "module c ffffffffa0004000+1000 2\n");
	assert_int_equal(region_count(), 3);
}

/* The hash is that of the list, and then the list can't be read: it isn't taken for read. */
static struct {
	unsigned int links, allowed;
} cut;

static size_t read_cut(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	if (va == layout.modules && len == 8)
		cut.links++;
	if (cut.links > cut.allowed && va != layout.modules && len == 8)
		return 0;
	return read_all(ctx, space, va, dst, len);
}

static void list_cut_behind_the_hash(void **state)
{
	uint64_t m[2] = { new_module("a", TEXT, 0), new_module("b", TEXT + 0x2000, 0) };

	(void)state;
	set_list(m, 2);
	mem.read = read_cut;
	cut.links = 0;
	cut.allowed = 1;
	see(LONG);
	gf_expect(&sink, "");
	assert_true(cut.links > 1);
	cut.allowed = UINT32_MAX;
	see(LONG);
	gf_expect(&sink, "module a ffffffffa0000000+1000 2\n"
			 "module b ffffffffa0002000+1000 2\n");
}

static void list_that_is_not_there(void **state)
{
	uint64_t reads;

	(void)state;
	see(LONG); /* zeros */
	see(LONG);
	assert_int_equal(guest_code_module_stats(modules)->failed, 2);
	/* Not with each sample. */
	reads = g.reads;
	see(5);
	assert_int_equal(g.reads, reads);
	assert_int_equal(region_count(), 0);
}

/* The sink's data stays until its end(), and the unwinder's tables as long as they are valid. */
static void sink_that_fails(void **state)
{
	uint64_t m[4];
	struct err e = { 0 };
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		m[i] = new_module((char[]){ (char)('a' + i), 0 }, TEXT + 0x2000 * i, 0);
	put_orcs(m[1], TEXT + 0x2000);
	set_list(m, 2);
	see(LONG);
	assert_int_equal(guest_code_module_stats(modules)->without_orc, 1);
	sink.fail_at = sink.calls + 1;
	set_list((uint64_t[]){ m[2], m[3], m[1] }, 3);
	now += LONG;
	assert_int_equal(guest_code_update(modules, KERNEL, GUEST_IP_IN_IMAGE, now, &e), -ENOSPC);
	assert_int_equal(region_count(), 3);
	for (n = 0; n < 3; n++) {
		const struct unwind_region *r = guest_code_regions(modules, &(size_t){ 0 }) + n;

		assert_non_null(symtab_lookup(r->symbols, r->start, NULL));
		if (r->orc)
			assert_non_null(orc_lookup(r->orc, r->start + 17));
	}
	assert_string_equal(symbol_at_run_time(TEXT + 0x2000)->name, "first");
	assert_int_equal(gf_read_borrowed(&sink), 3 * strlen("firstsecond"));
	see(LONG);
}

/* A module with very many symbols: its memory is made up when it is read. */
#define MANY (GUEST_CODE_MAX_KEPT / 8)
#define SYMS UINT64_C(0xffffc90000000000)
#define STRS UINT64_C(0xffffc98000000000)

static size_t read_many(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	if (va == STRS) {
		memset(dst, 0, len);
		memcpy(dst, "\0name", 6);
		return len;
	}
	if (va == SYMS + 1) { /* letters */
		memset(dst, 't', len);
		return len;
	}
	if (va != SYMS)
		return read_all(ctx, space, va, dst, len);
	for (size_t i = 0; i < len / sizeof(Elf64_Sym); i++) {
		Elf64_Sym s = { .st_name = 1, .st_shndx = 1, .st_value = TEXT + i };

		memcpy((uint8_t *)dst + i * sizeof(s), &s, sizeof(s));
	}
	return len;
}

/* A guest that loads and unloads all day: only so many names are kept for the sink. */
static void modules_without_end(void **state)
{
	uint64_t m = new_module("a", TEXT, 0), ks;

	(void)state;
	mem.read = read_many;
	memcpy(&ks, lm_ptr(&g, m + GF_M_KALLSYMS, 8), 8);
	lm_put64(&g, ks, SYMS);
	lm_put32(&g, ks + 8, MANY);
	lm_put64(&g, ks + 16, STRS);
	lm_put64(&g, ks + 24, SYMS + 1);
	lm_put32(&g, m + GF_M_TEXT_SIZE, 0x100000);
	set_list(&m, 1);
	for (unsigned int i = 0; i < 20; i++) {
		gf_put_name(&g, m + GF_M_NAME, 56, i % 2 ? "odd" : "even");
		see(LONG);
	}
	assert_int_equal(guest_code_module_stats(modules)->seen, 20);
	/* eight make the limit but for their first, empty symbols; the tenth is over it */
	assert_int_equal(sink.nborrowed, 10);
	assert_int_equal(guest_code_module_stats(modules)->without_symbols, 10);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(comes_goes_live_and_away),
		T(nothing_new_is_not_read),
		T(unknown_code),
		T(others_at_the_same_place),
		T(replaced_between_two_looks),
		T(list_cannot_be_read),
		T(loaded_anew_at_the_same_place),
		T(symbols_that_come_late),
		T(code_without_a_name),
		T(longest_name),
		T(list_that_changes),
		T(list_cut_behind_the_hash),
		T(list_that_is_not_there),
		T(sink_that_fails),
		T(modules_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
