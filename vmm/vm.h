/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vm: one virtual machine, from configuration to a named end.
 *
 * The creating thread calls vm_create, vm_start, vm_wait/vm_end..., vm_join,
 * vm_destroy. Each vCPU has a thread of its own, which alone touches its KVM
 * descriptor. Nothing here prints: console bytes and facts go to the caller.
 */
#ifndef KVMPROF_VMM_VM_H
#define KVMPROF_VMM_VM_H

#include "base/err.h"
#include "base/hist.h"
#include "base/ring.h"
#include "base/sample.h"
#include "vmm/account.h"
#include "vmm/image/image.h"
#include "vmm/dev/disk.h"
#include "vmm/dev/io.h"
#include "vmm/dev/net_link.h"
#include "vmm/gmem.h"
#include "vmm/kvm.h"
#include "vmm/quirks.h"

#include <stdbool.h>
#include <stdint.h>

/* Why the machine stopped. */
enum vm_end_reason {
	VM_RUNNING = 0,
	VM_END_RESET,	     /* the guest asked for a reset */
	VM_END_POWEROFF,     /* ACPI power off */
	VM_END_EXIT,	     /* the guest said with what: vm_result.exit_status */
	VM_END_HALTED,	     /* every vCPU halted with interrupts off */
	VM_END_DURATION,     /* vm_end() by the caller: time is up */
	VM_END_INTERRUPTED,  /* vm_end() by the caller: Ctrl-C */
	VM_END_MARKER,	     /* a stop marker was reached */
	VM_END_SAMPLES,	     /* vm_end() by the caller: there are enough */
	VM_END_ASKED,	     /* vm_end() by the caller: through the control socket */
	VM_END_SAVED,	     /* vm_end() by the caller: a snapshot was what it ran for */
	VM_END_TRIPLE_FAULT, /* KVM_EXIT_SHUTDOWN */
	VM_END_GONE,	     /* attached to: its process ended it */
	VM_END_STOPPED,	     /* attached to: it was paused, moved away or ended by others */
	VM_END_ERROR,	     /* KVM or the VMM could not go on; see vm_result.err */
};

#define CAPTURE_NONE UINT32_MAX

/*
 * The per-CPU area of Linux with the stacks that the processor itself switches to (NMI,
 * machine check, and the one on which each entry from a program begins), a page each:
 * Documentation/arch/x86/x86_64/mm.rst, "cpu_entry_area mapping".
 */
#define LINUX_ENTRY_AREA UINT64_C(0xfffffe0000000000)
#define LINUX_ENTRY_AREA_LEN (UINT64_C(1) << 39)

/* Where the running task is and what of it to copy; offsets are into its structure. */
/*
 * Where a traced task keeps its return addresses (Linux: struct ftrace_ret_stack), and a probed
 * one (struct rethook_node).
 */
struct capture_returns_plan {
	uint32_t entry;	       /* bytes of one; 0: not known, and the next four mean nothing */
	uint32_t stack, index; /* offsets in the task: of the pointer, of an s32 */
	uint32_t unit;	       /* bytes by which index counts */
	bool top;	       /* index is the topmost one's, not how many there are */
	uint32_t node;	       /* bytes of one on the list; 0: not known, nor the next two */
	uint32_t list, link;   /* offsets of pointers: in the task, in a node */
};

/*
 * Where a thread of Python's interpreter keeps its frames; offsets in bytes. Of one build of
 * CPython: symbolizer/python finds them.
 */
struct capture_python_layout {
	uint32_t thread_id; /* in the thread's state: what fs_base is in that thread */
	uint32_t current;   /* in the thread's state: pointer to the innermost frame; see cframe */
	uint32_t
		top; /* in the thread's state: two pointers, between which no frame is; CAPTURE_NONE */
	/* 3.11 and 3.12: `current` leads to a structure on the C stack, in which these are. */
	bool cframe;
	uint32_t cframe_current, cframe_previous;
	/* In a frame: pointers, and single bytes. span: all lie in so many bytes. */
	uint32_t code, previous, instr, owner, span;
	uint32_t is_entry;  /* 3.11: a byte, 1 in frames that the interpreter was entered with */
	uint8_t shim;	    /* since 3.12: owner of a frame on the C stack that tells the same */
	uint8_t heap_owner; /* owner of frames below `top` */
	uint32_t id[4];	    /* in a code object: of struct sample_python's id; CAPTURE_NONE: 0 */
};
#define CAPTURE_PYTHON_MAX_SPAN 128u

