/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_counts: `kvmprof run --engine exact --call-counts`, which writes exact counts as a profile.
 *
 * There are four events. `instructions`: for each stack and each function at its top (for code
 * without a name: each block), the number of instructions that it executed. `calls`: for each stack
 * that a call led to, the number of calls. `insn-exec`: for each instruction, without a stack, how
 * often it was executed. `entries`: for each stack, how often the function at its top was entered
 * by a call or a jump, which is the count of its first instruction. Functions of programs have no
 * names yet at this point: their entries are their calls. All events except `insn-exec` are counted
 * for each phase of the boot, with the time of its end.
 *
 * All functions are called by the main thread; the callbacks that run_counts_begin() installs run
 * on the consumer thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_EXACT_COUNTS_H
#define KVMPROF_PROFILE_RECORD_RUN_EXACT_COUNTS_H

#include "base/err.h"
#include "base/idmap.h"
#include "profile/record/pipeline/pipeline.h"
#include "profile/format/sink/sink.h"
#include "vmm/exact/callstacks.h"

struct run;

/* All zero: nothing was counted yet. */
struct run_counts {
	struct idmap pid; /* maps an address space to the pid of the samples in it */
	struct callstacks_stats stats;
	bool one_process;	/* the guest's tasks cannot be told apart */
	uint64_t unknown_space; /* instructions of programs whose process was never sampled */
};

/* Sets the events of *info, and the callbacks of the pipeline. c must outlive the pipeline. */
void run_counts_begin(struct run_counts *c, struct profile_info *info,
		      struct pipeline_options *opt);
/*
 * Writes all counts to r->profile.sink and to r->stats, after pipeline_finish(). Returns 0 or
 * -errno with the reason in *e: -ENOTSUP if the guest ran several kernels, -ENOMEM, or an error of
 * the file of counts or of the sink.
 */
int run_counts_write(struct run *r, struct err *e);
/* Prints what was counted and what found no room to standard error. */
void run_counts_print(const struct run *r);
/* Frees what *c owns. */
void run_counts_deinit(struct run_counts *c);

#endif
