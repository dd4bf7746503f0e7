/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unified kernel images: their sections, and the kernel in them. */
#include "vmm/image/uki.h"

#include "base/cleanup.h"
#include "vmm/bootdisk/image_kind.h"
#include "tests/unit/boot_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PE_OFF 0x80u
#define MACHINE (PE_OFF + 4)
#define COUNT (PE_OFF + 6)
#define OPTIONAL_LEN (PE_OFF + 20)
#define OPTIONAL (PE_OFF + 24)
#define TABLE (OPTIONAL + 112)
#define ENTRY 40u
#define DATA 0x800u

struct part {
	const char *name;
	const void *data;
	size_t len;
};

static void put_section(struct buf *b, unsigned int i, const char *name, size_t len, size_t off)
{
	size_t at = TABLE + i * ENTRY, n = strlen(name);

	memcpy(b->data + at, name, n < 8 ? n : 8);
	buf_put32(b, at + 8, (uint32_t)len);
	buf_put32(b, at + 16, (uint32_t)(len + 511) & ~511u);
	buf_put32(b, at + 20, (uint32_t)off);
}

static void make(struct buf *b, const struct part *part, unsigned int n)
{
	buf_init(b);
	buf_add(b, NULL, DATA);
	memcpy(b->data, "MZ", 2);
	buf_put32(b, 0x3c, PE_OFF);
	memcpy(b->data + PE_OFF, "PE", 2);
	buf_put16(b, MACHINE, 0x8664);
	buf_put16(b, COUNT, (uint16_t)n);
	buf_put16(b, OPTIONAL_LEN, TABLE - OPTIONAL);
	buf_put16(b, OPTIONAL, 0x20b);
	for (unsigned int i = 0; i < n; i++) {
		put_section(b, i, part[i].name, part[i].len, b->len);
		if (part[i].len)
			buf_add(b, part[i].data, part[i].len);
		buf_align(b, 512);
	}
}

static int parse(struct uki *u, const struct buf *b, struct err *e)
{
	size_t head = b->len < UKI_HEAD ? b->len : UKI_HEAD;
	int ret;

	memset(u, 0xee, sizeof(*u));
	err_clear(e);
	ret = uki_parse(u, "FILE", b->data, head, b->len, e);
	if (ret) {
		assert_int_equal(e->code, ret == -ENOENT ? 0 : -ret);
		assert_int_equal(u->profiles, 0xeeeeeeee);
	}
	return ret;
}

static void has(const struct buf *b, const struct uki *u, enum uki_section kind, const char *text)
{
	assert_int_equal(u->at[kind].len, strlen(text));
	if (*text)
		assert_memory_equal(b->data + u->at[kind].off, text, strlen(text));
}

#define TEXT(name, text)                      \
	{                                     \
		name, text, sizeof(text) - 1, \
	}

static void sections(void **state)
{
	static const struct part parts[] = {
		TEXT(".text", "stub"),	       TEXT(".osrel", "ID=x\n"),
		TEXT(".cmdline", "root=1"),    TEXT(".uname", "6.1.0"),
		TEXT(".initrd", "the initrd"), TEXT(".ucode", "microcode"),
		TEXT(".linux", "kernel"),      TEXT(".linuxes", "not this"),
	};
	struct err e = { 0 };
	struct buf b;
	struct uki u;

	(void)state;
	make(&b, parts, ARRAY_SIZE(parts));
	assert_true(uki_probe(b.data, b.len));
	assert_int_equal(parse(&u, &b, &e), 0);
	has(&b, &u, UKI_LINUX, "kernel");
	has(&b, &u, UKI_INITRD, "the initrd");
	has(&b, &u, UKI_UCODE, "microcode");
	has(&b, &u, UKI_CMDLINE, "root=1");
	has(&b, &u, UKI_OSREL, "ID=x\n");
	has(&b, &u, UKI_UNAME, "6.1.0");
	assert_int_equal(u.profiles, 0);
	/* Without a length in memory, and with a longer one, it is that in the file. */
	for (uint32_t len = 0; len <= 1024; len += 1024) {
		buf_put32(&b, TABLE + 6 * ENTRY + 8, len);
		assert_int_equal(parse(&u, &b, &e), 0);
		assert_int_equal(u.at[UKI_LINUX].len, 512);
	}
	buf_deinit(&b);
	/* The kernel alone is enough; an empty section is none. */
	make(&b, parts + 6, 1);
	assert_int_equal(parse(&u, &b, &e), 0);
	has(&b, &u, UKI_INITRD, "");
	buf_put32(&b, TABLE + 8, 0);
	buf_put32(&b, TABLE + 16, 0);
	assert_int_equal(parse(&u, &b, &e), -ENOENT);
	buf_deinit(&b);
	make(&b, parts, 6);
	assert_int_equal(parse(&u, &b, &e), -ENOENT);
	buf_deinit(&b);
}

