/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spaces: the mappings of each process and of the kernel over time.
 *
 * A space is a list of mappings that do not overlap. It may gain mappings in free places, also if a
 * mapping is reported again after it has grown. Any other change (a mapping over another, an exec)
 * gives the process a new space, and the old one stays unchanged. The number of a space, stored
 * with a sample, therefore identifies its mappings later, too. A fork shares the parent's space
 * until one of the two changes. Not thread-safe: the caller serialises calls on one object. A
 * zeroed struct spaces is empty.
 *
 * If a limit is reached, the process loses all its mappings: its addresses then have no names,
 * because names of an older space could be wrong.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_SPACES_H
#define KVMPROF_PROFILE_FORMAT_NAMES_SPACES_H

#include "base/err.h"
#include "base/idmap.h"

#define SPACES_MAX (4u << 20)
#define SPACES_MAX_MAPS (16u << 20) /* in all spaces together: 512 MiB */

#define SPACE_NONE 0u /* the empty space, of a process without known mappings */

struct mapping {
	uint64_t addr, end, pgoff;
	uint32_t dso; /* chosen by the caller */
};

struct space {
	struct mapping *map; /* sorted by address; owned */
	size_t cap;
	uint32_t n;
	uint32_t users; /* number of processes that have this space at present */
};

struct spaces {
	struct space *space; /* owned; [SPACE_NONE] exists after the first call */
	size_t n, cap, maps;
	uint64_t left_out; /* mappings not stored because a limit was reached */
	struct idmap by_pid;
};

/* Frees everything and leaves an empty object. */
void spaces_deinit(struct spaces *s);

/* Returns the number of the process's present space. */
uint32_t spaces_of(const struct spaces *s, uint32_t pid);
/*
 * Adds a mapping, which replaces earlier ones at its addresses. Returns 0 or -ENOMEM. If a limit is
 * reached, counts it in left_out, removes the process's mappings and returns 0.
 */
int spaces_map(struct spaces *s, uint32_t pid, const struct mapping *m, struct err *e);
/* Gives pid the mappings of ppid. Returns 0 or -ENOMEM. */
int spaces_fork(struct spaces *s, uint32_t pid, uint32_t ppid, struct err *e);
/* Removes all mappings of pid. Returns 0 or -ENOMEM. */
int spaces_clear(struct spaces *s, uint32_t pid, struct err *e);

/* Removes all mappings of all processes. Returns 0 or -ENOMEM. */
int spaces_clear_all(struct spaces *s, struct err *e);

/* Returns the mapping of a space that contains addr, or NULL. Valid until a mapping is added. */
const struct mapping *spaces_find(const struct spaces *s, uint32_t space, uint64_t addr);

#endif
