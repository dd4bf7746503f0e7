/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vm: the life of one virtual machine, from its creation to its end.
 *
 * The creating thread calls vm_create(), vm_start(), vm_end() (any thread), vm_join() and
 * vm_destroy(). Each vCPU has a thread of its own, and only that thread uses the vCPU's KVM
 * descriptor. Nothing here prints: console bytes and facts go to the caller. config.h describes a
 * machine, control.h what may change while it runs, end.h how it ended. Functions with a `struct
 * err *` return 0, or -errno with *e recorded.
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

/*
 * Creates the machine and loads the kernel; nothing runs yet. *cfg is copied, and the objects that
 * its pointers refer to must outlive the vm. The caller frees *out with vm_destroy().
 */
int vm_create(struct vm **out, const struct vm_config *cfg, struct err *e);
/* Frees everything. The vCPU threads must have been joined or never started. Accepts NULL. */
void vm_destroy(struct vm *vm);

/* Starts the machine. After an error nothing runs, and the caller still calls vm_destroy(). */
int vm_start(struct vm *vm, struct err *e);

/*
 * Returns a descriptor that becomes readable when the machine has ended. It belongs to the machine.
 */
int vm_end_fd(const struct vm *vm);
/* Waits for all vCPU threads. After it the stats and the result are final. */
void vm_join(struct vm *vm);

/*
 * Returns whether the guest has reset itself and waits to be restarted (only with
 * vm_config.reboots). The caller then calls vm_boot_again(). Both are called by one thread, which
 * is none of the machine's.
 */
bool vm_reset_is_due(const struct vm *vm);
/*
 * Restores memory, vCPUs and devices to their state before the first instruction, and lets the
 * vCPUs continue. Returns 0; -ECANCELED if the machine has ended meanwhile; or another -errno,
 * after which the caller must end the machine.
 */
int vm_boot_again(struct vm *vm, struct err *e);

/*
 * Returns by how many ms the TSC of a machine restored from a snapshot is ahead of its saved value
 * (negative: behind), if KVM cannot set it (quirks.h, tsc_fixed); else 0.
 */
int64_t vm_tsc_jump_ms(const struct vm *vm);

/*
 * Returns CLOCK_MONOTONIC in ns just before the first KVM_RUN; 0 before that. Any thread may call
 * it.
 */
uint64_t vm_first_entry_ns(const struct vm *vm);
/*
 * Returns when a breakpoint was first reached, in CLOCK_MONOTONIC ns; 0: not yet. For breakpoints
 * that count together, the time is stored for the first of them. Any thread may call it.
 */
uint64_t vm_reached_ns(const struct vm *vm, unsigned int breakpoint);
/*
 * Returns the number of vCPUs, which grows when a machine of another process gets more, up to
 * vm_vcpus_most(). Any thread may call it.
 */
unsigned int vm_vcpus(const struct vm *vm);
/* Returns the largest number of vCPUs that the machine may get. Any thread may call it. */
unsigned int vm_vcpus_most(const struct vm *vm);
/*
 * Returns the ring with the samples of one vCPU. The caller is its only consumer. It belongs to the
 * machine.
 */
struct ring *vm_ring(struct vm *vm, unsigned int vcpu);
/*
 * Returns the counters of one vCPU: live while the machine runs (each a little old), final after
 * vm_join(). Any thread may call it.
 */
struct vcpu_stats vm_stats(const struct vm *vm, unsigned int vcpu);
/*
 * Returns the id of the host thread that runs the vCPU; 0 while it does not run or if there is
 * none. Any thread may call it.
 */
int vm_vcpu_tid(const struct vm *vm, unsigned int vcpu);
/*
 * Returns a descriptor of KVM's statistics of a vCPU (kvmstats.h), which the caller closes;
 * -ENOTSUP, or -errno of KVM. Call it before vm_start(): afterwards it would wait for the vCPU.
 */
int vm_stats_fd(const struct vm *vm, unsigned int vcpu);
/* Returns the guest memory for the consumer's thread. It belongs to the machine. */
const struct gmem *vm_memory(const struct vm *vm);
/*
 * Follows changes of another process's machine: where its memory lies, and how many vCPUs it has.
 * Called by the consumer's thread.
 */
void vm_refresh_memory(struct vm *vm);
/*
 * Waits until there may be more samples, at most ns (less than a second). Called by the consumer
 * after it has consumed all samples. If the machine is exact (exact/exact.h), the guest runs during
 * this call only.
 */
void vm_wait_samples(struct vm *vm, uint64_t ns);
/*
 * Declares that vm_wait_samples() will not be called any more, because the consumer's thread, its only
 * caller, has crashed. Async-signal-safe: called in that thread's signal handler. vm_join() then
 * does not wait for it, and the next vm_wait_samples() of any thread ends an exact machine.
 */
void vm_consumer_gone(struct vm *vm);
/*
 * Returns whether the guest is stopped while samples are taken and processed, with a clock of its
 * own (exact/exact.h).
 */
bool vm_is_exact(const struct vm *vm);
/*
 * Returns the time on the clock of the samples: CLOCK_MONOTONIC in ns, or the machine's own. Any
 * thread may call it.
 */
uint64_t vm_now_ns(const struct vm *vm);

/*
 * Stores the guest-physical range [low, high) of the code that runs first: the kernel, or its
 * decompressor.
 */
void vm_boot_memory(const struct vm *vm, uint64_t *low, uint64_t *high);

/*
 * Sets how far the kernel runs from its link-time address (capture_plan). Any thread may call it,
 * once.
 */
void vm_set_slide(struct vm *vm, uint64_t slide);
/* Returns whether the slide is set, and stores it in *slide. Any thread may call it. */
bool vm_slide(const struct vm *vm, uint64_t *slide);

/*
 * Replaces the capture plan's task by *plan, which is copied: the place of tasks, and later the
 * offsets of their members, may become known only while the guest runs. One thread calls it. After
 * VM_LATE_TASK_PLANS calls (machine.h) the last plan stays.
 */
void vm_set_task_plan(struct vm *vm, const struct capture_task_plan *plan);

#endif
