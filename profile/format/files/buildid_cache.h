/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buildid_cache: files in perf's build-id cache, with perf's directory layout.
 *
 *   DIR/NAME/HEX/FILE                FILE: "elf", "vdso" or "kallsyms"
 *   DIR/.build-id/HH/REST            symbolic link to ../../NAME/HEX
 *
 * Source: tools/perf/util/build-id.c, build_id_cache__add (Linux 6.1). Files are created
 * atomically, so several kvmprof processes may add the same one. The functions keep no state; any
 * thread may call them.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_BUILDID_CACHE_H
#define KVMPROF_PROFILE_FORMAT_FILES_BUILDID_CACHE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILDID_HEX_MAX 41u /* 20 bytes in hexadecimal and the terminating NUL */

/* Writes id in lower-case hexadecimal, terminated. Bytes after the 20th are ignored. */
void buildid_hex(char hex[BUILDID_HEX_MAX], const uint8_t *id, size_t len);

/*
 * Returns the path $HOME/.debug, which the caller frees with free(). Returns NULL if HOME is not
 * set, the home directory does not exist, or memory ran out.
 */
char *buildid_default_dir(void);

/* Returns perf's file name for a user DSO of this name, a constant: "vdso" or "elf". */
const char *buildid_file(const char *dso_name);

/*
 * A file of a DSO: the DSO's name and build id, the file name (see buildid_file()), and the file's
 * bytes. All pointers are borrowed during a call.
 */
struct buildid_file_entry {
	const char *name;
	const uint8_t *id;
	size_t id_len;
	const char *file;
	const void *data;
	size_t len;
};

/* Returns true if the cache in dir already has the file. */
bool buildid_cache_has(const char *dir, const struct buildid_file_entry *x);

/*
 * Adds the file to the cache in dir, whose directories are created if necessary. An existing file
 * is not replaced. A name that would lead out of the cache (with ".." in it) is replaced by
 * "kvmprof". Returns 0 or -errno.
 */
int buildid_cache_add(const char *dir, const struct buildid_file_entry *x, struct err *e);

#endif
