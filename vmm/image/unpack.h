/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unpack: unpacks compressed kernels. Pure functions; any thread. */
#ifndef KVMPROF_VMM_IMAGE_UNPACK_H
#define KVMPROF_VMM_IMAGE_UNPACK_H

#include "base/bytes.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the name of the compression that the bytes begin with (static text), or NULL if it is
 * none.
 */
const char *unpack_detect(const uint8_t *src, size_t len);

/*
 * Unpacks the stream at the beginning of src; what follows it is ignored. name is for messages.
 * The last four bytes of src are only a hint of the size, because Linux appends it. Returns 0;
 * -EINVAL for damaged or truncated data or a result longer than max bytes; -ENOTSUP for an
 * unsupported method; or -ENOMEM; with *e set. The caller frees *out with free().
 */
int unpack_image(const char *name, struct bytes src, size_t max, uint8_t **out, size_t *out_len,
		 struct err *e);

#endif
