/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: the state of a guest as two looks have read it, for the files of profile/record/why alone.
 * All functions are called by the consumer thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_WHY_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_WHY_PRIVATE_H

#include "base/clock.h"
#include "profile/record/pipeline/task_walk.h"
#include "profile/record/why/why.h"
#include "symbolizer/linux/hang.h"

#define WHY_MAX_CPUS 64u
#define WHY_FRAMES 24u /* innermost frames of a task or a vCPU that are kept */
#define WHY_MAX_TASKS 65536u
#define WHY_MAX_CHAIN 16u /* tasks in a chain of waits */
#define WHY_ENOUGH 5u	  /* samples of a vCPU that a check needs */
#define WHY_MAX_WAITERS 4096u
#define WHY_STACK_BYTES 8192u /* bytes of a waiting task's stack that are searched */
#define WHY_TEXT 512u
#define WHY_UNKNOWN UINT64_MAX
/* The most reads of guest memory and the longest time of one look: a hostile guest's lists may be endless. */
#define WHY_MAX_READS 2000000u
#define WHY_MAX_LOOK_NS (UINT64_C(20) * NSEC_PER_SEC)
/* The time between the looks that proves that a guest whose clocks do not move is frozen. */
#define WHY_FROZEN_NS (UINT64_C(2) * NSEC_PER_SEC)

struct why_frame {
	uint64_t ip, off;
	const char *name; /* name in the symbol table; NULL: none */
};

struct why_stack {
	unsigned int n;
	struct why_frame frame[WHY_FRAMES];
};

enum why_lock_kind {
	WHY_NO_LOCK,
	WHY_LOCK_MUTEX,
	WHY_LOCK_RWSEM_WRITE,
	WHY_LOCK_RWSEM_READ,
	WHY_LOCK_RT
};

/* The lock that a task waits for. The waiter on the task's stack and the lock's own words prove it. */
struct why_wait {
	enum why_lock_kind kind;
	uint64_t lock, owner; /* addresses of the lock and of the owning task; owner 0: none */
	uint64_t word;	      /* the lock's owner word as it was read */
};

struct why_task {
	struct linux_task t;
	struct linux_sched s;
	struct why_stack stack;
	uint64_t quiet_ns;  /* time since it last ran, by the run queues' clock; or WHY_UNKNOWN */
	uint64_t on_cpu_ns; /* time since it got its CPU, while it runs; or WHY_UNKNOWN */
	struct why_wait wait;
};

/* The state of a processor in its kernel's memory. */
struct why_rq {
	bool known;
	/* Each of these is WHY_UNKNOWN if it is not known. */
	uint64_t clock, curr, idle, nr_running, preempt;
	uint64_t event;		     /* time in ns for which its clock event device is programmed */
	uint64_t softirqs, tasklets; /* number of softirqs so far, and of those that run tasklets */
};

/* The result of one look. */
struct why_scene {
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0: there was no look */
	struct why_task *task;
	size_t n, cap;
	uint32_t *by_address, *by_tid; /* indices of task[], sorted; NULL: task[] is not complete */
	struct why_rq rq[WHY_MAX_CPUS];
	uint64_t clock; /* the newest of the run queues' clocks: no later than now */
	uint64_t mono;	/* CLOCK_MONOTONIC of the guest at its last tick: no later than now */
	uint64_t jiffies, gp_seq, gp_start, qsmask;
	/* Pages that reclaim scanned and freed, and processes killed for lack of memory, since the boot. */
	uint64_t scanned, stolen, killed;
};

/* Properties that the samples of a vCPU since the first look have in common. */
struct why_vcpu {
	uint64_t samples, kernel, user, idle;
	uint64_t irqs_off; /* kernel samples with interrupts off that are not halted */
	uint64_t dead;	   /* samples halted with interrupts off */
	uint64_t spinning; /* samples in the slow path of a spinlock, or in an interrupt of it */
	/* That lock and its word, if all samples agree; 0: not known, or several locks. */
	uint64_t lock;
	uint32_t word;
	bool lock_moves;    /* the samples do not agree */
	uint64_t interrupt; /* samples in an interrupt handler or a softirq */
	uint64_t open;	    /* samples with interrupts on */
	uint64_t
		masked; /* samples with interrupts on, and a task priority (CR8) that blocks them */
	uint64_t first_ns, last_ns;
	uint64_t
		func; /* start of the function in which all kernel samples are; 0: several functions */
	uint64_t rip_low, rip_high;
	uint32_t tid;		 /* thread of all samples; UINT32_MAX: several threads */
	struct sample_regs regs; /* registers of the last sample */
	uint8_t mode;
	uint64_t task;
	struct why_stack stack;
};

