/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel: a kernel's file as its loader sees it, and as what reads the guest does.
 *
 * The target owns the bytes of both. The image's pointers into them hold until the guest runs,
 * when target_settle() gives them back.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_KERNEL_H
#define KVMPROF_PROFILE_RECORD_RUN_KERNEL_H

#include "profile/record/guest/target.h"
#include "vmm/image/image.h"

/* The demo kernel that travels inside the program (Makefile, demo_elf). */
extern const uint8_t demo_elf[], demo_elf_end[];
#define KERNEL_DEMO_NAME "(embedded demo guest)"

/* Opens the kernel at path, which is borrowed; NULL: the demo. symbols_path as target_open() has it. */
int kernel_open(struct boot_image *image, struct target *t, const char *path,
		const char *symbols_path, struct err *e);
/*
 * The same for a file that is in memory: in->file, which the target takes over also when this
 * fails. Of *in the name, the files and the map are used.
 */
int kernel_open_bytes(struct boot_image *image, struct target *t, const struct target_image *in,
		      const char *symbols_path, struct err *e);

#endif
