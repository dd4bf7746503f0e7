/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: what diverge.c finds, and stacks.c and say.c name and tell.
 */
#ifndef KVMPROF_PROFILE_RECORD_DIVERGE_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_DIVERGE_PRIVATE_H

#include "profile/record/diverge/diverge.h"
#include "profile/record/diverge/rerun.h"
#include "profile/format/names/reader.h"

#define STACKS_MAX_FRAMES 256u /* of one that is shown */

/* What is looked at: before the parting, at it, and where a value differs. */
enum diverge_place { DIVERGE_LAST, DIVERGE_NEXT, DIVERGE_VALUE, DIVERGE_PLACE_MAX };

struct diverge_frame {
	uint64_t ip;
	char *symbol, *line; /* "vfs_read+0x10", "read_write.c:480"; NULL: not known. Owned */
	char *dso;	     /* owned */
};

struct diverge_stack {
	struct diverge_frame *frame; /* innermost first; n 0: there is none */
	unsigned int n;
	char *comm; /* owned; NULL: not known */
	uint32_t pid, cpu;
};

struct diverge {
	struct rerun side[2];
	struct trace_reader reader[2]; /* of the latest traced runs */
	uint64_t step;		       /* the first check by which control differs; 0: none does */
	uint64_t value_step;	       /* ... by which a value does */
	bool ended[2];		       /* its run ended before the sums differed */
	uint64_t count[2];	       /* instructions of the runs, or as many as were looked at */
	bool has_values;
	struct part_flow flow;
	struct part_value value;
	struct part_regs regs;
	struct diverge_stack stack[2][DIVERGE_PLACE_MAX];
};

/* stacks.c: the places of both sides, out of one more run of each. */
int diverge_find_stacks(struct diverge *d, const struct diverge_options *o, struct err *e);
void diverge_free_stacks(struct diverge *d);

#endif
