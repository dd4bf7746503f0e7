/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the members of struct task_struct without any description of it.
 *
 * The first tasks of a Linux are known: init_task ("swapper", pid 0), whose
 * children are pid 1 and kthreadd (pid 2), whose children are kernel threads.
 * The required contents of each member in all these tasks are known:
 *
 *	real_parent	with its neighbours, in this order in all kernels: pid, tgid,
 *			[stack_canary,] real_parent, parent, children, sibling,
 *			group_leader; init_task is its own parent and leader
 *	comm		"swapper", "kthreadd"
 *	tasks		a ring on which all these are, each once
 *	mm		and active_mm behind it: the same in a program, 0 in kernel threads
 *
 * A place is accepted only if all examined tasks agree and no second place fits. So a kernel with
 * shuffled structures (CONFIG_RANDSTRUCT) is rejected.
 */
#include "symbolizer/linux/task_find.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a task that are examined; it has some 2 to 10 KiB. */
#define SPAN 16384u
#define MIN_SPAN 1024u
/* Maximum and minimum number of tasks whose members are compared. */
#define MAX_TASKS 48u
#define MIN_TASKS 3u
/* Maximum distance of a member after comm. */
#define BEHIND_COMM 1024u
/* Maximum number of steps along a ring that may be the list of tasks. */
#define MAX_RING 65536u
#define PF_KTHREAD 0x00200000u
#define NONE LINUX_TASK_NONE

enum kind { OTHER, KTHREAD, PROGRAM };

struct seen_task {
	uint64_t va;
	uint32_t pid;
	enum kind kind;
	size_t len;
	uint8_t *bytes;
};

struct task_find_finder {
	const struct memory *m;
	struct linux_task_layout l;
	struct seen_task task[MAX_TASKS]; /* [0] init_task, then pid 1, then kthreadd */
	unsigned int n;
	size_t len; /* bytes that are available for all tasks */
};

static bool is_pointer(uint64_t v)
{
	return v >> 63 && v % 8 == 0 && v < UINT64_MAX - SPAN;
}

static int not_found(struct err *e, const char *what, unsigned int fits)
{
	return err_set(e, ENOENT,
		       "can't tell tasks apart: %u places in the first task's memory may be its %s "
		       "(it has to be exactly one; no type information)",
		       fits, what);
}

static int load_task(struct task_find_finder *f, uint64_t va, enum kind kind)
{
	struct seen_task *t = &f->task[f->n];

	t->bytes = malloc(SPAN);
	if (!t->bytes)
		return -ENOMEM;
	t->va = va;
	t->kind = kind;
	t->len = f->m->read(f->m->ctx, MEMORY_KERNEL, va, t->bytes, SPAN) & ~(size_t)7;
	f->n++;
	if (t->len < MIN_SPAN)
		return -ENOENT;
	if (t->len < f->len)
		f->len = t->len;
	return 0;
}

/* -- the family ------------------------------------------------------------------ */

/* Offsets from real_parent. */
enum { PARENT = 8, CHILDREN = 16, SIBLING = 32, LEADER = 48, FAMILY = 56 };

/* Returns whether init_task looks like the first of a family with real_parent at this offset. */
static bool is_first(const struct seen_task *t, uint64_t off)
{
	return memory_word(t->bytes, off) == t->va &&
	       memory_word(t->bytes, off + PARENT) == t->va &&
	       memory_word(t->bytes, off + LEADER) == t->va &&
	       is_pointer(memory_word(t->bytes, off + CHILDREN)) &&
	       memory_word(t->bytes, off + CHILDREN) != t->va + off + CHILDREN &&
	       memory_word(t->bytes, off + SIBLING) == t->va + off + SIBLING &&
	       memory_word(t->bytes, off + SIBLING + 8) == t->va + off + SIBLING;
}

/* Returns the next child of a family; 0 at the end, or if the family is not in order. */
static uint64_t next_child(const struct task_find_finder *f, uint64_t parent, uint64_t at)
{
	uint32_t rp = f->l.real_parent;
	uint64_t next, prev, child, up, leader;

	if (!memory_u64(f->m, at, &next) || next == parent + rp + CHILDREN || !is_pointer(next) ||
	    !memory_u64(f->m, next + 8, &prev) || prev != at)
		return 0;
	child = next - rp - SIBLING;
	if (!memory_u64(f->m, child + rp, &up) || up != parent ||
	    !memory_u64(f->m, child + rp + LEADER, &leader) || leader != child)
		return 0;
	return child;
}

