/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ORC tables: each layout normalised, lookup at its edges, tables that make no sense. */
#include "symbolizer/unwind/orc_format.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/tiny_elf.h"

#define TEXT 0xffffffff81000000ull
#define TABLE 0xffffffff82000000ull
#define N 2000u
#define STEP 40u /* code bytes of one entry */

static uint8_t ips[4 * N], entries[6 * N];
static struct err e;

static void put(size_t i, uint64_t va, int sp, int bp, unsigned int flags)
{
	int32_t rel = (int32_t)(va - (TABLE + 4 * i));
	int16_t so = (int16_t)sp, bo = (int16_t)bp;
	uint16_t f = (uint16_t)flags;

	memcpy(ips + 4 * i, &rel, 4);
	memcpy(entries + 6 * i, &so, 2);
	memcpy(entries + 6 * i + 2, &bo, 2);
	memcpy(entries + 6 * i + 4, &f, 2);
}

static struct orc_tables tables(void)
{
	return (struct orc_tables){ .ips = ips,
				    .entries = entries,
				    .ips_va = TABLE,
				    .n = N,
				    .text_start = TEXT,
				    .text_end = TEXT + STEP * N };
}

/* Plain functions as in the layout that starts at call, and at [10..14] one of each other kind. */
static void fill(unsigned int call, unsigned int regs, unsigned int partial, unsigned int end)
{
	for (size_t i = 0; i < N; i++)
		put(i, TEXT + STEP * i, 8 + 8 * (int)(i % 5), i % 3 ? -16 : 0,
		    call | (i % 3 ? 0x15 : 0x05));
	put(10, TEXT + STEP * 10, 0, 0, regs);
	put(11, TEXT + STEP * 11, 8, 0, partial);
	put(12, TEXT + STEP * 12, 0, 0, end);
	put(13, TEXT + STEP * 13, 0, 0, 0);
	put(14, TEXT + STEP * 14, 8, 0, call | 0x19); /* SP_INDIRECT, rbp below the CFA */
}

static struct orc *build(void)
{
	struct orc_tables t = tables();
	struct orc *o = NULL;

	err_clear(&e);
	if (orc_build(&o, &t, &e) < 0)
		fail_msg("%s", e.text);
	return o;
}

static const struct orc_entry *at(const struct orc *o, size_t i)
{
	const struct orc_entry *x = orc_lookup(o, TEXT + STEP * i);

	assert_non_null(x);
	return x;
}

static void every_layout(void **state)
{
	static const struct {
		enum orc_layout layout;
		unsigned int call, regs, partial, end;
	} v[] = {
		{ ORC_LAYOUT_4_14, 0, 0x105, 0x205, 0 },
		{ ORC_LAYOUT_4_18, 0, 0x105, 0x205, 0x400 },
		{ ORC_LAYOUT_6_3, 0, 0x505, 0x605, 0x800 },
		{ ORC_LAYOUT_6_4, 0x200, 0xb05, 0xc05, 0x100 },
	};

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		struct orc *o;

		fill(v[k].call, v[k].regs, v[k].partial, v[k].end);
		o = build();
		assert_int_equal(orc_layout(o), v[k].layout);
		assert_int_equal(orc_count(o), N);
		assert_int_equal(at(o, 0)->type, ORC_CALL);
		assert_int_equal(at(o, 0)->sp_reg, ORC_SP);
		assert_int_equal(at(o, 0)->sp_offset, 8);
		assert_int_equal(at(o, 0)->signal, 0);
		assert_int_equal(at(o, 1)->bp_reg, ORC_PREV_SP);
		assert_int_equal(at(o, 1)->bp_offset, -16);
		assert_int_equal(at(o, 10)->type, ORC_REGS);
		assert_int_equal(at(o, 10)->signal, 1);
		assert_int_equal(at(o, 11)->type, ORC_REGS_PARTIAL);
		assert_int_equal(at(o, 11)->sp_offset, 8);
		assert_int_equal(at(o, 12)->type, ORC_END_OF_STACK);
		/* 4.14 cannot tell these two apart. */
		assert_int_equal(at(o, 13)->type, k ? ORC_UNDEFINED : ORC_END_OF_STACK);
		assert_int_equal(at(o, 14)->sp_reg, ORC_SP_INDIRECT);
		orc_destroy(o);
	}
	assert_string_equal(orc_layout_name(ORC_LAYOUT_6_3), "6.3");
	assert_string_equal(orc_layout_name(ORC_LAYOUT_NONE), "none");
	orc_destroy(NULL);
}