struct capture_task_plan {
	bool known;
	/* Of the pointer to it: an offset from the kernel's GS base (percpu), or an address. */
	uint64_t current;
	bool percpu;
	bool members; /* the offsets below are known */
	uint32_t tid, pid, comm, mm;
	uint32_t start, stack; /* may be CAPTURE_NONE */
	uint32_t comm_size;    /* <= SAMPLE_COMM */
	uint32_t stack_align;  /* as in capture_plan, learned later; 0: as it is there */
	struct capture_returns_plan returns;
};

/* What capture copies besides registers. Computed once, executed blindly. */
struct capture_plan {
	uint32_t stack_max; /* bytes of one stack, <= SAMPLE_MAX_SLICE */
	/*
	 * Bytes of the program's stack, <= SAMPLE_MAX_USER_SLICE; 0: none of it below the kernel's.
	 * While the program runs it is stack_max where that is more.
	 */
	uint32_t user_stack_max;
	uint32_t
		stack_align; /* kernel stacks end at multiples of this (Linux: their size); 0 unknown */
	/*
	 * Where the guest keeps the address of the topmost word of its interrupt stack
	 * (Linux: hardirq_stack_ptr): a virtual address, or with irq_stack_percpu an
	 * offset from the GS base; 0 unknown.
	 */
	uint64_t irq_stack_ptr;
	bool irq_stack_percpu;
	struct capture_task_plan task;
	bool want_insn;	 /* copy the bytes at rip */
	bool want_fs;	 /* fs_base must be there: threads of Python are known by it */
	bool want_lstar; /* ask for MSR_LSTAR until the kernel has set it */
	/*
	 * Addresses here and in `task` inside [image_start, image_end) are as linked, and
	 * move with the kernel. slide_unknown: they can't be used before vm_set_slide().
	 */
	uint64_t image_start, image_end;
	bool slide_unknown;
};

/* What ends a period. */
enum vm_event_kind {
	VM_EVENT_WALL, /* CLOCK_MONOTONIC: ticks while the vCPU is halted, too */
	VM_EVENT_CPU,  /* CPU time of the vCPU's thread */
	VM_EVENT_PERF, /* a perf_event counter on the vCPU's thread */
	VM_EVENT_EXIT, /* VM exits that come to us, by reason */
	VM_EVENT_HOST, /* the thread's time, on a processor and off it, with the host's side */
	VM_EVENT_IO,   /* notifications of disks, or of packets: a sample each, see vm_io_take() */
};

/* A perf_event counter; fields as in struct perf_event_attr (linux/perf_event.h). */
struct vm_counter {
	uint32_t type;
	uint64_t config;
	bool exclude_user, exclude_kernel, exclude_hv, exclude_host, exclude_guest;
	unsigned int precise_ip; /* 0 to 3 */
	bool clock;		 /* counts ns, by a timer */
	bool freq;	    /* the kernel chooses periods, so that there are `period` a second */
	bool chain;	    /* with the call chain of the host's kernel */
	const char *filter; /* of a tracepoint; NULL: none */
};

/* vm_event.exits: KVM_EXIT_* of 63 and above share the last bit. */
#define VM_EXIT_BIT(kind) (UINT64_C(1) << ((kind) < 63 ? (kind) : 63))
#define VM_EXIT_ANY UINT64_MAX

struct vm_event {
	enum vm_event_kind kind;
	uint64_t period;	   /* ns; PERF, EXIT: a count, or counter.freq. 1 or more */
	uint64_t exits;		   /* EXIT: VM_EXIT_BIT() of each reason */
	bool packets;		   /* IO: of the network card, not of the disks */
	bool jitter;		   /* draw each deadline at random, see trigger.h */
	bool timer;		   /* CPU: by a timer, since there is no counter */
	struct vm_counter counter; /* PERF, and CPU without `timer` */
};

/* vm_config.event is so long. */
#define VM_MAX_EVENTS 8u

/* Instructions that can be watched for: DR1 to DR3, DR0 is syscall_assist's. */
#define VM_MAX_BREAKPOINTS 3u

/* What reaching it does; a sample with reason SAMPLE_MARKER is taken in any case. */
enum vm_breakpoint_action {
	VM_BREAKPOINT_MARK,
	VM_BREAKPOINT_START, /* vm_collect() */
	VM_BREAKPOINT_PAUSE, /* stand still in front of it until vm_pause() and vm_resume() */
	VM_BREAKPOINT_STOP,  /* while samples are collected: no more of them, VM_END_MARKER */
};

