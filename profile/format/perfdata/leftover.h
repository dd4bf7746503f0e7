/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leftover: finds profiles whose writer was killed.
 *
 * sink_perfdata writes to PATH.tmp-<pid> and locks its data (flock) until the file has its final
 * name. A perf.data file with such a name and without a lock was left by a killed run and can be
 * read as it is. On file systems without such locks none is found.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_LEFTOVER_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_LEFTOVER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes one line about the leftover profiles beside path (NULL: perf.data), which names the
 * newest, to text, cut to size bytes with the NUL. Returns false if there are none. Any thread may
 * call it.
 */
bool leftover_text(const char *path, char *text, size_t size);

#endif
