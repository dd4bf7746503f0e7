/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses a Linux bzImage (Documentation/arch/x86/boot.rst):
 *
 *	file    := setup[(setup_sects + 1) * 512] kernel[syssize * 16] signature?
 *	kernel  := decompressor, with the payload at payload_offset
 *	payload := compressed(vmlinux relocations?) uncompressed_size:4
 *
 * The vmlinux is extracted and entered directly: the host does in a fraction of a second what the
 * decompressor would do in the guest, in seconds on a slow host. On request (BOOT_PROTOCOL_BZIMAGE) the
 * decompressor runs nevertheless, since only it gives a kernel a random address. It is entered by
 * the 64-bit boot protocol.
 */
#include "vmm/image/bzimage.h"

#include "vmm/image/parse.h"

#include "base/cursor.h"
#include "vmm/image/kernel_range.h"
#include "vmm/image/elf64.h"
#include "vmm/image/unpack.h"
#include "vmm/image/widen.h"
#include "vmm/image/protocol.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECTOR 512u
#define SETUP_SECTS_DEFAULT 4u	   /* meaning of 0 in old boot sectors */
#define PROTOCOL_PAYLOAD 0x0208u   /* first protocol with payload_offset */
#define PROTOCOL_INIT_SIZE 0x020au /* first protocol with pref_address and init_size */
#define LINUXLIKE_GPA GPA_KERNEL_MIN
#define OLD_CMDLINE_MAX 255u /* for protocols before cmdline_size */
#define PROTOCOL_XLOADFLAGS 0x020cu
#define ENTRY_64 0x200u /* offset of startup_64 in the protected-mode part */
/*
 * The unit of syssize. Some builders' files end with the last used byte instead of a whole
 * paragraph.
 */
#define PARAGRAPH 16u

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

bool bzimage_probe(const uint8_t *file, size_t len)
{
	struct cursor c;

	cursor_init(&c, file, len);
	return read16(&c, SETUP_BOOT_FLAG) == SETUP_BOOT_FLAG_VALUE &&
	       read32(&c, SETUP_MAGIC) == SETUP_MAGIC_VALUE;
}

/* Copies the setup header, which ends at the target of the jump over it. */
static int keep_setup_header(struct boot_image *img, const struct cursor *file, const char *name,
			     struct err *e)
{
	uint64_t end = SETUP_MAGIC + (read16(file, SETUP_JUMP) >> 8);
	struct cursor w;
	const uint8_t *p;

	/* Bytes after an old header are not part of it. */
	if (read16(file, SETUP_VERSION) < PROTOCOL_PAYLOAD && end > SETUP_PAYLOAD_OFFSET)
		end = SETUP_PAYLOAD_OFFSET;
	/*
	 * The fields that protocol 2.08 guarantees must be present; fields that this version does
	 * not know are cut off.
	 */
	else if (end < SETUP_PAYLOAD_LENGTH + 4)
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

/* Reads the version string, which is only for messages. If it is invalid, the version is "". */
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

/*
 * Parses a program that boots like Linux but contains no vmlinux: its protected-mode part is the
 * whole program, and is entered unless it has to start in real mode.
 */
static int parse_linuxlike(struct boot_image *img, const char *name, const struct cursor *file,
			   struct err *e)
{
	uint64_t version = parse_setup_field(img, SETUP_VERSION, 2);
	struct boot_flat flat = { .data = img->pm, .len = img->pm_len, .gpa = LINUXLIKE_GPA };
	uint64_t init = 0;

	img->kind = BOOT_LINUXLIKE;
	img->is_linux = false;
	if (!img->pm_len)
		return err_set(e, EINVAL, "%s: truncated: %zu bytes, nothing behind the setup code",
			       name, file->len);
	if (version >= PROTOCOL_INIT_SIZE) {
		flat.gpa = parse_setup_field(img, SETUP_PREF_ADDRESS, 8);
		init = parse_setup_field(img, SETUP_INIT_SIZE, 4);
	}
	flat.mem_len = init > flat.len ? init : flat.len;
	flat.entry = flat.gpa;
	if (parse_setup_field(img, SETUP_XLOADFLAGS, 2) & XLF_KERNEL_64)
		flat.entry += ENTRY_64;
	return widen_flat(img, name, &flat, e);
}

/* Determines the parts of the file and reads its header. */
static int read_parts(struct boot_image *img, const struct cursor *c, const char *name,
		      struct err *e)
{
	uint32_t sects = c->base[SETUP_SECTS] ? c->base[SETUP_SECTS] : SETUP_SECTS_DEFAULT;
	uint64_t setup_len = ((uint64_t)sects + 1) * SECTOR, kernel_len;
	int r = keep_setup_header(img, c, name, e);

