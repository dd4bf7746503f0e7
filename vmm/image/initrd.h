/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * initrd: unpacks the zstd parts of an initial RAM disk, for hosts that interpret the guest's
 * kernel: there, unpacking takes minutes, and the kernel's zstd uses BMI2 instructions, selected
 * by CPUID alone, that such a host cannot execute. Pure functions; any thread.
 *
 * Source: Linux Documentation/driver-api/early-userspace/buffer-format.rst:
 *
 *	initramfs := { "\0" | cpio | compressed }
 */
#ifndef KVMPROF_VMM_IMAGE_INITRD_H
#define KVMPROF_VMM_IMAGE_INITRD_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INITRD_UNPACKED_MAX (1ull << 30) /* maximum bytes of the result */

/*
 * Appends the same archives, uncompressed, to *out, which must be empty. Returns 1 if it did; 0 if
 * there is nothing to unpack or something that cannot be parsed to its end, with *out empty, so
 * that the guest gets the original; or -ENOMEM, with *out empty. The caller frees *out with
 * buf_deinit().
 */
int initrd_unpack(const uint8_t *data, size_t len, struct buf *out);

/*
 * Returns whether Linux recognises the data: a cpio archive, something compressed, or a file
 * system image for /dev/ram0.
 */
bool initrd_is_known(const uint8_t *data, size_t len);

#endif