static void lookup_edges(void **state)
{
	struct orc *o;
	uint64_t va;

	(void)state;
	fill(0x200, 0xb05, 0xc05, 0x100);
	put(0, TEXT + 4, 8, 0, 0x205);
	put(501, TEXT + STEP * 500, 72, 0, 0x205); /* the same address twice: */
	put(500, TEXT + STEP * 500, 0, 0, 0);	   /* ... what knows more wins */
	put(N - 1, TEXT + STEP * (N - 1), 0, 0, 0);
	o = build();
	assert_null(orc_lookup(o, 0));
	assert_null(orc_lookup(o, TEXT));
	assert_null(orc_lookup(o, TEXT + 3));
	assert_ptr_equal(orc_lookup(o, TEXT + 4), orc_at(o, 0, &va));
	assert_int_equal(va, TEXT + 4);
	assert_ptr_equal(orc_lookup(o, TEXT + STEP - 1), orc_at(o, 0, &va));
	assert_int_equal(orc_lookup(o, TEXT + STEP * 500)->sp_offset, 72);
	assert_int_equal(orc_lookup(o, TEXT + STEP * N - 1)->type, ORC_UNDEFINED);
	assert_null(orc_lookup(o, TEXT + STEP * N));
	assert_null(orc_lookup(o, UINT64_MAX));
	/* each address: the last entry at or before it */
	for (size_t i = 1; i < orc_count(o); i++) {
		uint64_t next = TEXT + STEP * N;
		const struct orc_entry *x = orc_at(o, i, &va);

		if (i + 1 < orc_count(o))
			orc_at(o, i + 1, &next);
		if (next == va)
			continue;
		assert_ptr_equal(orc_lookup(o, va), x);
		assert_ptr_equal(orc_lookup(o, next - 1), x);
	}
	orc_destroy(o);
}

/* As before 5.6, when the table was sorted at boot. */
static void unsorted(void **state)
{
	struct orc *o;

	(void)state;
	fill(0, 0x105, 0x205, 0x400);
	for (size_t i = 100; i < N; i++)
		put(i, TEXT + STEP * (N + 99 - i), (int)(N + 99 - i) * 8, 0, 0x05);
	o = build();
	assert_int_equal(at(o, 150)->sp_offset, 1200);
	assert_int_equal(at(o, N - 1)->sp_offset, (N - 1) * 8);
	orc_destroy(o);
}

static void refuse(int code)
{
	struct orc_tables t = tables();
	struct orc *o = NULL;

	err_clear(&e);
	assert_int_equal(orc_build(&o, &t, &e), -code);
	assert_null(o);
	assert_int_equal(e.code, code);
	assert_int_equal(orc_build(&o, &t, NULL), -code);
}

static void hostile(void **state)
{
	struct orc_tables t;
	struct orc *o = NULL;

	(void)state;
	memset(entries, 0, sizeof(entries));
	refuse(EINVAL);
	memset(entries, 0xff, sizeof(entries));
	refuse(EINVAL);
	for (size_t i = 0; i < sizeof(entries); i++)
		entries[i] = (uint8_t)(i * 97 >> 3);
	refuse(EINVAL);
	/* types of no layout; a base register that none has; mixed layouts */
	fill(0x700, 0, 0, 0);
	refuse(EINVAL);
	fill(0x20a, 0, 0, 0);
	refuse(EINVAL);
	fill(0x200, 0xb05, 0xc05, 0x100);
	for (size_t i = 20; i < N / 2; i++)
		put(i, TEXT + STEP * i, 8, 0, 0x05);
	refuse(EINVAL);
	/* addresses elsewhere: most of them; of a few the rest is good */
	fill(0x200, 0xb05, 0xc05, 0x100);
	for (size_t i = 0; i < N / 2 + 1; i++)
		put(i, TEXT - 4096, 8, 0, 0x205);
	refuse(EINVAL);
	fill(0x200, 0xb05, 0xc05, 0x100);
	for (size_t i = N - N / 4; i < N; i++)
		put(i, TEXT + STEP * N + 4096, 8, 0, 0x205);
	o = build();
	assert_int_equal(orc_count(o), N - N / 4);
	assert_int_equal(at(o, 10)->type, ORC_REGS);
	orc_destroy(o);
	o = NULL;
	/* one odd entry is not believed, and does not spoil the rest */
	fill(0x200, 0xb05, 0xc05, 0x100);
	put(30, TEXT + STEP * 30, 8, 0, 0xf2ff);
	o = build();
	assert_int_equal(at(o, 30)->type, ORC_UNDEFINED);
	orc_destroy(o);
	o = NULL;
	t = tables();
	t.n = 0;
	assert_int_equal(orc_build(&o, &t, NULL), -EINVAL);
	t = tables();
	t.n = ORC_MAX_ENTRIES + 1ul;
	assert_int_equal(orc_build(&o, &t, NULL), -E2BIG);
	t = tables();
	t.text_end = TEXT + ORC_MAX_SPAN + 1;
	assert_int_equal(orc_build(&o, &t, NULL), -E2BIG);
	t.text_end = TEXT;
	assert_int_equal(orc_build(&o, &t, NULL), -EINVAL);
	assert_null(o);
}

