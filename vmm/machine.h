/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine: the internals of struct vm, shared by the files of vmm/. Not for includers outside of
 * vmm/.
 */
#ifndef KVMPROF_VMM_MACHINE_H
#define KVMPROF_VMM_MACHINE_H

#include "base/capture_plan.h"
#include "base/clock.h"
#include "base/gmem.h"
#include "base/ring.h"
#include "base/vcpu_stats.h"
#include "base/account.h"
#include "vmm/bus.h"
#include "vmm/dev/pci.h"
#include "vmm/dev/pit.h"
#include "vmm/dev/platform.h"
#include "vmm/dev/serial.h"
#include "vmm/end.h"
#include "vmm/machine_ops.h"
#include "vmm/machine_parts.h"
#include "vmm/pvm_state.h"

#include <linux/kvm.h>
#include <pthread.h>
#include <stdatomic.h>

/*
 * One vCPU. Only its thread uses it (for a vCPU of another process: the thread that takes the
 * samples), except for atomic members, the consumer's end of the ring, and stats, which others read
 * with vm_stats().
 */
struct vcpu {
	unsigned int index;
	int fd;	      /* -1: the vCPU belongs to another process */
	bool foreign; /* belongs to another process (attach/): KVM cannot be called for it */
	bool exact;   /* also sampled by its instructions (exact/), and never waits at a HLT */
	struct kvm_run *run;
	/* run->s.regs holds the registers after each KVM_RUN; else vcpu_fetch_regs() reads them */
	bool regs_kept;
	struct vm *vm;
	pthread_t thread;
	bool started;
	atomic_int tid; /* 0 until the thread runs and after it has ended */
	struct source source[VM_MAX_EVENTS];
	struct trigger watch; /* source.c: checks whether the vCPU is dead when no event does */
	volatile sig_atomic_t watch_due;
	uint32_t stack_max;	      /* maximum bytes of one stack that are copied now */
	unsigned int control_seen;    /* value of vm->control.changes when it was last applied */
	volatile sig_atomic_t device; /* device that its thread works for: 1 + index; 0: none */
	bool exit_noted;	      /* the exit being handled has a sample */
	uint64_t exit_stopped;	      /* ns spent on samples during that exit */
	struct ring ring;
	struct vcpu_stats stats;
	/* Statistics of a vCPU that another process of kvmprof samples; NULL: `stats`. */
	const struct vcpu_stats *shown;
	/* Time account of its thread; account_seq is odd while it changes. */
	struct account account;
	atomic_uint account_seq;
	int account_fd;
	int stat_fd; /* /proc/.../stat of vCPU 0's thread, for vmm/pvm/ops.c; -1: not open */
	int halt_fd; /* KVM's statistics, with halt_wait_ns at offset halt_at; -1: none */
	uint64_t halt_at;
	struct debugreg debug;
	struct pvm_vcpu pvm_state;
	uint64_t lstar; /* MSR_LSTAR, once the kernel has set it */
	/* Kernel GS base as last seen; constant once the kernel has set it up. */
	uint64_t kernel_gs;
	/* MSR_KERNEL_GS_BASE while a program ran, and the time of reading it (CLOCK_MONOTONIC). */
	uint64_t swapped_gs, swapped_ns;
	atomic_bool collect;
	/*
	 * Number of consecutive checks that found it halted with interrupts off (or never started).
	 */
	atomic_uint dead_looks;
};

#define VM_LATE_TASK_PLANS 64u

/* A virtio device and its transport, which is one of the two. */
#define VM_MAX_VIRTIO 20u
struct machine_virtio {
	struct virtio *d;
	struct virtio_pci *pci;
	struct virtio_mmio *mmio;
};

struct capture_python;
struct io_log;
struct virtio;
struct kvm_host;
struct pvm_ops;
struct quirks;
struct vm_config;

/*
 * The settings that sampling depends on, for machines of this process and of others. As in struct
 * vm_config.
 */
