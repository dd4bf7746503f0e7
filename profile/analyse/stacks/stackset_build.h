/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackset_build: a set under construction: stackset.c reads samples and builds the set,
 * stackset_names.c names its frames. One thread builds a set.
 *
 * Only for includers in profile/analyse/stacks.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_BUILD_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_BUILD_H

#include "base/table.h"
#include "base/texts.h"
#include "profile/format/names/chain.h"
#include "profile/format/names/reader.h"
#include "profile/analyse/stacks/selection.h"
#include "profile/analyse/stacks/stackset.h"
#include "symbolizer/core/demangle.h"

#include <string.h>

#define BLOCK_LEN (1u << 20) /* more bytes than a record can have */

/* A stack as in the file, with the sums of its samples. */
struct raw_stack {
	/* call chain of its first sample; the words are copied when it enters the table */
	struct chain chain;
	uint64_t weight, samples;
	uint32_t task;
	uint32_t stack; /* index of the named stack, or DROPPED */
};

/*
 * An address in a space, and its frame; exact: the address itself is looked up, not the byte before
 * a return address.
 */
struct raw_addr {
	uint64_t addr;
	uint32_t space, frame;
	bool kernel, exact;
	uint8_t owner; /* enum perfdata_owner */
};

/* A stack with the index of its frames in the pool, before the pool's address is final. */
struct built_stack {
	struct stackset_stack s;
	size_t first;
};

/* A function with the key that identifies it. */
struct built_func {
	struct stackset_func f;
	const struct symbol *symbol; /* NULL: identified by address and DSO */
	bool parent;		     /* the selection's expression matches */
};

struct built_task {
	struct stackset_task t;
	uint32_t comm; /* number of the name in struct tasks */
};

/* A block of memory for chains of many stacks, so that the file's pages can be released. */
struct block {
	struct block *before;
	size_t used;
	uint8_t data[BLOCK_LEN];
};

struct stackset_build {
	struct stackset_options opt;
	struct reader in;
	struct display_names display;
	struct selection_use selection;
	struct selection_window window;
	struct texts texts;
	struct block *chains; /* the last block of a list */
	struct table raw, addr, func, frame, task, stack;
	struct stackset_sample *sample;
	size_t nsamples, sample_cap;
	struct stackset_marker *marker;
	size_t nmarkers, marker_cap;
	uint32_t *pool; /* frames of all stacks */
	size_t pool_len, pool_cap;
	uint64_t samples, weight, mode_weight[STACKSET_MODES];
};

/* Returns true if s begins with `with`. */
static inline bool stackset_begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

#endif
