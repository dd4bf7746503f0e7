/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfod: debug files by build id from the servers in $DEBUGINFOD_URLS.
 *
 * Through elfutils' client library, loaded when it is needed: it brings a whole HTTP
 * stack along, which a run without servers should neither load nor require. The
 * library obeys its own variables (debuginfod(8)) and keeps files in its own cache.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_DEBUGINFOD_H
#define KVMPROF_PROFILE_FORMAT_FILES_DEBUGINFOD_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* A line of text while bytes arrive, and NULL at the end. */
typedef void debuginfod_progress_fn(void *ctx, const char *text);

/*
 * *path: the file in the library's cache, malloc'd. progress with its ctx may be NULL.
 * -ENOENT when no server is set or has it, or another -errno.
 */
int debuginfod_fetch(const uint8_t *id, size_t len, debuginfod_progress_fn *progress, void *ctx,
		     char **path, struct err *e);

#endif