/* WHY_SYMPTOM: something is wrong, and another check may find the cause. */
enum why_result { WHY_NOT_KNOWN, WHY_OK, WHY_SYMPTOM, WHY_BAD };

struct why_finding {
	enum why_result result;
	char text[WHY_TEXT];   /* one sentence */
	json_t *proof, *facts; /* an object, and an array of sentences */
};

struct why {
	uint64_t hang_ns;
	bool still;	     /* set by why_set_still() */
	struct guest *guest; /* valid during why_look() and why_judge() */
	struct task_walk *look;
	struct guest *look_of;
	struct guest_view view; /* its memory is `memory` */
	struct memory memory;	/* counts reads and passes them to guest_memory */
	struct memory guest_memory;
	uint32_t reads; /* number of reads in this look */
	uint64_t look_start_ns;
	bool gave_up; /* a look used up its reads or its time, so no check is known to be in order */
	const struct linux_hang_layout *hang;
	struct why_scene scene[2]; /* the first look and the last one */
	unsigned int looks;
	struct why_vcpu vcpu[WHY_MAX_CPUS];
	unsigned int vcpus;
	const struct standing *host; /* NULL: not known */
	struct buf log;		     /* the last lines of the kernel's log */
	struct err log_err;
	bool failed; /* memory is exhausted */
	struct why_finding finding[WHY_CAUSES];
	struct stack stack; /* scratch space of the unwinder */
};

struct why_check {
	enum why_cause cause;
	const char *name;
	void (*judge)(struct why *w, struct why_finding *f);
};

/* Returns the last look. */
static inline struct why_scene *why_now(struct why *w)
{
	return &w->scene[w->looks > 1];
}

/* Returns the look before it, or NULL. */
static inline const struct why_scene *why_before(const struct why *w)
{
	return w->looks > 1 ? &w->scene[0] : NULL;
}

