/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_counts: `kvmprof run --engine exact --call-counts`: exact counts as a profile.
 *
 * Four events. `instructions`: for each stack, and each function (of code without a name: each
 * block) that runs at its top, how many instructions it executed. `calls`: for each stack that a call
 * led to, how many times. `insn-exec`: for each instruction, without a stack, how often it was
 * executed. `entries`: for each stack, how often the function at its top was entered, by a call or a jump: it is
 * what the first instruction was executed. Functions of programs have no names yet here: their entries are
 * their calls. All but `insn-exec` are of each phase of the boot by itself, and have the time of its end.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_EXACT_COUNTS_H
#define KVMPROF_PROFILE_RECORD_RUN_EXACT_COUNTS_H

#include "base/err.h"
#include "base/idmap.h"
#include "profile/record/pipeline/pipeline.h"
#include "profile/format/sink/sink.h"
#include "vmm/exact/callstacks.h"

struct run;

struct run_counts {
	struct idmap pid; /* by address space: of samples that ran in it */
	struct callstacks_stats stats;
	bool one_process;	/* the guest's tasks cannot be told apart */
	uint64_t unknown_space; /* instructions of programs whose process was never sampled */
};

/* The events of *info, and what the pipeline has to tell. */
void run_counts_begin(struct run_counts *c, struct profile_info *info,
		      struct pipeline_options *opt);
/*
 * Writes all counts to r->profile.sink and to r->stats, after pipeline_finish(). Returns 0, or -errno with the reason; -ENOTSUP if the
 * guest ran several kernels.
 */
int run_counts_write(struct run *r, struct err *e);
/* What was counted and what found no room, on standard error. */
void run_counts_print(const struct run *r);
void run_counts_deinit(struct run_counts *c);

#endif
