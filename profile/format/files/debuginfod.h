/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfod: downloads debug files by build id from the servers in $DEBUGINFOD_URLS.
 *
 * It uses elfutils' client library, which is loaded on demand: it depends on an HTTP stack that a
 * run without servers should neither load nor require. The library reads its own environment
 * variables (debuginfod(8)) and stores files in its own cache.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_DEBUGINFOD_H
#define KVMPROF_PROFILE_FORMAT_FILES_DEBUGINFOD_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Called with a line of text while bytes arrive, and with NULL at the end. */
typedef void debuginfod_progress_fn(void *ctx, const char *text);

/*
 * Downloads the debug file for a build id of len bytes and waits for it. Sets *path to the file in
 * the library's cache; the caller frees the string with free(). progress is called by the same
 * thread and may be NULL. Returns 0; -ENOENT if no server is set, none has the file, or the library
 * cannot be loaded; or another -errno. Any thread may call it.
 */
int debuginfod_fetch(const uint8_t *id, size_t len, debuginfod_progress_fn *progress, void *ctx,
		     char **path, struct err *e);

#endif