/* Sets the result of a check, with one sentence. */
void why_ok(struct why_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void why_unknown(struct why_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sets "ok" if any vCPU was sampled, otherwise "not known". */
void why_ok_if_sampled(const struct why *w, struct why_finding *f, const char *text);
/* Returns whether any vCPU was sampled. */
bool why_has_samples(const struct why *w);
void why_symptom(struct why_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void why_bad(struct why_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a sentence to the numbered evidence. */
void why_fact(struct why *w, struct why_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds a number to the proof. */
void why_prove(struct why *w, struct why_finding *f, const char *key, uint64_t v);
/* Adds an address or a word as a hexadecimal string, because many readers of JSON keep 53 bits only. */
void why_prove_hex(struct why *w, struct why_finding *f, const char *key, uint64_t v);

/* Replaces what is not printable ASCII in a text of the guest by '?'. */
void why_make_printable(char *s);

/* Returns the task at this address, or NULL. */
struct why_task *why_task_at(struct why_scene *s, uint64_t task);
/* Returns the task with this thread id, or NULL. */
const struct why_task *why_task_of(const struct why_scene *s, uint32_t tid);
/* Returns "name (tid 12)". The text is valid until the eighth further call by this thread. */
const char *why_task_name(const struct why_task *t);
/* Returns "0xffff... (symbol+0x10)" or "0xffff...", valid like the text of why_task_name(). */
const char *why_address(const struct why *w, uint64_t va);
/* Returns "0xffff...", valid like the text of why_task_name(). */
const char *why_hex(uint64_t v);
/* Converts ns to seconds. */
static inline double why_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}
/* Returns whether the name of a frame contains `part`. */
bool why_stack_has(const struct why_stack *s, const char *part);
/* Returns the name of the innermost frame outside of the scheduler; never NULL. */
const char *why_place(const struct why *w, const struct why_stack *s);
/* Returns the address of a variable of the kernel, or 0 if there is none of this name. */
uint64_t why_variable(const struct why *w, const char *name);
/* Returns the address of a processor's copy of a per-CPU variable, or 0. */
uint64_t why_percpu(const struct why *w, const char *name, unsigned int cpu);
/* Returns the length of a jiffy in ns, or 0 if it is not known. */
uint64_t why_jiffy_ns(const struct why *w);
/* Reads a member of the structure at `at`. Returns false, with *out unchanged, if it cannot. */
bool why_read(const struct why *w, uint64_t at, enum linux_hang_member m, uint64_t *out);
/*
 * Returns the spinlock in whose slow path a vCPU with these registers is, and stores its word. Returns 0 if
 * it is not known.
 */
uint64_t why_spinlock_of(const struct why *w, const struct sample_regs *r, uint32_t *word);
/* Returns the kernel's number of vCPU i: by the per-CPU base in its GS, otherwise i. */
unsigned int why_cpu_of(const struct why *w, unsigned int i);
/*
 * Returns by how many ns the timer of a processor is late at both looks, or WHY_UNKNOWN if the kernel keeps
 * no such time.
 */
uint64_t why_late_ns(struct why *w, unsigned int cpu);
/* Returns whether the kernel uses this processor; true if that is not known. */
bool why_cpu_is_online(const struct why *w, unsigned int cpu);
/* Returns for how many ns vCPU i has at least been where it is, as a clock of the guest proves; 0: not known. */
uint64_t why_stuck_ns(struct why *w, unsigned int i);
/* Returns whether no clock of the guest moved between the looks and all samples of vCPU i are in one function. */
bool why_is_frozen(struct why *w, unsigned int i);
/* Returns whether the kernel has finished its boot and does not shut down; true if that is not known. */
bool why_is_running(const struct why *w);

/*
 * Fills in w->view. Returns false, with the reason in *e, if the guest is not known (yet). With
 * `anew` the limits of reads and time begin again.
 */
bool why_renew_view(struct why *w, struct guest *g, bool anew, struct err *e);

/* Makes a look. Returns 0, -EAGAIN as why_look(), or -ENOMEM. */
int why_scene_read(struct why *w, struct why_scene *s, struct err *e);
void why_scene_deinit(struct why_scene *s);
/* Finds for each task the lock that it waits for. */
void why_find_waits(struct why *w, struct why_scene *s);
/* Returns the kind of a lock in words. */
const char *why_lock_name(const struct why_wait *wait);

/* The checks: each sets *f. */
void why_check_locks(struct why *w, struct why_finding *f);
void why_check_deadlock(struct why *w, struct why_finding *f);
void why_check_hung_task(struct why *w, struct why_finding *f);
void why_check_spinlock(struct why *w, struct why_finding *f);
void why_check_irqs_off(struct why *w, struct why_finding *f);
void why_check_halted(struct why *w, struct why_finding *f);
void why_check_soft_lockup(struct why *w, struct why_finding *f);
void why_check_user_loop(struct why *w, struct why_finding *f);
void why_check_irq_storm(struct why *w, struct why_finding *f);
void why_check_panic(struct why *w, struct why_finding *f);
void why_check_stack_overflow(struct why *w, struct why_finding *f);
void why_check_rcu(struct why *w, struct why_finding *f);
void why_check_workqueue(struct why *w, struct why_finding *f);
void why_check_boot(struct why *w, struct why_finding *f);
void why_check_memory(struct why *w, struct why_finding *f);
void why_check_disk(struct why *w, struct why_finding *f);
void why_check_timer(struct why *w, struct why_finding *f);
void why_check_pending(struct why *w, struct why_finding *f);
void why_check_paused(struct why *w, struct why_finding *f);
void why_check_not_scheduled(struct why *w, struct why_finding *f);
void why_check_absent(struct why *w, struct why_finding *f);
void why_check_vmm_thread(struct why *w, struct why_finding *f);

#endif
