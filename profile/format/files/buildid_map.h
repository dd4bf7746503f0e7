/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buildid_map: which file has which build id, as `kvmprof scan` writes and
 * --build-id-map reads. Own format, a text of lines:
 *
 *	map  = *( line LF )
 *	line = id SP path / "#" comment / ""
 *	id   = 2 to 40 hexadecimal digits, an even number; path = bytes up to the end of the line
 *
 * One id may have several paths (a program and its debug file). A path is taken as it
 * stands; scan writes absolute ones. Nothing is believed because of the map: who opens a
 * file checks its id.
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

/* Sorted by id, then path, once parsed or sorted. Owned. */
struct buildid_map {
	struct buildid_entry *at;
	size_t n, cap;
};

/* -EINVAL with name and line number of the first bad line. */
int buildid_map_parse(struct buildid_map *m, const char *name, const uint8_t *data, size_t len,
		      struct err *e);
void buildid_map_deinit(struct buildid_map *m);

/* Copies path. -ENOMEM, -E2BIG. */
int buildid_map_add(struct buildid_map *m, const uint8_t *id, size_t len, const char *path,
		    size_t path_len);
/* Sort, and drop entries that are there twice. */
void buildid_map_sort(struct buildid_map *m);

/* The nth path of this id, counted from 0; NULL when there are not so many. */
const char *buildid_map_find(const struct buildid_map *m, const uint8_t *id, size_t len,
			     size_t nth);

#endif
