/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/tasks.h"

#include "base/array.h"
#include "base/idmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct guest_tasks {
	const struct linux_task_layout *layout;
	const struct memory *memory;
	struct sink *sink;
	struct guest_tasks_stats stats;
	bool members_known; /* otherwise only the first idle task can be recognized */
	/* the guest ran before its first sample: a sample without a task is not of the boot */
	bool joined;
	bool program_seen; /* a program ran: the boot is over */
	bool idle_told;
	struct guest_task *task;
	uint32_t n;
	/* the current round: index of the next task to check, and the end */
	uint32_t sweep, sweep_end;
	size_t cap;
	uint64_t programs;   /* the last number that was assigned */
	struct idmap by_tid; /* index of a task */
};

int guest_tasks_create(struct guest_tasks **out, const struct linux_task_layout *layout,
		       const struct memory *memory, struct sink *sink, struct err *e)
{
	struct guest_tasks *t = calloc(1, sizeof(*t));

	if (!t)
		return err_nomem(e);
	t->layout = layout;
	t->memory = memory;
	t->sink = sink;
	*out = t;
	return 0;
}

void guest_tasks_destroy(struct guest_tasks *t)
{
	if (!t)
		return;
	idmap_deinit(&t->by_tid);
	free(t->task);
	free(t);
}

void guest_tasks_set_running(struct guest_tasks *t)
{
	t->joined = true;
}

void guest_tasks_members_known(struct guest_tasks *t)
{
	t->members_known = true;
}

const struct guest_tasks_stats *guest_tasks_stats(const struct guest_tasks *t)
{
	return &t->stats;
}

/* Discards exited tasks, or all if that would soon have to be done again. */
static int forget_some(struct guest_tasks *t)
{
	uint32_t kept = 0;
	int ret = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->task[i].used && !t->task[i].gone)
			t->task[kept++] = t->task[i];
	kept = kept > GUEST_TASKS_MAX / 4 * 3 ? 0 : kept;
	t->sweep = t->sweep_end = 0;
	idmap_deinit(&t->by_tid);
	for (t->n = 0; t->n < kept && !ret; t->n++)
		ret = idmap_set(&t->by_tid, t->task[t->n].tid, t->n);
	return ret;
}

/* Makes room for a task and its process, so that neither moves when the other is added. */
static int make_room(struct guest_tasks *t, struct err *e)
{
	if ((t->n + 2 > GUEST_TASKS_MAX && forget_some(t)) || ARRAY_FIT(t->task, t->n + 2, t->cap))
		return err_nomem(e);
	return 0;
}

/*
 * Returns the task of this number, or a fresh one, for which there is room. Returns NULL if out of
 * memory.
 */
static struct guest_task *task_of(struct guest_tasks *t, uint32_t tid)
{
	uint32_t i;

	if (!idmap_get(&t->by_tid, tid, &i)) {
		if (idmap_set(&t->by_tid, tid, t->n))
			return NULL;
		i = t->n++;
		t->task[i] = (struct guest_task){ .tid = tid };
	}
	return &t->task[i];
}

/* Copies a name that the guest wrote as text that is safe for files and terminals. */
static void copy_comm(char dst[SAMPLE_COMM + 1], const char src[SAMPLE_COMM])
{
	memset(dst, 0, SAMPLE_COMM + 1);
	for (unsigned int i = 0; i < SAMPLE_COMM && src[i]; i++) {
		unsigned char c = (unsigned char)src[i];

		dst[i] = c < 0x20 || c == 0x7f ? '?' : src[i];
	}
}

/* Finds the task's parent, as far as its structure still shows it. */
static void parent_of(const struct guest_tasks *t, const struct sample_task *k, uint32_t *ppid,
		      uint32_t *ptid)
{
	struct linux_task task;

	*ppid = *ptid = k->pid;
	/* A thread belongs to its process; a process to the one that made it. */
	if (k->tid != k->pid)
		return;
	*ppid = *ptid = 0;
	if (t->members_known && linux_task_read(t->layout, t->memory, k->addr, &task) == 0 &&
	    task.pid == k->tid) {
		*ppid = task.parent_tgid;
		*ptid = task.parent_pid;
	}
}

/* Returns whether the number now belongs to another task. */
static bool is_other(const struct guest_tasks *t, const struct guest_task *k,
		     const struct sample_task *now)
{
	if (k->guessed)
		return false;
	return t->layout->start_time != LINUX_TASK_NONE ? k->start != now->start
							: k->addr != now->addr;
}

/*
 * Returns whether the process runs another program, whose mappings are new. A kernel thread may
 * borrow a process's address space for a while and keeps its name then.
 */
static bool is_exec(const struct guest_task *k, const struct sample_task *now, const char *comm)
{
	if (now->tid != now->pid || !now->mm || k->guessed)
		return false;
	/* The address of a freed mm_struct is reused. */
	if (now->exec_id && k->exec_id)
		return now->exec_id != k->exec_id;
	return k->mm ? k->mm != now->mm : strcmp(comm, k->comm) != 0;
}

