/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source_exit: VM_EVENT_EXIT and VM_EVENT_IO, whose samples belong to VM exits. All functions are
 * called by the vCPU's own thread.
 */
#ifndef KVMPROF_VMM_CAPTURE_SOURCE_EXIT_H
#define KVMPROF_VMM_CAPTURE_SOURCE_EXIT_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/*
 * Returns whether the instruction of an exit of this kind (KVM_EXIT_*) is completed only by the
 * next KVM_RUN.
 */
bool source_exit_is_finished_later(uint32_t kind);
/*
 * Records an exit: KVM_RUN has returned 0 at time now (CLOCK_MONOTONIC ns), and nothing has been
 * handled yet. Takes the sample at once if the registers are complete; else marks it as due and
 * makes the next KVM_RUN return at once.
 */
void source_exit_begin(struct vcpu *v, uint64_t now);
/*
 * Adds the handling time to the samples of this exit, which was handled at time now. Call it only
 * if v->exit_noted.
 */
void source_exit_handled(struct vcpu *v, uint64_t now);
/*
 * Takes the sample of event i's exit that is due; the registers must be complete. A sample without
 * room in the ring passes its weight to the next one.
 */
void source_take_exit(struct vcpu *v, unsigned int i, uint64_t now);
/*
 * Returns the token of the current notification, or 0 if none is recorded; and makes a sample of
 * it due. It is dev_io.batch of the disks and the network card; ctx is the struct vm.
 */
uint64_t source_exit_io_batch(void *ctx);
/* Takes the sample of event i's notification that is due; the registers must be complete. */
void source_take_io(struct vcpu *v, unsigned int i, uint64_t now);
/* Takes the samples that are due for exits when no further KVM_RUN follows. */
void source_exit_last(struct vcpu *v);

#endif
