/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/task.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "symbolizer/linux/task_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PF_KTHREAD 0x00200000u

static bool is_kernel(uint64_t va)
{
	return va >> 63;
}

/* -- where the current task is ------------------------------------------------- */

static const struct symbol *linux_task_symbol(const struct symtab *s, const char *name)
{
	return s ? symtab_find(s, name) : NULL;
}

/*
 * Sets the place of the current task. Returns 0, or -ENOENT if the variable is neither per-CPU nor
 * an ordinary one.
 */
static int linux_task_place(struct linux_task_layout *out, const struct symtab *s,
			    const struct symbol *var, struct err *e)
{
	const struct symbol *start = linux_task_symbol(s, "__per_cpu_start"),
			    *end = linux_task_symbol(s, "__per_cpu_end");
	bool smp = linux_task_symbol(s, "__per_cpu_offset") != NULL;

	out->current = var->addr;
	if (!is_kernel(var->addr)) {
		/* Counted from the section's start, whose symbol may have been moved along. */
		if (start && !is_kernel(start->addr))
			out->current -= start->addr;
		out->per_cpu = true;
	} else if (start && end && start->addr < end->addr) {
		out->per_cpu = var->addr >= start->addr && var->addr < end->addr;
		if (smp && !out->per_cpu)
			return err_set(e, ENOENT,
				       "the kernel's %s at 0x%llx is not among its per-CPU "
				       "variables: can't tell tasks apart",
				       var->name, (unsigned long long)var->addr);
	} else {
		out->per_cpu = smp;
	}
	return 0;
}

int linux_task_find_current(struct linux_task_layout *out, const struct types *types,
			    const struct symtab *symbols, struct err *e)
{
	const struct symbol *var = linux_task_symbol(symbols, "current_task"), *hot = NULL;
	const struct symbol *init = linux_task_symbol(symbols, "init_task");
	struct linux_task_layout l = *out;
	struct type_member m = { 0 };
	int ret;

	if (!var)
		var = hot = linux_task_symbol(symbols, "pcpu_hot");
	if (!var)
		return err_set(e, ENOENT,
			       "the kernel's symbols name neither current_task nor pcpu_hot: "
			       "can't tell tasks apart (does it have CONFIG_KALLSYMS_ALL?)");
	ret = linux_task_place(&l, symbols, var, e);
	if (ret)
		return ret;
	/* In kernels without types it is the first member, as in all that had this structure. */
	if (hot && types) {
		ret = types->member(types->ctx, "pcpu_hot", "current_task", &m);
		if (ret)
			return err_set(e, -ret,
				       "the kernel's types do not contain pcpu_hot.current_task");
		l.current += m.off;
	}
	l.init_task = init && is_kernel(init->addr) ? init->addr : 0;
	*out = l;
	return 0;
}

/* -- members by types ----------------------------------------------------------- */

/* Stores the offset of a member; LINUX_TASK_NONE if there is none of this size. */
static int offset_of(const struct types *t, const char *structure, const char *path, uint32_t size,
		     uint32_t *out)
{
	struct type_member m;
	int ret = t->member(t->ctx, structure, path, &m);

	*out = LINUX_TASK_NONE;
	if (ret && ret != -ENOENT)
		return ret;
	if (ret == 0 && m.size == size && !m.bit_count && m.off % (size < 8 ? 4 : 8) == 0 &&
	    m.off <= LINUX_TASK_MAX_OFFSET)
		*out = m.off;
	return 0;
}

/*
 * Returns the offset of self_exec_id: a u32 up to 5.6, then a u64 ("exec: Change uint32 to u64"),
 * whose lower half is first.
 */
static uint32_t exec_id_of(const struct types *types)
{
	struct type_member m;

	return types->member(types->ctx, "task_struct", "self_exec_id", &m) == 0 &&
			       (m.size == 4 || m.size == 8) && !m.bit_count &&
			       m.off <= LINUX_TASK_MAX_OFFSET
		       ? m.off
		       : LINUX_TASK_NONE;
}

