/* SPDX-License-Identifier: GPL-2.0-or-later */
/* source_exit: VM_EVENT_EXIT, and VM_EVENT_IO, whose samples are those of exits, too. */
#ifndef KVMPROF_VMM_CAPTURE_SOURCE_EXIT_H
#define KVMPROF_VMM_CAPTURE_SOURCE_EXIT_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* Is the instruction behind this exit finished by the next KVM_RUN? */
bool source_exit_is_finished_later(uint32_t kind);
/* KVM_RUN has returned 0 at now, nothing was done about it yet. */
void source_exit_begin(struct vcpu *v, uint64_t now);
/* The exit was handled; only where v->exit_noted. */
void source_exit_handled(struct vcpu *v, uint64_t now);
/* The sample of an exit that is due; the registers are complete. */
void source_take_exit(struct vcpu *v, unsigned int i, uint64_t now);
/* VM_EVENT_IO: dev_io.batch of the disks and the network card; ctx is the struct vm. */
uint64_t source_exit_io_batch(void *ctx);
/* The sample of a notification that is due; the registers are complete. */
void source_take_io(struct vcpu *v, unsigned int i, uint64_t now);
/* No KVM_RUN follows: take what waits for one. */
void source_exit_last(struct vcpu *v);

#endif
