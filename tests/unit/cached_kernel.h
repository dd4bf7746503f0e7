/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cached_kernel: files of the kernels that the scripts keep (CONTRIBUTING.md), for tests. */
#ifndef KVMPROF_TESTS_UNIT_CACHED_KERNEL_H
#define KVMPROF_TESTS_UNIT_CACHED_KERNEL_H

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the last file in the cache that matches the pattern. Returns false if there is none. */
static inline bool cached_kernel(const char *pattern, char *path, size_t size)
{
	const char *own = getenv("KVMPROF_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	char all[4096];
	glob_t g = { 0 };
	bool found;

	if (own)
		snprintf(all, sizeof(all), "%s/%s", own, pattern);
	else if (xdg)
		snprintf(all, sizeof(all), "%s/kvmprof/%s", xdg, pattern);
	else
		snprintf(all, sizeof(all), "%s/.cache/kvmprof/%s", home ? home : "", pattern);
	found = glob(all, 0, NULL, &g) == 0 && g.gl_pathc &&
		strlen(g.gl_pathv[g.gl_pathc - 1]) < size;
	if (found)
		strcpy(path, g.gl_pathv[g.gl_pathc - 1]);
	globfree(&g);
	return found;
}

#endif
