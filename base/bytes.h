/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bytes: a piece of memory that somebody else owns, as one value.
 *
 * For what is read as a whole or handed on; what is parsed field by field goes through
 * base/cursor.h. Not terminated, also where it is text.
 */
#ifndef KVMPROF_BASE_BYTES_H
#define KVMPROF_BASE_BYTES_H

#include <stddef.h>

struct bytes {
	const void *data; /* borrowed; NULL: there is none, which is not the same as empty */
	size_t len;
};

#endif