/* -- registers under other numbers --------------------------------------------- */

/* Code of one function, as compilers write it, and its entries as the table of `no` has them. */
struct piece {
	const char *code;
	unsigned int len;
	int sp_offset, bp_offset;
	enum orc_reg sp, bp; /* while what follows the code runs */
};

static const struct piece plain[] = {
	{ "\x55", 1, 16, -16, ORC_SP, ORC_PREV_SP },
	{ "\x48\x89\xe5", 3, 16, -16, ORC_BP, ORC_PREV_SP },
	{ "\x5d", 1, 8, 0, ORC_SP, ORC_UNDEFINED_REG },
};
static const struct piece aligned[] = {
	{ "\x4c\x8d\x54\x24\x08\x48\x83\xe4\xe0", 9, 0, 0, ORC_R10, ORC_UNDEFINED_REG },
	{ "\x41\xff\x72\xf8\x55\x48\x89\xe5", 8, 0, 0, ORC_R10, ORC_BP },
	{ "\x41\x52", 2, -8, 0, ORC_BP_INDIRECT, ORC_BP },
	{ "\x41\x5a\x5d\x49\x8d\x62\xf8", 7, 8, 0, ORC_SP, ORC_UNDEFINED_REG },
};
static const struct piece on_irq[] = {
	{ "\x48\x83\xec\x08", 4, 16, 0, ORC_SP, ORC_UNDEFINED_REG },
	{ "\x49\x89\x23\x4c\x89\xdc", 6, 8, 0, ORC_SP_INDIRECT, ORC_UNDEFINED_REG },
	{ "\x5c", 1, 16, 0, ORC_SP, ORC_UNDEFINED_REG },
};
static const struct piece entry[] = {
	{ "\x48\x89\xe2\x65\x48\x8b\x24\x25\x0c\0\0\0", 12, 8, 0, ORC_DX, ORC_UNDEFINED_REG },
	{ "\x48\x8b\x22", 3, 8, 0, ORC_SP, ORC_UNDEFINED_REG },
};

static uint8_t code[STEP * N];

/* no[reg]: the number of a register in this table. */
static size_t put_function(size_t i, uint64_t off, const struct piece *p, size_t n,
			   const uint8_t *no)
{
	put(i++, TEXT + off, 8, 0, 0x200u | no[ORC_SP]);
	for (size_t k = 0; k < n; k++) {
		memcpy(code + off, p[k].code, p[k].len);
		off += p[k].len;
		put(i++, TEXT + off, p[k].sp_offset, p[k].bp_offset,
		    0x200u | no[p[k].sp] | (unsigned int)no[p[k].bp] << 4);
	}
	return i;
}

static struct orc *build_numbered(const uint8_t *no, bool with_code)
{
	static const struct kimage k = {
		.elf = code,
		.elf_len = sizeof(code),
		.seg = { { .va = TEXT, .file_len = sizeof(code), .mem_len = sizeof(code) } },
		.nseg = 1,
		.text = TEXT,
		.etext = TEXT + sizeof(code),
		.end = TEXT + sizeof(code)
	};
	struct orc_tables t = tables();
	struct orc *o = NULL;
	uint64_t off = 64;
	size_t i = 0;

