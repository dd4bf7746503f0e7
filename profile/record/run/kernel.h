/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel: a kernel's file, as its loader sees it and as the reader of the guest does.
 *
 * The target owns the bytes of both. The image's pointers into them are valid until
 * target_settle(), which frees them when the guest runs. Both functions return 0 or -errno with the
 * reason in *e; on success the caller frees the target with target_close(). Called by the main
 * thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_KERNEL_H
#define KVMPROF_PROFILE_RECORD_RUN_KERNEL_H

#include "profile/record/guest/target.h"
#include "vmm/image/image.h"

/* The demo kernel that is embedded in the program (Makefile, demo_elf). */
extern const uint8_t demo_elf[], demo_elf_end[];
#define KERNEL_DEMO_NAME "(embedded demo guest)"

/*
 * Opens the kernel at path, which is borrowed; NULL: the demo kernel. symbols_path is as for
 * target_open().
 */
int kernel_open(struct boot_image *image, struct target *t, const char *path,
		const char *symbols_path, struct err *e);
/*
 * The same for a file that is in memory: in->file, which the target owns even if this fails. Of *in
 * only the names, the files and the map are used.
 */
int kernel_open_bytes(struct boot_image *image, struct target *t, const struct target_image *in,
		      const char *symbols_path, struct err *e);

#endif
