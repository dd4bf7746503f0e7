/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two 32-bit entries that a kernel can offer, looked for in its bytes.
 *
 * Multiboot 1 (GNU Multiboot Specification 0.6.96, 3.1), in the first 8192 bytes
 * of the file at a multiple of 4:
 *
 *	header  := 0x1badb002 flags:4 checksum:4 address? video?
 *	address := header_addr:4 load_addr:4 load_end_addr:4 bss_end_addr:4 entry_addr:4
 *
 * PVH (Xen's public/arch-x86/hvm/start_info.h and public/elfnote.h), an ELF note:
 *
 *	note := 4 descsz:4 18 "Xen\0" entry:4|8
 */
#include "vmm/image/parse.h"

#include "base/cursor.h"
#include "vmm/layout.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MULTIBOOT_SEARCH 8192u
#define MULTIBOOT_MAGIC 0x1badb002u
#define MULTIBOOT_KNOWN 0x00000007u    /* modules on pages, memory information, video mode */
#define MULTIBOOT_REQUIRED 0x0000ffffu /* bits that a loader must know or refuse */
#define MULTIBOOT_ADDRESSES 0x00010000u

#define XEN_ELFNOTE_PHYS32_ENTRY 18u
#define NOTES_MAX 256u

bool boot_multiboot_find(const uint8_t *file, size_t len, struct boot_multiboot *out)
{
	struct cursor c;

	cursor_init(&c, file, len < MULTIBOOT_SEARCH ? len : MULTIBOOT_SEARCH);
	for (uint64_t at = 0; at + 12 <= c.len; at += 4) {
		struct boot_multiboot h = { .offset = (uint32_t)at };
		uint32_t magic, sum;

		cursor_seek(&c, at);
		magic = cursor_u32(&c);
		h.flags = cursor_u32(&c);
		sum = cursor_u32(&c);
		if (magic != MULTIBOOT_MAGIC || magic + h.flags + sum)
			continue;
		if (h.flags & MULTIBOOT_ADDRESSES) {
			h.flat = true;
			h.header_addr = cursor_u32(&c);
			h.load_addr = cursor_u32(&c);
			h.load_end = cursor_u32(&c);
			h.bss_end = cursor_u32(&c);
			h.entry = cursor_u32(&c);
			if (c.bad)
				return false;
		}
		*out = h;
		return true;
	}
	return false;
}

int boot_multiboot_check(const char *name, const struct boot_multiboot *h, struct err *e)
{
	uint32_t unknown = h->flags & MULTIBOOT_REQUIRED & ~MULTIBOOT_KNOWN;

	return unknown ? err_set(e, ENOTSUP,
				 "%s: the multiboot header at offset 0x%x asks for features that "
				 "we "
				 "do not have (flags 0x%x, unknown 0x%x)",
				 name, h->offset, h->flags, unknown)
		       : 0;
}

int boot_multiboot_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
			 const struct boot_multiboot *h, struct err *e)
{
	struct boot_flat flat = { .gpa = h->load_addr, .entry = h->entry };
	uint64_t off = (uint64_t)h->offset - (h->header_addr - (uint64_t)h->load_addr);
	uint64_t end = h->load_end;

	if (h->header_addr < h->load_addr || h->header_addr - h->load_addr > h->offset)
		return err_set(e, EINVAL,
			       "%s: damaged multiboot header at offset 0x%x (load_addr 0x%x, "
			       "header_addr 0x%x)",
			       name, h->offset, h->load_addr, h->header_addr);
	if (!end)
		end = h->load_addr + (len - off); /* all of the file */
	if (end <= h->load_addr || end - h->load_addr > len - off)
		return err_set(e, EINVAL,
			       "%s: truncated or damaged: the multiboot header loads 0x%x to "
			       "0x%" PRIx64 " from offset 0x%" PRIx64 " of a file of 0x%zx bytes",
			       name, h->load_addr, end, off, len);
	flat.data = file + off;
	flat.len = (size_t)(end - h->load_addr);
	flat.mem_len = h->bss_end > end ? h->bss_end - h->load_addr : flat.len;
	return boot_flat_wrap(img, name, &flat, e);
}

static uint64_t align4(uint64_t v)
{
	return (v + 3) & ~UINT64_C(3);
}

uint32_t boot_pvh_note(const uint8_t *notes, size_t len)
{
	struct cursor c;

	cursor_init(&c, notes, len);
	for (unsigned int i = 0; i < NOTES_MAX && cursor_left(&c); i++) {
		uint32_t namesz = cursor_u32(&c), descsz = cursor_u32(&c), type = cursor_u32(&c);
		const uint8_t *owner = cursor_bytes(&c, align4(namesz));
		const uint8_t *desc = cursor_bytes(&c, descsz);
		uint64_t entry = 0;

		cursor_skip(&c, align4(descsz) - descsz);
		if (!owner || !desc)
			return 0;
		if (namesz != 4 || memcmp(owner, "Xen", 4) || type != XEN_ELFNOTE_PHYS32_ENTRY ||
		    (descsz != 4 && descsz != 8))
			continue;
		memcpy(&entry, desc, descsz);
		return entry > UINT32_MAX ? 0 : (uint32_t)entry;
	}
	return 0;
}
