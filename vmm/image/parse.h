/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * parse: what the files behind image_parse() share with each other, with
 * unit tests and with fuzz targets. Not for other parts of the program.
 *
 * Each parser gets an img that the caller has zeroed, fills it, and leaves what
 * it allocated in img->unpacked also when it fails; the caller cleans up.
 */
#ifndef KVMPROF_VMM_IMAGE_PARSE_H
#define KVMPROF_VMM_IMAGE_PARSE_H

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

/*
 * Returns a field of the setup header by its offset in the file, or 0 where the header is
 * shorter or absent.
 */
uint64_t parse_setup_field(const struct boot_image *img, uint32_t off, unsigned int size);

/* COMMAND_LINE_SIZE of x86 Linux is 2048 with the terminator. */
#define LINUX_CMDLINE_MAX 2047u

/* Parses as image_parse() does, with another cap on the decompressed kernel. */
int parse_image_max(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		    size_t max_kernel, struct err *e);

#endif
