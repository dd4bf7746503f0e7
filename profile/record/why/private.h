/* SPDX-License-Identifier: GPL-2.0-or-later */
/* private: what was seen of a guest, for the files of profile/record/why alone. On the consumer's thread. */
#ifndef KVMPROF_PROFILE_RECORD_WHY_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_WHY_PRIVATE_H

#include "base/clock.h"
#include "profile/record/pipeline/task_walk.h"
#include "profile/record/why/why.h"
#include "symbolizer/linux/hang.h"

#define WHY_MAX_CPUS 64u
#define WHY_FRAMES 24u /* innermost frames of a task or a vCPU that are kept */
#define WHY_MAX_TASKS 65536u
#define WHY_MAX_CHAIN 16u /* tasks of a chain of waits */
#define WHY_MAX_WAITERS 4096u
#define WHY_STACK_BYTES 8192u /* of a waiting task's stack that are searched */
#define WHY_TEXT 512u
#define WHY_UNKNOWN UINT64_MAX
/* Reads of guest memory in one look, and its time: lists of a hostile guest may be endless. */
#define WHY_MAX_READS 2000000u
#define WHY_MAX_LOOK_NS (UINT64_C(20) * NSEC_PER_SEC)
/* A guest of which no clock moves is looked at for so long. */
#define WHY_FROZEN_NS (UINT64_C(2) * NSEC_PER_SEC)

