/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spaces: what is mapped where, in each process and in the kernel, over time.
 *
 * A space is a list of mappings that do not overlap. It may gain mappings at
 * free places, also when a mapping is told anew that has grown; anything else (a mapping
 * over another, an exec) gives the process a new space, and the old one stays as it was.
 * So a number of a space, noted with a sample, says where its addresses belong, also
 * later. A fork shares the parent's space until one of the two changes. One thread.
 *
 * Over a cap a process has no mappings any more: its addresses then have no names, where
 * those of an older space might be wrong ones.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_SPACES_H
#define KVMPROF_PROFILE_FORMAT_NAMES_SPACES_H

#include "base/err.h"
#include "base/idmap.h"

#define SPACES_MAX (4u << 20)
#define SPACES_MAX_MAPS (16u << 20) /* in all spaces together: 512 MiB */

#define SPACE_NONE 0u /* of a process that nothing is known of: empty */

struct mapping {
	uint64_t addr, end, pgoff;
	uint32_t dso; /* the caller's number */
};

struct space {
	struct mapping *map; /* by address */
	size_t cap;
	uint32_t n;
	uint32_t users; /* processes that have it now */
};

struct spaces {
	struct space *space; /* [SPACE_NONE] is always there after the first call */
	size_t n, cap, maps;
	uint64_t left_out; /* mappings over a cap */
	struct idmap by_pid;
};

void spaces_deinit(struct spaces *s);

/* The space that a process has now. */
uint32_t spaces_of(const struct spaces *s, uint32_t pid);
/* Add a mapping; it hides what lies below. Over a cap it is left out and counted. -ENOMEM. */
int spaces_map(struct spaces *s, uint32_t pid, const struct mapping *m, struct err *e);
/* pid has what ppid has. */
int spaces_fork(struct spaces *s, uint32_t pid, uint32_t ppid, struct err *e);
/* pid has nothing. */
int spaces_clear(struct spaces *s, uint32_t pid, struct err *e);

/* No process has anything. */
int spaces_clear_all(struct spaces *s, struct err *e);

/* What covers addr in a space, or NULL. Valid until the space changes. */
const struct mapping *spaces_find(const struct spaces *s, uint32_t space, uint64_t addr);

#endif
