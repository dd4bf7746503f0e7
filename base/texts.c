/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/texts.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static bool equal_text(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return !strcmp(*(char *const *)a, *(char *const *)b);
}

const char *texts_add(struct texts *t, const char *text)
{
	uint64_t hash = hash_text(HASH_START, text);
	uint32_t index;
	bool fresh;
	char *copy;

	t->all.size = sizeof(copy);
	t->all.equal = equal_text;
	if (table_find(&t->all, hash, &text, &index))
		return ((char **)t->all.item)[index];
	copy = t->all.n < TEXTS_MAX ? strdup(text) : NULL;
	if (copy && table_add(&t->all, hash, &copy, &index, &fresh)) {
		free(copy);
		return NULL;
	}
	return copy;
}

void texts_deinit(struct texts *t)
{
	char **text = t->all.item;

	for (size_t i = 0; i < t->all.n; i++)
		free(text[i]);
	table_deinit(&t->all);
}
