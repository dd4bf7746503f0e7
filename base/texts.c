/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/texts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_text(const char *s)
{
	uint64_t h = 14695981039346656037u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 1099511628211u;
	return h;
}

/* Where it is, or where it would go. */
static char **slot_of(char **slot, size_t cap, const char *text)
{
	for (size_t i = (size_t)hash_text(text);; i++) {
		char **s = &slot[i & (cap - 1)];

		if (!*s || !strcmp(*s, text))
			return s;
	}
}

static char **make_room(struct texts *t)
{
	size_t cap = t->cap ? 2 * t->cap : 256;
	char **grown;

	if (t->n < t->cap / 2)
		return t->slot;
	grown = t->n < TEXTS_MAX ? calloc(cap, sizeof(*grown)) : NULL;
	if (!grown)
		return NULL;
	for (size_t i = 0; i < t->cap; i++)
		if (t->slot[i])
			*slot_of(grown, cap, t->slot[i]) = t->slot[i];
	free(t->slot);
	t->slot = grown;
	t->cap = cap;
	return grown;
}

const char *texts_add(struct texts *t, const char *text)
{
	char **s;

	if (!make_room(t))
		return NULL;
	s = slot_of(t->slot, t->cap, text);
	if (!*s) {
		*s = strdup(text);
		t->n += *s != NULL;
	}
	return *s;
}

void texts_deinit(struct texts *t)
{
	for (size_t i = 0; i < t->cap; i++)
		free(t->slot[i]);
	free(t->slot);
	*t = (struct texts){ 0 };
}
