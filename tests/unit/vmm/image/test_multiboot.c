/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels with 32-bit entries: what is found in their bytes, and how they are entered. */
#include "tests/unit/boot_fixture.h"

#include "symbolizer/core/insn.h"
#include "vmm/image/image.h"
#include "vmm/image/multiboot.h"
#include "vmm/image/protocol.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define LOAD 0x100000u

static void add_header(struct buf *b, uint32_t flags)
{
	buf_u32(b, 0x1badb002);
	buf_u32(b, flags);
	buf_u32(b, -(0x1badb002 + flags));
}

/* 32 bytes, a header with addresses, 64 bytes; bss of a page behind. */
static void flat(struct buf *b, uint32_t flags, uint32_t entry)
{
	uint32_t field[] = { LOAD + 32, LOAD, LOAD + 128, LOAD + 0x1000, entry };

	buf_init(b);
	buf_add(b, NULL, 32);
	add_header(b, flags);
	buf_add(b, field, sizeof(field));
	buf_add(b, NULL, 64);
}

static void flat_image(void **state)
{
	struct boot_image img;
	enum boot_protocol way;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	flat(&b, 0x10003, LOAD + 64);
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), 0);
	assert_int_equal(img.kind, BOOT_FLAT);
	assert_true(img.multiboot && img.mb_pages && !img.is_linux);
	assert_int_equal(img.mb_entry, LOAD + 64);
	assert_int_equal(img.nseg, 1);
	assert_int_equal(img.seg[0].gpa, LOAD);
	assert_int_equal(img.seg[0].file_len, 128);
	assert_int_equal(img.seg[0].mem_len, 0x1000);
	assert_memory_equal(img.elf + img.seg[0].file_off, b.data, 128);
	assert_int_equal(protocol_of_image(&img, "FILE", BOOT_PROTOCOL_AUTO, &way, &e), 0);
	assert_int_equal(way, BOOT_PROTOCOL_MULTIBOOT);
	assert_int_equal(protocol_of_image(&img, "FILE", BOOT_PROTOCOL_PVH, &way, &e), -EINVAL);
	assert_non_null(strstr(e.text, "FILE can be entered by multiboot"));
	image_deinit(&img);
	buf_deinit(&b);

	err_clear(&e); /* the first message stays */
	flat(&b, 0x10103, LOAD + 64);
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "unknown 0x100"));
	buf_deinit(&b);
	flat(&b, 0x10003, LOAD - 4);
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), -EINVAL);
	buf_deinit(&b);
}

static void header_is_searched(void **state)
{
	struct boot_multiboot h;
	struct buf b;

	(void)state;
	buf_init(&b);
	buf_add(&b, NULL, 8192 - 12);
	add_header(&b, 3);
	assert_true(multiboot_find(b.data, b.len, &h));
	assert_int_equal(h.offset, 8192 - 12);
	assert_false(multiboot_find(b.data, b.len - 1, &h)); /* cut */
	b.data[8192 - 1]++;				     /* checksum */
	assert_false(multiboot_find(b.data, b.len, &h));
	b.len = 0;
	buf_add(&b, NULL, 8192 - 8); /* beyond the first 8192 bytes */
	add_header(&b, 3);
	assert_false(multiboot_find(b.data, b.len, &h));
	b.len = 0;
	buf_add(&b, NULL, 2); /* not aligned */
	add_header(&b, 3);
	assert_false(multiboot_find(b.data, b.len, &h));
	buf_deinit(&b);
}

/* -- multiboot2 -------------------------------------------------------------------------- */

static void tag2(struct buf *b, uint32_t type, unsigned int optional, const uint32_t *field,
		 unsigned int n)
{
	buf_u32(b, type | optional << 16);
	buf_u32(b, 8 + 4 * n);
	buf_add(b, field, 4 * n);
	buf_align(b, 8);
}

static void begin2(struct buf *b)
{
	buf_u32(b, 0xe85250d6);
	buf_add(b, NULL, 12);
}

/* The header began at `at`, a multiple of 8. */
static void end2(struct buf *b, size_t at)
{
	uint32_t len;

	tag2(b, 0, 0, NULL, 0);
	len = (uint32_t)(b->len - at);
	buf_put32(b, at + 8, len);
	buf_put32(b, at + 12, -(0xe85250d6 + len));
}

#define FIELDS(...) (const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4

static int parse2(struct buf *b, struct boot_image *img, struct err *e)
{
	int ret;

	err_clear(e);
	ret = image_parse(img, "FILE", b->data, b->len, e);
	return ret;
}

