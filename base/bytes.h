/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bytes: a borrowed range of memory, as one value.
 *
 * Use it for data that is read as a whole or passed on. Data that is parsed field by field is read
 * with base/cursor.h. The bytes are not NUL-terminated, even if they are text.
 */
#ifndef KVMPROF_BASE_BYTES_H
#define KVMPROF_BASE_BYTES_H

#include <stddef.h>

struct bytes {
	const void *data; /* borrowed; NULL: absent, which differs from empty */
	size_t len;
};

#endif