	memset(code, 0x90, sizeof(code));
	for (unsigned int f = 0; i + 8 < N; f++, off += 64)
		switch (f % 8) {
		case 5:
			i = put_function(i, off, aligned, 4, no);
			break;
		case 6:
			i = put_function(i, off, on_irq, 3, no);
			break;
		case 7:
			if (f == 7) {
				i = put_function(i, off, entry, 2, no);
				break;
			} /* fall through */
		default:
			i = put_function(i, off, plain, 3, no);
		}
	t.n = i;
	t.code = with_code ? &k : NULL;
	err_clear(&e);
	(void)orc_build(&o, &t, &e);
	return o;
}

static const struct orc_entry *behind(const struct orc *o, unsigned int function, unsigned int len)
{
	const struct orc_entry *x = orc_lookup(o, TEXT + 64 + 64 * function + len);

	assert_non_null(x);
	return x;
}

static void check_numbered(const struct orc *o)
{
	assert_int_equal(behind(o, 0, 0)->sp_reg, ORC_SP);
	assert_int_equal(behind(o, 0, 1)->bp_reg, ORC_PREV_SP);
	assert_int_equal(behind(o, 0, 4)->sp_reg, ORC_BP);
	assert_int_equal(behind(o, 5, 9)->sp_reg, ORC_R10);
	assert_int_equal(behind(o, 5, 17)->bp_reg, ORC_BP);
	assert_int_equal(behind(o, 5, 19)->sp_reg, ORC_BP_INDIRECT);
	assert_int_equal(behind(o, 6, 10)->sp_reg, ORC_SP_INDIRECT);
	assert_int_equal(behind(o, 7, 12)->sp_reg, ORC_DX);
}

