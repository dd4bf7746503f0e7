/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/guest_tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Open addressing, at most half full. */
#define SLOTS (2 * GUEST_TASKS_MAX)

struct guest_tasks {
	const struct linux_task_layout *layout;
	const struct memory *memory;
	struct sink *sink;
	struct guest_tasks_stats stats;
	bool members, idle_told;
	struct guest_task *task;
	uint32_t n, cap;
	uint32_t slot[SLOTS]; /* 1 + index of a task; untouched pages cost nothing */
};

int guest_tasks_create(struct guest_tasks **out, const struct linux_task_layout *layout,
		       bool members, const struct memory *memory, struct sink *sink, struct err *e)
{
	struct guest_tasks *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(e, ENOMEM, "out of memory");
	t->layout = layout;
	t->members = members;
	t->memory = memory;
	t->sink = sink;
	*out = t;
	return 0;
}

void guest_tasks_destroy(struct guest_tasks *t)
{
	if (t)
		free(t->task);
	free(t);
}

void guest_tasks_members_known(struct guest_tasks *t)
{
	t->members = true;
}

const struct guest_tasks_stats *guest_tasks_stats(const struct guest_tasks *t)
{
	return &t->stats;
}

/* Room for one more; when the table is full all is forgotten, and told again. */
static int make_room(struct guest_tasks *t, struct err *e)
{
	uint32_t cap = t->cap ? t->cap * 2 : 64;
	struct guest_task *grown;

	if (t->n >= GUEST_TASKS_MAX) {
		memset(t->slot, 0, sizeof(t->slot));
		t->n = 0;
	}
	if (t->n < t->cap)
		return 0;
	grown = reallocarray(t->task, cap, sizeof(*grown));
	if (!grown)
		return err_set(e, ENOMEM, "out of memory");
	t->task = grown;
	t->cap = cap;
	return 0;
}

/* The task of that number, or a fresh one; there is room. */
static struct guest_task *find(struct guest_tasks *t, uint32_t tid)
{
	uint32_t at = tid * 0x9e3779b1u >> 8;

	for (;; at++) {
		uint32_t *slot = &t->slot[at % SLOTS];

		if (*slot && t->task[*slot - 1].tid != tid)
			continue;
		if (!*slot) {
			t->task[t->n] = (struct guest_task){ .tid = tid };
			*slot = ++t->n;
		}
		return &t->task[*slot - 1];
	}
}

/* What the guest wrote, as text that a file and a terminal can hold. */
static void copy_comm(char dst[SAMPLE_COMM + 1], const char src[SAMPLE_COMM])
{
	memset(dst, 0, SAMPLE_COMM + 1);
	for (unsigned int i = 0; i < SAMPLE_COMM && src[i]; i++) {
		unsigned char c = (unsigned char)src[i];

		dst[i] = c < 0x20 || c == 0x7f ? '?' : src[i];
	}
}

/* Whom it came from, as far as its structure still says so. */
static void parent_of(const struct guest_tasks *t, const struct sample_task *k, uint32_t *ppid,
		      uint32_t *ptid)
{
	struct linux_task task;

	*ppid = *ptid = k->pid;
	/* A thread belongs to its process; a process to the one that made it. */
	if (k->tid != k->pid)
		return;
	*ppid = *ptid = 0;
	if (t->members && linux_task_read(t->layout, t->memory, k->addr, &task) == 0 &&
	    task.pid == k->tid) {
		*ppid = task.parent_tgid;
		*ptid = task.parent_pid;
	}
}

static int announce(struct guest_tasks *t, struct guest_task *k, const struct sample *s,
		    struct err *e)
{
	const struct sample_task *now = &s->task;
	char comm[SAMPLE_COMM + 1];
	uint32_t ppid, ptid;
	bool exec;
	int ret = 0;

	copy_comm(comm, now->comm);
	if (k->used && !k->gone && k->start != now->start) {
		ret = t->sink->ops->exit(t->sink, k->pid, k->tid, s->time_ns, e);
		t->stats.exits++;
		k->gone = true;
	}
	if (!ret && (!k->used || k->gone)) {
		parent_of(t, now, &ppid, &ptid);
		ret = t->sink->ops->fork(t->sink, now->pid, now->tid, ppid, ptid, s->time_ns, e);
		t->stats.seen++;
		exec = now->mm && now->tid == now->pid;
	} else {
		/* Another program in the same process: its mappings are new. */
		exec = now->mm && now->mm != k->mm;
		if (!exec && !strcmp(comm, k->comm)) {
			k->mm = now->mm;
			return ret;
		}
	}
	if (!ret)
		ret = t->sink->ops->comm(t->sink, now->pid, now->tid, comm, exec, s->time_ns, e);
	*k = (struct guest_task){
		.used = true,
		.tid = now->tid,
		.pid = now->pid,
		.addr = now->addr,
		.mm = now->mm,
		.start = now->start,
	};
	memcpy(k->comm, comm, sizeof(comm));
	return ret;
}

static int see_idle(struct guest_tasks *t, uint32_t *pid, uint32_t *tid, uint64_t time_ns,
		    struct err *e)
{
	*pid = *tid = 0;
	if (t->idle_told)
		return 0;
	t->idle_told = true;
	return t->sink->ops->comm(t->sink, 0, 0, "swapper", false, time_ns, e);
}

static int see_unknown(struct guest_tasks *t, const struct sample *s, uint32_t *pid, uint32_t *tid,
		       struct err *e)
{
	*pid = *tid = GUEST_TASK_UNKNOWN;
	t->stats.unreadable++;
	if (t->stats.unreadable > 1)
		return 0;
	return t->sink->ops->comm(t->sink, *pid, *tid, "(unknown)", false, s->time_ns, e);
}

int guest_tasks_see(struct guest_tasks *t, const struct sample *s, uint32_t *pid, uint32_t *tid,
		    const struct guest_task **out, struct err *e)
{
	const struct sample_task *now = &s->task;
	struct guest_task *k;
	int ret;

	*out = NULL;
	if (now->state == SAMPLE_TASK_UNASKED || now->state == SAMPLE_TASK_NOT_YET ||
	    (now->state == SAMPLE_TASK_POINTER && now->addr == t->layout->init_task)) {
		/* What boots is the task that will be the idle one. */
		t->stats.not_yet++;
		return see_idle(t, pid, tid, s->time_ns, e);
	}
	if (now->state != SAMPLE_TASK_FOUND ||
	    linux_task_check(now->tid, now->pid, now->comm) != LINUX_TASK_GOOD)
		return see_unknown(t, s, pid, tid, e);
	if (now->tid == 0)
		return see_idle(t, pid, tid, s->time_ns, e);
	ret = make_room(t, e);
	if (ret)
		return ret;
	k = find(t, now->tid);
	ret = announce(t, k, s, e);
	*pid = now->pid;
	*tid = now->tid;
	*out = k;
	return ret;
}

int guest_tasks_sweep(struct guest_tasks *t, uint64_t now_ns, struct err *e)
{
	int ret = 0;

	for (uint32_t i = 0; t->members && i < t->n && !ret; i++) {
		struct guest_task *k = &t->task[i];
		struct linux_task task;

		if (!k->used || k->gone)
			continue;
		if (linux_task_read(t->layout, t->memory, k->addr, &task) == 0 &&
		    task.pid == k->tid && task.start_time == k->start)
			continue;
		k->gone = true;
		t->stats.exits++;
		ret = t->sink->ops->exit(t->sink, k->pid, k->tid, now_ns, e);
	}
	return ret;
}
