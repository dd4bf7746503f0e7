/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine: the inside of struct vm, shared by the files that make it up.
 *
 * Not for includers outside vmm/.
 */
#ifndef KVMPROF_VMM_MACHINE_H
#define KVMPROF_VMM_MACHINE_H

#include "vmm/account.h"
#include "vmm/breakpoint.h"
#include "vmm/bus.h"
#include "vmm/capture/counter.h"
#include "vmm/debugreg.h"
#include "vmm/dev/debugexit.h"
#include "vmm/dev/pci.h"
#include "vmm/dev/pit.h"
#include "vmm/dev/platform.h"
#include "vmm/dev/serial.h"
#include "vmm/dev/virtio_mmio.h"
#include "vmm/dev/virtio_pci.h"
#include "vmm/capture/mmu_tlb.h"
#include "vmm/pause.h"
#include "vmm/pvm_state.h"
#include "vmm/capture/trigger.h"
#include "vmm/vm.h"

#include <linux/kvm.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* The signal that makes KVM_RUN return: from the vCPU's own timer, or to stop it. */
#define VCPU_KICK_SIGNAL SIGRTMIN

/* One event on one vCPU. */
struct source {
	volatile sig_atomic_t due;    /* a period has ended; set by the signal handler */
	volatile sig_atomic_t device; /* vcpu.device at that moment */
	bool armed;
	uint64_t period;	/* in use */
	struct trigger trigger; /* WALL, CPU by a timer; EXIT: its deadlines */
	struct counter counter; /* PERF, CPU */
	uint64_t exits;		/* EXIT, IO: so far */
	uint8_t exit;	    /* EXIT: the one that is due: KVM_EXIT_*; HOST: that is worked for */
	uint64_t exit_addr; /* and its address, as in struct sample; IO: the token */
	uint64_t began_ns; /* EXIT: KVM_RUN returned with it; 0: it is handled, or there was none */
	uint64_t handled_ns; /* EXIT: and then it was handled */
	uint64_t exit_ns;    /* EXIT: as in struct sample */
	uint8_t span;	     /* HOST: enum account_span, when its period ended */
	struct account seen; /* HOST: as samples off its processor stand for it */
	uint64_t on_seen;    /* HOST: processor time that samples stand for already, and ... */
	uint64_t on_owed;    /* ... of periods whose sample was not to be taken */
	uint64_t halts_seen; /* HOST: KVM's halt_wait_ns then */
	uint64_t off[SAMPLE_WHERES]; /* HOST: ns off its processor that no sample stands for yet */
	uint64_t waits_since;	     /* HOST: CLOCK_MONOTONIC: off[SAMPLE_RUNNABLE] is since then */
	uint64_t owed;		     /* but for IO: weight of samples that found no room */
	unsigned int thinned;	     /* samples passed over in a row, as the ring is nearly full */
};

/* What control asks for; each vCPU follows when `changes` has changed. */
struct vm_control {
	atomic_uint changes;
	atomic_bool collect;
	atomic_bool armed[VM_MAX_EVENTS];
	atomic_uint_fast64_t period[VM_MAX_EVENTS];
	atomic_uint stack_max;
};

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
	struct account account; /* of its thread; account_seq is odd while it changes */
	atomic_uint account_seq;
	int account_fd;
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

/* A virtio device and its transport, one of the two. */
#define VM_MAX_VIRTIO 20u
struct machine_virtio {
	struct virtio *d;
	struct virtio_pci *pci;
	struct virtio_mmio *mmio;
};

struct io_log;
struct pvm_ops;

