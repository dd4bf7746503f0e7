/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * initrd: a RAM disk with its zstd parts unpacked, for hosts that interpret the guest's
 * kernel: there unpacking takes minutes, and the kernel's zstd uses BMI2 instructions, found
 * by CPUID alone, that such a host can't run.
 *
 * Source: Linux Documentation/driver-api/early-userspace/buffer-format.rst:
 *	initramfs := { "\0" | cpio | compressed }
 */
#ifndef KVMPROF_VMM_IMAGE_INITRD_H
#define KVMPROF_VMM_IMAGE_INITRD_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INITRD_UNPACKED_MAX (1ull << 30) /* bytes of the result */

/*
 * 1: *out (empty before) has the same archives uncompressed. 0: there is nothing to do, or
 * something that is not understood to its end, and *out is empty: the guest shall look at
 * it itself. -ENOMEM.
 */
int initrd_unpack(const uint8_t *data, size_t len, struct buf *out);

/* Does Linux know what this is: a cpio archive, or something compressed? */
bool initrd_is_known(const uint8_t *data, size_t len);

#endif
