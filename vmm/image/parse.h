/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * parse: functions for the files behind image_parse(), unit tests and fuzz targets. Not for other
 * parts of the program. They keep no state; any thread may call them.
 */
#ifndef KVMPROF_VMM_IMAGE_PARSE_H
#define KVMPROF_VMM_IMAGE_PARSE_H

#include "vmm/image/image.h"

/* Offsets of the Linux setup header's fields, in the file and in boot_params (boot.rst). */
#define SETUP_HEADER 0x1f1u
#define SETUP_SECTS 0x1f1u
#define SETUP_SYSSIZE 0x1f4u
#define SETUP_VID_MODE 0x1fau
#define SETUP_BOOT_FLAG 0x1feu
#define SETUP_JUMP 0x200u /* short jump; its target is the header's end */
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
#define LOADFLAG_KASLR 0x02u /* set by the decompressor for the kernel, not by a loader */
#define LOADFLAG_CAN_USE_HEAP 0x80u
#define XLF_KERNEL_64 0x0001u

/*
 * Returns a field of `size` bytes (at most 8) of the setup header by its offset in the file, or 0
 * if the header is shorter or absent.
 */
uint64_t parse_setup_field(const struct boot_image *img, uint32_t off, unsigned int size);

/* COMMAND_LINE_SIZE of x86 Linux is 2048 including the NUL. */
#define LINUX_CMDLINE_MAX 2047u

/*
 * Parses a kernel like image_parse(), with the same errors but another limit on the decompressed
 * kernel, in bytes. Sets *img on success only; the caller then frees its contents with
 * image_deinit(). Returns 0 or -errno.
 */
int parse_image_max(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		    size_t max_kernel, struct err *e);

#endif