struct vm_breakpoint {
	uint64_t addr; /* as linked, where it moves with the kernel (capture_plan); not 0 */
	enum vm_breakpoint_action action;
	bool once; /* the first time on any vCPU */
};

/* By what the guest finds virtio devices. */
enum vm_transport {
	VM_VIRTIO_PCI = 0, /* modern, MSI-X */
	VM_VIRTIO_MMIO,	   /* for kernels without PCI; the command line names them */
};

#define VM_MAX_DISKS 8u
struct vm_disk {
	struct disk *disk;  /* the caller's */
	const char *serial; /* VIRTIO_BLK_T_GET_ID, up to 20 bytes; NULL: none */
};

#define VM_MAX_SHARES 8u
/* A directory of the host, which the guest mounts by its tag. */
struct vm_share {
	const char *dir, *tag;
	bool read_only;
};

struct boot_module;
struct snapshot;
struct snapshot_blob;

struct vm_config {
	/* Not NULL: the machine comes out of it (snapshot_configure()), no image is loaded. */
	const struct snapshot *snapshot;
	const struct kvm_host *host;
	const struct quirks *quirks;
	const struct boot_image *image;
	enum boot_way boot;
	/* As in struct boot_config (boot/load.h). */
	uint64_t entry;
	const char *image_name;
	const struct boot_module *module;
	unsigned int nmodules;
	const char *cmdline;
	const uint8_t *initrd;
	size_t initrd_len;
	uint64_t mem_size; /* bytes */
	enum gmem_pages pages;
	bool bind_memory; /* to numa_node */
	unsigned int numa_node;
	const int *pin; /* host CPU of each vCPU; NULL: any */
	unsigned int vcpus;
	enum vm_transport transport;
	struct vm_disk disk[VM_MAX_DISKS]; /* vda, vdb, ... */
	unsigned int ndisks;
	struct vm_share share[VM_MAX_SHARES];
	unsigned int nshares;
	/*
	 * In a share's own process, in vm_create(), before it opens the directory: gives up rights, or
	 * -errno with e set. May be NULL.
	 */
	int (*bind_share)(void *ctx, const char *dir, bool read_only, struct err *e);
	/* That process has ended while the machine runs: `how`, as words behind "it ". Any thread; may be NULL. */
	void (*share_ended)(void *ctx, const char *tag, const char *how);
	void *share_ctx;
	struct net_config net; /* net0 */
	bool rng;	       /* a virtio-rng */
	bool virtio_console;   /* hvc0, which goes where the serial line goes */
	bool slow_tick;	       /* VMM-side PIT with a floor on its period (interpreting hosts) */
	struct vm_event event[VM_MAX_EVENTS];
	unsigned int nevents; /* 0: no sampling */
	bool idle_start;      /* take no samples before vm_collect() */
	struct vm_breakpoint breakpoint[VM_MAX_BREAKPOINTS];
	unsigned int nbreakpoints;
	void (*reached)(void *ctx, unsigned int breakpoint); /* on the vCPU's thread, of `once` */
	void *reached_ctx;
	/*
	 * While nothing is collected take samples with reason SAMPLE_LOOK all the same
	 * until vm_set_slide(): it is they that tell where the kernel is.
	 */
	bool look_for_kernel;
	struct capture_plan plan;
	size_t ring_size;			  /* bytes for each vCPU */
	void (*console)(void *ctx, uint8_t byte); /* on the vCPU thread that writes */
	void *console_ctx;
	/*
	 * In vm_start(), on its caller's thread, when all threads of the machine are there and no
	 * vCPU has run; may be NULL. Where it fails the guest never runs.
	 */
	int (*ready)(void *ctx, struct err *e);
	void *ready_ctx;
	/* On the thread of a vCPU, as the last that it does; may be NULL. */
	void (*vcpu_ends)(void *ctx, unsigned int vcpu);
	void *vcpu_ends_ctx;
};

/* Exit counters: index is KVM_EXIT_*; the last one takes everything above. */
#define VCPU_EXIT_KINDS 48

/*
 * What the vCPU's thread does for the guest between two KVM_RUNs: the devices of the bus,
 * and work that is no device's. sample.device and vcpu_stats.device count by these.
 */
#define VM_MAX_DEVICES 48u

struct vcpu_device_stats {
	uint64_t exits, ns; /* ns: CLOCK_MONOTONIC, from KVM_RUN's return to ready to enter */
	uint64_t samples;   /* whose period ended meanwhile */
};