struct vm {
	struct vm_config cfg;
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
	struct debugexit debugexit;
	struct pci pci;
	struct machine_virtio virtio[VM_MAX_VIRTIO]; /* machine_add_virtio() */
	unsigned int nvirtio;
	struct virtio *hvc; /* the virtio-console of them, NULL: none */
	struct virtio *disk[VM_MAX_DISKS];
	struct virtio *net;    /* NULL: none */
	struct io_log *io_log; /* io_log.c; NULL: no records of requests or packets are kept */
	struct pit pit;
	bool have_pit;
	atomic_bool stop;
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

/* devices.c: the virtio devices that vm->cfg asks for. */
int machine_devices_create(struct vm *vm, struct err *e);
/* Their threads; from vm_start(), before any vCPU runs. */
int machine_devices_start(struct vm *vm, struct err *e);
/* No vCPU runs any more; their threads end. */
void machine_devices_destroy(struct vm *vm);
/*
 * While the machine is made: d by vm->cfg.transport. Its name is one that no other device
 * has (-EEXIST). d is the machine's from here on, also when this fails.
 */
int machine_add_virtio(struct vm *vm, struct virtio *d, struct err *e);
/* dev_irq's and of that type; ctx is the struct vm. */
void machine_irq(void *ctx, unsigned int irq, int level);
/* disks.c */
int machine_disks_create(struct vm *vm, struct err *e);
/* io_log.c: before the devices that tell of requests or packets; destroyed after them. */
enum machine_io_kind { MACHINE_IO_REQUESTS, MACHINE_IO_PACKETS };
int machine_io_log_create(struct vm *vm, struct err *e);
void machine_io_log_destroy(struct vm *vm);
/* For a device; done is NULL where no event asks for this kind. */
struct dev_io machine_io(struct vm *vm, enum machine_io_kind kind);
/* virtio_hold() of all. */
void machine_virtio_hold(struct vm *vm, bool on);
/* PCI and all virtio devices with their transports, in order; `what` is the struct vm. */
int machine_virtio_save(void *what, struct buf *out, struct err *e);
int machine_virtio_restore(void *what, struct cursor *in, struct err *e);

/* cpu_setup.c: CPUID, special registers, local APIC. */
int vcpu_setup(struct vcpu *v, const struct kvm_cpuid2 *cpuid, struct err *e);
/* What the guest's CPUID shall say; *out is freed by the caller. */
int cpuid_for_guest(const struct vm *vm, struct kvm_cpuid2 **out, struct err *e);
/* Put vCPU 0 at the kernel's entry point. */
struct boot_entry;
int vcpu_set_entry(struct vcpu *v, const struct boot_entry *entry, struct err *e);

/* vcpu.c: the thread. */
void *vcpu_main(void *arg);
void vcpu_install_handler(void);
void vcpu_kick(struct vcpu *v);
/* On its thread, after KVM_RUN: have run->s.regs filled. Ends the machine where KVM refuses. */
void vcpu_fetch_regs(struct vcpu *v);
/* Whose thread this is; NULL: none. */
struct vcpu *vcpu_current(void);

/* vm.c: record the end; regs (may be NULL) are copied. The first caller wins. */
void machine_end(struct vm *vm, enum vm_end_reason reason, const struct vcpu *v,
		 const struct sample_regs *regs, const struct err *err);

/*
 * capture.c. What a sample is taken of: registers, and the memory that they point into. All
 * borrowed; none of it changes meanwhile but the bytes in guest memory.
 */
struct capture_view {
	const struct kvm_regs *regs;
	const struct kvm_sregs *sregs;
	const struct gmem *mem;
	struct mmu_root root; /* of sregs */
	uint16_t flags;	      /* KVM_RUN_X86_*, where vm->nested_flag and has_flags say so */
	bool has_flags;
	const struct mmu_tlb *tlb; /* of this sample; NULL: none */
};
struct mmu_root capture_root(const struct kvm_sregs *s);
struct capture_view capture_view_of(const struct kvm_regs *regs, const struct kvm_sregs *sregs,
				    const struct gmem *mem);
/* Of a vCPU that stands, with registers in its kvm_run. */
struct capture_view capture_view_of_run(const struct kvm_run *run, const struct gmem *mem);
/* The same of one of our own. */
struct capture_view capture_view_of_vcpu(const struct vcpu *v);
/* Guest-virtual memory, as mmu_read(). */
static inline size_t capture_read(const struct capture_view *w, uint64_t gva, void *dst, size_t len)
{
	return w->tlb ? mmu_tlb_read(w->mem, &w->root, w->tlb, gva, dst, len)
		      : mmu_read(w->mem, &w->root, gva, dst, len);
}
void capture_regs(const struct kvm_regs *r, const struct kvm_sregs *s, struct sample_regs *out);
/*
 * Is the vCPU as after a reset or INIT, in front of its first instruction (SDM vol. 3, table
 * 9-1)? No guest's code stands there: kvmprof loads none at the reset vector.
 */
bool capture_is_reset(const struct kvm_regs *r, const struct kvm_sregs *s);
/* Why and for what a sample is taken. */
struct capture_cause {
	uint64_t now; /* CLOCK_MONOTONIC */
	enum sample_reason reason;
	uint8_t event;
	uint32_t missed; /* periods missed before it */
	uint64_t weight;
	uint8_t device;			/* as in struct sample */
	uint8_t exit;			/* EXIT */
	uint64_t exit_addr;		/* EXIT, IO */
	uint64_t exit_ns;		/* EXIT: as in struct sample */
	const struct sample_host *host; /* HOST */
};
/*
 * Of a vCPU of our own. While no samples are wanted it is only counted. false: there was no room
 * for it; nothing has changed then.
 */
bool capture_sample(struct vcpu *v, const struct capture_cause *cause);
/*
 * The same of what is in *w. false also where that is a record which lacks memory that the sample
 * needs (gmem_remote.lacking).
 */
bool capture_sample_of(struct vcpu *v, const struct capture_view *view,
		       const struct capture_cause *cause);
/* Are samples wanted of it now? */
bool capture_is_wanted(const struct vcpu *v);
/* Is it halted for good? Counts as so many looks of a sampler (dead_looks). */
void capture_watch(struct vcpu *v, unsigned int looks);

/*
 * What a struct vm is: a machine of our own, or one that another process runs (attach/). Chosen
 * when it is made.
 */
struct attach_facts;
struct machine_ops {
	/* 0, or a negative error: then nothing runs. */
	int (*start)(struct vm *vm, struct err *e);
	/* Have those that take samples look at vm->control and vm->stop. Any thread. */
	void (*wake)(struct vm *vm);
	/* Until no more samples are taken. Also where it was not started. */
	void (*join)(struct vm *vm);
	/* All but what machine_free() frees; started or not, also half made. */
	void (*destroy)(struct vm *vm);
	/* The consumer's view of memory: its own, as it reads while vCPUs are sampled. */
	const struct gmem *(*memory)(const struct vm *vm);
	/* vm_vcpu_tid() of a machine that another process runs; NULL: its threads are ours. */
	pid_t (*vcpu_tid)(const struct vm *vm, unsigned int vcpu);
	/* vm_rest() and vm_now_ns(); NULL: the one sleeps, the other is CLOCK_MONOTONIC. */
	void (*wait)(struct vm *vm, uint64_t ns);
	void (*wait_is_over)(struct vm *vm); /* vm_rests_no_more(); NULL: nobody has to know */
	uint64_t (*now)(const struct vm *vm);
	/* Only of a machine that another process runs, which vm_pause() can not stop; else NULL. */
	void (*rest)(struct vm *vm);   /* vm_attach_rest() */
	void (*resume)(struct vm *vm); /* vm_attach_resume() */
	void (*facts)(const struct vm *vm, struct attach_facts *out);
};
/* vm.c */
extern const struct machine_ops machine_own;
/* What all machines have in common, and the struct vm. */
void machine_free(struct vm *vm);
/*
 * foreign.c: a struct vm for n vCPUs that are not KVM's, without samples yet; attached is for ops.
 * NULL: there is no memory (*e); attached is still the caller's then.
 */
struct attach_config;
struct vm *machine_new_foreign(const struct machine_ops *ops, void *attached,
			       const struct attach_config *cfg, unsigned int n, struct err *e);

/*
 * account.c, on the vCPU's thread: where its time goes from now_ns on, a moment that has just been.
 */
void vcpu_account_begin(struct vcpu *v, uint64_t now_ns);
void vcpu_account(struct vcpu *v, enum account_span next, uint64_t now_ns);
void vcpu_account_end(struct vcpu *v);
/* What it had of a processor is known up to now_ns; the span goes on. */
void vcpu_account_look(struct vcpu *v, uint64_t now_ns);

/* device.c: around the work for one exit. Both return the time, which device_leave() takes. */
uint64_t device_enter(struct vcpu *v);
uint64_t device_leave(struct vcpu *v, uint64_t since);

/* control.c */
void control_init(struct vm *vm);
/* Something has changed that vCPUs follow: make them look. */
void control_tell(struct vm *vm);

/* source.c: the events of one vCPU. On its own thread, but for source_signalled(). */
int sources_start(struct vcpu *v, struct err *e);
void sources_stop(struct vcpu *v);
/* In the signal handler: which event is it that the signal stands for? */
void source_signalled(struct vcpu *v, const siginfo_t *info);
/* KVM_RUN was interrupted, so the registers are complete: take the samples that are due. */
void sources_take(struct vcpu *v);
/* The period of a timer has ended. */
void source_take_timer(struct vcpu *v, unsigned int i, uint64_t now);
/* Control has changed: follow it. */
void sources_follow(struct vcpu *v);

/* source.c, for source_host.c. What is not taken is counted as lost, and the next one has its weight. */
void source_sample(struct vcpu *v, struct source *s, struct capture_cause *cause);
/* The same where the caller keeps the weight: was it taken? */
bool source_sample_own(struct vcpu *v, struct source *s, const struct capture_cause *cause);
int source_arm_counter(struct vcpu *v, unsigned int i, struct err *e);
/* source.c: the exit that it shows, as sample_host.exit has it, and its port or address. */
uint8_t source_exit_of(const struct kvm_run *run, uint64_t *addr);

/* VM_EVENT_HOST: less of a period than 1 / this waits for more. */
#define SOURCE_HOST_PART 4u
/* What a counter has lost is caught up with when it is so many periods. */
#define SOURCE_HOST_BEHIND 4u

/* Of a sample for ended periods, where the thread has had so much of a processor since the last one. */
static inline uint64_t source_host_weight(uint64_t ended, uint64_t there, uint64_t period)
{
	return there < ended || there - ended > SOURCE_HOST_BEHIND * period ? there : ended;
}

/* source_host.c: VM_EVENT_HOST. Before the vCPU runs, and afterwards. */
void source_host_prepare(struct vcpu *v);
void source_host_release(struct vcpu *v);
int source_host_arm(struct vcpu *v, unsigned int i, const struct trigger_rule *rule, struct err *e);
void source_take_host(struct vcpu *v, unsigned int i, uint64_t now);

/* source_exit.c: is the instruction behind this exit finished by the next KVM_RUN? */
bool exit_is_finished_later(uint32_t kind);
/* KVM_RUN has returned 0 at now, nothing was done about it yet. */
void sources_exit(struct vcpu *v, uint64_t now);
/* The exit was handled; only where v->exit_noted. */
void sources_exit_handled(struct vcpu *v, uint64_t now);
/* The sample of an exit that is due; the registers are complete. */
void source_take_exit(struct vcpu *v, unsigned int i, uint64_t now);
/* source_io.c: dev_io.batch of the disks and the network card; ctx is the struct vm. */
uint64_t machine_io_batch(void *ctx);
/* The sample of a notification that is due; the registers are complete. */
void source_take_io(struct vcpu *v, unsigned int i, uint64_t now);
/* No KVM_RUN follows: take what waits for one. */
void sources_exit_last(struct vcpu *v);

/*
 * capture_task.c: the run-time address of what was linked at addr; 0 when it is not known yet.
 * capture_address() is for what the plan has: with percpu it lies at addr from the kernel's
 * GS base.
 */
uint64_t capture_linked_address(const struct vcpu *v, uint64_t addr);
uint64_t capture_address(const struct vcpu *v, uint64_t addr, bool percpu, uint64_t gs);
/* The kernel's GS base at any instruction, in entry code too. Fills s->lstar as well. */
uint64_t capture_percpu_base(struct vcpu *v, const struct kvm_sregs *sr, struct sample *s);
/* What is known of tasks by now. */
const struct capture_task_plan *capture_plan_of_task(const struct vm *vm);
void capture_task(const struct vcpu *v, const struct capture_view *w, uint64_t gs,
		  struct sample *s);
/*
 * Its return addresses that were replaced: by the function graph tracer, with one entry beyond,
 * the last that it has taken from there; and by probes. Needs room for SAMPLE_MAX_RETURNS bytes.
 */
void capture_returns(const struct vcpu *v, const struct capture_view *w, struct sample *s);
/* capture_python.c: frames of Python's interpreter. Needs room for SAMPLE_MAX_PYTHON_BYTES. */
void capture_python(const struct vcpu *v, const struct capture_view *w, struct sample *s);

#endif