struct why_frame {
	uint64_t ip, off;
	const char *name; /* the symbol table's; NULL: none */
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

/* The lock that a task waits for, as its waiter on the task's stack and the lock's own words prove it. */
struct why_wait {
	enum why_lock_kind kind;
	uint64_t lock, owner; /* addresses; owner 0: nobody's */
	uint64_t word;	      /* the owner's word as it was read */
};

struct why_task {
	struct linux_task t;
	struct linux_sched s;
	struct why_stack stack;
	uint64_t quiet_ns;  /* since it last ran, by the run queues' clock; WHY_UNKNOWN */
	uint64_t on_cpu_ns; /* since it got its CPU, while it runs; WHY_UNKNOWN */
	struct why_wait wait;
};

/* A processor as its kernel's memory shows it. */
struct why_rq {
	bool known;
	/* WHY_UNKNOWN each where it is not known */
	uint64_t clock, curr, idle, nr_running, preempt;
	uint64_t
		event; /* the time that its clock event device is programmed for; UINT64_MAX as well: none */
	uint64_t softirqs, tasklets; /* softirqs so far, and those that run tasklets */
};

/* One look. */
struct why_scene {
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0: there was none */
	struct why_task *task;
	size_t n, cap;
	uint32_t *by_address, *by_tid; /* indices of task[], sorted; NULL: task[] is not complete */
	struct why_rq rq[WHY_MAX_CPUS];
	uint64_t clock; /* the newest of the run queues' clocks: no later than now */
	uint64_t mono;	/* CLOCK_MONOTONIC of the guest at its last tick: no later than now */
	uint64_t jiffies, gp_seq, gp_start, qsmask;
	/* Pages that reclaim has scanned and freed, processes killed for memory, all since the boot. */
	uint64_t scanned, stolen, killed;
};

/* What the samples of a vCPU since the first look have in common. */
struct why_vcpu {
	uint64_t samples, kernel, user, idle;
	uint64_t irqs_off; /* kernel samples with interrupts off, not halted */
	uint64_t dead;	   /* halted with interrupts off */
	uint64_t spinning; /* in the slow path of a spinlock, interrupts of it included */
	/* That lock and its word where all samples agree; 0: not known, or several. */
	uint64_t lock;
	uint32_t word;
	bool lock_moves;    /* samples do not agree */
	uint64_t interrupt; /* in an interrupt handler or a softirq */
	uint64_t open;	    /* with interrupts on */
	uint64_t masked;    /* with interrupts on, and a task priority that holds them up */
	uint64_t first_ns, last_ns;
	uint64_t func; /* start of the function in which all kernel samples are; 0: several */
	uint64_t rip_low, rip_high;
	uint32_t tid;		 /* of all samples; UINT32_MAX: several */
	struct sample_regs regs; /* of the last sample */
	uint8_t mode;
	uint64_t task;
	struct why_stack stack;
};

/* WHY_SYMPTOM: it is wrong, and another check may find out why. */
enum why_result { WHY_NOT_KNOWN, WHY_OK, WHY_SYMPTOM, WHY_BAD };

struct why_finding {
	enum why_result result;
	char text[WHY_TEXT];   /* one sentence */
	json_t *proof, *facts; /* facts: an array of sentences */
};

struct why {
	uint64_t hang_ns;
	bool still;	     /* why_set_still() */
	struct guest *guest; /* during why_look() and why_judge() */
	struct task_walk *look;
	struct guest *look_of;
	struct guest_view view; /* with `memory` as its memory */
	struct memory memory;	/* counts, and reads `guest_memory` */
	struct memory guest_memory;
	uint32_t reads; /* in this look */
	uint64_t look_start_ns;
	bool gave_up; /* a look has used up its reads or its time: what is in order is not known */
	const struct linux_hang_layout *hang;
	struct why_scene scene[2]; /* the first look and the last one */
	unsigned int looks;
	struct why_vcpu vcpu[WHY_MAX_CPUS];
	unsigned int vcpus;
	const struct standing *host; /* NULL: not known */
	struct buf log;		     /* the last lines */
	struct err log_err;
	bool failed; /* no memory */
	struct why_finding finding[WHY_CAUSES];
	struct stack stack; /* room */
};

struct why_check {
	enum why_cause cause;
	const char *name;
	void (*judge)(struct why *w, struct why_finding *f);
};

/* The last look; the one before it, or NULL. */
static inline struct why_scene *why_now(struct why *w)
{
	return &w->scene[w->looks > 1];
}

static inline const struct why_scene *why_before(const struct why *w)
{
	return w->looks > 1 ? &w->scene[0] : NULL;
}

/* Sets what a check found. bad: also adds a first proof. */
void why_ok(struct why_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void why_unknown(struct why_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void why_symptom(struct why_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void why_bad(struct why_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a sentence to the numbered evidence. */
void why_fact(struct why *w, struct why_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void why_prove(struct why *w, struct why_finding *f, const char *key, uint64_t v);
/* An address or a word of the kernel's: JSON's numbers would not keep all of its bits everywhere. */
void why_prove_hex(struct why *w, struct why_finding *f, const char *key, uint64_t v);

struct why_task *why_task_at(struct why_scene *s, uint64_t task);
const struct why_task *why_task_of(const struct why_scene *s, uint32_t tid);
/* "name (tid 12)" in one of four buffers that take turns. */
const char *why_task_name(const struct why_task *t);
/* "symbol+0x10" or "0xffff...", the same way. */
const char *why_address(const struct why *w, uint64_t va);
/* "0xffff...", the same way. */
const char *why_hex(uint64_t v);
/* Seconds with one digit. */
static inline double why_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}
bool why_stack_has(const struct why_stack *s, const char *part);
/* The innermost frame that is not the scheduler's; NULL: none has a name. */
const char *why_place(const struct why *w, const struct why_stack *s);
/* Address of a variable of the kernel; 0: it has none of this name. */
uint64_t why_variable(const struct why *w, const char *name);
/* The copy of a per-CPU variable. */
uint64_t why_percpu(const struct why *w, const char *name, unsigned int cpu);
/* ns of a jiffy; 0: not known. */
uint64_t why_jiffy_ns(const struct why *w);
bool why_read(const struct why *w, uint64_t at, enum linux_hang_member m, uint64_t *out);
/* The spinlock in whose slow path a vCPU with these registers is. 0: it cannot be told. */
uint64_t why_spinlock_of(const struct why *w, const struct sample_regs *r, uint32_t *word);
/* The kernel's number of vCPU i: by the per-CPU base in its GS, otherwise i. */
unsigned int why_cpu_of(const struct why *w, unsigned int i);
/* Returns by how much the timer of a processor is late at both looks. WHY_UNKNOWN: the kernel keeps no such time. */
uint64_t why_late_ns(struct why *w, unsigned int cpu);
bool why_cpu_is_online(const struct why *w, unsigned int cpu);
/* The longest time that vCPU i has certainly been where it is: WHY_UNKNOWN if no clock tells. */
uint64_t why_stuck_ns(struct why *w, unsigned int i);
/* No clock of this guest moved between the looks, and all samples are of one function. */
bool why_is_frozen(struct why *w, unsigned int i);
/* The kernel has finished booting, and does not shut down. */
bool why_is_running(const struct why *w);

/*
 * Fills in w->view. Returns false, with the reason in *e, if the guest is not known (yet). With
 * `anew` the limits of reads and time begin again.
 */
bool why_renew_view(struct why *w, struct guest *g, bool anew, struct err *e);

/* The look, and what it finds of locks. */
int why_scene_take(struct why *w, struct why_scene *s, struct err *e);
void why_scene_deinit(struct why_scene *s);
void why_find_waits(struct why *w, struct why_scene *s);
const char *why_lock_name(const struct why *w, const struct why_wait *wait);

/* The checks. */
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