/* fixture_elf() has room in front of its text. */
static void elf2(struct buf *b, uint32_t type, unsigned int optional, const uint32_t *field,
		 unsigned int n)
{
	struct buf header;

	buf_init(b);
	fixture_elf(b);
	memset(b->data + FIX_TEXT_OFF + 0x800, 0, 25); /* no Linux */
	buf_init(&header);
	begin2(&header);
	tag2(&header, type, optional, field, n);
	end2(&header, 0);
	assert_true(header.len < FIX_TEXT_OFF - 0x200);
	memcpy(b->data + 0x200, header.data, header.len);
	buf_deinit(&header);
}

static void multiboot2_elf(void **state)
{
	static const struct {
		uint32_t type, field[4];
		unsigned int optional, n;
		int code;
		uint32_t entry;
		const char *text;
	} cases[] = {
		{ 3, { FIX_TEXT_GPA + 0x80 }, 0, 1, 0, FIX_TEXT_GPA + 0x80, NULL },
		{ 3, { FIX_TEXT_GPA - 1 }, 0, 1, -EINVAL, 0, "lies in no segment" },
		{ 1, { 1, 6, 15 }, 0, 3, 0, FIX_TEXT_GPA + 0x40, NULL },
		{ 1, { 6, 77 }, 0, 2, -ENOTSUP, 0, "type 77" },
		{ 1, { 6, 77 }, 1, 2, 0, FIX_TEXT_GPA + 0x40, NULL },
		{ 5, { 1024, 768, 32 }, 0, 3, 0, FIX_TEXT_GPA + 0x40, NULL },
		{ 4711, { 0 }, 0, 1, -ENOTSUP, 0, "type 4711" },
		{ 4711, { 0 }, 1, 1, 0, FIX_TEXT_GPA + 0x40, NULL },
		{ 10, { 0x100000, 0xffffffff, 4096, 0 }, 0, 4, 0, FIX_TEXT_GPA + 0x40, NULL },
		{ 10,
		  { 0x2000000, 0xffffffff, 4096, 0 },
		  0,
		  4,
		  -ENOTSUP,
		  0,
		  "0x2000000..0xffffffff" },
		{ 10, { 0x100000 }, 0, 1, -EINVAL, 0, "damaged multiboot2 header" },
	};
	struct boot_image img;
	enum boot_protocol way;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int ret;

		elf2(&b, cases[i].type, cases[i].optional, cases[i].field, cases[i].n);
		ret = parse2(&b, &img, &e);
		if (ret != cases[i].code || (ret && !strstr(e.text, cases[i].text)))
			fail_msg("case %zu: %d \"%s\"", i, ret, e.text);
		if (!ret) {
			assert_int_equal(img.mb2_entry, cases[i].entry);
			assert_false(img.multiboot);
			assert_int_equal(
				protocol_of_image(&img, "FILE", BOOT_PROTOCOL_AUTO, &way, &e), 0);
			assert_int_equal(way, BOOT_PROTOCOL_MULTIBOOT2);
			image_deinit(&img);
		}
		buf_deinit(&b);
	}
	/* GRUB takes a linked entry for what it means. */
	elf2(&b, 1, 0, FIELDS(6));
	buf_put64(&b, offsetof(Elf64_Ehdr, e_entry), 0xffffffff81000010);
	assert_int_equal(parse2(&b, &img, &e), 0);
	assert_int_equal(img.mb2_entry, FIX_TEXT_GPA + 0x10);
	image_deinit(&img);
	/* Another machine's header, and a damaged one of a kernel that has another way. */
	buf_put32(&b, 0x200 + 4, 4);
	buf_put32(&b, 0x200 + 12, -(0xe85250d6 + 4 + 40));
	assert_int_equal(parse2(&b, &img, &e), 0);
	assert_int_equal(img.mb2_entry, 0);
	image_deinit(&img);
	buf_deinit(&b);
	elf2(&b, 4711, 0, FIELDS(0));
	memcpy(b.data + FIX_TEXT_OFF + 0x800, "Linux version 6.1.0-test", 25);
	assert_int_equal(parse2(&b, &img, &e), 0);
	assert_int_equal(img.mb2_entry, 0);
	image_deinit(&img);
	buf_deinit(&b);
}