/* Returns the pid of a group's leader, with pid as in the layout; 0 if that is not valid. */
static uint32_t leader_pid(const struct task_find_finder *f, uint64_t task)
{
	uint32_t id[2];

	if (!memory_read(f->m, MEMORY_KERNEL, task + f->l.pid, id, sizeof(id)) || id[0] != id[1] ||
	    id[0] > LINUX_TASK_MAX_PID)
		return 0;
	return id[0];
}

static uint64_t child_with_pid(const struct task_find_finder *f, uint64_t parent, uint32_t pid)
{
	uint64_t at = parent + f->l.real_parent + CHILDREN, child;

	for (unsigned int i = 0; i < MAX_TASKS && (child = next_child(f, parent, at)); i++) {
		if (leader_pid(f, child) == pid)
			return child;
		at = child + f->l.real_parent + SIBLING;
	}
	return 0;
}

/* Finds real_parent and the members around it, pid 1 and kthreadd. */
static int find_family(struct task_find_finder *f, struct err *e)
{
	uint32_t pid = NONE, rp = NONE;
	uint64_t one = 0, two = 0;
	unsigned int fits = 0;
	int ret;

	for (uint32_t off = 16; off + FAMILY <= f->len; off += 8) {
		if (!is_first(&f->task[0], off))
			continue;
		/* With and without a stack_canary in between. */
		for (uint32_t back = 8; back <= 16; back += 8) {
			uint64_t a, b;

			f->l.real_parent = off;
			f->l.pid = off - back;
			if (memory_half(f->task[0].bytes, off - back) ||
			    memory_half(f->task[0].bytes, off - back + 4))
				continue;
			a = child_with_pid(f, f->task[0].va, 1);
			b = child_with_pid(f, f->task[0].va, 2);
			if (!a || !b)
				continue;
			fits++;
			pid = off - back;
			rp = off;
			one = a;
			two = b;
		}
	}
	if (fits != 1)
		return not_found(e, "real_parent", fits);
	f->l.pid = pid;
	f->l.tgid = pid + 4;
	f->l.real_parent = rp;
	f->l.group_leader = rp + LEADER;
	ret = load_task(f, one, PROGRAM);
	if (!ret)
		ret = load_task(f, two, KTHREAD);
	f->task[1].pid = 1;
	f->task[2].pid = 2;
	return ret ? err_set(e, -ret, "pid 1 or 2 can't be read") : 0;
}

/* Loads some of a task's children. */
static int load_children(struct task_find_finder *f, unsigned int parent, unsigned int room,
			 enum kind kind)
{
	uint64_t up = f->task[parent].va, at = up + f->l.real_parent + CHILDREN, child;

	for (; room && f->n < MAX_TASKS && (child = next_child(f, up, at)); room--) {
		uint32_t pid = leader_pid(f, child);
		int ret;

		if (!pid)
			return -ENOENT;
		for (unsigned int i = 0; i < f->n; i++)
			if (f->task[i].pid == pid || f->task[i].va == child)
				return -ENOENT;
		ret = load_task(f, child, kind);
		if (ret)
			return ret;
		f->task[f->n - 1].pid = pid;
		at = child + f->l.real_parent + SIBLING;
	}
	return 0;
}

/* -- one member each --------------------------------------------------------------- */

static bool comm_fits(const struct task_find_finder *f, uint32_t off)
{
	const char *first = (const char *)f->task[0].bytes + off;

	if ((strncmp(first, "swapper", 8) != 0 && strncmp(first, "swapper/0", 10) != 0) ||
	    strncmp((const char *)f->task[2].bytes + off, "kthreadd", 9) != 0)
		return false;
	for (unsigned int i = 1; i < f->n; i++)
		if (linux_task_check(1, 1, (const char *)f->task[i].bytes + off))
			return false;
	return true;
}

