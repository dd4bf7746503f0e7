/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live_stacks: counts equal stacks together, and finds what changed since an earlier moment.
 *
 * Counts only grow; a mark stores their values at a moment. Not thread-safe: the consumer thread
 * uses it.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_VIEW_STACKS_H
#define KVMPROF_PROFILE_RECORD_CONTROL_VIEW_STACKS_H

#include "base/table.h"
#include "profile/record/control/view.h"

#include <stdbool.h>

#define LIVE_MAX_HITS 65536u

struct live_count {
	uint64_t weight, count;
};

struct live_stack {
	uint32_t pid, tid, comm; /* comm: index in live_names */
	uint32_t cpu;
	uint8_t mode, event;
	uint16_t n;
	/* index in frame[], innermost first: functions of live_names, or UINT32_MAX */
	uint32_t first;
	struct live_count total;
};

/* Counts of a vCPU: the weight of event 0 by enum sample_mode, and lost samples. */
struct live_cpu {
	uint64_t mode[4], lost;
};

/* An innermost address in the kernel, with its weight of event 0. */
struct live_hit {
	uint64_t addr;
	uint64_t weight;
};

struct live_totals {
	struct live_count all[PROFILE_MAX_EVENTS], rest[PROFILE_MAX_EVENTS];
};

/* The counts at the time of a reply. */
struct live_mark {
	uint64_t seq, time_ns;
	struct live_count *stack; /* n of them, owned */
	size_t n;
	struct live_cpu *cpu; /* owned */
	struct live_totals totals;
};

struct live_stacks {
	struct table stacks, hits; /* struct live_stack, struct live_hit */
	struct live_stack *stack;  /* n of them: the items of the table */
	uint32_t *frame;
	size_t n, nframes;
	unsigned int vcpus;
	struct live_cpu *cpu;
	struct live_totals totals;
	/* full_ns: since when stacks have found no room; 0: there is room */
	uint64_t began_ns, full_ns;
	struct live_mark mark[LIVE_MARKS];
	uint64_t seq; /* number of the newest mark; not reset when all begins again */
};

/*
 * Begins to count; *s must be all zero or ended. Returns false if out of memory; then nothing is
 * kept.
 */
bool view_stacks_begin(struct live_stacks *s, unsigned int vcpus, uint64_t now_ns);
/* Frees all memory; seq is kept. */
void view_stacks_end(struct live_stacks *s);

/* Adds a sample. like: all members except first and total; frame has like->n functions. */
void view_stacks_add(struct live_stacks *s, const struct live_stack *like, const uint32_t *frame,
		     uint64_t weight, uint64_t time_ns);

/* Adds a sample with this innermost address. */
void view_stacks_hit(struct live_stacks *s, uint64_t addr, uint64_t weight);

/* Returns the mark with that number, or NULL. */
const struct live_mark *view_stacks_find_mark(const struct live_stacks *s, uint64_t seq);
/* Stores the counts under the next number. Without memory the mark is not found later. */
void view_stacks_mark(struct live_stacks *s, uint64_t now_ns);

#endif
