/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Linux bzImage (Documentation/arch/x86/boot.rst):
 *
 *	file    := setup[(setup_sects + 1) * 512] kernel[syssize * 16] signature?
 *	kernel  := decompressor, with the payload at payload_offset
 *	payload := compressed(vmlinux relocations?) uncompressed_size:4
 *
 * We take the vmlinux out and enter it directly: what the decompressor would do
 * in the guest, in seconds on a slow host, the host does in a fraction of one.
 */
#include "vmm/boot/parse.h"

#include "base/cursor.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECTOR 512u
#define SETUP_SECTS_DEFAULT 4u	 /* what 0 means, for old boot sectors */
#define PROTOCOL_PAYLOAD 0x0208u /* first with payload_offset */
#define PROTOCOL_XLOADFLAGS 0x020cu
#define XLF_KERNEL_64 0x0001u

static uint16_t read16(const struct cursor *file, uint64_t off)
{
	struct cursor w = cursor_window(file, off, 2);

	return cursor_u16(&w);
}

static uint32_t read32(const struct cursor *file, uint64_t off)
{
	struct cursor w = cursor_window(file, off, 4);

	return cursor_u32(&w);
}

bool boot_bzimage_probe(const uint8_t *file, size_t len)
{
	struct cursor c;

	cursor_init(&c, file, len);
	return read16(&c, SETUP_BOOT_FLAG) == SETUP_BOOT_FLAG_VALUE &&
	       read32(&c, SETUP_MAGIC) == SETUP_MAGIC_VALUE;
}

/* The header ends where the jump over it lands. */
static int keep_setup_header(struct boot_image *img, const struct cursor *file, const char *name,
			     struct err *e)
{
	uint64_t end = SETUP_MAGIC + (read16(file, SETUP_JUMP) >> 8);
	struct cursor w;
	const uint8_t *p;

	/* The fields that protocol 2.08 promises must be there; newer than we know is cut. */
	if (end < SETUP_PAYLOAD_LENGTH + 4)
		return err_set(e, EINVAL,
			       "%s: damaged setup header (ends at 0x%" PRIx64
			       ", expected 0x%x or more)",
			       name, end, SETUP_PAYLOAD_LENGTH + 4);
	if (end > SETUP_HEADER + BOOT_SETUP_HEADER_MAX)
		end = SETUP_HEADER + BOOT_SETUP_HEADER_MAX;
	w = cursor_window(file, SETUP_HEADER, end - SETUP_HEADER);
	p = cursor_bytes(&w, end - SETUP_HEADER);
	if (!p)
		return err_set(e, EINVAL,
			       "%s: truncated: %zu bytes, the setup header ends at 0x%" PRIx64,
			       name, file->len, end);
	img->setup_header_len = end - SETUP_HEADER;
	memcpy(img->setup_header, p, img->setup_header_len);
	return 0;
}

/* For messages to people only: anything odd about it and there is none. */
static void read_version(struct boot_image *img, const struct cursor *file, uint64_t setup_len)
{
	uint16_t off = read16(file, SETUP_KERNEL_VERSION);
	const char *s;

	if (!off || off + 0x200u >= setup_len)
		return;
	s = cursor_str_at(file, off + 0x200u);
	if (!s)
		return;
	snprintf(img->version, sizeof(img->version), "%s", s);
	for (char *p = img->version; *p; p++)
		if (!isascii((unsigned char)*p) || !isprint((unsigned char)*p))
			*p = '?';
}

int boot_bzimage_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		       size_t max_kernel, struct err *e)
{
	uint64_t setup_len, kernel_len, payload_off, payload_end;
	uint32_t sects, off, plen;
	const uint8_t *payload;
	struct cursor c;
	uint16_t version;
	int r;

	cursor_init(&c, file, len);
	version = read16(&c, SETUP_VERSION);
	if (version < PROTOCOL_PAYLOAD)
		return err_set(
			e, ENOTSUP,
			"%s: Linux boot protocol %u.%02u is too old (expected 2.08 or newer, "
			"Linux 2.6.26)",
			name, version >> 8, version & 0xff);
	if (version >= PROTOCOL_XLOADFLAGS && !(read16(&c, SETUP_XLOADFLAGS) & XLF_KERNEL_64))
		return err_set(e, ENOTSUP,
			       "%s: a 32-bit Linux kernel (xloadflags 0x%x without XLF_KERNEL_64); "
			       "only 64-bit kernels can be booted",
			       name, read16(&c, SETUP_XLOADFLAGS));
	r = keep_setup_header(img, &c, name, e);
	if (r)
		return r;

	sects = file[SETUP_SECTS] ? file[SETUP_SECTS] : SETUP_SECTS_DEFAULT;
	setup_len = ((uint64_t)sects + 1) * SECTOR;
	off = read32(&c, SETUP_PAYLOAD_OFFSET);
	plen = read32(&c, SETUP_PAYLOAD_LENGTH);
	/* 32-bit values in 64-bit sums: these cannot wrap */
	payload_off = setup_len + off;
	payload_end = payload_off + plen;
	if (plen < 8)
		return err_set(e, EINVAL,
			       "%s: the setup header names no compressed kernel (payload_length "
			       "%" PRIu32
			       " at offset 0x%x): damaged, or a program like memtest that "
			       "only boots like Linux",
			       name, plen, SETUP_PAYLOAD_LENGTH);
	kernel_len = (uint64_t)read32(&c, SETUP_SYSSIZE) * 16;
	if (off + (uint64_t)plen > kernel_len)
		return err_set(e, EINVAL,
			       "%s: damaged setup header (the payload ends at 0x%" PRIx64
			       ", the kernel part at syssize 0x%" PRIx64 ")",
			       name, off + (uint64_t)plen, kernel_len);
	if (payload_end > len)
		return err_set(e, EINVAL,
			       "%s: truncated: %zu bytes, but the kernel inside ends at %" PRIu64
			       "; fetch it again",
			       name, len, payload_end);
	read_version(img, &c, setup_len);

	img->cmdline_max = read32(&c, SETUP_CMDLINE_SIZE);
	if (!img->cmdline_max)
		img->cmdline_max = LINUX_CMDLINE_MAX;

	payload = file + payload_off;
	if (!memcmp(payload, ELFMAG, SELFMAG)) {
		img->compression = "none"; /* CONFIG_KERNEL_UNCOMPRESSED */
		img->elf = payload;
		img->elf_len = plen;
	} else {
		r = boot_unpack(name, payload, plen, max_kernel, &img->unpacked, &img->elf_len, e);
		if (r)
			return r;
		img->compression = boot_unpack_detect(payload, plen);
		img->elf = img->unpacked;
		if (img->elf_len < SELFMAG || memcmp(img->elf, ELFMAG, SELFMAG))
			return err_set(e, EINVAL,
				       "%s: the %s payload is not an ELF vmlinux (%zu bytes after "
				       "decompression)",
				       name, img->compression, img->elf_len);
	}
	return boot_elf64_parse(img, name, e);
}
