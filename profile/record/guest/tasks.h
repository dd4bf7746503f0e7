/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_tasks: the guest's tasks as samples show them, told to the sink.
 *
 * A task is announced (fork, comm) before its first sample and again when its
 * name or program changes; its exit is told when its number turns up with another
 * start time, or when its structure is found to be another's twice. A process is
 * announced before its threads: else it would be news when it is sampled itself, and
 * the sink forget what it has mapped. Other tasks that no sample met are not known.
 * Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_TASKS_H
#define KVMPROF_PROFILE_RECORD_GUEST_TASKS_H

#include "base/sample.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/linux/task.h"

/* Tasks that are remembered; beyond it those that are gone are forgotten, or all. */
#define GUEST_TASKS_MAX 65536u
/* The number of a sample whose task could not be read; perf prints it as ":-1". */
#define GUEST_TASK_UNKNOWN UINT32_MAX

struct guest_task {
	uint32_t tid, pid;
	uint64_t addr, mm, start;
	/*
	 * Another number whenever the sink was told something (fork, exec) that makes it
	 * forget the process's mappings. Threads have their process's.
	 */
	uint64_t program;
	uint64_t missing_ns; /* when a sweep did not find it; 0: it was there */
	char comm[SAMPLE_COMM + 1];
	uint32_t
		exec_id; /* which of the programs that its process ran one after the other; 0: not known */
	bool used, gone;
	bool guessed; /* a process known from one of its threads alone */
};

/*
 * Whose a sample is: its task, and what other files keep of the task's process. Each of them looks that up once for a
 * sample; it is valid until the next sample.
 */
struct guest_owner {
	const struct guest_task *task; /* NULL: the idle task's, or nobody knows */
	struct maps_process *maps;     /* of guest_maps; NULL: nothing is known yet */
	struct vmas_process *vmas;     /* of guest_vmas; the same */
};

struct guest_tasks_stats {
	uint64_t seen;	     /* tasks that had a sample, threads counted each */
	uint64_t unreadable; /* samples whose task could not be read */
	uint64_t not_yet;    /* samples before the kernel had a current task */
	uint64_t exits;
};

struct guest_tasks;

/*
 * All must outlive it. Of the layout only the first CPU's idle task is used until
 * guest_tasks_members_known() says that it has the members of a task, too.
 */
int guest_tasks_create(struct guest_tasks **out, const struct linux_task_layout *layout,
		       const struct memory *memory, struct sink *sink, struct err *e);
void guest_tasks_members_known(struct guest_tasks *t);
/* The guest ran before its first sample: one whose task was not asked for is not of the boot. */
void guest_tasks_joined(struct guest_tasks *t);
void guest_tasks_destroy(struct guest_tasks *t);

/*
 * Whose sample is it? Announces what is new. *out has the task, or NULL when it is
 * the idle task's or unknown; it is valid until the next call. Errors are the sink's.
 */
int guest_tasks_see(struct guest_tasks *t, const struct sample *s, uint32_t *pid, uint32_t *tid,
		    const struct guest_task **out, struct err *e);

/* Tasks that one call of guest_tasks_sweep() looks at: some 20 us. */
#define GUEST_TASKS_SWEEP 256u
/*
 * Tell the exits of tasks that are gone: call it now and then, and, with a sample between, until
 * guest_tasks_swept() says that all were looked at. A task has to be missing at two such turns, as
 * samples of it may still wait in a ring.
 */
int guest_tasks_sweep(struct guest_tasks *t, uint64_t now_ns, struct err *e);
bool guest_tasks_swept(const struct guest_tasks *t);

/* Does the task have this mm at this moment? Else what is read there is somebody else's. */
bool guest_tasks_has_mm(const struct guest_tasks *t, const struct guest_task *task);

const struct guest_tasks_stats *guest_tasks_stats(const struct guest_tasks *t);

#endif
