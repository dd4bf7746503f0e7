/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bzimage: parses Linux bzImages. Pure functions over bytes; any thread. */
#ifndef KVMPROF_VMM_IMAGE_BZIMAGE_H
#define KVMPROF_VMM_IMAGE_BZIMAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_image;

/* Returns whether the bytes claim to be a Linux x86 image. */
bool bzimage_probe(const uint8_t *file, size_t len);
/*
 * Parses a bzImage into *img (see parse.h) and unpacks the kernel inside, which may have
 * max_kernel bytes. Returns 0, or -EINVAL, -ENOTSUP or -ENOMEM with *e set. name is for messages.
 */
int bzimage_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		  size_t max_kernel, struct err *e);

#endif
