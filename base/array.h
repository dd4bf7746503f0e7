/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * array: growing arrays: a pointer, the number of elements, and the capacity in elements.
 *
 * All zero is an empty array; free() ends it. Elements move when it grows. One thread.
 */
#ifndef KVMPROF_BASE_ARRAY_H
#define KVMPROF_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The array moved to where `want` elements fit, at least twice as many as before; NULL: no memory. */
void *array_grow(void *items, size_t want, size_t *cap, size_t size);

/* Room for `want` elements in all. 0, or -ENOMEM: nothing has changed. cap is a size_t. */
#define ARRAY_FIT(items, want, cap)                                               \
	((want) <= (cap) ? 0 : ({                                                 \
		void *moved_ = array_grow(items, want, &(cap), sizeof(*(items))); \
		(items) = moved_ ? moved_ : (items);                              \
		moved_ ? 0 : -ENOMEM;                                             \
	}))

/* The same; what is added is zero. */
#define ARRAY_FIT_ZERO(items, want, cap)                                            \
	((want) <= (cap) ? 0 : ({                                                   \
		size_t had_ = (cap);                                                \
		int ret_ = ARRAY_FIT(items, want, cap);                             \
		if (!ret_)                                                          \
			memset((items) + had_, 0, ((cap)-had_) * sizeof(*(items))); \
		ret_;                                                               \
	}))

/* Room for one more behind n elements. */
#define ARRAY_ROOM(items, n, cap) ARRAY_FIT(items, (n) + 1, cap)

#endif
