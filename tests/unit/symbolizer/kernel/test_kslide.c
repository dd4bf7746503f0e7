/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cleanup.h"
#include "tests/unit/kslide_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define SLIDE UINT64_C(0x1c400000)

static uint8_t file[FIX_FILE];
static uint8_t image[FIX_LEN]; /* as the guest has it in memory */
static struct kimage kernel;
static struct symtab *symbols;
static struct kslide_ref ref;
static struct fix_guest guest;
static struct kslide got;

static uint8_t *at(uint64_t linked)
{
	return image + (linked - FIX_TEXT);
}

static void prepare(bool asm_names)
{
	symtab_destroy(symbols);
	symbols = fix_symbols(asm_names);
	assert_non_null(symbols);
	kslide_prepare(&ref, &kernel, symbols);
}

static int setup(void **state)
{
	(void)state;
	fix_elf(file);
	memcpy(image, file + FIX_OFF_TEXT, FIX_LEN);
	memset(&guest, 0, sizeof(guest));
	assert_int_equal(kimage_parse(&kernel, "fixture", file, FIX_FILE, NULL), 0);
	prepare(true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	symtab_destroy(symbols);
	symbols = NULL;
	return 0;
}

static void solve(void)
{
	const struct memory m = { fix_read, &guest };

	kslide_solve(&got, &ref, &m, &guest.cpu);
	assert_null(strchr(got.reason, '\n'));
	assert_true(strlen(got.reason) > 10 && strlen(got.reason) < sizeof(got.reason) - 1);
}

static void expect(enum kslide_status status, const char *text)
{
	solve();
	if (got.status != status || !strstr(got.reason, text))
		fail_msg("status %d \"%s\", expected %d with \"%s\"", got.status, got.reason,
			 status, text);
}

static void expect_slide(uint64_t slide)
{
	expect(KSLIDE_SOLVED, "agree");
	assert_int_equal(got.slide, slide);
}

static void hide_lstar(void)
{
	guest.cpu.lstar = 0;
}

static void hide_idt(void)
{
	guest.cpu.idt_base = 0;
}

/* One byte of every 64 of the text is left. */
static void spoil_text(uint8_t with)
{
	for (unsigned int i = 0; i < FIX_TEXT_LEN; i++)
		if (i % 64)
			image[i] ^= with;
}

static void hide_note(void)
{
	ref.note_len = 0;
}

static void hide_text(void)
{
	ref.nwindows = 0;
}

static void takes_what_it_needs(void **state)
{
	(void)state;
	assert_int_equal(ref.syscall, FIX_SYSCALL);
	assert_int_equal(ref.handler[14][0], FIX_HANDLER(14));
	assert_int_equal(ref.handler[14][1], FIX_EARLY + 14 * 9);
	assert_int_equal(ref.handler[14][2], FIX_EARLY + 14 * 13);
	assert_int_equal(ref.handler[15][0], 0);
	assert_int_equal(ref.note_va, FIX_NOTE);
	assert_int_equal(ref.note_len, 36);
	assert_int_equal(ref.nwindows, KSLIDE_MAX_WINDOWS);
	for (unsigned int i = 0; i < ref.nwindows; i++) {
		assert_in_range(ref.window_va[i], FIX_TEXT, FIX_DATA - KSLIDE_WINDOW);
		assert_memory_equal(ref.window[i], at(ref.window_va[i]), KSLIDE_WINDOW);
	}
	/* nothing points into the image any more */
	fix_boot(&guest, image, SLIDE);
	memset(file, 0, sizeof(file));
	expect_slide(SLIDE);
	assert_string_equal(got.reason, "LSTAR, the IDT (19 of 19), the text (64 of 64) and the "
					"build id agree");
}

static void every_place(void **state)
{
	const uint64_t last = (KSLIDE_MAP_END - (FIX_TEXT + FIX_LEN)) / KSLIDE_ALIGN * KSLIDE_ALIGN;

	(void)state;
	for (uint64_t slide = 0; slide <= last; slide += slide ? 31 * KSLIDE_ALIGN : KSLIDE_ALIGN) {
		guest.n = 0;
		fix_boot(&guest, image, slide);
		expect_slide(slide);
	}
	guest.n = 0;
	fix_boot(&guest, image, last);
	expect_slide(last);
	/* One further is none: nothing is looked for there, and LSTAR makes no sense. */
	guest.n = 0;
	fix_boot(&guest, image, last + KSLIDE_ALIGN);
	solve();
	assert_int_not_equal(got.status, KSLIDE_SOLVED);
}

static void any_two_will_do(void **state)
{
	static void (*const hide[KSLIDE_KINDS])(void) = {
		[KSLIDE_LSTAR] = hide_lstar,
		[KSLIDE_IDT] = hide_idt,
		[KSLIDE_TEXT] = hide_text,
		[KSLIDE_BUILD_ID] = hide_note,
	};

	(void)state;
	for (unsigned int mask = 0; mask < 1u << KSLIDE_KINDS; mask++) {
		unsigned int n = 0;

		teardown(NULL);
		setup(NULL);
		fix_boot(&guest, image, SLIDE);
		for (unsigned int i = 0; i < KSLIDE_KINDS; i++) {
			if (mask & 1u << i)
				n++;
			else
				hide[i]();
		}
		if (n >= 2) {
			expect_slide(SLIDE);
		} else {
			expect(KSLIDE_NOT_YET, n ? "only " : "nothing says");
			assert_int_equal(got.slide, 0);
		}
		for (unsigned int i = 0; i < KSLIDE_KINDS; i++) {
			assert_int_equal(got.by[i].found, mask >> i & 1);
			assert_false(got.by[i].against);
			if (got.by[i].found)
				assert_int_equal(got.by[i].slide, SLIDE);
			if (n == 1 && got.by[i].found)
				assert_non_null(strstr(got.reason, kslide_kind_name(i)));
		}
	}
}

static void names_of_before(void **state)
{
	(void)state;
	prepare(false);
	fix_boot(&guest, image, SLIDE);
	hide_text();
	hide_note();
	expect_slide(SLIDE);
	/* three names changed: coproc..., invalid_tss and (none of the fixture) */
	assert_in_range(got.by[KSLIDE_IDT].yes, 16, 19);
	assert_int_equal(got.by[KSLIDE_IDT].yes, got.by[KSLIDE_IDT].of);
}

static void without_symbols(void **state)
{
	(void)state;
	kslide_prepare(&ref, &kernel, NULL);
	assert_int_equal(ref.syscall, 0);
	fix_boot(&guest, image, SLIDE);
	expect_slide(SLIDE);
	assert_string_equal(got.reason, "the text (64 of 64) and the build id agree");
}

static void boot_in_steps(void **state)
{
	uint8_t low[32 * 16] = { 0 };

	(void)state;
	/* the decompressor: an IDT of its own, low addresses, no kernel */
	for (unsigned int v = 0; v < 20; v++)
		fix_gate(low, v, 0x1c00000 + 64 * v);
	fix_map(&guest, 0x11dc050, low, sizeof(low));
	guest.cpu.idt_base = 0x11dc050;
	expect(KSLIDE_NOT_YET, "nothing says");
	/* looking for it is cheap: reads, not seconds */
	assert_true(guest.reads < 4 * 512);

	/* mapped, with early handlers of either size */
	for (unsigned int size = 9; size <= 13; size += 4) {
		guest.n = 0;
		fix_boot(&guest, image, SLIDE);
		hide_lstar();
		hide_text();
		for (unsigned int v = 0; v < 32; v++)
			fix_gate(at(FIX_IDT), v, FIX_EARLY + SLIDE + size * v);
		expect_slide(SLIDE);
		assert_int_equal(got.by[KSLIDE_IDT].yes, FIX_GATES);
		/* half of them replaced */
		for (unsigned int v = 0; v < 9; v++)
			fix_gate(at(FIX_IDT), v, FIX_HANDLER(v) + SLIDE);
		expect_slide(SLIDE);
		assert_int_equal(got.by[KSLIDE_IDT].yes, FIX_GATES);
	}
	/* only three gates yet: nothing, but nothing bad either */
	memset(at(FIX_IDT), 0, 32 * 16);
	for (unsigned int v = 0; v < 3; v++)
		fix_gate(at(FIX_IDT), v, FIX_HANDLER(v) + SLIDE);
	expect(KSLIDE_NOT_YET, "only the build id");
	assert_false(got.by[KSLIDE_IDT].found || got.by[KSLIDE_IDT].against);
}

/* 4.15 to 4.19: LSTAR is in the CPU entry area. A module's address is no evidence, too. */
static void trampolines_say_nothing(void **state)
{
	static const uint64_t lstar[] = { 0xfffffe0000006000, 0xffffffffc0123456, 0x1000040,
					  0x8000000000000000, UINT64_MAX };

	(void)state;
	fix_boot(&guest, image, SLIDE);
	for (size_t i = 0; i < ARRAY_SIZE(lstar); i++) {
		guest.cpu.lstar = lstar[i];
		expect_slide(SLIDE);
		assert_false(got.by[KSLIDE_LSTAR].found);
	}
}

static void lstar_conflicts(void **state)
{
	(void)state;
	fix_boot(&guest, image, SLIDE);
	guest.cpu.lstar += KSLIDE_ALIGN;
	expect(KSLIDE_CONFLICT, "LSTAR says the kernel is moved by 0x1c600000, the IDT by "
				"0x1c400000");
	guest.cpu.lstar = FIX_SYSCALL + SLIDE + 0x1000;
	expect(KSLIDE_CONFLICT, "LSTAR leads into the kernel, but not to");
	assert_true(got.by[KSLIDE_LSTAR].against);
	guest.cpu.lstar = FIX_SYSCALL - KSLIDE_ALIGN; /* below where it was linked */
	expect(KSLIDE_CONFLICT, "LSTAR leads into the kernel, but not to");
}

static void gates_conflict(void **state)
{
	(void)state;
	fix_boot(&guest, image, SLIDE);
	fix_gate(at(FIX_IDT), 14, FIX_HANDLER(14) + SLIDE + KSLIDE_ALIGN);
	expect(KSLIDE_CONFLICT, "of 19 exception handlers only 18");
	fix_gate(at(FIX_IDT), 14, FIX_HANDLER(13) + SLIDE);
	expect(KSLIDE_CONFLICT, "of 19 exception handlers only 18");
	/* all moved together, against all others */
	for (unsigned int v = 0; v < 20; v++)
		if (fix_names[v])
			fix_gate(at(FIX_IDT), v, FIX_HANDLER(v));
	hide_lstar();
	expect(KSLIDE_CONFLICT, "the IDT says the kernel is moved by 0x0, the text by 0x1c400000");
	/* a gate that is not present, or leads out of the kernel, does not count */
	for (unsigned int v = 0; v < 20; v++)
		if (fix_names[v])
			fix_gate(at(FIX_IDT), v, FIX_HANDLER(v) + SLIDE);
	fix_gate(at(FIX_IDT), 1, 0xffffffffc0000000);
	at(FIX_IDT)[16 * 2 + 5] &= 0x7f;
	expect_slide(SLIDE);
	assert_int_equal(got.by[KSLIDE_IDT].of, 17);
}

static void build_id_conflicts(void **state)
{
	(void)state;
	fix_boot(&guest, image, SLIDE);
	at(FIX_NOTE)[16 + 19] ^= 1;
	expect(KSLIDE_CONFLICT, "LSTAR says the kernel is moved by 0x1c400000, but there is no "
				"build id of the image");
	assert_true(got.by[KSLIDE_BUILD_ID].against);
	/* the note elsewhere */
	guest.n = 0;
	at(FIX_NOTE)[16 + 19] ^= 1;
	fix_boot(&guest, image, SLIDE);
	hide_text();
	guest.cpu.lstar = FIX_SYSCALL;
	hide_idt();
	expect(KSLIDE_CONFLICT, "LSTAR says the kernel is moved by 0x0, the build id by "
				"0x1c400000");
}

static void same_kernel_twice(void **state)
{
	(void)state;
	fix_boot(&guest, image, SLIDE);
	fix_map(&guest, FIX_TEXT + 2 * KSLIDE_ALIGN, image, FIX_LEN);
	hide_lstar();
	hide_idt();
	expect(KSLIDE_NOT_YET, "nothing says");
	assert_int_equal(got.by[KSLIDE_BUILD_ID].yes, 2);
	/* registers decide it */
	guest.cpu.lstar = FIX_SYSCALL + SLIDE;
	guest.cpu.idt_base = FIX_IDT + SLIDE;
	expect_slide(SLIDE);
}

/* Functions shuffled, entry code in order: names by a slide would be wrong. */
static void shuffled_functions(void **state)
{
	uint8_t function[256];

	(void)state;
	for (unsigned int i = 0x2000; i + 512 <= FIX_TEXT_LEN; i += 512) {
		memcpy(function, image + i, 256);
		memcpy(image + i, image + i + 256, 256);
		memcpy(image + i + 256, function, 256);
	}
	fix_boot(&guest, image, SLIDE);
	expect(KSLIDE_CONFLICT, "function-granular KASLR, or another kernel");
	assert_true(got.by[KSLIDE_TEXT].against);
	assert_in_range(got.by[KSLIDE_TEXT].yes, 8, 24);
}

static void another_kernel(void **state)
{
	(void)state;
	fix_boot(&guest, image, SLIDE);
	spoil_text(0x55);
	hide_note();
	expect(KSLIDE_CONFLICT, "of 64 pieces of code there only 0 are the image's");
}

/* Text changed by alternatives, ftrace and relocation: five bytes here, two there. */
static void patched_text(void **state)
{
	(void)state;
	fix_boot(&guest, image, SLIDE);
	for (unsigned int i = 0; i + 64 <= FIX_TEXT_LEN; i += 32) {
		memcpy(image + i + 3, "\x0f\x1f\x44\x00\x00", 5);
		image[i + 20] ^= 0x40;
		image[i + 21] ^= 0x1c;
	}
	expect_slide(SLIDE);
	assert_int_equal(got.by[KSLIDE_TEXT].yes, got.by[KSLIDE_TEXT].of);
	/* one window in sixteen gone altogether */
	for (unsigned int w = 0; w < ref.nwindows; w += 16)
		memset(at(ref.window_va[w]), 0xcc, KSLIDE_WINDOW);
	expect_slide(SLIDE);
	assert_int_equal(got.by[KSLIDE_TEXT].yes, ref.nwindows - 4);
	/* one in four is too much */
	for (unsigned int w = 0; w < ref.nwindows; w += 4)
		memset(at(ref.window_va[w]), 0xcc, KSLIDE_WINDOW);
	expect(KSLIDE_CONFLICT, "of 64 pieces of code");
}

/* Memory that can't be read is no evidence, and no evidence against. */
static void text_in_part(void **state)
{
	(void)state;
	fix_boot(&guest, image, SLIDE);
	guest.region[0].len = FIX_TEXT_LEN / 2 - 0x1000; /* the IDT is behind */
	expect(KSLIDE_NOT_YET, "only LSTAR");
	assert_int_equal(got.by[KSLIDE_TEXT].against, false);
	fix_map(&guest, FIX_IDT + SLIDE, at(FIX_IDT), 0x1000);
	expect_slide(SLIDE);
	assert_false(got.by[KSLIDE_TEXT].found || got.by[KSLIDE_BUILD_ID].found);
	/* less than half of the code is too little to say no by */
	guest.region[0].len = FIX_TEXT_LEN * 2 / 5;
	spoil_text(0x55);
	expect_slide(SLIDE);
	guest.region[0].len = FIX_TEXT_LEN * 3 / 5;
	expect(KSLIDE_CONFLICT, "pieces of code there only 0 are");
	spoil_text(0x55);
	/* an IDT that ends early has fewer gates */
	guest.region[1].len = 10 * 16 + 15;
	expect_slide(SLIDE);
	assert_int_equal(got.by[KSLIDE_IDT].of, 10);
}

static size_t noise(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	uint32_t *x = ctx;

	(void)space;
	for (size_t i = 0; i < len; i++) {
		*x = *x * 1103515245 + 12345 + (uint32_t)va;
		((uint8_t *)dst)[i] = (uint8_t)(*x >> 16);
	}
	return *x >> 30 ? len : *x % (len + 1);
}

/* Memory whose bytes are different each time one looks. */
static void hostile_memory(void **state)
{
	uint32_t seed = 7;
	const struct memory m = { noise, &seed };
	struct kslide_cpu cpu = { .lstar = FIX_SYSCALL + SLIDE, .idt_base = UINT64_MAX };

	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		kslide_solve(&got, &ref, &m, &cpu);
		assert_int_not_equal(got.status, KSLIDE_SOLVED);
		cpu.lstar = i & 1 ? 0 : (uint64_t)seed << 32 | seed;
	}
}

