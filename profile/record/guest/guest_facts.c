/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_facts: what is known of the guest, for those who ask: names of addresses, figures, a view of tasks.
 */
#include "profile/record/guest/guest_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct symbol *guest_kernel_symbol(const struct guest *g, uint64_t va, uint64_t *off)
{
	const struct unwind_region *r;

	if (guest_vmm_owns(va))
		return g->vmm.symbols ? symtab_lookup(g->vmm.symbols, va, off) : NULL;
	if (guest_host_owns(va))
		return guest_host_symbol(g->host, va, off);
	if (guest_state_owns(va))
		return g->states.symbols ? symtab_lookup(g->states.symbols, va, off) : NULL;
	/* A 32-bit kernel, or one without paging, is linked low. */
	if (!(va & KERNEL_HALF) && (g->target->live || g->target->kernel.text & KERNEL_HALF))
		return g->boot_symbols ? symtab_lookup(g->boot_symbols, va, off) : NULL;
	r = unwind_region_at(g->unwinder.region, g->unwinder.nregions, va);
	if (r)
		return r->symbols ? symtab_lookup(r->symbols, va, off) : NULL;
	return g->unwinder.symbols ? symtab_lookup(g->unwinder.symbols, va, off) : NULL;
}

bool guest_kernel_is_named(struct guest *g, uint64_t va)
{
	uint64_t *slot = &g->named[va * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (NAMED_SLOTS - 1)];
	uint64_t off;

	/* The host's have names, or an address in place of one, also before the sink is told of them. */
	if ((va && *slot == va) || guest_host_owns(va))
		return true;
	if (!guest_kernel_symbol(g, va, &off))
		return false;
	*slot = va;
	return true;
}

void guest_stats(const struct guest *g, struct guest_stats *out)
{
	const struct target_linux *l = &g->target->linux_facts;

	memset(out, 0, sizeof(*out));
	if (g->tasks)
		out->tasks = *guest_tasks_stats(g->tasks);
	if (g->dsos)
		out->dsos = *guest_dsos_stats(g->dsos);
	if (g->maps)
		out->maps = *guest_maps_stats(g->maps);
	if (g->cfi)
		guest_cfi_stats(g->cfi, &out->cfi);
	if (g->jit)
		out->jit = *guest_jit_stats(g->jit);
	out->want_python = g->opt.python;
	if (g->python)
		guest_python_stats(g->python, &out->python);
	if (g->modules)
		out->modules = *guest_modules_stats(g->modules);
	if (g->dyncode)
		out->dyncode = *guest_dyncode_stats(g->dyncode);
	if (g->mem)
		out->mem = *memprobe_stats(g->mem);
	out->slide = g->slide;
	out->is_linux = g->is_linux;
	out->moves = g->opt.moves && !g->target->live;
	out->have_tasks = l->have_task && g->tasks;
	out->found_late = g->found_late;
	out->unknown_before = g->unknown_before;
	out->have_maps = g->maps != NULL;
	out->have_modules = g->modules != NULL;
	if (!out->have_tasks)
		snprintf(out->no_tasks, sizeof(out->no_tasks), "%.199s", l->task_note.text);
	if (!out->have_maps)
		snprintf(out->no_maps, sizeof(out->no_maps), "%.199s", l->mm_note.text);
	if (!out->have_modules)
		snprintf(out->no_modules, sizeof(out->no_modules), "%.199s", l->module_note.text);
}

bool guest_view(struct guest *g, struct guest_view *out, struct err *e)
{
	const struct target_linux *l = &g->target->linux_facts;

	if (!g->is_linux || !g->ready || !g->known) {
		err_set(e, EAGAIN, "%s",
			!g->is_linux ? "the guest is not Linux"
			: !g->ready  ? "where the kernel is is not known yet"
				     : "where the kernel is could not be found");
		return false;
	}
	if (!g->tasks || !l->have_task || !g->memory.root.cr3) {
		/* Without types they may be found later; without a current task they never are. */
		err_set(e, EAGAIN, "%s: %.200s",
			l->have_current ? "the guest's tasks are not found yet"
					: "the guest's tasks cannot be told apart",
			l->task_note.code ? l->task_note.text : "it has not run");
		return false;
	}
	guest_memory_renew(&g->memory);
	*out = (struct guest_view){
		.target = g->target,
		.memory = &g->reader,
		.pages = &g->memory,
		.vcpus = vm_vcpus(g->vm),
		.have_mm = l->have_mm,
	};
	return true;
}
