/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All tasks that a kernel has: its list of processes, and each one's list of threads. */
#include "symbolizer/linux/task.h"

#include "base/array.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

struct lister {
	const struct linux_task_layout *l;
	const struct memory *m;
	struct linux_task_list list;
	size_t cap;
	struct table seen; /* addresses */
};

/*
 * Take a task in. 1: taken, 0: not, the list can't be followed through it;
 * -ENOMEM.
 */
static int lister_take(struct lister *s, uint64_t task)
{
	struct linux_task t;
	bool fresh;

	if (s->list.n >= LINUX_TASK_MAX_LIST)
		return 0;
	if (table_add_number(&s->seen, task, &fresh))
		return -ENOMEM;
	if (!fresh)
		return 0;
	if (linux_task_read(s->l, s->m, task, &t) != LINUX_TASK_GOOD) {
		s->list.skipped++;
		return 0;
	}
	if (ARRAY_ROOM(s->list.task, s->list.n, s->cap))
		return -ENOMEM;
	s->list.task[s->list.n++] = t;
	return 1;
}

/*
 * Follow a list from the list_head at head, by its next pointers or (back) its
 * prev pointers; `off` is where a task has its list_head. Where one way is
 * interrupted by a task that has just gone, the other one finds the rest.
 * `known` is a task that was taken in before and may be on the list once.
 */
static int lister_follow(struct lister *s, uint64_t head, uint32_t off, uint64_t known, bool back)
{
	uint64_t at = head;
	bool met = false;

	/* Every turn but one takes a new task in, so that it ends. */
	for (;;) {
		int ret;

		if (!memory_u64(s->m, at + (back ? 8 : 0), &at) || at % 8 || !(at >> 63))
			break;
		if (at == head)
			return 0;
		if (at - off == known && !met) {
			met = true;
			continue;
		}
		ret = lister_take(s, at - off);
		if (ret < 0)
			return ret;
		if (ret == 0)
			break;
	}
	s->list.cut = true;
	return back ? 0 : lister_follow(s, head, off, known, true);
}

static int take_threads(struct lister *s, uint64_t leader)
{
	const struct linux_task_layout *l = s->l;
	uint64_t signal;

	if (l->thread_node != LINUX_TASK_NONE && l->signal != LINUX_TASK_NONE &&
	    l->thread_head != LINUX_TASK_NONE) {
		/* A process that is just going has no signal any more, nor threads. */
		if (!memory_u64(s->m, leader + l->signal, &signal) || !(signal >> 63) || signal % 8)
			return 0;
		return lister_follow(s, signal + l->thread_head, l->thread_node, leader, false);
	}
	if (l->thread_group != LINUX_TASK_NONE)
		return lister_follow(s, leader + l->thread_group, l->thread_group, leader, false);
	return 0;
}

static int list_all(struct lister *s)
{
	int ret = lister_take(s, s->l->init_task);
	size_t leaders;

	if (ret > 0)
		ret = lister_follow(s, s->l->init_task + s->l->tasks, s->l->tasks, 0, false);
	leaders = s->list.n;
	/* The idle tasks of the other CPUs are nowhere: init_task has no threads. */
	for (size_t i = 1; i < leaders && ret >= 0; i++)
		ret = take_threads(s, s->list.task[i].task);
	return ret < 0 ? ret : 0;
}

int linux_task_list(const struct linux_task_layout *l, const struct memory *m,
		    struct linux_task_list *out, struct err *e)
{
	struct lister s = { .l = l, .m = m };
	int ret;

	if (!l->init_task || l->tasks == LINUX_TASK_NONE)
		return err_set(e, ENOENT, "the kernel's list of tasks is not known (no %s)",
			       l->init_task ? "task_struct.tasks" : "symbol init_task");
	ret = list_all(&s);
	table_deinit(&s.seen);
	if (ret < 0) {
		linux_task_list_deinit(&s.list);
		return err_set(e, -ret, "no memory for a list of %zu tasks", s.list.n);
	}
	*out = s.list;
	return 0;
}

void linux_task_list_deinit(struct linux_task_list *list)
{
	free(list->task);
	*list = (struct linux_task_list){ 0 };
}
