/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * array: growing arrays, each made of a pointer, the number of elements, and the capacity in
 * elements.
 *
 * An array that is all zero is empty. The caller frees it with free(). Elements move when the array
 * grows, so pointers to them become invalid. Not thread-safe: the caller serialises calls on one
 * array.
 */
#ifndef KVMPROF_BASE_ARRAY_H
#define KVMPROF_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/*
 * Reallocates the array to hold at least `want` elements of `size` bytes, at least doubling *cap.
 * Returns the new array and updates *cap. Returns NULL if out of memory; then the old array is
 * unchanged.
 */
void *array_grow(void *items, size_t want, size_t *cap, size_t size);

/*
 * Makes the array large enough for `want` elements in all; moves `items` and `cap` (a size_t
 * variable). Evaluates to 0, or to -ENOMEM with nothing changed.
 */
#define ARRAY_FIT(items, want, cap)                                               \
	((want) <= (cap) ? 0 : ({                                                 \
		void *moved_ = array_grow(items, want, &(cap), sizeof(*(items))); \
		(items) = moved_ ? moved_ : (items);                              \
		moved_ ? 0 : -ENOMEM;                                             \
	}))

/* Like ARRAY_FIT(), and sets the added elements to zero. */
#define ARRAY_FIT_ZERO(items, want, cap)                                            \
	((want) <= (cap) ? 0 : ({                                                   \
		size_t had_ = (cap);                                                \
		int ret_ = ARRAY_FIT(items, want, cap);                             \
		if (!ret_)                                                          \
			memset((items) + had_, 0, ((cap)-had_) * sizeof(*(items))); \
		ret_;                                                               \
	}))

/* Makes room for one more element after n. */
#define ARRAY_ROOM(items, n, cap) ARRAY_FIT(items, (n) + 1, cap)

#endif