/* A counter of perf_event_open(2) on one vCPU's thread. */
struct vm_counter_stats {
	uint64_t enabled_ns; /* it was to count while the thread ran */
	uint64_t running_ns; /* it did; less than enabled_ns where others had the PMU, too */
	uint64_t throttled;  /* how often the kernel stopped it for overflowing too often */
	uint64_t lost;	     /* overflow records that found no room in the ring */
};

struct vcpu_stats {
	uint64_t exits[VCPU_EXIT_KINDS];
	uint64_t samples, kernel, user, idle; /* committed samples by mode */
	uint64_t event_samples[VM_MAX_EVENTS];
	struct vm_counter_stats counter[VM_MAX_EVENTS]; /* of events that have one, else 0 */
	uint64_t offline;     /* deadlines while the vCPU waited to be started */
	uint64_t uncollected; /* periods that ended while no samples were wanted */
	uint64_t overruns;    /* missed deadlines */
	uint64_t stack_capped, stack_unmapped, stack_none;
	uint64_t breakpoints[VM_MAX_BREAKPOINTS]; /* how often each was reached */
	uint64_t debug_returned;		  /* #DB of the guest's own */
	uint64_t syscalls_assisted, syscalls_undone, faults_forwarded, insns_completed;
	uint64_t unknown_io, unknown_mmio;
	struct vcpu_device_stats device[VM_MAX_DEVICES];
	struct hist stop_ns;	/* from KVM_RUN's return to ready to enter again */
	struct hist latency_ns; /* from deadline to capture */
};

struct vm_result {
	enum vm_end_reason reason;
	unsigned int vcpu; /* that ended it, where one did */
	/*
	 * regs are those of the vCPU at a crash, error or halt for good. false at TRIPLE_FAULT: KVM
	 * has reset it.
	 */
	bool have_regs;
	struct sample_regs regs;
	uint32_t exit_status; /* of EXIT */
	struct err err;	      /* text for TRIPLE_FAULT and ERROR */
	uint64_t load_ns;     /* spent writing the kernel into guest memory */
	uint64_t end_ns;
};

/* Are there virtio devices in it? They need a local APIC, and with VM_VIRTIO_PCI a PCI bus. */
bool vm_has_virtio(const struct vm_config *cfg);

struct vm;

/* Build the machine and load the kernel; nothing runs yet. cfg's pointers must outlive the vm. */
int vm_create(struct vm **out, const struct vm_config *cfg, struct err *e);
/* Frees everything; vCPU threads must have been joined or never started. NULL is fine. */
void vm_destroy(struct vm *vm);

int vm_start(struct vm *vm, struct err *e);

/* A descriptor that becomes readable when the machine has ended. */
int vm_end_fd(const struct vm *vm);
/* Ask for an end; the first reason counts. Any thread. */
void vm_end(struct vm *vm, enum vm_end_reason reason);
/* The same for VM_END_EXIT: the guest has said how it went. */
void vm_exit(struct vm *vm, uint32_t status);
/* Wait for all vCPU threads. After it the stats and the result are final. */
void vm_join(struct vm *vm);

/*
 * All vCPUs stand still between two instructions when it returns, until vm_resume() or
 * the end. The time is lost to samples. -ECANCELED: the machine has ended instead.
 * One thread at a time.
 */
int vm_pause(struct vm *vm, struct err *e);
void vm_resume(struct vm *vm);
/*
 * Between the two: write the machine to path, with sections of the caller's (snapshot.h).
 * The machine is as it was before.
 */
int vm_save(struct vm *vm, const char *path, const struct snapshot_blob *blob, unsigned int nblobs,
	    struct err *e);

/*
 * Of a machine out of a snapshot: by how many ms its TSC has gone on, or back, since it was
 * saved, where KVM can't set it (quirks.h, tsc_fixed); else 0.
 */
int64_t vm_tsc_jump_ms(const struct vm *vm);

const struct vm_result *vm_result(const struct vm *vm);
/* CLOCK_MONOTONIC just before the first KVM_RUN; 0 while it has not come to that. Any thread. */
uint64_t vm_first_entry_ns(const struct vm *vm);
/* The same for when a breakpoint was first reached. */
uint64_t vm_reached_ns(const struct vm *vm, unsigned int breakpoint);
unsigned int vm_vcpus(const struct vm *vm);
/* Samples of one vCPU; the caller is its single consumer. */
struct ring *vm_ring(struct vm *vm, unsigned int vcpu);
/* Live while the machine runs (each field a little old), final after vm_join. */
struct vcpu_stats vm_stats(const struct vm *vm, unsigned int vcpu);
/* Where its thread's time went (account.h), of one moment: as of its last exit. Of our own machine. */
void vm_account(const struct vm *vm, unsigned int vcpu, struct account *out);
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
 * copied. After VM_LATE_TASK_PLANS of them the last one stays.
 */