static int tasks_announce(struct guest_tasks *t, struct guest_task *k,
			  const struct sample_task *now, uint64_t time_ns, struct err *e)
{
	const struct guest_task before = *k;
	bool known = k->used && !k->gone, fresh = !known || is_other(t, k, now), exec;
	uint32_t ppid, ptid;
	int ret = 0;

	*k = (struct guest_task){
		.used = true,
		.tid = now->tid,
		.pid = now->pid,
		.addr = now->addr,
		.mm = now->mm,
		.start = now->start,
		.exec_id = now->exec_id,
		.program = before.program,
	};
	copy_comm(k->comm, now->comm);
	exec = fresh ? now->mm && now->tid == now->pid : is_exec(&before, now, k->comm);
	if (!now->exec_id && !fresh && !exec)
		k->exec_id = before.exec_id;
	if (fresh || exec)
		k->program = ++t->programs;
	if (known && fresh) {
		t->stats.exits++;
		ret = t->sink->ops->exit(t->sink, before.pid, before.tid, time_ns, e);
	}
	if (!ret && fresh) {
		t->stats.seen++;
		parent_of(t, now, &ppid, &ptid);
		ret = t->sink->ops->fork(
			t->sink, &(struct profile_fork){ now->pid, now->tid, ppid, ptid, time_ns },
			e);
	}
	if (ret || (!fresh && !exec && !strcmp(before.comm, k->comm)))
		return ret;
	return t->sink->ops->comm(
		t->sink, &(struct profile_comm){ now->pid, now->tid, k->comm, exec, time_ns }, e);
}

/* Reads the process of a thread from its structure. */
static bool read_leader(const struct guest_tasks *t, const struct sample_task *thread,
			struct sample_task *out)
{
	const struct linux_task_layout *l = t->layout;
	const struct memory *m = t->memory;
	uint64_t at;

	*out = (struct sample_task){ .state = SAMPLE_TASK_FOUND };
	if (!t->members_known || !memory_u64(m, thread->addr + l->group_leader, &at) ||
	    !memory_u32(m, at + l->pid, &out->tid) || !memory_u32(m, at + l->tgid, &out->pid) ||
	    !memory_u64(m, at + l->mm, &out->mm) ||
	    !memory_read(m, MEMORY_KERNEL, at + l->comm, out->comm, SAMPLE_COMM) ||
	    (l->start_time != LINUX_TASK_NONE && !memory_u64(m, at + l->start_time, &out->start)) ||
	    (l->exec_id != LINUX_TASK_NONE && !memory_u32(m, at + l->exec_id, &out->exec_id)))
		return false;
	out->addr = at;
	return out->tid == thread->pid && out->pid == thread->pid;
}

/* Reports a thread's process; fresh: the thread is new, so its process may be, too. */
static int see_leader(struct guest_tasks *t, const struct sample_task *now, bool fresh,
		      uint64_t time_ns, uint64_t *program, struct err *e)
{
	struct guest_task *k = task_of(t, now->pid);
	struct sample_task leader;
	bool known;
	int ret = 0;

	if (!k)
		return err_nomem(e);
	known = k->used && !k->gone;
	if (!known || fresh) {
		if (read_leader(t, now, &leader)) {
			/* Its main thread may have ended before the others. */
			leader.mm = leader.mm ? leader.mm : now->mm;
			ret = tasks_announce(t, k, &leader, time_ns, e);
		} else if (!known) {
			leader = *now;
			leader.tid = now->pid;
			leader.addr = leader.start = 0;
			ret = tasks_announce(t, k, &leader, time_ns, e);
			k->guessed = true;
		}
	}
	*program = k->program;
	return ret;
}

static int see_idle(struct guest_tasks *t, uint32_t *pid, uint32_t *tid, uint64_t time_ns,
		    struct err *e)
{
	*pid = *tid = 0;
	if (t->idle_told)
		return 0;
	t->idle_told = true;
	return t->sink->ops->comm(t->sink,
				  &(struct profile_comm){ 0, 0, "swapper", false, time_ns }, e);
}

static int see_unknown(struct guest_tasks *t, const struct sample *s, uint32_t *pid, uint32_t *tid,
		       struct err *e)
{
	*pid = *tid = GUEST_TASK_UNKNOWN;
	t->stats.unreadable++;
	if (t->stats.unreadable > 1)
		return 0;
	return t->sink->ops->comm(
		t->sink, &(struct profile_comm){ *pid, *tid, "(unknown)", false, s->time_ns }, e);
}

/*
 * A task may have any name: unprintable characters are no reason to ignore its samples. But the
 * kernel always terminates the name.
 */
static bool is_believable(const struct sample_task *k)
{
	enum linux_task_doubt doubt = linux_task_check(k->tid, k->pid, k->comm);

	return doubt == LINUX_TASK_GOOD ||
	       (doubt == LINUX_TASK_BAD_COMM && memchr(k->comm, '\0', SAMPLE_COMM));
}

