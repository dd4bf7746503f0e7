/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/pipeline/task_walk.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "symbolizer/linux/sched_find.h"

#include <errno.h>
#include <stdlib.h>

/*
 * How often the memory of a kernel without types is searched for members whose offsets are not
 * known yet.
 */
#define SEARCH_NS 1000000000u

struct task_walk {
	struct guest *guest;
	struct linux_sched_layout sched;
	bool have_sched;
	uint64_t searched_ns;
	struct task_walk_stats stats;
	_Alignas(8) uint8_t room[sizeof(struct sample) + LINUX_SLEEPER_ROOM];
};

int task_walk_create(struct task_walk **out, struct guest *g, struct err *e)
{
	struct task_walk *l = calloc(1, sizeof(*l));

	if (!l)
		return err_nomem(e);
	l->guest = g;
	linux_sched_none(&l->sched);
	*out = l;
	return 0;
}

void task_walk_destroy(struct task_walk *l)
{
	free(l);
}

struct task_walk_stats *task_walk_stats(struct task_walk *l)
{
	return &l->stats;
}

const struct linux_sched_layout *task_walk_layout(const struct task_walk *l)
{
	return &l->sched;
}

const char *task_walk_lacks(const struct task_walk *l)
{
	bool sp = l->sched.sp != LINUX_TASK_NONE, state = l->sched.state != LINUX_TASK_NONE;

	return sp && state ? ""
	       : sp	   ? "the states of tasks are not known (the kernel has no types)"
	       : state	   ? "the stacks of tasks are not known (the kernel has no types)"
			   : "states and stacks of tasks are not known (the kernel has no types)";
}

/*
 * Learns the offsets of the scheduler's members: from types at the first call, else by a search of
 * memory, which is repeated until all are found.
 */
static int learn(struct task_walk *l, const struct guest_view *v, struct err *e)
{
	const struct target_linux *facts = &v->target->linux_facts;
	const uint64_t text[2] = { v->target->kernel.text + v->target->slide,
				   v->target->kernel.end + v->target->slide };
	uint64_t now = clock_mono_ns();

	if (!l->have_sched) {
		l->sched = facts->sched;
		l->have_sched = true;
	}
	if (l->sched.source == LINUX_TASK_BY_TYPES ||
	    (l->sched.sp != LINUX_TASK_NONE && l->sched.state != LINUX_TASK_NONE) ||
	    !clock_is_due(now, l->searched_ns, SEARCH_NS))
		return 0;
	l->searched_ns = now;
	return linux_sched_from_content(&l->sched, &facts->task, v->memory, text, e);
}

static void forget_pages(void *ctx)
{
	guest_memory_read_anew(ctx);
}

/*
 * Returns the guest-physical address of the page table of a process, as CR3 would contain it, or 0
 * for a kernel thread or if it is unknown.
 */
static uint64_t space_of(const struct guest_view *v, const struct linux_task *t)
{
	uint32_t off = v->target->linux_facts.mm.mm_pgd;
	uint64_t pgd, gpa;

	/* UINT32_MAX (LINUX_TASK_NONE): the offset in this kernel is unknown. */
	if (!v->have_mm || off == UINT32_MAX || !t->mm ||
	    !memory_u64(v->memory, t->mm + off, &pgd) || !(pgd >> 63) || pgd % 4096 ||
	    !guest_memory_walk(v->pages, pgd, &gpa))
		return 0;
	return gpa;
}

/* The callback of a walk. */
struct listener {
	task_walk_fn each;
	void *ctx;
};

/*
 * Reads one task and reports it. `space` is the address of the page table of the task's program as
 * CR3 would contain it, or 0 if the program's frames are not wanted.
 */
static int read_task(struct task_walk *l, const struct linux_sleeper_from *from,
		     const struct linux_task *t, uint64_t space, const struct listener *to,
		     struct err *e)
{
	struct sample *s = (struct sample *)l->room;
	struct linux_sched sched;
	enum linux_sleeper what;

	what = (enum linux_sleeper)linux_sleeper_sample(from, t, space, s, &sched);
	l->stats.tasks++;
	l->stats.by[what]++;
	if (what == LINUX_SLEEPER_UNREADABLE)
		return 0;
	return to->each(to->ctx, t, &sched, what, what == LINUX_SLEEPER_GOOD ? s : NULL, e);
}

int task_walk_run(struct task_walk *l, enum task_walk_depth at, task_walk_fn each, void *ctx,
		  struct err *e)
{
	uint64_t start = clock_mono_ns();
	const struct listener to = { each, ctx };
	struct linux_task_list list = { 0 };
	struct guest_view v;
	int ret;

	if (!guest_view(l->guest, &v, e)) {
		l->stats.failed++;
		return -EAGAIN;
	}
	forget_pages(v.pages);
	ret = learn(l, &v, e);
	ret = ret ? ret : linux_task_list(&v.target->linux_facts.task, v.memory, &list, e);
	if (ret) {
		l->stats.failed++;
		return ret == -ENOENT ? -EAGAIN : ret;
	}
	l->stats.looks++;
	l->stats.skipped += list.skipped;
	l->stats.cut += list.cut;
	for (size_t i = 0; !ret && i < list.n; i++) {
		const struct linux_sleeper_from from = {
			.task = &v.target->linux_facts.task,
			.sched = &l->sched,
			.graph = v.target->linux_facts.have_graph ? &v.target->linux_facts.graph
								  : NULL,
			.rethook = &v.target->linux_facts.rethook,
			.memory = v.memory,
			.ncpus = v.vcpus,
			.forget = forget_pages,
			.forget_ctx = v.pages,
		};

		if (!list.task[i].is_idle)
			ret = read_task(l, &from, &list.task[i],
					at == TASK_WALK_PROGRAMS ? space_of(&v, &list.task[i]) : 0,
					&to, e);
	}
	linux_task_list_deinit(&list);
	hist_add(&l->stats.cost_ns, clock_mono_ns() - start);
	return ret;
}
