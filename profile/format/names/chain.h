/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chain: a sample's addresses as they stand in the file, as a value: what tells stacks apart
 * before any of them has a name.
 *
 * Pure functions; any thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_CHAIN_H
#define KVMPROF_PROFILE_FORMAT_NAMES_CHAIN_H

#include "profile/format/names/names.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/sink/where.h"

struct chain {
	uint64_t ip;
	const uint8_t *words; /* borrowed, 8 bytes each, not aligned; contexts included */
	uint32_t nr;
	struct names_view view; /* what was mapped then */
	bool kernel, idle;	/* of the innermost frame; of the vCPU */
	uint8_t owner;		/* enum perfdata_owner of the innermost frame */
};

/* Of a sample. The words are the record's. */
struct chain chain_of(const struct perfdata_record *r, const struct names *n);

/* seed: what else tells things apart. */
uint64_t chain_hash(const struct chain *c, uint64_t seed);
bool chain_equal(const struct chain *a, const struct chain *b);

/* Walk its frames as those of the sample. */
void chain_walk_begin(struct perfdata_walk *w, const struct chain *c);

/* Where its vCPU's thread was: of the frames that say it the outermost one, as above that are the host's. */
enum sample_where chain_where(const struct chain *c);

#endif