/* Bytes without a format, with addresses; load_addr may be "from the file's first byte". */
static void multiboot2_flat(void **state)
{
	struct boot_image img;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	for (unsigned int from_start = 0; from_start < 2; from_start++) {
		buf_init(&b);
		buf_add(&b, NULL, 32);
		begin2(&b);
		tag2(&b, 2, 0, FIELDS(LOAD + 32, from_start ? UINT32_MAX : LOAD, 0, LOAD + 0x1000));
		tag2(&b, 3, 0, FIELDS(LOAD + 100));
		end2(&b, 32);
		buf_add(&b, NULL, 64);
		assert_int_equal(parse2(&b, &img, &e), 0);
		assert_int_equal(img.kind, BOOT_FLAT);
		assert_int_equal(img.mb2_entry, LOAD + 100);
		assert_int_equal(img.seg[0].gpa, LOAD);
		assert_int_equal(img.seg[0].file_len, b.len);
		assert_int_equal(img.seg[0].mem_len, 0x1000);
		image_deinit(&img);
		b.len = 60; /* cut */
		assert_int_equal(parse2(&b, &img, &e), -EINVAL);
		assert_non_null(strstr(e.text, "damaged multiboot2 header"));
		buf_deinit(&b);
	}
}

static void note(struct buf *b, const char *owner, uint32_t type, uint64_t entry, uint32_t size)
{
	buf_u32(b, 4);
	buf_u32(b, size);
	buf_u32(b, type);
	buf_add(b, owner, 4);
	buf_add(b, &entry, size);
}

static void pvh_note(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	note(&b, "GNU", 18, 1, 4);
	note(&b, "Xen", 1, 2, 4);
	assert_int_equal(multiboot_pvh_note(b.data, b.len), 0);
	note(&b, "Xen", 18, 0x123450, 8);
	assert_int_equal(multiboot_pvh_note(b.data, b.len), 0x123450);
	assert_int_equal(multiboot_pvh_note(b.data, b.len - 1), 0);
	b.len = 0;
	note(&b, "Xen", 18, UINT64_C(0x100000000), 8);
	assert_int_equal(multiboot_pvh_note(b.data, b.len), 0);
	buf_deinit(&b);
}

static void linux_goes_first(void **state)
{
	struct boot_image img;
	enum boot_protocol way;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	buf_init(&b);
	fixture_elf(&b);
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), 0);
	img.pvh_entry = FIX_TEXT_GPA;
	assert_int_equal(protocol_of_image(&img, "FILE", BOOT_PROTOCOL_AUTO, &way, &e), 0);
	assert_int_equal(way, BOOT_PROTOCOL_VMLINUX);
	assert_int_equal(protocol_of_image(&img, "FILE", BOOT_PROTOCOL_PVH, &way, &e), 0);
	assert_int_equal(way, BOOT_PROTOCOL_PVH);
	img.is_linux = false;
	assert_int_equal(protocol_of_image(&img, "FILE", BOOT_PROTOCOL_AUTO, &way, &e), 0);
	assert_int_equal(way, BOOT_PROTOCOL_PVH);
	image_deinit(&img);
	buf_deinit(&b);
	for (unsigned int i = 0; i <= BOOT_PROTOCOL_AUTO; i++) {
		assert_int_equal(protocol_parse(protocol_name((enum boot_protocol)i), &way), 0);
		assert_int_equal(way, i);
	}
	assert_int_equal(protocol_parse("grub", &way), -EINVAL);
}

static void prologues_of_32_bit_code(void **state)
{
	static const uint8_t plain[] = { 0x55, 0x89, 0xe5, 0xc3 };
	static const uint8_t apart[] = { 0xf3, 0x0f, 0x1e, 0xfb, 0x55, 0x31, 0xc9, 0x8b, 0xec };
	static const uint8_t none[] = { 0x31, 0xc0, 0x89, 0xe5, 0xc3 };
	unsigned int push, mov;

	(void)state;
	assert_true(insn_prologue32(plain, sizeof(plain), &push, &mov));
	assert_true(push == 0 && mov == 1);
	assert_true(insn_prologue32(apart, sizeof(apart), &push, &mov));
	assert_true(push == 4 && mov == 7);
	assert_false(insn_prologue32(apart, sizeof(apart) - 1, &push, &mov));
	assert_false(insn_prologue32(none, sizeof(none), &push, &mov));
	assert_false(insn_prologue32(none, 0, &push, &mov));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flat_image),
		cmocka_unit_test(header_is_searched),
		cmocka_unit_test(multiboot2_elf),
		cmocka_unit_test(multiboot2_flat),
		cmocka_unit_test(pvh_note),
		cmocka_unit_test(linux_goes_first),
		cmocka_unit_test(prologues_of_32_bit_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
