/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/names/tasks.h"

#include "base/idmap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NO_NAME 0u /* index of "", which no thread has */

struct tasks {
	struct idmap by_tid; /* index of its name; NO_NAME: forked by an unnamed one */
	char **text;
	size_t n, cap;
	uint32_t *slot; /* index into text, by hash; NO_NAME is free */
	size_t slots;
};

static uint32_t hash_text(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

static uint32_t *slot_of(const struct tasks *t, const char *text)
{
	size_t at = hash_text(text);

	for (;; at++) {
		uint32_t *s = &t->slot[at & (t->slots - 1)];

		if (*s == NO_NAME || !strcmp(t->text[*s], text))
			return s;
	}
}

static int grow(struct tasks *t)
{
	size_t cap = t->cap ? t->cap * 2 : 64;
	char **text = reallocarray(t->text, cap, sizeof(*text));
	uint32_t *slot;

	if (!text)
		return -ENOMEM;
	t->text = text;
	slot = calloc(cap * 2, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(t->slot);
	t->slot = slot;
	t->cap = cap;
	t->slots = cap * 2;
	for (uint32_t i = 1; i < t->n; i++)
		*slot_of(t, t->text[i]) = i;
	return 0;
}

/* The number of a text; -ENOMEM, -E2BIG. */
static int intern(struct tasks *t, const char *name, uint32_t *out)
{
	char text[TASKS_MAX_NAME];
	uint32_t *slot;
	size_t n = 0;

	for (; name[n] && n + 1 < sizeof(text); n++)
		text[n] = (unsigned char)name[n] < 0x20 || name[n] == 0x7f ? '?' : name[n];
	text[n] = '\0';
	if (t->n == t->cap && grow(t) < 0)
		return -ENOMEM;
	slot = slot_of(t, text);
	if (*slot == NO_NAME) {
		if (t->n >= TASKS_MAX_NAMES)
			return -E2BIG;
		t->text[t->n] = strdup(text);
		if (!t->text[t->n])
			return -ENOMEM;
		*slot = (uint32_t)t->n++;
	}
	*out = *slot;
	return 0;
}

struct tasks *tasks_create(void)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (t && grow(t) == 0)
		t->text[t->n++] = strdup("");
	if (!t || !t->n || !t->text[0]) {
		tasks_destroy(t);
		return NULL;
	}
	return t;
}

void tasks_destroy(struct tasks *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		free(t->text[i]);
	free(t->text);
	free(t->slot);
	idmap_deinit(&t->by_tid);
	free(t);
}

int tasks_record(struct tasks *t, const struct perfdata_record *r, struct err *e)
{
	uint32_t name = NO_NAME;
	int ret = 0;

	if (r->kind == PERFDATA_COMM)
		ret = intern(t, r->comm, &name);
	else if (r->kind != PERFDATA_FORK)
		return 0;
	else if (!idmap_get(&t->by_tid, r->fork.ptid, &name) && r->fork.ptid == 0)
		ret = intern(t, "swapper", &name);
	ret = ret ? ret : idmap_set(&t->by_tid, r->tid, name);
	return ret ? err_set(e, -ret, "too many names of tasks: %s", strerror(-ret)) : 0;
}

uint32_t tasks_name(struct tasks *t, uint32_t tid)
{
	uint32_t name = NO_NAME;
	char text[16];

	if (idmap_get(&t->by_tid, tid, &name) && name != NO_NAME)
		return name;
	snprintf(text, sizeof(text), ":%" PRIu32, tid);
	return intern(t, tid ? text : "swapper", &name) < 0 ? NO_NAME : name;
}

const char *tasks_text(const struct tasks *t, uint32_t name)
{
	return name < t->n ? t->text[name] : "";
}
