/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/names/tasks.h"

#include "base/hash.h"
#include "base/idmap.h"
#include "base/table.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_NAME 0u /* index of "", which no thread has */

struct task_name {
	char text[TASKS_MAX_NAME];
};

struct tasks {
	struct idmap by_tid; /* index of the name; NO_NAME: forked by a thread without a name */
	struct table names;  /* struct task_name */
};

static bool equal_names(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return !strcmp(((const struct task_name *)a)->text, ((const struct task_name *)b)->text);
}

/* Stores the number of a text in *out. Returns 0, -ENOMEM or -E2BIG. */
static int intern(struct tasks *t, const char *text, uint32_t *out)
{
	struct task_name name;
	bool fresh;

	utf8_clean(name.text, sizeof(name.text), text);
	if (t->names.n >= TASKS_MAX_NAMES)
		return -E2BIG;
	return table_add(&t->names, hash_text(HASH_START, name.text), &name, out, &fresh);
}

struct tasks *tasks_create(void)
{
	struct tasks *t = calloc(1, sizeof(*t));
	uint32_t none;

	if (!t)
		return NULL;
	t->names = TABLE_OF(struct task_name, equal_names);
	if (intern(t, "", &none) < 0) {
		tasks_destroy(t);
		return NULL;
	}
	return t;
}

void tasks_destroy(struct tasks *t)
{
	if (!t)
		return;
	table_deinit(&t->names);
	idmap_deinit(&t->by_tid);
	free(t);
}

static int set_name(struct tasks *t, uint32_t tid, uint32_t name, int ret, struct err *e)
{
	ret = ret ? ret : idmap_set(&t->by_tid, tid, name);
	return ret ? err_set(e, -ret, "too many names of tasks: %s", strerror(-ret)) : 0;
}

int tasks_comm(struct tasks *t, uint32_t tid, const char *comm, struct err *e)
{
	uint32_t name = NO_NAME;
	int ret = intern(t, comm, &name);

	return set_name(t, tid, name, ret, e);
}

int tasks_fork(struct tasks *t, uint32_t tid, uint32_t ptid, struct err *e)
{
	uint32_t name = NO_NAME;
	int ret = 0;

	if (!idmap_get(&t->by_tid, ptid, &name) && ptid == 0)
		ret = intern(t, "swapper", &name);
	return set_name(t, tid, name, ret, e);
}

int tasks_record(struct tasks *t, const struct perfdata_record *r, struct err *e)
{
	/* The threads of another kernel have names of their own. */
	if (r->kind == PERFDATA_EPOCH)
		idmap_deinit(&t->by_tid);
	return r->kind == PERFDATA_COMM	  ? tasks_comm(t, r->tid, r->comm, e)
	       : r->kind == PERFDATA_FORK ? tasks_fork(t, r->tid, r->fork.ptid, e)
					  : 0;
}

size_t tasks_threads(const struct tasks *t)
{
	return t->by_tid.pairs.n;
}

uint32_t tasks_known(const struct tasks *t, uint32_t tid)
{
	uint32_t name = NO_NAME;

	(void)idmap_get(&t->by_tid, tid, &name);
	return name;
}

uint32_t tasks_name(struct tasks *t, uint32_t tid)
{
	uint32_t name = NO_NAME;
	char text[16];

	if (idmap_get(&t->by_tid, tid, &name) && name != NO_NAME)
		return name;
	snprintf(text, sizeof(text), ":%" PRIu32, tid);
	/* perf uses -1 for an unknown thread. */
	return intern(t,
		      tid == UINT32_MAX ? "[unknown]"
		      : tid		? text
					: "swapper",
		      &name) < 0
		       ? NO_NAME
		       : name;
}

const char *tasks_text(const struct tasks *t, uint32_t name)
{
	return name < t->names.n ? ((const struct task_name *)t->names.item)[name].text : "";
}

void tasks_seen_add(struct tasks_seen *s, uint32_t name, bool passes)
{
	s->met |= passes;
	if (s->met || s->more)
		return;
	for (unsigned int i = 0; i < s->n; i++)
		if (s->name[i] == name)
			return;
	if (s->n == TASKS_SEEN_MOST)
		s->more = true;
	else
		s->name[s->n++] = name;
}

void tasks_seen_text(const struct tasks_seen *s, const struct tasks *t, const char *wanted,
		     char *out, size_t size)
{
	size_t at = (size_t)snprintf(out, size, "no sample has the command name '%.64s'%s", wanted,
				     s->n ? "; those of the samples are " : "");

	for (unsigned int i = 0; i < s->n && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%.24s", i ? ", " : "",
				       tasks_text(t, s->name[i]));
	if (s->more && at < size)
		snprintf(out + at, size - at, ", and more");
}