static bool mm_fits(const struct task_find_finder *f, uint32_t off)
{
	for (unsigned int i = 0; i < f->n; i++) {
		const struct seen_task *t = &f->task[i];
		uint64_t mm = memory_word(t->bytes, off);

		/* A program that has ended has no mm any more; pid 1 has one. */
		if (t->kind != PROGRAM ? mm != 0 : mm == 0 && i == 1)
			return false;
		if (mm &&
		    (!is_pointer(mm) || memory_word(t->bytes, off + 8) != mm || mm == t->va + off))
			return false;
	}
	return true;
}

static bool ring_fits(const struct task_find_finder *f, uint32_t off)
{
	uint64_t head = f->task[0].va + off, at = memory_word(f->task[0].bytes, off), last = head,
		 prev;
	bool two = false;

	/* Pid 1 was created first, and stays. */
	if (at != f->task[1].va + off)
		return false;
	for (unsigned int i = 0; i < MAX_RING; i++) {
		char comm[LINUX_TASK_COMM];

		if (!is_pointer(at) || !memory_u64(f->m, at + 8, &prev) || prev != last)
			return false;
		if (at == head)
			return two;
		if (!leader_pid(f, at - off) ||
		    !memory_read(f->m, MEMORY_KERNEL, at - off + f->l.comm, comm, sizeof(comm)) ||
		    linux_task_check(1, 1, comm))
			return false;
		two |= at - off == f->task[2].va;
		last = at;
		if (!memory_u64(f->m, at, &at))
			return false;
	}
	return false;
}

/* Tests for void *stack, refcount_t usage, unsigned int flags, which are always consecutive. */
static bool flags_fit(const struct task_find_finder *f, uint32_t off)
{
	if (off < 12 || off % 8 != 4)
		return false;
	for (unsigned int i = 0; i < f->n; i++) {
		const struct seen_task *t = &f->task[i];
		uint64_t stack = memory_word(t->bytes, off - 12);

		if (!(memory_half(t->bytes, off) & PF_KTHREAD) != (t->kind == PROGRAM) ||
		    memory_half(t->bytes, off - 4) > LINUX_TASK_MAX_PID)
			return false;
		/* The stack of a task that has ended is gone. */
		if (stack ? !is_pointer(stack) || stack % 4096 : i < 3)
			return false;
	}
	return true;
}

#define SECOND_NS UINT64_C(1000000000)
#define TEN_YEARS_NS (315360000 * SECOND_NS)

/* Tests for start_time followed by start_boottime (real_start_time before 5.5), both in ns. */
static bool start_fits(const struct task_find_finder *f, uint32_t off)
{
	uint64_t last = 0,
		 lead = memory_word(f->task[2].bytes, off + 8) - memory_word(f->task[2].bytes, off);
	uint64_t first = memory_word(f->task[1].bytes, off);

	if (memory_word(f->task[0].bytes, off) || memory_word(f->task[0].bytes, off + 8) ||
	    lead > SECOND_NS)
		return false;
	for (unsigned int i = 1; i < f->n; i++) {
		uint64_t mono = memory_word(f->task[i].bytes, off),
			 boot = memory_word(f->task[i].bytes, off + 8);

		if (boot < mono || boot - mono > lead + SECOND_NS || boot > TEN_YEARS_NS ||
		    mono < first)
			return false;
		/* Children are in the order of their creation, except adopted ones. */
		if (f->task[i].kind == KTHREAD && mono < last)
			return false;
		if (f->task[i].kind == KTHREAD)
			last = mono;
	}
	return last > first;
}

/*
 * Returns the list's head for thread_node: alone on a list whose head is in the signal_struct,
 * after two or three counters. Kernel threads are single.
 */
static uint64_t list_head_of_node(const struct task_find_finder *f, const struct seen_task *t,
				  uint32_t off)
{
	uint64_t head = memory_word(t->bytes, off), node = t->va + off, next, prev;

	if (!is_pointer(head) || memory_word(t->bytes, off + 8) != head || head == node ||
	    !memory_u64(f->m, head, &next) || !memory_u64(f->m, head + 8, &prev) || next != node ||
	    prev != node)
		return 0;
	return head;
}

/* Bytes of sigcnt, live, nr_threads[, quick_threads]. */
#define THREAD_HEAD 16u

static bool threads_fit(const struct task_find_finder *f, uint32_t node, uint32_t signal)
{
	for (unsigned int i = 0; i < f->n; i++) {
		uint64_t head;

		if (f->task[i].kind != KTHREAD)
			continue;
		head = list_head_of_node(f, &f->task[i], node);
		if (!head || memory_word(f->task[i].bytes, signal) != head - THREAD_HEAD)
			return false;
	}
	return true;
}