static void profiles(void **state)
{
	static const struct part parts[] = {
		TEXT(".linux", "kernel"),     TEXT(".cmdline", "base"),
		TEXT(".initrd", "an initrd"), TEXT(".profile", "ID=regular\n"),
		TEXT(".cmdline", "regular"),  TEXT(".profile", "ID=reset\n"),
		TEXT(".cmdline", "reset"),    TEXT(".initrd", "another"),
		TEXT(".initrd", "twice"),
	};
	struct err e = { 0 };
	struct buf b;
	struct uki u;

	(void)state;
	make(&b, parts, ARRAY_SIZE(parts));
	assert_int_equal(parse(&u, &b, &e), 0);
	assert_int_equal(u.profiles, 2);
	has(&b, &u, UKI_LINUX, "kernel");
	has(&b, &u, UKI_CMDLINE, "regular");
	has(&b, &u, UKI_INITRD, "an initrd");
	buf_deinit(&b);
}

static void refused(const struct buf *b, int code, const char *text)
{
	struct err e = { 0 };
	struct uki u;

	assert_int_equal(parse(&u, b, &e), -code);
	if (!strstr(e.text, text) || strchr(e.text, '\n'))
		fail_msg("\"%s\" is not in: %s", text, e.text);
}

static void damaged(void **state)
{
	static const struct part parts[] = { TEXT(".linux", "kernel"), TEXT(".cmdline", "a"),
					     TEXT(".linux", "again") };
	struct buf b;
	struct uki u;

	(void)state;
	make(&b, parts, 3);
	refused(&b, EINVAL, "FILE: two sections .linux");
	buf_put16(&b, COUNT, 2);
	/* another machine, or a 32-bit program */
	buf_put16(&b, MACHINE, 0xaa64);
	refused(&b, ENOTSUP, "another machine (arm64, 0xaa64)");
	buf_put16(&b, MACHINE, 0x8664);
	buf_put16(&b, OPTIONAL, 0x10b);
	refused(&b, ENOTSUP, "another machine (0x8664)");
	buf_put16(&b, OPTIONAL, 0x20b);
	/* sections that lie outside, also with sums that need more than 32 bits */
	buf_put32(&b, TABLE + 20, 0xffffffff);
	refused(&b, EINVAL, "section .linux has the 6 bytes from 0xffffffff on");
	buf_put32(&b, TABLE + 8, 0xffffffff);
	buf_put32(&b, TABLE + 16, 0xffffffff);
	refused(&b, EINVAL, "4294967295 bytes from 0xffffffff on");
	put_section(&b, 0, ".linux", b.len - DATA + 1, DATA);
	refused(&b, EINVAL, "truncated unified kernel image");
	put_section(&b, 0, ".linux", b.len - DATA, DATA);
	assert_int_equal(parse(&u, &b, &(struct err){ 0 }), 0);
	/* a text that is none */
	buf_add(&b, NULL, UKI_MAX_TEXT + 1);
	put_section(&b, 1, ".cmdline", UKI_MAX_TEXT + 1, DATA);
	refused(&b, EINVAL, "section .cmdline of the unified kernel image has 65537 bytes");
	put_section(&b, 1, ".cmdline", UKI_MAX_TEXT, DATA);
	assert_int_equal(parse(&u, &b, &(struct err){ 0 }), 0);
	/* headers that lead elsewhere */
	buf_put16(&b, COUNT, UKI_MAX_SECTIONS + 1);
	refused(&b, EINVAL, "257 sections, more than the limit of 256");
	buf_put16(&b, COUNT, 2);
	buf_put16(&b, OPTIONAL_LEN, 0xffff);
	refused(&b, EINVAL, "its table of 2 sections ends at byte");
	buf_put16(&b, OPTIONAL_LEN, TABLE - OPTIONAL);
	for (uint32_t at = 0xfffffffc; at >= 0xfffffff0; at -= 4) {
		buf_put32(&b, 0x3c, at);
		refused(&b, ENOENT, "");
	}
	buf_put32(&b, 0x3c, PE_OFF);
	/* cut at each byte: nothing lies beyond the end */
	for (size_t len = 0; len < DATA + 8; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		struct err e = { 0 };

		memcpy(copy, b.data, len);
		assert_true(uki_parse(&u, "FILE", copy, len, len, &e) < 0);
		assert_true(len < TABLE || strstr(e.text, "truncated"));
		free(copy);
	}
	buf_deinit(&b);
}

