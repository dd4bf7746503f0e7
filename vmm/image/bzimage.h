/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bzimage: Linux bzImages. */
#ifndef KVMPROF_VMM_IMAGE_BZIMAGE_H
#define KVMPROF_VMM_IMAGE_BZIMAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_image;

/* True when the bytes claim to be a Linux x86 image. */
bool bzimage_probe(const uint8_t *file, size_t len);
int bzimage_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		  size_t max_kernel, struct err *e);

#endif
