/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: the results of diverge.c, which stacks.c names and render.c prints. Used by the main
 * thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_DIVERGE_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_DIVERGE_PRIVATE_H

#include "profile/record/diverge/diverge.h"
#include "profile/record/diverge/rerun.h"
#include "profile/format/names/reader.h"

#define STACKS_MAX_FRAMES 256u /* the most frames that are shown of a stack */

/* The places of interest: before the divergence, at it, and where a value differs. */
enum diverge_place { DIVERGE_LAST, DIVERGE_NEXT, DIVERGE_VALUE, DIVERGE_PLACE_MAX };

struct diverge_frame {
	uint64_t ip;
	char *symbol, *line; /* "vfs_read+0x10", "read_write.c:480"; NULL: unknown. Owned */
	char *dso;	     /* owned */
};

struct diverge_stack {
	struct diverge_frame *frame; /* innermost first; n 0: there is none; owned */
	unsigned int n;
	char *comm; /* owned; NULL: unknown */
	uint32_t pid, cpu;
};

struct diverge {
	struct rerun side[2];
	struct trace_reader reader[2]; /* readers of the latest traced runs */
	uint64_t step;		       /* the first check in which control differs; 0: none */
	uint64_t value_step;	       /* the first check in which a value differs; 0: none */
	bool ended[2];		       /* the run ended before the checksums differed */
	/* instructions of the runs, or the number that was examined */
	uint64_t count[2];
	bool has_values;
	struct difference_flow flow;
	struct difference_value value;
	struct difference_regs regs;
	struct diverge_stack stack[2][DIVERGE_PLACE_MAX];
};

/*
 * Finds the stacks at these places on both sides, with one more run of each; in stacks.c. Returns 0
 * or -errno with the reason in *e. diverge_free_stacks() is necessary in either case.
 */
int diverge_find_stacks(struct diverge *d, const struct diverge_options *o, struct err *e);
void diverge_free_stacks(struct diverge *d);

#endif