	if (r)
		return r;
	if (setup_len > c->len)
		return err_set(e, EINVAL,
			       "%s: truncated: %zu bytes, the setup code has %" PRIu64
			       "; fetch it again",
			       name, c->len, setup_len);
	kernel_len = parse_setup_field(img, SETUP_SYSSIZE, 4) * PARAGRAPH;
	read_version(img, c, setup_len);
	img->setup = c->base;
	img->setup_len = setup_len;
	img->pm = c->base + setup_len;
	img->pm_len = kernel_len < c->len - setup_len ? kernel_len : c->len - setup_len;
	img->cmdline_max = (uint32_t)parse_setup_field(img, SETUP_CMDLINE_SIZE, 4);
	return 0;
}

/* Checks that the compressed kernel is inside the file. */
static int find_payload(const struct boot_image *img, const char *name, size_t len, uint32_t off,
			uint32_t plen, struct err *e)
{
	uint64_t kernel_len = parse_setup_field(img, SETUP_SYSSIZE, 4) * PARAGRAPH;
	/* 32-bit values in 64-bit sums: these cannot wrap */
	uint64_t end = img->setup_len + off + (uint64_t)plen;

	if (plen < 8)
		return err_set(e, EINVAL,
			       "%s: the setup header names no compressed kernel (payload_length "
			       "%" PRIu32 " at offset 0x%x): damaged",
			       name, plen, SETUP_PAYLOAD_LENGTH);
	if (off + (uint64_t)plen > kernel_len)
		return err_set(e, EINVAL,
			       "%s: damaged setup header (the payload ends at 0x%" PRIx64
			       ", the kernel part at syssize 0x%" PRIx64 ")",
			       name, off + (uint64_t)plen, kernel_len);
	if (end > len)
		return err_set(e, EINVAL,
			       "%s: truncated: %zu bytes, but the kernel inside ends at %" PRIu64
			       "; fetch it again",
			       name, len, end);
	return 0;
}

int bzimage_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		  size_t max_kernel, struct err *e)
{
	uint32_t off, plen, code32;
	const uint8_t *payload;
	struct cursor c;
	uint16_t version;
	int r;

	cursor_init(&c, file, len);
	version = read16(&c, SETUP_VERSION);
	code32 = read32(&c, SETUP_CODE32_START);
	off = version < PROTOCOL_PAYLOAD ? 0 : read32(&c, SETUP_PAYLOAD_OFFSET);
	plen = version < PROTOCOL_PAYLOAD ? 0 : read32(&c, SETUP_PAYLOAD_LENGTH);
	/* Linux of that age always has code for 32-bit mode, iPXE has none. */
	if (version < PROTOCOL_PAYLOAD && code32)
		return err_set(
			e, ENOTSUP,
			"%s: Linux boot protocol %u.%02u is too old (expected 2.08 or newer, "
			"Linux 2.6.26)",
			name, version >> 8, version & 0xff);
	if (plen && version >= PROTOCOL_XLOADFLAGS &&
	    !(read16(&c, SETUP_XLOADFLAGS) & XLF_KERNEL_64))
		return err_set(e, ENOTSUP,
			       "%s: a 32-bit Linux kernel (xloadflags 0x%x without XLF_KERNEL_64); "
			       "only 64-bit kernels can be booted",
			       name, read16(&c, SETUP_XLOADFLAGS));
	r = read_parts(img, &c, name, e);
	if (r)
		return r;
	if (!img->cmdline_max)
		img->cmdline_max = plen ? LINUX_CMDLINE_MAX : OLD_CMDLINE_MAX;
	if (!off && !plen) {
		r = parse_linuxlike(img, name, &c, e);
		return r ? r : image_elf64_parse(img, name, e);
	}
	r = find_payload(img, name, len, off, plen, e);
	if (r)
		return r;

	payload = img->pm + off;
	if (!memcmp(payload, ELFMAG, SELFMAG)) {
		img->compression = "none"; /* CONFIG_KERNEL_UNCOMPRESSED */
		img->elf = payload;
		img->elf_len = plen;
	} else {
		r = unpack_image(name, (struct bytes){ payload, plen }, max_kernel, &img->unpacked,
				 &img->elf_len, e);
		if (r)
			return r;
		img->compression = unpack_detect(payload, plen);
		img->elf = img->unpacked;
		if (img->elf_len < SELFMAG || memcmp(img->elf, ELFMAG, SELFMAG))
			return err_set(e, EINVAL,
				       "%s: the %s payload is not an ELF vmlinux (%zu bytes after "
				       "decompression)",
				       name, img->compression, img->elf_len);
	}
	return image_elf64_parse(img, name, e);
}

/* -- through the decompressor -------------------------------------------------- */

