/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

#define FIRST_CAP 8u

void *array_grow(void *items, size_t want, size_t *cap, size_t size)
{
	size_t n = *cap ? *cap : FIRST_CAP / 2, bytes;

	do {
		if (n > SIZE_MAX / 2)
			return NULL;
		n *= 2;
	} while (n < want);
	items = __builtin_mul_overflow(n, size, &bytes) ? NULL : realloc(items, bytes);
	if (items)
		*cap = n;
	return items;
}
