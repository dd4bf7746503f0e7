/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leftover: profiles whose writer was killed.
 *
 * sink_perfdata writes PATH.tmp-<pid> and holds a lock (flock) on its data until the file has its
 * final name. A perf.data file of that name that nobody holds is what a killed run has left: it
 * can be read as it is. Where a file system has no such locks none is told.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_LEFTOVER_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_LEFTOVER_H

#include <stdbool.h>
#include <stddef.h>

/* One line about those that lie beside path (NULL: perf.data), naming the newest; false: none. */
bool leftover_tell(const char *path, char *text, size_t size);

#endif
