/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vm: the life of one virtual machine, from its creation to its end.
 *
 * The creating thread calls vm_create, vm_start, vm_end..., vm_join, vm_destroy. Each vCPU has a
 * thread of its own, which alone touches its KVM descriptor. Nothing here prints: console bytes
 * and facts go to the caller. config.h has what a machine is made of, control.h what may change
 * while it runs, end.h how it ended.
 */
#ifndef KVMPROF_VMM_VM_H
#define KVMPROF_VMM_VM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture_task_plan;
struct gmem;
struct ring;
struct vcpu_stats;
struct vm_config;
struct vm;

/* Build the machine and load the kernel; nothing runs yet. cfg's pointers must outlive the vm. */
int vm_create(struct vm **out, const struct vm_config *cfg, struct err *e);
/* Frees everything; vCPU threads must have been joined or never started. NULL is fine. */
void vm_destroy(struct vm *vm);

int vm_start(struct vm *vm, struct err *e);

/* A descriptor that becomes readable when the machine has ended. */
int vm_end_fd(const struct vm *vm);
/* Wait for all vCPU threads. After it the stats and the result are final. */
void vm_join(struct vm *vm);

/*
 * With vm_config.reboots: returns whether the guest has reset itself and waits to be started again. Then vm_boot_again() makes memory, vCPUs and
 * devices what they were before the first instruction, and lets the vCPUs go on. Returns 0; -ECANCELED: the machine has ended
 * meanwhile; or another -errno, after which it must be ended. One thread, which is none of the machine's.
 */
bool vm_reset_is_due(const struct vm *vm);
int vm_boot_again(struct vm *vm, struct err *e);

/*
 * Of a machine out of a snapshot: by how many ms its TSC has gone on, or back, since it was
 * saved, where KVM can't set it (quirks.h, tsc_fixed); else 0.
 */
int64_t vm_tsc_jump_ms(const struct vm *vm);

/* CLOCK_MONOTONIC just before the first KVM_RUN; 0 while it has not come to that. Any thread. */
uint64_t vm_first_entry_ns(const struct vm *vm);
/* Returns when a breakpoint was first reached, as above; of breakpoints that count together the first one has the time. */
uint64_t vm_reached_ns(const struct vm *vm, unsigned int breakpoint);
unsigned int vm_vcpus(const struct vm *vm);
/* Samples of one vCPU; the caller is its single consumer. */
struct ring *vm_ring(struct vm *vm, unsigned int vcpu);
/* Live while the machine runs (each field a little old), final after vm_join. */
struct vcpu_stats vm_stats(const struct vm *vm, unsigned int vcpu);
/* Of the host's thread that runs it; 0 while it does not run, or where there is none. */
int vm_vcpu_tid(const struct vm *vm, unsigned int vcpu);
/*
 * A descriptor for KVM's statistics of a vCPU (kvmstats.h), the caller's to close. Before
 * vm_start(): afterwards it would wait for the vCPU. -ENOTSUP, or -errno of KVM.
 */
int vm_stats_fd(const struct vm *vm, unsigned int vcpu);
const struct gmem *vm_memory(const struct vm *vm);
/*
 * The consumer has taken all samples that there are: until there may be more, ns at most, less
 * than a second. Where the machine is exact (exact/exact.h) the guest runs meanwhile, and only then.
 */
void vm_rest(struct vm *vm, uint64_t ns);
/*
 * The consumer's thread, which alone called vm_rest(), has crashed. In its signal handler. vm_join() does not
 * wait for it, and the next vm_rest(), of whatever thread, ends an exact machine.
 */
void vm_rests_no_more(struct vm *vm);
/* Does it stand while samples are taken and looked at, on a clock of its own? */
bool vm_is_exact(const struct vm *vm);
/* On the clock of its samples: CLOCK_MONOTONIC, or the machine's own. Any thread. */
uint64_t vm_now_ns(const struct vm *vm);

/* Guest-physical memory [low, high) of what runs first: the kernel, or its decompressor. */
void vm_boot_memory(const struct vm *vm, uint64_t *low, uint64_t *high);

/* The kernel runs this far from where it was linked (capture_plan). Any thread, once. */
void vm_set_slide(struct vm *vm, uint64_t slide);
/* ... and has it been told? */
bool vm_slide(const struct vm *vm, uint64_t *slide);

/*
 * Use this in place of the capture plan's task: where tasks are may be found out only
 * when the guest runs, and where their members are later still. One thread; plan is
 * copied. After VM_LATE_TASK_PLANS of them (machine.h) the last one stays.
 */
void vm_set_task_plan(struct vm *vm, const struct capture_task_plan *plan);

#endif
