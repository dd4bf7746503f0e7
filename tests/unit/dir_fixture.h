/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the resources of this process in a directory of /proc. */
#ifndef KVMPROF_TESTS_UNIT_DIR_FIXTURE_H
#define KVMPROF_TESTS_UNIT_DIR_FIXTURE_H

#include <dirent.h>

/*
 * Returns the number of entries: threads in /proc/self/task, open files in /proc/self/fd, and a few
 * more, the same each time.
 */
static inline unsigned int dir_entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif
