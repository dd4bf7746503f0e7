/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/search.h"

#include "base/clock.h"

bool guest_search_tasks(struct guest_search *g, struct target_linux *l, const struct memory *m,
			const struct sample *s)
{
	struct linux_task_layout found = l->task;

	if (l->have_task || !l->have_current || s->task.state != SAMPLE_TASK_POINTER ||
	    !clock_is_due(s->time_ns, g->tasks_ns, GUEST_SEARCH_NS))
		return false;
	g->tasks_ns = s->time_ns;
	if (linux_task_from_content(&found, m, &l->task_note) < 0)
		return false;
	l->task = found;
	l->have_task = true;
	return true;
}

/* A process that ran: the more are known, the surer is what is found. */
static void search_remember(struct guest_search *g, const struct sample *s)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->known[i].mm == s->task.mm)
			return;
	if (g->n < LINUX_MM_MAX_KNOWN)
		g->known[g->n++] = (struct linux_mm_known){ s->task.mm, s->regs.cr3 };
}

static size_t files_of(const struct guest_search *g, const struct target_linux *l,
		       const struct memory *m, struct linux_file_known *out)
{
	struct linux_vmas vmas = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		if (linux_mm_vmas(&l->mm, m, g->known[i].mm, 0, &vmas) != LINUX_OK)
			continue;
		for (size_t k = 0; k < vmas.n && n < GUEST_SEARCH_MAX_FILES; k++)
			if (vmas.v[k].file && !vmas.v[k].file_off)
				out[n++] = (struct linux_file_known){ vmas.v[k], g->known[i].cr3 };
	}
	linux_vmas_deinit(&vmas);
	return n;
}

bool guest_search_maps(struct guest_search *g, struct target_linux *l, const struct memory *m,
		       const struct symtab *symbols, const struct sample *s)
{
	struct linux_file_known files[GUEST_SEARCH_MAX_FILES];
	size_t n;

	/* In the kernel the task's tables may be lent to another. */
	if (l->have_mm || !symbols || s->task.state != SAMPLE_TASK_FOUND || !s->task.mm ||
	    s->mode != SAMPLE_USER)
		return false;
	search_remember(g, s);
	if (!clock_is_due(s->time_ns, g->maps_ns, GUEST_SEARCH_NS))
		return false;
	g->maps_ns = s->time_ns;
	if (!g->mm_found && linux_mm_layout_find(&l->mm, m, g->known, g->n, &l->mm_note) < 0)
		return false;
	g->mm_found = true;
	n = files_of(g, l, m, files);
	if (linux_file_layout_find(&l->file, &l->mm, m, symbols,
				   (struct linux_files_known){ files, n }, &l->mm_note) < 0)
		return false;
	l->have_mm = l->have_file = true;
	return true;
}

bool guest_search_modules(struct guest_search *g, struct target_linux *l, const struct memory *m,
			  const struct sample *s)
{
	if (l->have_modules || !l->modules.modules ||
	    !clock_is_due(s->time_ns, g->modules_ns, GUEST_SEARCH_NS))
		return false;
	g->modules_ns = s->time_ns;
	l->have_modules = linux_module_find(&l->modules, m, &l->module_note) == 0;
	return l->have_modules;
}
