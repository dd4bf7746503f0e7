/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/vmas.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/idmap.h"

#include <errno.h>
#include <stdlib.h>

struct vmas_process {
	uint64_t mm, program; /* as in its task */
	struct linux_vmas vmas;
	struct mem_process shown;
	uint64_t read_ns; /* 0: never */
};

struct guest_vmas {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	const struct guest_tasks *tasks;
	struct vmas_process *process;
	size_t n, cap;
	struct idmap by_pid;
};

int guest_vmas_create(struct guest_vmas **out, const struct linux_mm_layout *layout,
		      const struct memory *memory, const struct guest_tasks *tasks, struct err *e)
{
	struct guest_vmas *g = calloc(1, sizeof(*g));

	if (!g)
		return err_nomem(e);
	g->layout = layout;
	g->memory = memory;
	g->tasks = tasks;
	*out = g;
	return 0;
}

static void forget_all(struct guest_vmas *g)
{
	for (size_t i = 0; i < g->n; i++)
		linux_vmas_deinit(&g->process[i].vmas);
	g->n = 0;
	idmap_deinit(&g->by_pid);
}

void guest_vmas_destroy(struct guest_vmas *g)
{
	if (!g)
		return;
	forget_all(g);
	free(g->process);
	free(g);
}

static struct vmas_process *vmas_find(struct guest_vmas *g, const struct guest_task *task)
{
	struct vmas_process *p;
	uint32_t i;

	if (!idmap_get(&g->by_pid, task->pid, &i)) {
		if (g->n >= GUEST_VMAS_MAX_PROCESSES)
			forget_all(g);
		if (ARRAY_ROOM(g->process, g->n, g->cap))
			return NULL;
		if (idmap_set(&g->by_pid, task->pid, (uint32_t)g->n) < 0)
			return NULL;
		i = (uint32_t)g->n++;
		g->process[i] = (struct vmas_process){ 0 };
	}
	p = &g->process[i];
	if (p->mm != task->mm || p->program != task->program) {
		p->mm = task->mm;
		p->program = task->program;
		p->vmas.n = 0;
		p->read_ns = 0;
	}
	return p;
}

static void read_brk(const struct guest_vmas *g, struct vmas_process *p)
{
	const struct linux_mm_layout *l = g->layout;
	uint64_t start, end;

	p->shown.brk_start = p->shown.brk_end = 0;
	if (l->mm_start_brk == LINUX_NO_MEMBER || l->mm_brk == LINUX_NO_MEMBER ||
	    !memory_u64(g->memory, p->mm + l->mm_start_brk, &start) ||
	    !memory_u64(g->memory, p->mm + l->mm_brk, &end) || end < start)
		return;
	p->shown.brk_start = start;
	/* The mapping has whole pages. */
	p->shown.brk_end = (end + 4095) & ~UINT64_C(4095);
}

const struct mem_process *guest_vmas_find(struct guest_vmas *g, struct guest_owner *owner,
					  uint64_t va, uint64_t time_ns)
{
	struct vmas_process *p;
	bool known;

	if (!owner->vmas && owner->task->mm)
		owner->vmas = vmas_find(g, owner->task);
	p = owner->vmas;
	if (!p)
		return NULL;
	known = linux_vmas_find(&p->vmas, va) != NULL;
	if (!p->read_ns || clock_is_due(time_ns, p->read_ns,
					known ? GUEST_VMAS_REFRESH_NS : GUEST_VMAS_RETRY_NS)) {
		p->read_ns = time_ns;
		/* A result other than LINUX_OK leaves the mappings that were found in order. */
		linux_mm_vmas(g->layout, g->memory, p->mm, 0, &p->vmas);
		/* A freed mm_struct is soon reused by another process. */
		if (!guest_tasks_has_mm(g->tasks, owner->task))
			p->vmas.n = 0;
		read_brk(g, p);
	}
	p->shown.vmas = &p->vmas;
	return &p->shown;
}