/* Tests whether a member can be at this offset of a task. */
typedef bool fits_fn(const struct task_find_finder *f, uint32_t off);

/* Returns how many offsets from `from` on fit; *out is the last of them. */
static unsigned int count_places(const struct task_find_finder *f, uint64_t from, uint64_t to,
				 uint32_t step, fits_fn *fits, uint32_t *out)
{
	unsigned int n = 0;

	for (uint32_t off = (uint32_t)from; off + LINUX_TASK_COMM <= to; off += step) {
		if (!fits(f, off))
			continue;
		*out = off;
		n++;
	}
	return n;
}

/* Finds the members that may stay unknown. */
static void find_others(struct task_find_finder *f)
{
	struct linux_task_layout *l = &f->l;
	unsigned int fits = 0;
	uint32_t node = NONE, signal = NONE;

	if (count_places(f, 0, f->len, 4, flags_fit, &l->flags) == 1)
		l->stack = l->flags - 12;
	else
		l->flags = NONE;
	/* Other members may follow the task's own: search only between its family and its name. */
	if (count_places(f, l->real_parent, l->comm, 8, start_fits, &l->start_time) == 1) {
		l->start_time += 8;
		l->start_is_boottime = true;
	} else {
		l->start_time = NONE;
	}
	for (uint32_t a = 0; a + 16 <= f->len; a += 8) {
		if (!list_head_of_node(f, &f->task[2], a))
			continue;
		for (uint32_t b = 0; b + 8 <= f->len; b += 8)
			if (threads_fit(f, a, b)) {
				fits++;
				node = a;
				signal = b;
			}
	}
	if (fits == 1) {
		l->thread_node = node;
		l->signal = signal;
		l->thread_head = THREAD_HEAD;
	}
}

static int find_all(struct task_find_finder *f, struct err *e)
{
	const struct {
		const char *name;
		uint32_t step;
		fits_fn *fits;
		uint32_t *off;
	} member[] = {
		{ "comm", 1, comm_fits, &f->l.comm },
		{ "tasks", 8, ring_fits, &f->l.tasks },
		{ "mm", 8, mm_fits, &f->l.mm },
	};
	int ret = load_task(f, f->l.init_task, OTHER);

	if (ret)
		return err_set(e, -ret, "the first task at 0x%llx can't be read",
			       (unsigned long long)f->l.init_task);
	ret = find_family(f, e);
	if (ret)
		return ret;
	ret = load_children(f, 2, MAX_TASKS / 2, KTHREAD);
	if (!ret)
		ret = load_children(f, 1, MAX_TASKS, PROGRAM);
	if (ret)
		return err_set(e, -ret, "the families of pid 1 and 2 are not in order");
	if (f->n <= MIN_TASKS)
		return err_set(e, ENOENT, "the guest has no kernel threads yet");
	for (unsigned int i = 0; i < ARRAY_SIZE(member); i++) {
		unsigned int n =
			count_places(f, 0, f->len, member[i].step, member[i].fits, member[i].off);

		if (n != 1)
			return not_found(e, member[i].name, n);
		if (i == 0 && f->l.comm + BEHIND_COMM < f->len)
			f->len = f->l.comm + BEHIND_COMM;
	}
	find_others(f);
	return 0;
}

int linux_task_from_content(struct linux_task_layout *out, const struct memory *m, struct err *e)
{
	struct task_find_finder f = { .m = m, .l = *out, .len = SPAN };
	int ret;

	if (!out->init_task)
		return err_set(e, ENOENT,
			       "can't tell tasks apart: the kernel has neither type information "
			       "nor a symbol init_task");
	f.l.flags = f.l.stack = f.l.start_time = f.l.exec_id = NONE;
	f.l.thread_node = f.l.thread_group = f.l.signal = f.l.thread_head = NONE;
	f.l.start_is_boottime = false;
	f.l.source = LINUX_TASK_BY_CONTENT;
	ret = find_all(&f, e);
	for (unsigned int i = 0; i < f.n; i++)
		free(f.task[i].bytes);
	if (ret == 0)
		*out = f.l;
	return ret;
}
