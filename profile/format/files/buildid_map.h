/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buildid_map: a map from build ids to files, as `kvmprof scan` writes and --build-id-map reads it.
 * The format is kvmprof's own, a text of lines:
 *
 *	map  = *( line LF )
 *	line = id SP path / "#" comment / ""
 *	id   = 2 to 40 hexadecimal digits, an even number; path = bytes up to the end of the line
 *
 * One id may have several paths (a program and its debug file). Paths are used as they are; scan
 * writes absolute ones. An entry proves nothing: a caller that opens the file must check its build
 * id. Not thread-safe: the caller serialises calls on one map.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_BUILDID_MAP_H
#define KVMPROF_PROFILE_FORMAT_FILES_BUILDID_MAP_H

#include "base/err.h"
#include "profile/format/files/elf_id.h"

#include <stddef.h>
#include <stdint.h>

#define BUILDID_MAP_MAX_ENTRIES (4u << 20)
#define BUILDID_MAP_MAX_FILE (1u << 30)
#define BUILDID_MAP_MAX_PATH 4095u

struct buildid_entry {
	uint8_t id[ELF_ID_MAX];
	uint8_t len;
	char *path;
};

/*
 * A zeroed struct is an empty map. The entries and their paths are owned by the map, and are sorted
 * by id, then by path, after parsing or buildid_map_sort().
 */
struct buildid_map {
	struct buildid_entry *at;
	size_t n, cap;
};

/*
 * Sets *m to the entries in data[0..len), sorted. name is used in error messages only. Returns 0;
 * -EINVAL with name and line number of the first bad line; -ENOMEM; or -E2BIG beyond
 * BUILDID_MAP_MAX_ENTRIES. The caller frees the map with buildid_map_deinit().
 */
int buildid_map_parse(struct buildid_map *m, const char *name, const uint8_t *data, size_t len,
		      struct err *e);
/* Frees all entries and leaves an empty map. */
void buildid_map_deinit(struct buildid_map *m);

/*
 * Appends an entry with copies of id (1 to ELF_ID_MAX bytes) and path. Returns 0, -ENOMEM, or
 * -E2BIG beyond BUILDID_MAP_MAX_ENTRIES. Call buildid_map_sort() before the next lookup.
 */
int buildid_map_add(struct buildid_map *m, const uint8_t *id, size_t len, const char *path,
		    size_t path_len);
/* Sorts the entries and removes duplicates. */
void buildid_map_sort(struct buildid_map *m);

/*
 * Returns the nth path of this id (0-based), or NULL if it has fewer. The path is valid until the
 * map changes. The map must be sorted.
 */
const char *buildid_map_find(const struct buildid_map *m, const uint8_t *id, size_t len,
			     size_t nth);

#endif
