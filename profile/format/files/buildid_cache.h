/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buildid_cache: files in perf's build-id cache, laid out as perf does.
 *
 *   DIR/NAME/HEX/FILE                FILE: "elf", "vdso" or "kallsyms"
 *   DIR/.build-id/HH/REST            symbolic link to ../../NAME/HEX
 *
 * Source: tools/perf/util/build-id.c, build_id_cache__add (Linux 6.1). Files
 * appear complete or not at all; several kvmprofs may add the same one.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_BUILDID_CACHE_H
#define KVMPROF_PROFILE_FORMAT_FILES_BUILDID_CACHE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILDID_HEX_MAX 41u /* 20 bytes and the terminator */

/* Lower-case hex of id; len <= 20. */
void buildid_hex(char hex[BUILDID_HEX_MAX], const uint8_t *id, size_t len);

/* $HOME/.debug, malloc'd; NULL without HOME or memory. */
char *buildid_default_dir(void);

/* What perf calls the file of a user DSO of this name. */
const char *buildid_file(const char *dso_name);

/* A file of a DSO: data as `file` (buildid_file()) of the one called name, with this build id. */
struct buildid_file_entry {
	const char *name;
	const uint8_t *id;
	size_t id_len;
	const char *file;
	const void *data;
	size_t len;
};

/* Returns true if buildid_cache_add() would find the file there. */
bool buildid_cache_has(const char *dir, const struct buildid_file_entry *x);

/*
 * Add it to the cache. A name that could leave the cache (".." in it) is replaced by
 * "kvmprof". A file that is there stays.
 */
int buildid_cache_add(const char *dir, const struct buildid_file_entry *x, struct err *e);

#endif