/* A kernel that is not linked where Linux is can only run where it was linked. */
static void other_link_address(void **state)
{
	(void)state;
	ref.text += UINT64_C(1) << 40;
	fix_boot(&guest, image, 0);
	expect_slide(0);
	guest.n = 0;
	fix_boot(&guest, image, SLIDE);
	solve();
	assert_int_not_equal(got.status, KSLIDE_SOLVED);
}

static void addresses(void **state)
{
	const uint64_t text = FIX_TEXT, end = FIX_TEXT + FIX_LEN;

	(void)state;
	assert_int_equal(kimage_run_address(text, end, SLIDE, text), text + SLIDE);
	assert_int_equal(kimage_run_address(text, end, SLIDE, end), end + SLIDE);
	assert_int_equal(kimage_run_address(text, end, SLIDE, end + 1), end + 1);
	assert_int_equal(kimage_run_address(text, end, SLIDE, 0x1fb48), 0x1fb48);
	assert_int_equal(kimage_run_address(text, end, 0, text), text);
	for (unsigned int i = 0; i <= KSLIDE_KINDS; i++)
		assert_true(strlen(kslide_kind_name(i)) > 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(takes_what_it_needs),	    T(every_place),	   T(any_two_will_do),
		T(names_of_before),	    T(without_symbols),	   T(boot_in_steps),
		T(trampolines_say_nothing), T(lstar_conflicts),	   T(gates_conflict),
		T(build_id_conflicts),	    T(same_kernel_twice),  T(shuffled_functions),
		T(another_kernel),	    T(patched_text),	   T(text_in_part),
		T(hostile_memory),	    T(other_link_address), T(addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