static int members_by_types(struct linux_task_layout *out, const struct types *types, struct err *e)
{
	struct linux_task_layout l = *out;
	struct {
		const char *structure, *path;
		uint32_t size, *off;
		bool needed;
	} want[] = {
		{ "task_struct", "pid", 4, &l.pid, true },
		{ "task_struct", "tgid", 4, &l.tgid, true },
		{ "task_struct", "mm", 8, &l.mm, true },
		{ "task_struct", "real_parent", 8, &l.real_parent, true },
		{ "task_struct", "group_leader", 8, &l.group_leader, true },
		{ "task_struct", "flags", 4, &l.flags, false },
		{ "task_struct", "stack", 8, &l.stack, false },
		{ "task_struct", "tasks", 16, &l.tasks, false },
		{ "task_struct", "thread_node", 16, &l.thread_node, false },
		{ "task_struct", "thread_group", 16, &l.thread_group, false },
		{ "task_struct", "signal", 8, &l.signal, false },
		{ "signal_struct", "thread_head", 16, &l.thread_head, false },
	};
	/* Renamed by "sched: Rename real_start_time to start_boottime" (5.5). */
	static const char *const start[] = { "start_boottime", "real_start_time", "start_time" };
	struct type_member comm;
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		ret = offset_of(types, want[i].structure, want[i].path, want[i].size, want[i].off);
		if (ret == 0 && want[i].needed && *want[i].off == LINUX_TASK_NONE)
			ret = -ENOENT;
		if (ret)
			return err_set(e, -ret, "the kernel's types do not contain %s.%s",
				       want[i].structure, want[i].path);
	}
	ret = types->member(types->ctx, "task_struct", "comm", &comm);
	if (ret == 0 && (comm.size != LINUX_TASK_COMM || comm.off > LINUX_TASK_MAX_OFFSET))
		ret = -ENOENT;
	if (ret)
		return err_set(e, -ret, "the kernel's types do not contain task_struct.comm");
	l.comm = comm.off;
	l.start_time = LINUX_TASK_NONE;
	for (unsigned int i = 0; i < ARRAY_SIZE(start) && l.start_time == LINUX_TASK_NONE; i++) {
		ret = offset_of(types, "task_struct", start[i], 8, &l.start_time);
		if (ret)
			return err_set(e, -ret, "the kernel's types are damaged at task_struct.%s",
				       start[i]);
		l.start_is_boottime = l.start_time != LINUX_TASK_NONE && i < 2;
	}
	l.exec_id = exec_id_of(types);
	l.source = LINUX_TASK_BY_TYPES;
	*out = l;
	return 0;
}

/* Checks a result that was found without types: it must lead to a task on the first CPU. */
static int confirm_current(const struct linux_task_layout *l, const struct symtab *symbols,
			   const struct memory *m, struct err *e)
{
	const struct symbol *offsets = linux_task_symbol(symbols, "__per_cpu_offset");
	uint64_t base = 0, task = 0;
	struct linux_task t;

	if ((!l->per_cpu || (offsets && memory_u64(m, offsets->addr, &base))) &&
	    memory_u64(m, linux_task_current(l, base), &task) &&
	    linux_task_read(l, m, task, &t) == LINUX_TASK_GOOD)
		return 0;
	return err_set(e, ENOENT, "the first CPU's current task is not a task (0x%llx)",
		       (unsigned long long)task);
}

static int members_by_content(struct linux_task_layout *l, const struct symtab *symbols,
			      const struct memory *m, struct err *e)
{
	int ret;

	if (!m)
		return err_set(e, ENOENT, "no type information, and no memory to search instead");
	ret = linux_task_from_content(l, m, e);
	if (ret)
		return ret;
	return confirm_current(l, symbols, m, e);
}

int linux_task_layout(struct linux_task_layout *out, const struct types *types,
		      const struct symtab *symbols, const struct memory *m, struct err *e)
{
	struct linux_task_layout l = { 0 };
	struct type_member any;
	int ret;

	if (types) {
		ret = types->member(types->ctx, "task_struct", "pid", &any);
		if (ret == -ENOENT)
			types = NULL;
	}
	ret = linux_task_find_current(&l, types, symbols, e);
	if (ret)
		return ret;
	ret = types ? members_by_types(&l, types, e) : members_by_content(&l, symbols, m, e);
	if (ret)
		return ret;
	*out = l;
	return 0;
}

/* -- one task --------------------------------------------------------------------- */

enum linux_task_doubt linux_task_check(uint32_t pid, uint32_t tgid,
				       const char comm[LINUX_TASK_COMM])
{
	size_t len = strnlen(comm, LINUX_TASK_COMM);

	/* The idle tasks have pid 0; they form one group. */
	if (pid > LINUX_TASK_MAX_PID || tgid > LINUX_TASK_MAX_PID || !pid != !tgid)
		return LINUX_TASK_BAD_PID;
	if (len == 0 || len == LINUX_TASK_COMM)
		return LINUX_TASK_BAD_COMM;
	for (size_t i = 0; i < len; i++)
		if ((uint8_t)comm[i] < 0x20 || comm[i] == 0x7f)
			return LINUX_TASK_BAD_COMM;
	return LINUX_TASK_GOOD;
}

