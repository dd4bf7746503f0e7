/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chain: the call chain of a sample as it is in the file, as a value. It distinguishes stacks
 * before their frames have names.
 *
 * The functions are pure; any thread may call them.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_CHAIN_H
#define KVMPROF_PROFILE_FORMAT_NAMES_CHAIN_H

#include "profile/format/names/names.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/sink/where.h"

struct chain {
	uint64_t ip;
	/* borrowed; nr words of 8 bytes, not aligned; includes perf's context marks */
	const uint8_t *words;
	uint32_t nr;
	struct names_view view; /* the mappings at the time of the sample */
	/* kernel: the innermost frame is the kernel's; idle: the vCPU was idle */
	bool kernel, idle;
	uint8_t owner; /* owner of the innermost frame, enum perfdata_owner */
};

/*
 * Returns the chain of the sample *r, with the present mappings of its process. words points into
 * the record and is valid as long as its bytes.
 */
struct chain chain_of(const struct perfdata_record *r, const struct names *n);

/* Returns a hash of the chain; seed is mixed in. */
uint64_t chain_hash(const struct chain *c, uint64_t seed);
/* Returns true if both have the same addresses, mappings and modes. */
bool chain_equal(const struct chain *a, const struct chain *b);

/* Begins a walk over the chain's frames, innermost first; perfdata_walk_next() returns them. */
void chain_walk_begin(struct perfdata_walk *w, const struct chain *c);

/*
 * Returns the state of the vCPU's thread, from the outermost frame that represents one (where.h),
 * because the host's frames are above it. Without such a frame: SAMPLE_HALTED if idle, otherwise
 * SAMPLE_IN_GUEST.
 */
enum sample_where chain_where(const struct chain *c);

#endif
