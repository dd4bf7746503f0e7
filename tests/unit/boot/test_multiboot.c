/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels with 32-bit entries: what is found in their bytes, and how they are entered. */
#include "tests/unit/boot_fixture.h"

#include "symbolizer/core/insn.h"
#include "vmm/image/image.h"

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
	enum boot_way way;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	flat(&b, 0x10003, LOAD + 64);
	assert_int_equal(boot_image_parse(&img, "FILE", b.data, b.len, &e), 0);
	assert_int_equal(img.kind, BOOT_FLAT);
	assert_true(img.multiboot && img.mb_pages && !img.is_linux);
	assert_int_equal(img.mb_entry, LOAD + 64);
	assert_int_equal(img.nseg, 1);
	assert_int_equal(img.seg[0].gpa, LOAD);
	assert_int_equal(img.seg[0].file_len, 128);
	assert_int_equal(img.seg[0].mem_len, 0x1000);
	assert_memory_equal(img.elf + img.seg[0].file_off, b.data, 128);
	assert_int_equal(boot_image_way(&img, "FILE", BOOT_WAY_AUTO, &way, &e), 0);
	assert_int_equal(way, BOOT_WAY_MULTIBOOT);
	assert_int_equal(boot_image_way(&img, "FILE", BOOT_WAY_PVH, &way, &e), -EINVAL);
	assert_non_null(strstr(e.text, "FILE can be entered by multiboot"));
	boot_image_deinit(&img);
	buf_deinit(&b);

	err_clear(&e); /* the first message stays */
	flat(&b, 0x10103, LOAD + 64);
	assert_int_equal(boot_image_parse(&img, "FILE", b.data, b.len, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "unknown 0x100"));
	buf_deinit(&b);
	flat(&b, 0x10003, LOAD - 4);
	assert_int_equal(boot_image_parse(&img, "FILE", b.data, b.len, &e), -EINVAL);
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
	assert_true(boot_multiboot_find(b.data, b.len, &h));
	assert_int_equal(h.offset, 8192 - 12);
	assert_false(boot_multiboot_find(b.data, b.len - 1, &h)); /* cut */
	b.data[8192 - 1]++;					  /* checksum */
	assert_false(boot_multiboot_find(b.data, b.len, &h));
	b.len = 0;
	buf_add(&b, NULL, 8192 - 8); /* beyond the first 8192 bytes */
	add_header(&b, 3);
	assert_false(boot_multiboot_find(b.data, b.len, &h));
	b.len = 0;
	buf_add(&b, NULL, 2); /* not aligned */
	add_header(&b, 3);
	assert_false(boot_multiboot_find(b.data, b.len, &h));
	buf_deinit(&b);
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
	assert_int_equal(boot_pvh_note(b.data, b.len), 0);
	note(&b, "Xen", 18, 0x123450, 8);
	assert_int_equal(boot_pvh_note(b.data, b.len), 0x123450);
	assert_int_equal(boot_pvh_note(b.data, b.len - 1), 0);
	b.len = 0;
	note(&b, "Xen", 18, UINT64_C(0x100000000), 8);
	assert_int_equal(boot_pvh_note(b.data, b.len), 0);
	buf_deinit(&b);
}

static void linux_goes_first(void **state)
{
	struct boot_image img;
	enum boot_way way;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	buf_init(&b);
	fixture_elf(&b);
	assert_int_equal(boot_image_parse(&img, "FILE", b.data, b.len, &e), 0);
	img.pvh_entry = FIX_TEXT_GPA;
	assert_int_equal(boot_image_way(&img, "FILE", BOOT_WAY_AUTO, &way, &e), 0);
	assert_int_equal(way, BOOT_WAY_VMLINUX);
	assert_int_equal(boot_image_way(&img, "FILE", BOOT_WAY_PVH, &way, &e), 0);
	assert_int_equal(way, BOOT_WAY_PVH);
	img.is_linux = false;
	assert_int_equal(boot_image_way(&img, "FILE", BOOT_WAY_AUTO, &way, &e), 0);
	assert_int_equal(way, BOOT_WAY_PVH);
	boot_image_deinit(&img);
	buf_deinit(&b);
	for (unsigned int i = 0; i <= BOOT_WAY_AUTO; i++) {
		assert_int_equal(boot_way_parse(boot_way_name((enum boot_way)i), &way), 0);
		assert_int_equal(way, i);
	}
	assert_int_equal(boot_way_parse("grub", &way), -EINVAL);
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
		cmocka_unit_test(pvh_note),
		cmocka_unit_test(linux_goes_first),
		cmocka_unit_test(prologues_of_32_bit_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
