/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_sample: the driver of the sampler (sampler.h) that stops threads by ptrace, or has BPF look at them.
 *
 * All functions are called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_SAMPLE_H
#define KVMPROF_VMM_ATTACH_ATTACH_SAMPLE_H

#include "vmm/attach/attach_state.h"

/* Fills in *cause for a sample of vCPU i that is taken now, and moves its deadline on. */
void attach_begin_sample(struct attach *a, unsigned int i, struct capture_cause *cause);
/* Called before and after a sample's reads of the guest's memory. */
void attach_begin_reads(struct attach *a, unsigned int i);
void attach_end_reads(struct attach *a);
/* Leaves vCPU i's deadline as it is, and looks again a period later. */
void attach_postpone_look(struct attach *a, unsigned int i);

/* Notes a sample of vCPU i that was taken at `now`, if it is the first one of a VMM that was followed. */
void attach_note_first(struct attach *a, unsigned int i, uint64_t now);

/* Stands by until vm_start(), and takes samples until vm->stop, or until all threads are gone. */
void attach_sample(struct attach *a);

#endif