/* Checks whether the setup header allows entering the decompressor by the boot protocol in use. */
static int check_protocol(const struct boot_image *img, bool long_mode, struct err *e)
{
	uint64_t version = parse_setup_field(img, SETUP_VERSION, 2);
	uint64_t syssize = parse_setup_field(img, SETUP_SYSSIZE, 4) * PARAGRAPH;
	unsigned int flags = (unsigned int)parse_setup_field(img, SETUP_LOADFLAGS, 1);
	unsigned int xflags = (unsigned int)parse_setup_field(img, SETUP_XLOADFLAGS, 2);

	if (long_mode && version < PROTOCOL_XLOADFLAGS)
		return err_set(e, ENOTSUP,
			       "boot protocol %u.%02u knows no 64-bit entry into the decompressor "
			       "(expected 2.12 or newer, Linux 3.8); boot it with --boot=vmlinux",
			       (unsigned int)version >> 8, (unsigned int)version & 0xff);
	if (long_mode && !(xflags & XLF_KERNEL_64))
		return err_set(e, ENOTSUP,
			       "the bzImage has no 64-bit entry into its decompressor (xloadflags "
			       "0x%x without XLF_KERNEL_64); boot it with --boot=vmlinux",
			       xflags);
	if (!(flags & LOADFLAG_LOADED_HIGH))
		return err_set(e, ENOTSUP,
			       "the decompressor wants to be loaded below 1 MiB (loadflags 0x%x "
			       "without LOADED_HIGH), a zImage; boot it with --boot=vmlinux",
			       flags);
	if (img->pm_len + (PARAGRAPH - 1) < syssize)
		return err_set(e, EINVAL,
			       "the bzImage is truncated: its protected-mode part has %zu bytes, "
			       "syssize says %" PRIu64 "; fetch it again",
			       img->pm_len, syssize);
	if (long_mode && img->pm_len <= ENTRY_64)
		return err_set(e, EINVAL,
			       "the protected-mode part of the bzImage has %zu bytes, its 64-bit "
			       "entry is at 0x%x",
			       img->pm_len, ENTRY_64);
	return 0;
}

/*
 * Chooses pref_address, or the next aligned address above it. A lower one would not save memory:
 * the kernel is never decompressed below its link address.
 */
int protocol_bzimage_place(const struct boot_image *img, enum boot_protocol way, uint64_t ram_end,
			   struct boot_place *out, struct err *e)
{
	uint64_t align, init, at, need;
	bool long_mode = way == BOOT_PROTOCOL_BZIMAGE;
	int r;

	if ((img->kind != BOOT_BZIMAGE && img->kind != BOOT_LINUXLIKE) || !img->pm)
		return err_set(e, EINVAL,
			       "--boot=bzimage needs a bzImage: an ELF kernel has no "
			       "decompressor; boot it with --boot=vmlinux");
	r = check_protocol(img, long_mode, e);
	if (r)
		return r;
	align = parse_setup_field(img, SETUP_KERNEL_ALIGNMENT, 4);
	if (!align || align & (align - 1))
		return err_set(e, EINVAL,
			       "damaged setup header: kernel_alignment 0x%" PRIx64
			       " is not a power of two",
			       align);
	init = parse_setup_field(img, SETUP_INIT_SIZE, 4);
	if (init < img->pm_len)
		return err_set(e, EINVAL,
			       "damaged setup header: init_size 0x%" PRIx64
			       " is less than the 0x%zx bytes of the protected-mode part",
			       init, img->pm_len);
	at = parse_setup_field(img, SETUP_PREF_ADDRESS, 8);
	if (at < GPA_KERNEL_MIN || at >= GPA_PCI_HOLE)
		return err_set(e, EINVAL,
			       "the decompressor wants to be loaded at 0x%" PRIx64
			       " (pref_address; expected 0x%" PRIx64 " to 0x%" PRIx64 ")",
			       at, GPA_KERNEL_MIN, GPA_PCI_HOLE - 1);
	/* A kernel that is not relocatable has one address, whatever its alignment. */
	if (parse_setup_field(img, SETUP_RELOCATABLE, 1))
		at = (at + align - 1) & ~(align - 1);
	need = at + init; /* both below 2^33 */
	if (need > GPA_PCI_HOLE)
		return err_set(e, EINVAL,
			       "the decompressor asks for memory from 0x%" PRIx64 " to 0x%" PRIx64
			       " (init_size 0x%" PRIx64 "), more than there can be below the PCI "
			       "hole at 0x%" PRIx64,
			       at, need, init, GPA_PCI_HOLE);
	if (need > ram_end)
		return err_set(e, ENOMEM,
			       "the kernel's decompressor needs guest memory from 0x%" PRIx64
			       " to 0x%" PRIx64 ", but there are %" PRIu64
			       " MiB; give at least %" PRIu64 " MiB",
			       at, need, ram_end / GPA_MIB, (need + GPA_MIB - 1) / GPA_MIB);
	*out = (struct boot_place){ .gpa = at,
				    .end = need,
				    .entry = at + (long_mode ? ENTRY_64 : 0) };
	return 0;
}