struct vm_sampling {
	const struct kvm_host *host;
	const struct quirks *quirks;
	struct vm_event event[VM_MAX_EVENTS];
	unsigned int nevents;
	bool idle_start;
	struct vm_breakpoint breakpoint[VM_MAX_BREAKPOINTS];
	unsigned int nbreakpoints;
	void (*reached)(void *ctx, unsigned int breakpoint);
	void *reached_ctx;
	bool look_for_kernel;
	struct capture_plan plan;
	size_t ring_size;
};

struct vm {
	struct vm_sampling cfg;
	/* The settings it was made from; owned; NULL: belongs to another process. */
	struct vm_config *setup;
	const struct machine_ops *ops;
	void *attached;		   /* context of ops (struct attach, ...); NULL: none */
	const struct pvm_ops *pvm; /* pvm.h; NULL: the host needs no work-arounds */
	struct pvm_vm pvm_state;
	int fd, end_fd;
	struct gmem mem;
	uint64_t boot_low, boot_high; /* guest-physical range of the code that runs first */
	struct vm_control control;
	struct pause pause;
	struct bus bus;
	struct serial serial;
	struct platform platform;
	struct platform_exit debug_exit;
	struct pci pci;
	struct machine_virtio virtio[VM_MAX_VIRTIO]; /* see devices.c */
	unsigned int nvirtio;
	struct virtio *hvc; /* the virtio console in virtio[]; NULL: none */
	struct virtio *disk[VM_MAX_VIRTIO];
	struct virtio *net;    /* NULL: none */
	struct io_log *io_log; /* io_log.c; NULL: requests and packets are not recorded */
	struct pit pit;
	bool have_pit;
	atomic_bool stop;
	/* State before the first instruction, owned; NULL: a reset ends the machine. */
	struct snapshot_boot *boot;
	atomic_bool reset_due; /* the guest has reset itself, and vm_boot_again() must follow */
	atomic_uint_fast64_t slide; /* slide of the kernel; valid if slide_known */
	atomic_bool slide_known;
	/* Each is written once, then counted in late_tasks. */
	struct capture_task_plan late_task[VM_LATE_TASK_PLANS];
	atomic_uint late_tasks;
	_Atomic(struct capture_python *) python; /* capture_python.c; NULL: Python is not sampled */
	atomic_uint_fast64_t first_entry_ns;
	atomic_uint_fast64_t reached_ns[VM_MAX_BREAKPOINTS];
	bool tsc_set; /* the vCPUs have the snapshot's TSC already */
	/* Cycles by which a snapshot's TSC that could not be set is off; else 0. */
	int64_t tsc_jump;
	/* KVM_GUESTDBG_* flags for a single step that this KVM supports */
	unsigned int step_flags;
	bool nested_flag;	    /* kvm_run reports when a nested guest runs */
	pthread_mutex_t start_lock; /* held by vm_start() until vCPUs may run */
	pthread_mutex_t end_lock;
	struct vm_result result; /* protected by end_lock until vm_join() */
	bool ending;		 /* result.reason is final */
	/*
	 * vCPUs that there are, and places in vcpu[]. A machine of another process may get more, up to
	 * that number; otherwise the two are equal.
	 */
	atomic_uint nvcpus;
	unsigned int places;
	struct vcpu vcpu[];
};

/* The operations of a machine of this process. */
extern const struct machine_ops machine_own;

/*
 * Ends the machine with this reason, and copies *regs and *err if they are not NULL. Only the first
 * call counts. v is the vCPU that caused it, or NULL. Any thread may call it.
 */
void machine_end(struct vm *vm, enum vm_end_reason reason, const struct vcpu *v,
		 const struct sample_regs *regs, const struct err *err);

/*
 * Reports a changed setting to the process that takes the samples, if that is another one. Any
 * thread may call it.
 */
static inline void machine_changed(struct vm *vm, enum vm_change what, const void *how)
{
	if (vm->ops->changed)
		vm->ops->changed(vm, what, how);
}

/*
 * Returns the time on the clock of the machine's samples: CLOCK_MONOTONIC in ns, or its own clock.
 * Any thread may call it.
 */
static inline uint64_t machine_now_ns(const struct vm *vm)
{
	return vm->ops->now ? vm->ops->now(vm) : clock_mono_ns();
}

/* Frees the parts that all machines have, and the struct vm. Called after ops->destroy(). */
void machine_free(struct vm *vm);

#endif