/* Numbers of kernels that were, and some of one that may come: the code tells. */
static void numbers(void **state)
{
	/* by enum orc_reg: undefined, PREV_SP, DX, DI, BP, SP, R10, R13, BP_, SP_INDIRECT, AX */
	static const uint8_t of_4_14[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	static const uint8_t of_7_1[] = { 0, 8, 2, 5, 4, 3, 6, 7, 10, 9, 1 };
	static const uint8_t to_come[] = { 0, 12, 9, 13, 3, 14, 1, 4, 2, 6, 5 };
	struct orc *o = build_numbered(of_4_14, true);

	(void)state;
	assert_non_null(o);
	check_numbered(o);
	assert_string_equal(orc_format_registers(orc_format_of(o)), "4.14");
	orc_destroy(o);
	o = build_numbered(of_7_1, true);
	assert_non_null(o);
	check_numbered(o);
	assert_string_equal(orc_format_registers(orc_format_of(o)), "7.1");
	orc_destroy(o);
	o = build_numbered(to_come, true);
	assert_non_null(o);
	check_numbered(o);
	assert_string_equal(orc_format_registers(orc_format_of(o)), "found in the code");
	orc_destroy(o);
	/* without code at hand those that were are told apart by what entries may say */
	o = build_numbered(of_4_14, false);
	assert_non_null(o);
	check_numbered(o);
	orc_destroy(o);
	o = build_numbered(of_7_1, false);
	assert_non_null(o);
	check_numbered(o);
	orc_destroy(o);
	assert_null(build_numbered(to_come, false));
	assert_non_null(strstr(e.text, "newer kernel"));
}

/* Types in other bits than any kernel had: refused, whatever the registers are. */
static void later_layout(void **state)
{
	(void)state;
	fill(0x2000, 0x3000, 0x4000, 0x1000);
	refuse(EINVAL);
	assert_non_null(strstr(e.text, "make no sense"));
}

/* An image without section headers: text at 0, a table among other data behind it. */
static void by_content(void **state)
{
	enum { HEAD = 0x200, DATA = HEAD + STEP * N, SIZE = DATA + 64 + 10 * N + 64 };
	static uint8_t image[SIZE];
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_entry = TEXT,
		.e_phoff = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_ehsize = sizeof(eh),
	};
	Elf64_Phdr ph[2] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = HEAD,
		  .p_vaddr = TEXT,
		  .p_filesz = STEP * N,
		  .p_memsz = STEP * N },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_offset = DATA,
		  .p_vaddr = TABLE - 64,
		  .p_filesz = SIZE - DATA,
		  .p_memsz = SIZE - DATA },
	};
	struct kimage k;
	struct orc *o = NULL;
	bool percpu;

	(void)state;
	fill(0x200, 0xb05, 0xc05, 0x100);
	/* As every irq entry does: mov %gs:0x1fb48,%r11; mov %rsp,(%r11); mov %r11,%rsp */
	memcpy(image + HEAD + STEP * 14 - 15,
	       "\x65\x4c\x8b\x1c\x25\x48\xfb\x01\x00\x49\x89\x23\x4c\x89\xdc", 15);
	memcpy(image, &eh, sizeof(eh));
	memcpy(image + sizeof(eh), ph, sizeof(ph));
	memset(image + DATA, 0x11, SIZE - DATA);
	memcpy(image + DATA + 64, ips, sizeof(ips));
	memcpy(image + DATA + 64 + sizeof(ips), entries, sizeof(entries));
	assert_int_equal(kimage_parse(&k, "image", image, SIZE, &e), 0);
	assert_int_equal(orc_open(&o, &k, &e), 0);
	assert_int_equal(orc_count(o), N);
	assert_int_equal(at(o, 10)->type, ORC_REGS);
	assert_int_equal(orc_irq_stack_ptr(o, &k, &percpu), 0x1fb48);
	assert_true(percpu);
	/* without %gs, relative to rip: a variable of a kernel for one processor */
	memcpy(image + HEAD + STEP * 14 - 15, "\x90\x90\x4c\x8b\x1d\x00\x01\x00\x00", 9);
	assert_int_equal(orc_irq_stack_ptr(o, &k, &percpu), TEXT + STEP * 14 - 6 + 0x100);
	assert_false(percpu);
	/* moved: the table's addresses, and what the code at them refers to */
	assert_int_equal(orc_slide(o, 0x1c400000, &e), 0);
	assert_int_equal(orc_slide(o, 0x200000, &e), -EINVAL);
	assert_int_equal(orc_slide_of(o), 0x1c400000);
	assert_null(orc_lookup(o, TEXT + STEP * 10));
	assert_int_equal(orc_lookup(o, TEXT + 0x1c400000 + STEP * 10)->type, ORC_REGS);
	assert_int_equal(orc_irq_stack_ptr(o, &k, &percpu),
			 TEXT + STEP * 14 - 6 + 0x100 + 0x1c400000);
	assert_false(percpu);
	/* per-CPU and linked among the kernel's own addresses, as since 6.15 */
	image[HEAD + STEP * 14 - 14] = 0x65;
	assert_int_equal(orc_irq_stack_ptr(o, &k, &percpu),
			 TEXT + STEP * 14 - 6 + 0x100 + 0x1c400000);
	assert_true(percpu);
	/* per-CPU and linked from 0 on */
	memcpy(image + HEAD + STEP * 14 - 15, "\x65\x4c\x8b\x1c\x25\x48\xfb\x01\x00", 9);
	assert_int_equal(orc_irq_stack_ptr(o, &k, &percpu), 0x1fb48);
	assert_true(percpu);
	image[HEAD + STEP * 14 - 1] = 0x90;
	assert_int_equal(orc_irq_stack_ptr(o, &k, &percpu), 0);
	orc_destroy(o);
	/* and none at all */
	memset(image + DATA, 0, SIZE - DATA);
	err_clear(&e);
	o = NULL;
	assert_int_equal(orc_open(&o, &k, &e), -ENOENT);
	assert_null(o);
}

static void bad_sections(void **state)
{
	static uint8_t image[TINY_SIZE];
	struct tiny_elf t = { .orc = true };
	struct kimage k;
	struct orc *o = NULL;

	(void)state;
	tiny_build(&t, image);
	err_clear(&e);
	assert_int_equal(kimage_parse(&k, "tiny", image, sizeof(image), &e), 0);
	assert_int_equal(orc_open(&o, &k, &e), -EINVAL);
	assert_non_null(strstr(e.text, "do not belong together"));
	t.orc = false;
	tiny_build(&t, image);
	err_clear(&e);
	assert_int_equal(kimage_parse(&k, "tiny", image, sizeof(image), &e), 0);
	assert_int_equal(orc_open(&o, &k, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout), cmocka_unit_test(lookup_edges),
		cmocka_unit_test(unsorted),	cmocka_unit_test(hostile),
		cmocka_unit_test(by_content),	cmocka_unit_test(bad_sections),
		cmocka_unit_test(numbers),	cmocka_unit_test(later_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
