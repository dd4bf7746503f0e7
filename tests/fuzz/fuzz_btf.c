/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 4000 runs */
/* BTF from anywhere; then its own strings are asked for, as structures, members and enumerators. */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/types/btf_types.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 8u

static unsigned int take_names(const uint8_t *data, size_t size, const char *out[MAX_NAMES])
{
	uint32_t at, len, head;
	unsigned int n = 0;

	memcpy(&head, data + 4, 4);
	memcpy(&at, data + 16, 4);
	memcpy(&len, data + 20, 4);
	if ((uint64_t)head + at + len > size)
		abort();
	for (const char *s = (const char *)data + head + at, *end = s + len;
	     s < end && n < MAX_NAMES; s += strlen(s) + 1)
		out[n++] = s;
	return n;
}

static void ask(const struct types *t, const char *structure, const char *member)
{
	static const char *const suffix[] = { "", "[0]", "[1].", "." };
	struct type_member m;
	uint64_t size = 0;
	char path[256];

	if (t->size(t->ctx, structure, &size) == 0 && size > UINT32_MAX)
		abort();
	for (unsigned int i = 0; i < 4; i++) {
		int ret;

		snprintf(path, sizeof(path), "%s%s%s", member, suffix[i], i > 1 ? member : "");
		ret = t->member(t->ctx, structure, path, &m);
		if (ret != 0 && ret != -ENOENT && ret != -EINVAL)
			abort();
		if (ret == 0 && m.bit_off > 7)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *name[MAX_NAMES];
	struct btf *b = NULL;
	struct err e = { 0 };
	unsigned int n;
	struct types t;
	int64_t value;

	if (btf_open(&b, data, size, "fuzz", &e) < 0) {
		if (!e.text[0] || b)
			abort();
		return 0;
	}
	if (btf_size(b) > size || btf_count(b) > size / 12)
		abort();
	t = btf_types(b);
	n = take_names(data, size, name);
	for (unsigned int i = 0; i < n; i++) {
		(void)t.enumerator(t.ctx, name[i], &value);
		for (unsigned int k = 0; k < n; k++)
			ask(&t, name[i], name[k]);
	}
	btf_destroy(b);
	return 0;
}