static bool is_task_address(uint64_t va)
{
	return is_kernel(va) && va % 8 == 0 && va <= UINT64_MAX - LINUX_TASK_MAX_OFFSET - 16;
}

/*
 * Returns whether an odd name is acceptable. A task can choose any name (PR_SET_NAME), even an
 * empty one: that is no reason to reject it if its number and pointers are valid. Idle tasks do
 * not, and zeros are not a task.
 */
static bool is_odd_name(const struct linux_task *t)
{
	return t->pid != 0 && strnlen(t->comm, sizeof(t->comm)) < sizeof(t->comm);
}

static void make_printable(char comm[LINUX_TASK_COMM])
{
	for (size_t i = 0; i < LINUX_TASK_COMM && comm[i]; i++)
		if ((uint8_t)comm[i] < 0x20 || comm[i] == 0x7f)
			comm[i] = '?';
}

int linux_task_read(const struct linux_task_layout *l, const struct memory *m, uint64_t task,
		    struct linux_task *out)
{
	struct linux_task t = { .task = task };
	enum linux_task_doubt doubt;
	uint64_t parent;
	uint32_t flags;

	if (!is_task_address(task))
		return LINUX_TASK_NO_POINTER;
	if (!memory_u32(m, task + l->pid, &t.pid) || !memory_u32(m, task + l->tgid, &t.tgid) ||
	    !memory_read(m, MEMORY_KERNEL, task + l->comm, t.comm, sizeof(t.comm)) ||
	    !memory_u64(m, task + l->mm, &t.mm) ||
	    !memory_u64(m, task + l->group_leader, &t.group_leader) ||
	    !memory_u64(m, task + l->real_parent, &parent) ||
	    (l->exec_id != LINUX_TASK_NONE && !memory_u32(m, task + l->exec_id, &t.exec_id)) ||
	    (l->start_time != LINUX_TASK_NONE &&
	     !memory_u64(m, task + l->start_time, &t.start_time)) ||
	    (l->stack != LINUX_TASK_NONE && !memory_u64(m, task + l->stack, &t.stack)))
		return LINUX_TASK_UNREADABLE;
	doubt = linux_task_check(t.pid, t.tgid, t.comm);
	if (doubt && !(doubt == LINUX_TASK_BAD_COMM && is_odd_name(&t)))
		return (int)doubt;
	make_printable(t.comm);
	if (!is_task_address(t.group_leader) || (t.mm && !is_task_address(t.mm)))
		return LINUX_TASK_BAD_POINTERS;
	t.is_idle = t.pid == 0;
	if (l->flags == LINUX_TASK_NONE)
		t.is_kthread = t.mm == 0;
	else if (memory_u32(m, task + l->flags, &flags))
		t.is_kthread = flags & PF_KTHREAD;
	else
		return LINUX_TASK_UNREADABLE;
	if (is_task_address(parent) &&
	    (!memory_u32(m, parent + l->pid, &t.parent_pid) ||
	     !memory_u32(m, parent + l->tgid, &t.parent_tgid) ||
	     t.parent_pid > LINUX_TASK_MAX_PID || t.parent_tgid > LINUX_TASK_MAX_PID))
		t.parent_pid = t.parent_tgid = 0;
	*out = t;
	return LINUX_TASK_GOOD;
}

/* -- all tasks: the list of processes, and each one's list of threads ------------- */

struct lister {
	const struct linux_task_layout *l;
	const struct memory *m;
	struct linux_task_list list;
	size_t cap;
	struct table seen; /* addresses */
};

/*
 * Adds a task. Returns 1 if it was added, 0 if not, because the list cannot be followed through
 * it, or -ENOMEM.
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
 * Follows a list from the list_head at head, by its next pointers or (back) its prev pointers;
 * `off` is the offset of the list_head in a task. If one direction is interrupted by a task that
 * has just gone, the other one finds the rest. `known` is a task that was added before and may be
 * on the list once.
 */
static int lister_follow(struct lister *s, uint64_t head, uint32_t off, uint64_t known, bool back)
{
	uint64_t at = head;
	bool met = false;

	/* Every iteration but one adds a new task, so the loop ends. */
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
		/* A process that is exiting has no signal and no threads any more. */
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
	/* The idle tasks of the other CPUs are in no list: init_task has no threads. */
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
