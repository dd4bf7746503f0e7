/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the three 32-bit entries that a kernel can offer in its bytes.
 *
 * Multiboot 1 (GNU Multiboot Specification 0.6.96, 3.1), in the first 8192 bytes of the file at a
 * multiple of 4:
 *
 *	header  := 0x1badb002 flags:4 checksum:4 address? video?
 *	address := header_addr:4 load_addr:4 load_end_addr:4 bss_end_addr:4 entry_addr:4
 *
 * Multiboot2 (Multiboot2 Specification version 2.0, 3.1), in the first 32768 bytes at a multiple
 * of 8:
 *
 *	header  := 0xe85250d6 architecture:4 length:4 checksum:4 { tag } end
 *	tag     := type:2 flags:2 size:4 ... padding to 8
 *	request := 1 ... { kind:4 }
 *	address := 2 ... header_addr:4 load_addr:4 load_end_addr:4 bss_end_addr:4
 *	entry   := 3 ... entry_addr:4
 *	moves   := 10 ... min_addr:4 max_addr:4 align:4 preference:4
 *
 * PVH (Xen's public/arch-x86/hvm/start_info.h and public/elfnote.h), an ELF note:
 *
 *	note := 4 descsz:4 18 "Xen\0" entry:4|8
 */
#include "vmm/image/multiboot.h"

#include "vmm/image/parse.h"

#include "base/cursor.h"
#include "vmm/image/kernel_range.h"
#include "vmm/image/widen.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MULTIBOOT_SEARCH 8192u
#define MULTIBOOT_MAGIC 0x1badb002u
#define MULTIBOOT_KNOWN 0x00000007u    /* modules on pages, memory information, video mode */
#define MULTIBOOT_REQUIRED 0x0000ffffu /* bits that a loader must support or reject */
#define MULTIBOOT_ADDRESSES 0x00010000u

#define MULTIBOOT2_SEARCH 32768u
#define MULTIBOOT2_MAGIC 0xe85250d6u
#define MULTIBOOT2_I386 0u
#define MULTIBOOT2_OPTIONAL 1u
#define MULTIBOOT2_MAX_TAGS 256u
#define MULTIBOOT2_FROM_START UINT32_MAX /* load_addr: the load begins with the file's first byte */
/* Tags of the header and kinds of information up to these numbers are in the specification. */
#define MULTIBOOT2_LAST_TAG 10u
#define MULTIBOOT2_LAST_INFORMATION 21u

enum multiboot2_tag {
	TAG_END = 0,
	TAG_REQUEST = 1,
	TAG_ADDRESS = 2,
	TAG_ENTRY = 3,
	TAG_MOVES = 10,
};

#define XEN_ELFNOTE_PHYS32_ENTRY 18u
#define NOTES_MAX 256u

bool multiboot_find(const uint8_t *file, size_t len, struct boot_multiboot *out)
{
	struct cursor c;

	cursor_init(&c, file, len < MULTIBOOT_SEARCH ? len : MULTIBOOT_SEARCH);
	for (uint64_t at = 0; at + 12 <= c.len; at += 4) {
		struct boot_multiboot h = { .version = 1, .offset = (uint32_t)at };
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

/* Parses one tag of the header; c contains its contents. */
static void take_tag(struct boot_multiboot *h, uint16_t type, bool optional, struct cursor *c)
{
	switch (type) {
	case TAG_REQUEST:
		while (!optional && cursor_left(c) >= 4) {
			uint32_t kind = cursor_u32(c);

			if (kind > MULTIBOOT2_LAST_INFORMATION && !h->unknown)
				h->unknown = kind;
		}
		return;
	case TAG_ADDRESS:
		h->header_addr = cursor_u32(c);
		h->load_addr = cursor_u32(c);
		h->load_end = cursor_u32(c);
		h->bss_end = cursor_u32(c);
		h->flat = true;
		if (h->load_addr == MULTIBOOT2_FROM_START)
			h->load_addr = h->header_addr - h->offset;
		break;
	case TAG_ENTRY:
		h->entry = cursor_u32(c);
		break;
	case TAG_MOVES:
		h->least = cursor_u32(c);
		h->most = cursor_u32(c);
		h->relocatable = true;
		break;
	default:
		/*
		 * The other tags are about screens and EFI. GRUB without EFI ignores them as well:
		 * a preference that it cannot meet is not an error.
		 */
		if (type > MULTIBOOT2_LAST_TAG && !optional && !h->unknown)
			h->unknown = type;
	}
}

/* Parses the tags at c. Returns false if they do not end within it. */
static bool take_tags(struct boot_multiboot *h, struct cursor *c)
{
	for (unsigned int i = 0; i < MULTIBOOT2_MAX_TAGS; i++) {
		uint64_t at = c->pos;
		uint16_t type = cursor_u16(c), flags = cursor_u16(c);
		uint32_t size = cursor_u32(c);
		struct cursor body;

		if (c->bad || size < 8)
			return false;
		if (type == TAG_END)
			return true;
		body = cursor_window(c, at + 8, size - 8);
		take_tag(h, type, flags & MULTIBOOT2_OPTIONAL, &body);
		if (body.bad)
			return false;
		cursor_seek(c, at + ((size + UINT64_C(7)) & ~UINT64_C(7)));
	}
	return false;
}

bool multiboot_find2(const uint8_t *file, size_t len, struct boot_multiboot *out)
{
	struct cursor c;

	cursor_init(&c, file, len < MULTIBOOT2_SEARCH ? len : MULTIBOOT2_SEARCH);
	for (uint64_t at = 0; at + 16 <= c.len; at += 8) {
		struct boot_multiboot h = { .version = 2, .offset = (uint32_t)at };
		struct cursor w = cursor_window(&c, at, 16);
		uint32_t magic = cursor_u32(&w), machine = cursor_u32(&w), size = cursor_u32(&w),
			 sum = cursor_u32(&w);

		if (magic != MULTIBOOT2_MAGIC || machine != MULTIBOOT2_I386 ||
		    magic + machine + size + sum || size < 16)
			continue;
		w = cursor_window(&c, at, size);
		cursor_skip(&w, 16);
		h.damaged = w.bad || !take_tags(&h, &w);
		*out = h;
		return true;
	}
	return false;
}

int multiboot_check(const char *name, const struct boot_multiboot *h, struct err *e)
{
	uint32_t unknown = h->flags & MULTIBOOT_REQUIRED & ~MULTIBOOT_KNOWN;

	if (h->damaged)
		return err_set(e, EINVAL,
			       "%s: damaged multiboot2 header at offset 0x%x: its tags do not end "
			       "within it, or within the file's first %u bytes",
			       name, h->offset, MULTIBOOT2_SEARCH);
	if (h->unknown)
		return err_set(e, ENOTSUP,
			       "%s: the multiboot2 header at offset 0x%x requires what kvmprof "
			       "does not have (a tag or a kind of information of type %u, which it "
			       "does not mark as optional)",
			       name, h->offset, h->unknown);
	return unknown ? err_set(e, ENOTSUP,
				 "%s: the multiboot header at offset 0x%x requires features that "
				 "kvmprof does not have (flags 0x%x, unknown 0x%x)",
				 name, h->offset, h->flags, unknown)
		       : 0;
}

int multiboot_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
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
	return widen_flat(img, name, &flat, e);
}

static uint64_t align4(uint64_t v)
{
	return (v + 3) & ~UINT64_C(3);
}

uint32_t multiboot_pvh_note(const uint8_t *notes, size_t len)
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
