/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * parse: what the files behind boot_image_parse() share with each other, with
 * unit tests and with fuzz targets. Not for other parts of the program.
 *
 * Each parser gets an img that the caller has zeroed, fills it, and leaves what
 * it allocated in img->unpacked also when it fails; the caller cleans up.
 */
#ifndef KVMPROF_VMM_IMAGE_PARSE_H
#define KVMPROF_VMM_IMAGE_PARSE_H

#include "base/bytes.h"
#include "vmm/image/image.h"

/* Offsets of the Linux setup header, in the file and in boot_params alike (boot.rst). */
#define SETUP_HEADER 0x1f1u
#define SETUP_SECTS 0x1f1u
#define SETUP_SYSSIZE 0x1f4u
#define SETUP_VID_MODE 0x1fau
#define SETUP_BOOT_FLAG 0x1feu
#define SETUP_JUMP 0x200u /* short jump; its operand ends the header */
#define SETUP_MAGIC 0x202u
#define SETUP_VERSION 0x206u
#define SETUP_KERNEL_VERSION 0x20eu
#define SETUP_TYPE_OF_LOADER 0x210u
#define SETUP_LOADFLAGS 0x211u
#define SETUP_CODE32_START 0x214u
#define SETUP_RAMDISK_IMAGE 0x218u
#define SETUP_RAMDISK_SIZE 0x21cu
#define SETUP_CMD_LINE_PTR 0x228u
#define SETUP_INITRD_ADDR_MAX 0x22cu
#define SETUP_KERNEL_ALIGNMENT 0x230u
#define SETUP_RELOCATABLE 0x234u
#define SETUP_XLOADFLAGS 0x236u
#define SETUP_CMDLINE_SIZE 0x238u
#define SETUP_PAYLOAD_OFFSET 0x248u
#define SETUP_PAYLOAD_LENGTH 0x24cu
#define SETUP_SETUP_DATA 0x250u
#define SETUP_PREF_ADDRESS 0x258u
#define SETUP_INIT_SIZE 0x260u

#define SETUP_BOOT_FLAG_VALUE 0xaa55u
#define SETUP_MAGIC_VALUE 0x53726448u /* "HdrS" */

#define LOADFLAG_LOADED_HIGH 0x01u
#define LOADFLAG_KASLR 0x02u /* the decompressor tells the kernel so; not ours to set */
#define LOADFLAG_CAN_USE_HEAP 0x80u
#define XLF_KERNEL_64 0x0001u

/* COMMAND_LINE_SIZE of x86 Linux is 2048 with the terminator. */
#define LINUX_CMDLINE_MAX 2047u

/* boot_image_parse() with another cap on the decompressed kernel. */
int boot_image_parse_max(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
			 size_t max_kernel, struct err *e);

/* elf64.c: fills entry, low, high, seg, nseg, pvh_entry, is_linux from img->elf. */
int boot_elf64_parse(struct boot_image *img, const char *name, struct err *e);
/* Does a segment have this byte? */
bool boot_elf64_holds(const struct boot_image *img, uint64_t gpa);

/*
 * widen.c: img->unpacked, img->elf and img->elf_len become an ELF64 that says the
 * same as this ELF32 executable for x86 with its symbols, or as bytes that have no
 * format. What was in img->unpacked is freed: file may point into it until then.
 */
int boot_elf32_widen(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		     struct err *e);
struct boot_flat {
	const uint8_t *data;
	size_t len;
	uint64_t gpa, mem_len, entry; /* mem_len >= len */
};
int boot_flat_wrap(struct boot_image *img, const char *name, const struct boot_flat *flat,
		   struct err *e);

/* multiboot.c: a Multiboot 1 header as it is in the file. */
struct boot_multiboot {
	uint32_t offset, flags;
	bool flat; /* the addresses below are there, and go before the ELF headers */
	uint32_t header_addr, load_addr, load_end, bss_end, entry;
};
bool boot_multiboot_find(const uint8_t *file, size_t len, struct boot_multiboot *out);
/* -ENOTSUP when it asks for what we do not know. */
int boot_multiboot_check(const char *name, const struct boot_multiboot *h, struct err *e);
/* The segment that h->flat tells of, as boot_flat_wrap() does. */
int boot_multiboot_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
			 const struct boot_multiboot *h, struct err *e);
/* The entry that the bytes of a PT_NOTE segment name for PVH; 0: none. */
uint32_t boot_pvh_note(const uint8_t *notes, size_t len);

/* bzimage.c: true when the bytes claim to be a Linux x86 image. */
bool boot_bzimage_probe(const uint8_t *file, size_t len);
int boot_bzimage_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		       size_t max_kernel, struct err *e);

/* Where the protected-mode part of a bzImage goes, and what it needs there. */
struct boot_place {
	uint64_t gpa, end; /* bytes of the file and room to work in: [gpa, end) */
	uint64_t entry;	   /* the decompressor's 64-bit or 32-bit entry point */
};

/*
 * bzimage.c: where the decompressor of img is put, for BOOT_WAY_BZIMAGE or _LINUX32, in
 * a guest whose RAM is one piece from 0 to ram_end at least. -EINVAL when img has none or its setup
 * header makes no sense, -ENOTSUP when it can't be entered in 64-bit mode,
 * -ENOMEM when it does not fit (the message says how much memory would do).
 */
int boot_bzimage_place(const struct boot_image *img, enum boot_way way, uint64_t ram_end,
		       struct boot_place *out, struct err *e);

/*
 * unpack.c: the name of the compression that the bytes begin with, or NULL.
 * Static text.
 */
const char *boot_unpack_detect(const uint8_t *src, size_t len);

/*
 * Decompress the one stream that src begins with; what follows it is ignored. name is for messages.
 * The last four bytes of src are a guess of the size (Linux appends it) and
 * nothing more. *out is malloc'ed and the caller's.
 * -EINVAL for damaged or truncated data or a result longer than max, -ENOTSUP
 * for an unknown method, -ENOMEM.
 */
int boot_unpack(const char *name, struct bytes src, size_t max, uint8_t **out, size_t *out_len,
		struct err *e);

#endif
