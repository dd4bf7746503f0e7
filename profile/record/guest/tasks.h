/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_tasks: the guest's tasks, as samples show them, reported to the sink.
 *
 * A task is reported (fork, comm) before its first sample and again when its name or program
 * changes. Its exit is reported when its number appears with another start time, or when its
 * structure is found twice to be another task's. A process is reported before its threads:
 * otherwise it would be new when it is sampled itself, and the sink would drop its mappings. Tasks
 * without a sample are not known.
 *
 * All functions are called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_TASKS_H
#define KVMPROF_PROFILE_RECORD_GUEST_TASKS_H

#include "base/sample.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/linux/task.h"

/* The most tasks that are remembered; beyond it exited ones are discarded, or all. */
#define GUEST_TASKS_MAX 65536u
/* The pid and tid of a sample whose task could not be read; perf prints it as ":-1". */
#define GUEST_TASK_UNKNOWN UINT32_MAX

struct guest_task {
	uint32_t tid, pid;
	/* guest addresses of its task_struct and mm_struct; its start time */
	uint64_t addr, mm, start;
	/*
	 * A number that changes whenever the sink received something (fork, exec) that makes it
	 * drop the process's mappings. Threads have their process's.
	 */
	uint64_t program;
	uint64_t missing_ns; /* time of the sweep that did not find it; 0: it was found */
	char comm[SAMPLE_COMM + 1];
	/* counts the programs that its process ran one after the other; 0: unknown */
	uint32_t exec_id;
	bool used, gone;
	bool guessed; /* a process that is known from one of its threads only */
};

/*
 * The owner of a sample: its task, and what other files keep of the task's process. Each of them
 * looks that up once for a sample. Valid until the next sample.
 */
struct guest_owner {
	const struct guest_task *task; /* NULL: the idle task, or unknown */
	struct maps_process *maps;     /* data of guest_maps; NULL: nothing is known yet */
	struct vmas_process *vmas;     /* data of guest_vmas; NULL: nothing is known yet */
};

struct guest_tasks_stats {
	uint64_t seen;	     /* tasks that had a sample, threads included */
	uint64_t unreadable; /* samples whose task could not be read */
	uint64_t not_yet;    /* samples before the kernel had a current task */
	uint64_t exits;
};

struct guest_tasks;

/*
 * Creates an empty list. All pointers must outlive it. Until guest_tasks_members_known() only the
 * first CPU's idle task of the layout is used. Returns 0 or -ENOMEM. The caller frees it with
 * guest_tasks_destroy(), which accepts NULL.
 */
int guest_tasks_create(struct guest_tasks **out, const struct linux_task_layout *layout,
		       const struct memory *memory, struct sink *sink, struct err *e);
/* Reports that the layout contains the members of a task, too. */
void guest_tasks_members_known(struct guest_tasks *t);
/*
 * Reports that the guest ran before its first sample, so that a sample without a task need not
 * belong to the boot.
 */
void guest_tasks_set_running(struct guest_tasks *t);
void guest_tasks_destroy(struct guest_tasks *t);

/*
 * Finds the task of a sample, and reports it to the sink if it is new. *pid and *tid are set for
 * the profile. *out is the task, or NULL if it is the idle task or unknown; it is valid until the
 * next call. Returns 0, -ENOMEM or the error of the sink.
 */
int guest_tasks_identify(struct guest_tasks *t, const struct sample *s, uint32_t *pid,
			 uint32_t *tid, const struct guest_task **out, struct err *e);

/* The number of tasks that one guest_tasks_sweep() checks; it takes about 20 us. */
#define GUEST_TASKS_SWEEP 256u
/*
 * Checks some tasks and reports those that have exited. To be called periodically, and then after
 * each sample until guest_tasks_swept() returns true, which means that all were checked. A task has
 * to be missing in two such rounds, because samples of it may still wait in a ring. Returns 0 or
 * the error of the sink.
 */
int guest_tasks_sweep(struct guest_tasks *t, uint64_t now_ns, struct err *e);
bool guest_tasks_swept(const struct guest_tasks *t);

/*
 * Returns whether the task has this mm at this moment; otherwise what is read there is another
 * process's.
 */
bool guest_tasks_has_mm(const struct guest_tasks *t, const struct guest_task *task);

/* Returns the counters, valid as long as t. */
const struct guest_tasks_stats *guest_tasks_stats(const struct guest_tasks *t);

#endif
