/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_sample: the driver of the sampler (sampler.h) that stops threads by ptrace, or samples
 * them by BPF.
 *
 * All functions are called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_SAMPLE_H
#define KVMPROF_VMM_ATTACH_ATTACH_SAMPLE_H

#include "vmm/attach/attach_state.h"

/* Fills in *cause for a sample of vCPU i that is taken now, and advances its deadline. */
void attach_begin_sample(struct attach *a, unsigned int i, struct capture_cause *cause);
/*
 * Prefetches the guest memory that a sample of vCPU i is expected to read. Called before its reads.
 */
void attach_begin_reads(struct attach *a, unsigned int i);
/*
 * Counts the sample as incomplete if one of its reads met an absent page. Called after its reads.
 */
void attach_end_reads(struct attach *a);
/* Keeps vCPU i's deadline, and makes it due again a period later (at most 50 ms). */
void attach_postpone_look(struct attach *a, unsigned int i);

/*
 * Records that a sample of vCPU i was taken at `now` (CLOCK_MONOTONIC), if it is the first sample
 * of a VMM that was followed.
 */
void attach_note_first(struct attach *a, unsigned int i, uint64_t now);

/*
 * Handles the signals of all threads until vm_start(), then takes samples until vm->stop is set or
 * all threads have ended. Returns when that is so.
 */
void attach_sample(struct attach *a);

#endif
