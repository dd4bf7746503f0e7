/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load_info: what multiboot and PVH kernels are told, in guest memory. Part of load.c.
 */
#ifndef KVMPROF_VMM_IMAGE_LOAD_INFO_H
#define KVMPROF_VMM_IMAGE_LOAD_INFO_H

#include "vmm/boot/load.h"

/* load.c: a write that says what did not fit where: -ENOMEM. */
int boot_put(const struct gmem *m, uint64_t gpa, const void *src, size_t len, const char *what,
	     struct err *e);

/*
 * Modules (the initrd first) from the page behind kernel_end on, their list, the
 * memory map, the way's structure; sets mode and registers of *entry. -ENOMEM when
 * the modules do not fit into RAM, -EFBIG when their texts are too long.
 */
int boot_load_info(const struct gmem *m, const struct boot_image *img,
		   const struct boot_config *cfg, uint64_t kernel_end, struct boot_entry *entry,
		   struct err *e);

#endif
