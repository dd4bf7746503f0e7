/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The totals of a profile. The corpus is small enough to be written by hand. */
#include "tests/fuzz/fuzz.h"

#include "profile/cmd/json_members.h"

#include <stdlib.h>
#include <string.h>

static const char *begin, *limit;

static void each(void *ctx, const char *key, size_t key_len, const char *value, size_t value_len)
{
	size_t *n = ctx;

	/* Inside of the text, the value behind its key. */
	if (key < begin || key_len > (size_t)(limit - key) || value <= key + key_len ||
	    !value_len || value_len > (size_t)(limit - value))
		abort();
	++*n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	size_t n = 0;

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	begin = copy;
	limit = copy + size;
	json_members(copy, size, each, &n);
	if (n > JSON_MEMBERS_MAX)
		abort();
	free(copy);
	return 0;
}
