/* SPDX-License-Identifier: GPL-2.0-or-later */
/* boot_fixture: small kernels for the tests of vmm/boot. */
#ifndef KVMPROF_TESTS_UNIT_BOOT_FIXTURE_H
#define KVMPROF_TESTS_UNIT_BOOT_FIXTURE_H

#include "base/buf.h"
#include "vmm/image/parse.h"

#include <elf.h>
#include <string.h>

#define FIX_TEXT_GPA 0x1000000u
#define FIX_TEXT_OFF 0x1000u
#define FIX_TEXT_LEN 0x3000u
#define FIX_DATA_GPA 0x1200000u
#define FIX_DATA_OFF 0x4000u
#define FIX_DATA_LEN 0x1000u
#define FIX_DATA_MEM 0x9000u
#define FIX_LEN 0x5000u
#define FIX_PHDRS 3u
#define FIX_PHDR(i) (sizeof(Elf64_Ehdr) + (i) * sizeof(Elf64_Phdr))

/*
 * Makes a small vmlinux: text with the banner, a per-CPU segment linked at 0, data with bss; the
 * segments are not in the order of their addresses. Bytes repeat with a long period, so that
 * compression has an effect.
 */
static inline void fixture_elf(struct buf *b)
{
	Elf64_Ehdr h = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = FIX_TEXT_GPA + 0x40,
		.e_phoff = sizeof(h),
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = FIX_PHDRS,
	};
	Elf64_Phdr p[FIX_PHDRS] = {
		{ .p_type = PT_LOAD,
		  .p_offset = FIX_DATA_OFF,
		  .p_paddr = FIX_DATA_GPA,
		  .p_vaddr = 0xffffffff81200000,
		  .p_filesz = FIX_DATA_LEN,
		  .p_memsz = FIX_DATA_MEM },
		{ .p_type = PT_LOAD,
		  .p_offset = FIX_TEXT_OFF,
		  .p_paddr = FIX_TEXT_GPA,
		  .p_vaddr = 0xffffffff81000000,
		  .p_filesz = FIX_TEXT_LEN,
		  .p_memsz = FIX_TEXT_LEN },
		{ .p_type = PT_NOTE },
	};
	uint32_t x = 12345;

	buf_add(b, &h, sizeof(h));
	buf_add(b, p, sizeof(p));
	buf_add(b, NULL, FIX_TEXT_OFF - b->len);
	while (b->len < FIX_LEN) {
		x = x * 1103515245 + 12345;
		buf_u8(b, b->len & 64 ? 0x90 : (uint8_t)(x >> 16));
	}
	memcpy(b->data + FIX_TEXT_OFF + 0x800, "Linux version 6.1.0-test", 25);
}

/* Makes a bzImage around a compressed payload; setup_sects 0 means 4. */
static inline void fixture_bzimage(struct buf *b, const void *payload, size_t len)
{
	static const char version[] = "6.1.0-test (a@b) #1";
	size_t setup = 5 * 512, off = 0x40;

	buf_add(b, NULL, setup + off);
	buf_put16(b, SETUP_BOOT_FLAG, SETUP_BOOT_FLAG_VALUE);
	buf_put16(b, SETUP_JUMP, 0x6aeb);
	buf_put32(b, SETUP_MAGIC, SETUP_MAGIC_VALUE);
	buf_put16(b, SETUP_VERSION, 0x020f);
	buf_put16(b, SETUP_KERNEL_VERSION, 0x300);
	b->data[SETUP_LOADFLAGS] = 0x01;
	buf_put32(b, SETUP_INITRD_ADDR_MAX, 0x7fffffff);
	buf_put32(b, SETUP_KERNEL_ALIGNMENT, 0x200000);
	b->data[SETUP_RELOCATABLE] = 1;
	buf_put16(b, SETUP_XLOADFLAGS, 0x003f);
	buf_put32(b, SETUP_CMDLINE_SIZE, 2047);
	buf_put32(b, SETUP_PAYLOAD_OFFSET, (uint32_t)off);
	buf_put32(b, SETUP_PAYLOAD_LENGTH, (uint32_t)len);
	buf_put64(b, SETUP_PREF_ADDRESS, FIX_TEXT_GPA);
	buf_put32(b, SETUP_INIT_SIZE, 0x300000);
	memcpy(b->data + 0x500, version, sizeof(version));
	buf_add(b, payload, len);
	buf_put32(b, SETUP_SYSSIZE, (uint32_t)((off + len + 15) / 16));
	buf_align(b, 16);
	buf_add(b, "signature", 9);
}

#endif
