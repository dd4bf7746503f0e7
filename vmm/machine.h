/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine: the inside of struct vm, shared by the files that make it up.
 *
 * Not for includers outside vmm/.
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
 * For its thread alone (of a foreign vCPU: the thread that takes the samples), but for what is
 * atomic, the consumer's end of the ring, and stats, which others read meanwhile (vm_stats()).
 */
struct vcpu {
	unsigned int index;
	int fd;	      /* -1: foreign */
	bool foreign; /* of another process, see attach/: nothing can be asked of KVM */
	bool exact;   /* and sampled by its instructions, see exact/: it never stands at a HLT */
	struct kvm_run *run;
	bool regs_kept; /* run->s.regs holds the registers after each KVM_RUN; else once fetched */
	struct vm *vm;
	pthread_t thread;
	bool started;
	atomic_int tid; /* 0 until the thread runs and after it ended */
	struct source source[VM_MAX_EVENTS];
	struct trigger watch; /* source.c: looks whether it is dead, when nothing else does */
	volatile sig_atomic_t watch_due;
	uint32_t stack_max;	      /* bytes of one stack that are copied now */
	unsigned int control_seen;    /* vm->control.changes when it was last followed */
	volatile sig_atomic_t device; /* what its thread works at: 1 + index, 0: none */
	bool exit_noted;	      /* an exit is worked for that has a sample */
	uint64_t exit_stopped;	      /* ns that samples took within it */
	struct ring ring;
	struct vcpu_stats stats;
	/* The statistics of a vCPU that another process of ours samples; NULL: `stats`. */
	const struct vcpu_stats *shown;
	struct account account; /* of its thread; account_seq is odd while it changes */
	atomic_uint account_seq;
	int account_fd;
	int stat_fd; /* /proc/.../stat of vCPU 0's thread, for vmm/pvm/ops.c; -1: not open */
	int halt_fd; /* KVM's statistics of it, with halt_wait_ns at halt_at; -1: none */
	uint64_t halt_at;
	struct debugreg debug;
	struct pvm_vcpu pvm_state;
	uint64_t lstar;	    /* once the kernel has set it */
	uint64_t kernel_gs; /* as last seen, 0: never; it stays the same once it is set up */
	/* MSR_KERNEL_GS_BASE as it was while a program ran, and when (CLOCK_MONOTONIC); 0: not known. */
	uint64_t swapped_gs, swapped_ns;
	atomic_bool collect;
	/* Looks in a row that found it halted with interrupts off (or never started). */
	atomic_uint dead_looks;
};

#define VM_LATE_TASK_PLANS 64u

/* A virtio device and its transport, one of the two. */
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

/* The settings that samples depend on, of a machine of our own as of another process's. As in struct vm_config. */
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
	struct vm_config *setup; /* what it was made from; owned; NULL: it is foreign */
	const struct machine_ops *ops;
	void *attached;		   /* for ops: a struct attach or struct gdb; NULL: it is our own */
	const struct pvm_ops *pvm; /* pvm.h; NULL: the host needs none of it */
	struct pvm_vm pvm_state;
	int fd, end_fd;
	struct gmem mem;
	uint64_t boot_low, boot_high; /* where what runs first was put */
	struct vm_control control;
	struct pause pause;
	struct bus bus;
	struct serial serial;
	struct platform platform;
	struct platform_exit debug_exit;
	struct pci pci;
	struct machine_virtio virtio[VM_MAX_VIRTIO]; /* devices.c */
	unsigned int nvirtio;
	struct virtio *hvc; /* the virtio-console of them, NULL: none */
	struct virtio *disk[VM_MAX_VIRTIO];
	struct virtio *net;    /* NULL: none */
	struct io_log *io_log; /* io_log.c; NULL: no records of requests or packets are kept */
	struct pit pit;
	bool have_pit;
	atomic_bool stop;
	struct snapshot_boot
		*boot;	       /* the machine before its first instruction; NULL: a reset ends it */
	atomic_bool reset_due; /* the guest has reset itself, and vm_boot_again() follows */
	atomic_uint_fast64_t slide; /* of the kernel; valid when slide_known */
	atomic_bool slide_known;
	struct capture_task_plan
		late_task[VM_LATE_TASK_PLANS]; /* each written once, then counted */
	atomic_uint late_tasks;
	_Atomic(struct capture_python *) python; /* capture_python.c; NULL: nobody asks */
	atomic_uint_fast64_t first_entry_ns;
	atomic_uint_fast64_t reached_ns[VM_MAX_BREAKPOINTS];
	bool tsc_set;		    /* the snapshot's counters are those of the vCPUs already */
	int64_t tsc_jump;	    /* cycles: of a snapshot's TSC that could not be set, else 0 */
	unsigned int step_flags;    /* KVM_GUESTDBG_* for a single step, as this KVM has them */
	bool nested_flag;	    /* of the host: kvm_run says when a nested guest runs */
	pthread_mutex_t start_lock; /* held by vm_start() until vCPUs may run */
	pthread_mutex_t end_lock;
	struct vm_result result; /* under end_lock until joined */
	bool ending;		 /* result.reason is final */
	unsigned int nvcpus;
	struct vcpu vcpu[];
};

extern const struct machine_ops machine_own;

/* Records the end; regs (may be NULL) are copied. The first caller wins. */
void machine_end(struct vm *vm, enum vm_end_reason reason, const struct vcpu *v,
		 const struct sample_regs *regs, const struct err *err);

static inline void machine_changed(struct vm *vm, enum vm_change what, const void *how)
{
	if (vm->ops->changed)
		vm->ops->changed(vm, what, how);
}

/* Returns the time on the clock of the machine's samples: CLOCK_MONOTONIC, or its own. Any thread. */
static inline uint64_t machine_now_ns(const struct vm *vm)
{
	return vm->ops->now ? vm->ops->now(vm) : clock_mono_ns();
}

/* Frees what all machines have in common, and the struct vm. */
void machine_free(struct vm *vm);

#endif
