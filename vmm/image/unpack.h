/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unpack: compressed kernels. */
#ifndef KVMPROF_VMM_IMAGE_UNPACK_H
#define KVMPROF_VMM_IMAGE_UNPACK_H

#include "base/bytes.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The name of the compression that the bytes begin with, or NULL.
 * Static text.
 */
const char *unpack_detect(const uint8_t *src, size_t len);

/*
 * Decompress the one stream that src begins with; what follows it is ignored. name is for messages.
 * The last four bytes of src are a guess of the size (Linux appends it) and
 * nothing more. *out is malloc'ed and the caller's.
 * -EINVAL for damaged or truncated data or a result longer than max, -ENOTSUP
 * for an unknown method, -ENOMEM.
 */
int unpack_image(const char *name, struct bytes src, size_t max, uint8_t **out, size_t *out_len,
		 struct err *e);

#endif