#define VM_LATE_TASK_PLANS 4u
void vm_set_task_plan(struct vm *vm, const struct capture_task_plan *plan);

/*
 * Copy the frames of Python's interpreter with each sample of these threads. One thread, not
 * after vm_join(). vm_python_layout(): number of the layout, or -ENOSPC after
 * VM_PYTHON_LAYOUTS, or -ENOMEM. vm_python_thread(): the thread of the program with this mm (as in
 * struct sample_task) whose fs_base is this has its state at tstate; it takes the place of
 * another one when VM_PYTHON_THREADS are known.
 */
#define VM_PYTHON_LAYOUTS 16u
#define VM_PYTHON_THREADS 4096u
int vm_python_layout(struct vm *vm, const struct capture_python_layout *layout);
struct vm_python_thread {
	uint64_t mm, fs_base, tstate;
	unsigned int layout;
};
void vm_python_thread(struct vm *vm, const struct vm_python_thread *t);

/*
 * Control while the machine runs; any thread. What is asked for holds from each vCPU's
 * next look at it, which a signal brings about at once.
 */
/* Take samples, or let periods end without one. */
void vm_collect(struct vm *vm, bool on);
bool vm_is_collecting(const struct vm *vm);
/* The same for one vCPU; it takes samples when both say so. */
void vm_collect_vcpu(struct vm *vm, unsigned int vcpu, bool on);
bool vm_vcpu_is_collecting(const struct vm *vm, unsigned int vcpu);
/* Arm or disarm what ends an event's periods. */
void vm_arm_event(struct vm *vm, unsigned int event, bool on);
bool vm_event_is_armed(const struct vm *vm, unsigned int event);
/* In the event's unit, also for one that had a rate (counter.freq); 0 is not taken. */
void vm_set_period(struct vm *vm, unsigned int event, uint64_t period);
uint64_t vm_period(const struct vm *vm, unsigned int event);
/* Bytes of one stack that are copied; no more than the capture plan had at the start. */
void vm_set_stack_max(struct vm *vm, uint32_t bytes);

/* A device on the port bus, and how often the guest has come to it so far. */
struct vm_device {
	const char *name;
	uint16_t base, count; /* ports */
	uint64_t exits;	      /* KVM_EXIT_IO */
	uint64_t accesses;    /* an exit of a string instruction has several */
};
/* false: there is no device i. Any thread. */
bool vm_device(const struct vm *vm, unsigned int i, struct vm_device *out);

/* A disk, and what the guest has asked of it so far. */
struct vm_disk_info {
	const char *name, *path; /* "vda"; on the host */
	uint64_t size;		 /* bytes */
	uint64_t overlay_bytes;	 /* see disk.h */
	uint64_t no_room;	 /* writes that failed, as the overlay may not grow */
	struct io_stats io;
};
/* false: there is no disk i. Any thread. */
bool vm_disk(const struct vm *vm, unsigned int i, struct vm_disk_info *out);

/* false: there is no network card. Any thread. */
bool vm_net(const struct vm *vm, struct net_stats *out);

/*
 * With a VM_EVENT_IO: requests that have ended, and packets, each once, up to max of them; how many. A
 * sample with reason SAMPLE_IO and exit_addr as the record's token tells who brought it, once
 * that sample is there; it may be earlier or later. Any thread.
 */
unsigned int vm_io_take(struct vm *vm, struct io_record *out, unsigned int max);
/*
 * Of requests whose records found no room, and in *packets of packets; they are in the counters all
 * the same.
 */
uint64_t vm_io_lost(struct vm *vm, uint64_t *packets);

/*
 * Bytes typed at the console; returns how many the guest's UART took, or the virtio
 * console where a driver listens there.
 */
size_t vm_console_input(struct vm *vm, const uint8_t *data, size_t len);

/* "serial", "mmio", ...; several may have one name. NULL: there is none of that index. */
const char *vm_device_name(const struct vm *vm, unsigned int device);

const char *vm_end_name(enum vm_end_reason reason);
/* Name of a KVM_EXIT_* number as api.rst spells it, without the prefix; "other" when unknown. */
const char *vcpu_exit_name(unsigned int kind);

#endif
