/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/facts.h"

#include <errno.h>
#include <string.h>

/*
 * Finds the pointer to a CPU's interrupt stack, which is next to the current task from
 * "x86/percpu: Move irq_stack variables next to current_task" (6.2) to 6.14.
 */
static void find_irq_stack(struct target_linux *l, const struct types *types,
			   const struct symtab *symbols)
{
	struct type_member current, stack;

	if (l->have_current && types && symtab_find(symbols, "pcpu_hot") &&
	    !types->member(types->ctx, "pcpu_hot", "current_task", &current) &&
	    !types->member(types->ctx, "pcpu_hot", "hardirq_stack_ptr", &stack) && stack.size == 8)
		l->irq_stack_ptr = l->task.current - current.off + stack.off;
}

/* Records why there are no types: none exist, or they cannot be read. */
static void no_types(const struct target_linux *l, struct err *note)
{
	if (l->types_note.code && l->types_note.code != ENOENT)
		*note = l->types_note;
	else
		err_set(note, ENOENT, "the kernel has no type information (BTF)");
}

static void find_tasks(struct target_linux *l, const struct types *types,
		       const struct symtab *symbols)
{
	if (linux_task_find_current(&l->task, types, symbols, &l->task_note) < 0)
		return;
	l->have_current = true;
	if (!types)
		no_types(l, &l->task_note);
	else
		l->have_task =
			linux_task_layout(&l->task, types, symbols, NULL, &l->task_note) == 0;
}

void linux_target_init(struct target_linux *l, const struct types *types,
		       const struct symtab *symbols)
{
	struct err types_note = l->types_note, *note;

	memset(l, 0, sizeof(*l));
	l->types_note = types_note;
	linux_sched_none(&l->sched);
	linux_hang_layout(&l->hang, NULL);
	if (!symbols) {
		note = &l->task_note;
		err_set(note, ENOENT, "the kernel's symbols are not known");
		l->mm_note = l->file_note = l->module_note = *note;
		return;
	}
	find_tasks(l, types, symbols);
	find_irq_stack(l, types, symbols);
	linux_sched_symbols(&l->sched, symbols);
	/* Damaged types were reported above; the result shows what is unknown. */
	if (types)
		(void)linux_sched_from_types(&l->sched, types, NULL);
	l->have_modules = linux_module_layout(&l->modules, types, symbols, &l->module_note) == 0;
	l->have_graph = linux_graph_layout(&l->graph, types);
	(void)linux_rethook_layout(&l->rethook, types);
	l->have_dyncode = linux_dyncode_layout(&l->dyncode, types, symbols, NULL) == 0;
	if (!types) {
		no_types(l, &l->mm_note);
		l->file_note = l->tree_note = l->mm_note;
		return;
	}
	l->have_mm = linux_mm_layout_init(&l->mm, types, &l->mm_note) == 0;
	l->have_file = linux_file_layout_init(&l->file, types, symbols, &l->file_note) == 0;
	l->have_tree = linux_tree_layout_init(&l->tree, types, &l->tree_note) == 0;
}

void linux_target_explain(struct target_linux *l, const struct types *types,
			  const struct symtab *symbols)
{
	linux_hang_layout(&l->hang, symbols ? types : NULL);
	l->have_printk = linux_printk_layout(&l->printk, types, symbols, &l->printk_note) == 0;
}
