/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/counters/tracefs.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where it is mounted since Linux 4.1, and before. */
static const char *const roots[] = { "/sys/kernel/tracing/events",
				     "/sys/kernel/debug/tracing/events" };

static const char *find_root(struct err *why)
{
	int err = ENOENT;

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		if (access(roots[i], R_OK | X_OK) == 0)
			return roots[i];
		if (errno == EACCES)
			err = EACCES;
	}
	err_set(why, err, "%s",
		err == EACCES
			? "/sys/kernel/tracing can't be read by this user"
			: "tracefs is not mounted (mount -t tracefs nodev /sys/kernel/tracing)");
	return NULL;
}

int tracefs_id(const char *name, uint64_t *id, struct err *why)
{
	const char *root = find_root(why), *colon = strchr(name, ':');
	cleanup_fclose FILE *f = NULL;
	char path[PATH_MAX];
	unsigned long long v;

	if (!root)
		return -why->code;
	if (!colon)
		return err_set(why, EINVAL, "%s: no tracepoint", name);
	snprintf(path, sizeof(path), "%s/%.*s/%s/id", root, (int)(colon - name), name, colon + 1);
	f = fopen(path, "re");
	if (!f)
		return err_set(why, errno,
			       errno == ENOENT ? "the host's kernel has no tracepoint %s"
					       : "the tracepoint %s can't be read by this user",
			       name);
	if (fscanf(f, "%llu", &v) != 1)
		return err_set(why, EINVAL, "%s has no number", path);
	*id = v;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

size_t tracefs_list(const char *subsystem, char ***names, struct err *why)
{
	const char *root = find_root(why);
	char path[PATH_MAX];
	struct dirent *d;
	size_t n = 0, cap = 0;
	DIR *dir;

	*names = NULL;
	if (!root)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", root, subsystem);
	dir = opendir(path);
	if (!dir) {
		err_set(why, errno, "%s: %s", path, strerror(errno));
		return 0;
	}
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || d->d_type != DT_DIR)
			continue;
		if (ARRAY_ROOM(*names, n, cap) ||
		    asprintf(&(*names)[n], "%s:%s", subsystem, d->d_name) < 0)
			break;
		n++;
	}
	closedir(dir);
	if (n)
		qsort(*names, n, sizeof(**names), by_name);
	return n;
}
