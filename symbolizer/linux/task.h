/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_task: finds the task that runs on a vCPU, and lists all tasks.
 *
 * The offsets of struct task_struct's members come from the kernel's types, or, for a kernel
 * without any, are found in the memory of the running guest: by the required form of the first task
 * and its children, never by a version. An uncertain offset stays unknown.
 *
 * The place of a CPU's current task:
 *
 *	before 6.2	per-CPU current_task, an offset from the GS base
 *	6.2		per-CPU pcpu_hot.current_task ("x86/percpu: Move current_task into pcpu_hot")
 *	6.15		per-CPU current_task, linked between __per_cpu_start and __per_cpu_end;
 *			the GS base is the distance to this CPU's copy
 *	one CPU only	an ordinary variable
 *
 * Addresses are runtime guest-virtual ones. Pure functions apart from reading memory; any thread.
 * Results own nothing, except a struct linux_task_list.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_TASK_H
#define KVMPROF_SYMBOLIZER_LINUX_TASK_H

#include "base/err.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/types/types.h"

/* Unknown, or this kernel has none. */
#define LINUX_TASK_NONE UINT32_MAX
/* TASK_COMM_LEN has always been 16. */
#define LINUX_TASK_COMM 16u
#define LINUX_TASK_MAX_OFFSET 65536u
/* PID_MAX_LIMIT, include/linux/threads.h */
#define LINUX_TASK_MAX_PID (4u << 20)
/* Maximum number of tasks and threads in a list. */
#define LINUX_TASK_MAX_LIST (256u << 10)

enum linux_task_source { LINUX_TASK_BY_TYPES = 1, LINUX_TASK_BY_CONTENT };

/* Offsets of members, in bytes from the start of struct task_struct. */
struct linux_task_layout {
	/*
	 * Address of the pointer to the current task: `current`, or, with per_cpu, the kernel's GS
	 * base + current (modulo 2^64).
	 */
	uint64_t current;
	bool per_cpu;
	uint8_t source;	    /* enum linux_task_source */
	uint64_t init_task; /* 0: no such symbol */

	uint32_t pid, tgid;		    /* 32 bits each; always known */
	uint32_t comm;			    /* LINUX_TASK_COMM bytes; always known */
	uint32_t mm;			    /* pointer, 0 for a kernel thread; always known */
	uint32_t real_parent, group_leader; /* pointers; always known */

	/* The others may be LINUX_TASK_NONE. */
	uint32_t start_time;	/* u64: ns of the guest's clock, constant for the life of a task */
	bool start_is_boottime; /* it counts from boot; false: on the monotonic clock */
	uint32_t exec_id;	/* u32: changes at each exec of the process */
	uint32_t flags;		/* u32, PF_* */
	uint32_t stack;		/* pointer to the lowest byte of the kernel stack */
	uint32_t tasks;		/* list_head: group leaders, from init_task on */
	uint32_t thread_node;	/* list_head: a group's threads, from signal->thread_head */
	uint32_t thread_group;	/* list_head: the same, in a ring without a head; before 6.7 */
	uint32_t signal;	/* pointer to struct signal_struct */
	uint32_t thread_head;	/* in struct signal_struct */
};

/*
 * Returns the address of the pointer to the current task of a vCPU with this GS base (the
 * kernel's).
 */
static inline uint64_t linux_task_current(const struct linux_task_layout *l, uint64_t gs_base)
{
	return l->per_cpu ? gs_base + l->current : l->current;
}

/*
 * Finds the offsets. types may be NULL or lack task_struct: then m is searched, whose guest must
 * have started its first processes. symbols: current_task or pcpu_hot, init_task and those around
 * them are used. m may be NULL if types are given.
 *
 * Returns 0; -ENOENT with the reason in *e if something that is always known was not found
 * (without types, that may change as the guest continues booting); or -EINVAL for damaged types.
 */
int linux_task_layout(struct linux_task_layout *out, const struct types *types,
		      const struct symtab *symbols, const struct memory *m, struct err *e);

/*
 * Finds only the current task: sets current, per_cpu and init_task. Returns 0, -ENOENT or -EINVAL.
 */
int linux_task_find_current(struct linux_task_layout *out, const struct types *types,
			    const struct symtab *symbols, struct err *e);
struct linux_task {
	uint64_t task; /* address of its task_struct */
	uint32_t pid, tgid;
	/* ids of real_parent; 0: it has none, or it cannot be read */
	uint32_t parent_pid, parent_tgid;
	uint64_t mm;
	uint64_t start_time; /* 0: unknown */
	uint32_t exec_id;    /* 0: unknown */
	uint64_t stack;	     /* 0: unknown */
	uint64_t group_leader;
	bool is_kthread;
	bool is_idle;		    /* a CPU's idle task: pid 0 */
	char comm[LINUX_TASK_COMM]; /* with a NUL; printable, in any encoding; may be empty */
};

/* The reason why linux_task_check() or linux_task_read() rejected a task. */
enum linux_task_doubt {
	LINUX_TASK_GOOD = 0,
	LINUX_TASK_NO_POINTER, /* not an aligned address of the kernel */
	LINUX_TASK_UNREADABLE,
	LINUX_TASK_BAD_PID,
	LINUX_TASK_BAD_COMM,
	LINUX_TASK_BAD_POINTERS, /* group leader or mm are not addresses of the kernel */
};

/* Checks fields that were copied elsewhere, such as at a sample. comm need not end with a NUL. */
enum linux_task_doubt linux_task_check(uint32_t pid, uint32_t tgid,
				       const char comm[LINUX_TASK_COMM]);

/* Reads a task. Returns 0, or an enum linux_task_doubt; *out is written only on success. */
int linux_task_read(const struct linux_task_layout *l, const struct memory *m, uint64_t task,
		    struct linux_task *out);

struct linux_task_list {
	/* Init_task, all processes, then their other threads; none twice. */
	struct linux_task *task;
	size_t n;
	size_t skipped; /* members of the lists that were rejected */
	bool cut;	/* a list did not return to its head: it changed, is damaged, or too long */
};

/*
 * Lists all tasks and their threads, as far as the lists are intact; the guest may run meanwhile.
 * Returns 0, -ENOENT if the layout has no lists, or -ENOMEM, with *e set. The caller frees *out
 * with linux_task_list_deinit().
 */
int linux_task_list(const struct linux_task_layout *l, const struct memory *m,
		    struct linux_task_list *out, struct err *e);
void linux_task_list_deinit(struct linux_task_list *list);

#endif
