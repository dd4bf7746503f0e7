/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_sched: reads what a task does: its state, its CPU time, and where it stopped running.
 *
 * As in linux_task, offsets of members come from the kernel's types, or are found in the running
 * guest's memory; uncertain values stay unknown. States are those of Linux 4.14 and later
 * (include/linux/sched.h, "sched/headers"; 4.14 renumbered them).
 *
 * Pure functions, any thread; addresses are runtime guest-virtual ones.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_SCHED_H
#define KVMPROF_SYMBOLIZER_LINUX_SCHED_H

#include "symbolizer/linux/task.h"
#include "symbolizer/linux/usage.h"

#define LINUX_SCHED_MAX_STACK 65536u
#define LINUX_SCHED_MAX_CPUS 64u

/* Offsets in struct task_struct; each may be LINUX_TASK_NONE. */
struct linux_sched_layout {
	uint8_t source;		/* enum linux_task_source; 0: nothing is known */
	uint32_t state;		/* u32, the lower half of a long before 5.14 */
	uint32_t exit_state;	/* u32 */
	uint32_t sp;		/* thread.sp: u64, valid while it is not running */
	uint32_t sp_skip;	/* bytes between there and the frame of linux_regs.h: 0, or flags */
	uint32_t run_ns;	/* se.sum_exec_runtime: u64 */
	uint32_t utime, stime;	/* u64, ns */
	uint32_t prio;		/* static_prio: u32, 120 is nice 0 */
	uint32_t policy;	/* u32, SCHED_* */
	uint32_t switches[2];	/* nvcsw, nivcsw: u64 */
	uint32_t cpu;		/* u32, the CPU on which it runs or ran last */
	uint32_t on_cpu;	/* u32; kernels for several CPUs */
	uint32_t stack_size;	/* bytes of a kernel stack */
	uint64_t percpu_offset; /* address of __per_cpu_offset[]; 0: one CPU */
	uint64_t nr_cpu_ids;	/* address of nr_cpu_ids; 0: unknown */
	struct linux_usage_layout usage;
	uint64_t sched_text[2]; /* the scheduler's functions [start, end); 0, 0 unknown */
};

/* Marks everything as unknown. */
void linux_sched_none(struct linux_sched_layout *out);
/* Sets what has a symbol: percpu_offset, nr_cpu_ids, sched_text. symbols may be NULL. */
void linux_sched_symbols(struct linux_sched_layout *out, const struct symtab *symbols);
/* Sets the members from types. Returns 0, or -EINVAL with *e set if these are damaged. */
int linux_sched_from_types(struct linux_sched_layout *out, const struct types *types,
			   struct err *e);
/* The known facts about a task; LINUX_SCHED_UNKNOWN marks unknown numbers. */
#define LINUX_SCHED_UNKNOWN UINT64_MAX

struct linux_sched {
	char state;   /* as in ps: R S D T t X Z P I, or '-' if unknown */
	bool running; /* on a CPU, as far as known */
	bool dead;    /* it will never run again */
	uint32_t raw_state;
	uint64_t sp;		     /* 0: unknown */
	uint64_t run_ns;	     /* CPU time; may be LINUX_SCHED_UNKNOWN */
	uint64_t utime_ns, stime_ns; /* may be LINUX_SCHED_UNKNOWN */
	/* Context switches of both kinds; may be LINUX_SCHED_UNKNOWN. */
	uint64_t switches;
	int nice;   /* -20..19; INT32_MIN: unknown */
	int policy; /* SCHED_*; -1: unknown */
	int cpu;    /* -1: unknown */
	struct linux_usage usage;
};

/* The running tasks, one for each CPU for which it is known. */
struct linux_running {
	uint64_t task[LINUX_SCHED_MAX_CPUS];
	unsigned int n;
};

/*
 * Finds the running tasks. ncpus: number of the machine's CPUs; LINUX_SCHED_MAX_CPUS are examined.
 */
void linux_sched_running(const struct linux_sched_layout *l, const struct linux_task_layout *task,
			 const struct memory *m, unsigned int ncpus, struct linux_running *out);

/*
 * Reads the facts about the task_struct at `task`. now: the result of linux_sched_running()
 * before, or NULL if l knows on_cpu. Returns false if it cannot be read. Values out of range are
 * unknown.
 */
bool linux_sched_read(const struct linux_sched_layout *l, const struct memory *m, uint64_t task,
		      const struct linux_running *now, struct linux_sched *out);

/* Returns "other", "fifo", ... (static text), or NULL if the policy is unknown. */
const char *linux_sched_policy_name(int policy);

#endif
