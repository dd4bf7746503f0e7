/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/read_parts.h"

#include "base/cleanup.h"
#include "profile/format/perfdata/format.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns N of "data.N" without leading zeros, or -1. */
static long part_number(const char *name)
{
	char again[32];
	unsigned long n;

	if (strncmp(name, "data.", 5) != 0 || name[5] < '0' || name[5] > '9' || strlen(name) > 12)
		return -1;
	n = strtoul(name + 5, NULL, 10);
	snprintf(again, sizeof(again), "data.%lu", n);
	return n < PERFDATA_MAX_PARTS && !strcmp(again, name) ? (long)n : -1;
}

/* Returns the largest number of a part plus 1; 0 if there are none. */
static uint32_t count_parts(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	long most = -1;

	if (!d)
		return 0;
	while ((entry = readdir(d))) {
		long n = part_number(entry->d_name);

		if (n > most)
			most = n;
	}
	closedir(d);
	return (uint32_t)(most + 1);
}

int perfdata_open_parts(struct perfdata *p, const char *dir, struct err *e)
{
	struct perfdata_private *v = p->priv;
	uint32_t n = count_parts(dir);
	int ret;

	if (!n)
		return 0;
	v->part_map = calloc(n, sizeof(*v->part_map));
	v->part = calloc(n, sizeof(*v->part));
	if (!v->part_map || !v->part)
		return err_set(e, ENOMEM, "%s: out of memory for its %u parts", dir, n);
	v->nparts = n;
	for (uint32_t i = 0; i < n; i++) {
		cleanup_free char *path = NULL;
		struct err why = { 0 };

		if (asprintf(&path, "%s/data.%u", dir, i) < 0) {
			path = NULL;
			return err_set(e, ENOMEM, "%s: out of memory", dir);
		}
		ret = file_map_open(&v->part_map[i], path, PERFDATA_MAX_FILE, &why);
		/* A thread that recorded nothing leaves an empty file. */
		if (ret == -ENOMEM)
			return err_set(e, ENOMEM, "%s", why.text);
		if (ret == -ENOENT)
			perfdata_mark_partial(p, "data.%u of its directory is missing", i);
		else if (ret && ret != -ENODATA && ret != -EINVAL)
			perfdata_mark_partial(p, "data.%u of its directory cannot be read: %s", i,
					      strerror(-ret));
		cursor_init(&v->part[i], v->part_map[i].data, v->part_map[i].len);
	}
	return 0;
}

void perfdata_close_parts(struct perfdata_private *v)
{
	for (uint32_t i = 0; v->part_map && i < v->nparts; i++)
		file_map_close(&v->part_map[i]);
	free(v->part_map);
	free(v->part);
	v->part_map = NULL;
	v->part = NULL;
	v->nparts = 0;
}

/* Copies the cursors, not the bytes. */
int perfdata_borrow_parts(struct perfdata *p, const struct cursor *part, uint32_t n, struct err *e)
{
	struct perfdata_private *v = p->priv;

	if (!n)
		return 0;
	if (n > PERFDATA_MAX_PARTS)
		return err_set(e, E2BIG, "more than %u parts", PERFDATA_MAX_PARTS);
	v->part = calloc(n, sizeof(*v->part));
	if (!v->part)
		return err_set(e, ENOMEM, "out of memory for %u parts", n);
	memcpy(v->part, part, n * sizeof(*part));
	v->nparts = n;
	return 0;
}