/* A bzImage is an EFI program as well, and stays what it is. */
static void bzimage_first(void **state)
{
	static const struct part part = TEXT(".linux", "kernel");
	struct buf b;

	(void)state;
	make(&b, &part, 1);
	assert_string_equal(image_kind(b.data, b.len).name, "a unified kernel image");
	buf_put16(&b, SETUP_BOOT_FLAG, SETUP_BOOT_FLAG_VALUE);
	buf_put32(&b, SETUP_MAGIC, SETUP_MAGIC_VALUE);
	assert_false(uki_probe(b.data, b.len));
	assert_string_equal(image_kind(b.data, b.len).name, "a Linux bzImage");
	refused(&b, ENOENT, "");
	buf_deinit(&b);
	make(&b, &(struct part)TEXT(".text", "x"), 1);
	assert_string_equal(image_kind(b.data, b.len).name, "an EFI program");
	/* Also where a file system has its mark. */
	memcpy(b.data + 0x438, "\x53\xef", 2);
	assert_string_equal(image_kind(b.data, b.len).name, "an EFI program");
	buf_deinit(&b);
}

static void parse_image(const struct buf *b, int code, const char *text)
{
	struct boot_image img;
	struct err e = { 0 };

	assert_int_equal(image_parse(&img, "FILE", b->data, b->len, &e), -code);
	if (!strstr(e.text, text) || strchr(e.text, '\n'))
		fail_msg("\"%s\" is not in: %s", text, e.text);
	if (!code)
		image_deinit(&img);
}

static void the_kernel_in_it(void **state)
{
	struct buf elf, bz, b, outer;
	struct boot_image img;
	struct err e = { 0 };

	(void)state;
	buf_init(&elf);
	buf_init(&bz);
	fixture_elf(&elf);
	fixture_bzimage(&bz, elf.data, elf.len);
	make(&b, &(struct part){ ".linux", bz.data, bz.len }, 1);
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), 0);
	assert_int_equal(img.kind, BOOT_BZIMAGE);
	assert_string_equal(img.version, "6.1.0-test (a@b) #1");
	assert_ptr_equal(img.setup, b.data + DATA);
	image_deinit(&img);
	make(&outer, &(struct part){ ".linux", b.data, b.len }, 1);
	parse_image(&outer, EINVAL, "FILE: section .linux: this is another EFI program");
	buf_deinit(&outer);
	buf_put32(&b, TABLE + 16, 0x100);
	parse_image(&b, EINVAL, "FILE: section .linux: ");
	buf_deinit(&b);
	make(&b, &(struct part)TEXT(".linux", "no kernel at all\n"), 1);
	parse_image(&b, EINVAL, "FILE: section .linux: this is a text file");
	buf_put16(&b, MACHINE, 0xaa64);
	parse_image(&b, ENOTSUP, "FILE: this is a unified kernel image for another machine");
	buf_deinit(&b);
	make(&b, &(struct part)TEXT(".sbat", "x"), 1);
	parse_image(&b, EINVAL, "an EFI or Windows program without a Linux kernel in it");
	/* A format that is recognised more precisely keeps its name. */
	memcpy(b.data + 0x38, "ARM\x64", 4);
	parse_image(&b, EINVAL, "an arm64 kernel Image");
	buf_deinit(&b);
	buf_deinit(&bz);
	buf_deinit(&elf);
}

static void texts(void **state)
{
	static const struct {
		const char *in;
		size_t len;
		const char *out;
	} rows[] = {
		{ "", 0, "" },
		{ " \n\t ", 4, "" },
		{ "a b\n", 4, "a b" },
		{ "\n a\tb", 5, "a b" },
		{ "a\0b", 3, "a" },
		{ "\0a", 2, "" },
		{ "\xc3\xa4\x01x", 4, "\xc3\xa4 x" },
	};
	struct buf out;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		buf_init(&out);
		uki_text((const uint8_t *)rows[i].in, rows[i].len, &out);
		assert_string_equal((const char *)out.data, rows[i].out);
		assert_int_equal(out.len, strlen(rows[i].out) + 1);
		buf_deinit(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections),	    cmocka_unit_test(profiles),
		cmocka_unit_test(damaged),	    cmocka_unit_test(bzimage_first),
		cmocka_unit_test(the_kernel_in_it), cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
