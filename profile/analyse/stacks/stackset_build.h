/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackset_build: a set while it is made: stackset.c reads samples and makes the set, stackset_names.c names its frames.
 *
 * Not for includers outside profile/analyse/stacks.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_BUILD_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_BUILD_H

#include "base/table.h"
#include "base/texts.h"
#include "profile/format/names/chain.h"
#include "profile/format/names/reader.h"
#include "profile/analyse/stacks/stackset.h"
#include "symbolizer/core/demangle.h"

#include <string.h>

#define BLOCK_LEN (1u << 20) /* more than a record can hold */

/* A stack as it is in the file: the first sample that had it, and the sums. */
struct raw_stack {
	struct chain chain; /* in the file; once it is in the table, a copy */
	uint64_t weight, samples;
	uint32_t task;
	uint32_t stack; /* what it became, or DROPPED */
};

/* An address of a space, and the frame that it is; exact: it is looked up as it is, not as what a call returns to. */
struct raw_addr {
	uint64_t addr;
	uint32_t space, frame;
	bool kernel, exact;
	uint8_t owner; /* enum perfdata_owner */
};

/* Before the frames' place is final: where they begin in the pool. */
struct built_stack {
	struct stackset_stack s;
	size_t first;
};

/* Beside each function: what it is known by. */
struct built_func {
	struct stackset_func f;
	const struct symbol *symbol; /* NULL: by its address and DSO */
};

struct built_task {
	struct stackset_task t;
	uint32_t comm; /* of tasks */
};

/* Room for chains of many stacks: one after another, so that the file's pages can go. */
struct block {
	struct block *before;
	size_t used;
	uint8_t data[BLOCK_LEN];
};

struct stackset_build {
	struct stackset_options opt;
	struct reader in;
	struct display_names display;
	uint64_t from_ns, to_ns; /* [from, to) */
	struct texts texts;
	struct block *chains; /* the last of a list */
	struct table raw, addr, func, frame, task, stack;
	struct stackset_sample *sample;
	size_t nsamples, sample_cap;
	struct stackset_marker *marker;
	size_t nmarkers, marker_cap;
	uint32_t *pool; /* frames of all stacks */
	size_t pool_len, pool_cap;
	uint64_t samples, weight, mode_weight[STACKSET_MODES];
	struct tasks_seen seen; /* with opt.comm */
};

static inline bool stackset_begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

#endif
