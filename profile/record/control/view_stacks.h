/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live_stacks: equal stacks counted together, and what changed since an earlier moment.
 *
 * Counts only grow; a mark keeps what they were. One thread.
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
	uint32_t pid, tid, comm; /* comm: of live_names */
	uint32_t cpu;
	uint8_t mode, event;
	uint16_t n;
	uint32_t first; /* in frame[], innermost first: functions of live_names, or UINT32_MAX */
	struct live_count total;
};

/* By vCPU: the first event's weight by enum sample_mode, and lost samples. */
struct live_cpu {
	uint64_t mode[4], lost;
};

/* An innermost address of the kernel's, with its weight of the first event. */
struct live_hit {
	uint64_t addr;
	uint64_t weight;
};

struct live_totals {
	struct live_count all[PROFILE_MAX_EVENTS], rest[PROFILE_MAX_EVENTS];
};

/* How things were when a reply was given. */
struct live_mark {
	uint64_t seq, time_ns;
	struct live_count *stack; /* n of them, owned */
	size_t n;
	struct live_cpu *cpu; /* owned */
	struct live_totals totals;
};

struct live_stacks {
	struct table stacks, hits; /* struct live_stack, struct live_hit */
	struct live_stack *stack;  /* n of them: those of the table */
	uint32_t *frame;
	size_t n, nframes;
	unsigned int vcpus;
	struct live_cpu *cpu;
	struct live_totals totals;
	uint64_t began_ns, full_ns; /* full_ns: since when stacks found no room; 0: they do */
	struct live_mark mark[LIVE_MARKS];
	uint64_t seq; /* of the newest mark; goes on when all begins anew */
};

/* All zero is none. False: no memory, and nothing is kept. */
bool view_stacks_begin(struct live_stacks *s, unsigned int vcpus, uint64_t now_ns);
/* Give all memory back; seq stays. */
void view_stacks_end(struct live_stacks *s);

/* like: without first and total; frame has like->n functions. */
void view_stacks_add(struct live_stacks *s, const struct live_stack *like, const uint32_t *frame,
		     uint64_t weight, uint64_t time_ns);

/* A sample was taken there. */
void view_stacks_hit(struct live_stacks *s, uint64_t addr, uint64_t weight);

/* The mark of that number, or NULL. */
const struct live_mark *view_stacks_find_mark(const struct live_stacks *s, uint64_t seq);
/* Keep how things are, under the next number. Without memory the mark cannot be found. */
void view_stacks_mark(struct live_stacks *s, uint64_t now_ns);

#endif