/*
 * Returns whether a program runs, or the kernel on its behalf: the program's stack was copied, too.
 */
static bool has_program(const struct sample *s)
{
	bool found = s->mode == SAMPLE_USER;

	for (unsigned int i = 0; s->regs.rip >> 63 && i < s->nslices; i++)
		found |= !(s->slice[i].va >> 63);
	return found;
}

/*
 * The task that boots is the one that becomes the first idle task; it never runs a program. In a
 * guest that ran before, or that has run a program, only a halted vCPU is known to be idle if tasks
 * are not read.
 */
static bool is_of_boot(const struct guest_tasks *t, const struct sample *s, bool runs_program)
{
	const struct sample_task *now = &s->task;

	if (now->state == SAMPLE_TASK_POINTER)
		return now->addr == t->layout->init_task && !runs_program;
	if (now->state != SAMPLE_TASK_UNASKED && now->state != SAMPLE_TASK_NOT_YET)
		return false;
	if (t->joined || (t->program_seen && now->state == SAMPLE_TASK_UNASKED))
		return s->mode == SAMPLE_IDLE && !runs_program;
	return !runs_program;
}

int guest_tasks_identify(struct guest_tasks *t, const struct sample *s, uint32_t *pid,
			 uint32_t *tid, const struct guest_task **out, struct err *e)
{
	const struct sample_task *now = &s->task;
	const bool runs_program = now->state != SAMPLE_TASK_FOUND && has_program(s);
	struct guest_task *k;
	uint64_t program = 0;
	int ret;

	*out = NULL;
	t->program_seen |= runs_program;
	if (is_of_boot(t, s, runs_program)) {
		t->stats.not_yet++;
		return see_idle(t, pid, tid, s->time_ns, e);
	}
	if (now->state != SAMPLE_TASK_FOUND || !is_believable(now))
		return see_unknown(t, s, pid, tid, e);
	if (now->tid == 0)
		return see_idle(t, pid, tid, s->time_ns, e);
	ret = make_room(t, e);
	if (ret)
		return ret;
	k = task_of(t, now->tid);
	if (!k)
		return err_nomem(e);
	if (now->tid != now->pid) {
		bool fresh = !k->used || k->gone || is_other(t, k, now);

		ret = see_leader(t, now, fresh, s->time_ns, &program, e);
	}
	ret = ret ? ret : tasks_announce(t, k, now, s->time_ns, e);
	if (now->tid != now->pid)
		k->program = program;
	*pid = now->pid;
	*tid = now->tid;
	*out = k;
	return ret;
}

/* Returns whether its structure is still its own. */
static bool is_there(const struct guest_tasks *t, const struct guest_task *k)
{
	const struct linux_task_layout *l = t->layout;
	uint32_t pid;
	uint64_t start;

	if (!memory_u32(t->memory, k->addr + l->pid, &pid) || pid != k->tid)
		return false;
	return l->start_time == LINUX_TASK_NONE ||
	       (memory_u64(t->memory, k->addr + l->start_time, &start) && start == k->start);
}

/* Returns whether it still runs the same program. */
static bool is_in_program(const struct guest_tasks *t, const struct guest_task *task)
{
	uint32_t now;

	return !task->exec_id || t->layout->exec_id == LINUX_TASK_NONE ||
	       (memory_u32(t->memory, task->addr + t->layout->exec_id, &now) &&
		now == task->exec_id);
}

bool guest_tasks_has_mm(const struct guest_tasks *t, const struct guest_task *task)
{
	uint64_t mm;

	return t->members_known && is_there(t, task) &&
	       memory_u64(t->memory, task->addr + t->layout->mm, &mm) && mm == task->mm &&
	       is_in_program(t, task);
}

bool guest_tasks_swept(const struct guest_tasks *t)
{
	return !t->members_known || t->sweep == t->sweep_end;
}

int guest_tasks_sweep(struct guest_tasks *t, uint64_t now_ns, struct err *e)
{
	uint32_t end;
	int ret = 0;

	if (guest_tasks_swept(t)) {
		t->sweep = 0;
		t->sweep_end = t->n;
	}
	end = t->sweep_end - t->sweep > GUEST_TASKS_SWEEP ? t->sweep + GUEST_TASKS_SWEEP
							  : t->sweep_end;
	for (; t->members_known && t->sweep < end && !ret; t->sweep++) {
		struct guest_task *k = &t->task[t->sweep];

		if (!k->used || k->gone || k->guessed)
			continue;
		if (is_there(t, k)) {
			k->missing_ns = 0;
		} else if (!k->missing_ns) {
			k->missing_ns = now_ns;
		} else {
			k->gone = true;
			t->stats.exits++;
			ret = t->sink->ops->exit(t->sink, k->pid, k->tid, k->missing_ns, e);
		}
	}
	return ret;
}
