/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/task.h"

#include "base/cleanup.h"

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

/* 0, or an error's number when it is neither per-CPU nor an ordinary variable. */
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
			return err_set(
				e, -ret,
				"the kernel's types do not tell where pcpu_hot.current_task is");
		l.current += m.off;
	}
	l.init_task = init && is_kernel(init->addr) ? init->addr : 0;
	*out = l;
	return 0;
}

/* -- members by types ----------------------------------------------------------- */

/* LINUX_TASK_NONE where there is none of this size. */
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

int linux_task_from_types(struct linux_task_layout *out, const struct types *types, struct err *e)
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
			return err_set(e, -ret, "the kernel's types do not tell where %s.%s is",
				       want[i].structure, want[i].path);
	}
	ret = types->member(types->ctx, "task_struct", "comm", &comm);
	if (ret == 0 && (comm.size != LINUX_TASK_COMM || comm.off > LINUX_TASK_MAX_OFFSET))
		ret = -ENOENT;
	if (ret)
		return err_set(e, -ret, "the kernel's types do not tell where task_struct.comm is");
	l.comm = comm.off;
	l.start_time = LINUX_TASK_NONE;
	for (unsigned int i = 0; i < ARRAY_SIZE(start) && l.start_time == LINUX_TASK_NONE; i++) {
		ret = offset_of(types, "task_struct", start[i], 8, &l.start_time);
		if (ret)
			return err_set(e, -ret, "the kernel's types are damaged at task_struct.%s",
				       start[i]);
		l.start_is_boottime = l.start_time != LINUX_TASK_NONE && i < 2;
	}
	l.source = LINUX_TASK_BY_TYPES;
	*out = l;
	return 0;
}

/* What was found without types must lead to a task on the first CPU. */
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
	return err_set(e, ENOENT, "what the first CPU's current task should be is no task (0x%llx)",
		       (unsigned long long)task);
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
	if (types) {
		ret = linux_task_from_types(&l, types, e);
	} else if (!m) {
		ret = err_set(e, ENOENT, "no type information, and no memory to search instead");
	} else {
		ret = linux_task_from_content(&l, m, e);
		if (!ret)
			ret = confirm_current(&l, symbols, m, e);
	}
	if (ret == 0)
		*out = l;
	return ret;
}

/* -- one task --------------------------------------------------------------------- */

const char *linux_task_doubt_name(enum linux_task_doubt d)
{
	static const char *const name[] = {
		[LINUX_TASK_GOOD] = "good",
		[LINUX_TASK_NO_POINTER] = "no kernel address",
		[LINUX_TASK_UNREADABLE] = "unreadable",
		[LINUX_TASK_BAD_PID] = "impossible pid",
		[LINUX_TASK_BAD_COMM] = "unprintable name",
		[LINUX_TASK_BAD_POINTERS] = "impossible pointers",
	};

	return (unsigned int)d < ARRAY_SIZE(name) ? name[d] : "?";
}

enum linux_task_doubt linux_task_check(uint32_t pid, uint32_t tgid,
				       const char comm[LINUX_TASK_COMM])
{
	size_t len = strnlen(comm, LINUX_TASK_COMM);

	/* pid 0 are the idle tasks; they form one group. */
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
 * A task may call itself anything (PR_SET_NAME), also nothing: that is no reason to doubt
 * one whose number and pointers are right. Idle tasks don't, and zeros are none.
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
