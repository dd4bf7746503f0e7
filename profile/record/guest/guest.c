/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/guest.h"

#include "base/clock.h"
#include "profile/record/guest/guest_private.h"
#include "symbolizer/unwind/orc_memo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Threads of a guest whose tasks can't be told apart: see docs/perf-data.md. */
#define GUEST_PID 1u
#define GUEST_TID(vcpu) (1u + (vcpu))
/* How often tasks that are gone are looked for. */
#define SWEEP_NS 1000000000u

/* -- life ---------------------------------------------------------------------------- */

int guest_create(struct guest **out, struct target *target, struct vm *vm, struct sink *sink,
		 const struct guest_options *opt, struct err *e)
{
	struct guest *g = calloc(1, sizeof(*g));
	int ret = 0;

	if (!g)
		return err_set(e, ENOMEM, "out of memory");
	g->target = target;
	g->vm = vm;
	g->sink = sink;
	g->opt = *opt;
	guest_memory_init(&g->memory, vm_memory(vm));
	g->memory.stands = vm_is_exact(vm);
	g->reader = guest_memory_reader(&g->memory);
	g->is_linux = target->image.is_linux;
	if (g->is_linux) {
		ret = userfile_finder_init(&g->finder, &opt->files, e);
		g->have_finder = !ret;
	}
	if (!ret && opt->host)
		ret = guest_host_create(&g->host, opt->host_names, opt->host_switches, e);
	if (!ret && opt->mem)
		ret = memprobe_create(&g->mem, vm_memory(vm), e);
	if (!ret && opt->moves && opt->placed && !target->live) {
		ret = guest_place(g, e);
	} else if (!ret && opt->moves && !target->live) {
		g->slide_ref = calloc(1, sizeof(*g->slide_ref));
		if (g->slide_ref)
			kslide_prepare(g->slide_ref, &target->kernel, target->symbols);
		else
			ret = err_set(e, ENOMEM, "out of memory");
	} else if (!ret && !target->live) {
		ret = guest_begin(g, true, e);
	}
	if (ret)
		guest_destroy(g);
	else
		*out = g;
	return ret;
}

void guest_destroy(struct guest *g)
{
	if (!g)
		return;
	memprobe_destroy(g->mem);
	guest_vmas_destroy(g->vmas);
	guest_dyncode_destroy(g->dyncode);
	guest_modules_destroy(g->modules);
	guest_cfi_destroy(g->cfi);
	guest_python_destroy(g->python);
	guest_maps_destroy(g->maps);
	guest_jit_destroy(g->jit);
	guest_dsos_destroy(g->dsos);
	guest_tasks_destroy(g->tasks);
	if (g->have_finder)
		userfile_finder_deinit(&g->finder);
	symtab_destroy(g->boot_symbols);
	orc_memo_destroy(g->unwinder.memo);
	guest_vmm_deinit(&g->vmm);
	guest_state_deinit(&g->states);
	guest_host_destroy(g->host);
	free(g->slide_ref);
	free(g);
}

/* -- samples ------------------------------------------------------------------------- */

/* A guest whose tasks can't be told apart has one thread for each vCPU. */
static int pseudo_task(struct guest *g, const struct sample *s, struct profile_sample *out,
		       struct err *e)
{
	int ret = 0;

	if (s->mode == SAMPLE_IDLE) {
		out->pid = out->tid = 0;
	} else {
		out->pid = GUEST_PID;
		out->tid = GUEST_TID(s->vcpu);
	}
	if (g->told_pseudo)
		return 0;
	g->told_pseudo = true;
	for (unsigned int i = 0; !ret && i < vm_vcpus(g->vm); i++) {
		char comm[16];

		snprintf(comm, sizeof(comm), i ? "vcpu%u" : "guest", i);
		ret = g->sink->ops->comm(g->sink,
					 &(struct profile_comm){ GUEST_PID, GUEST_TID(i), comm,
								 false, s->time_ns },
					 e);
	}
	return ret;
}

/* A kernel without type information is searched for what it looks like, once programs run. */
static int search(struct guest *g, const struct sample *s, struct err *e)
{
	struct target_linux *l = &g->target->linux_facts;

	if (guest_search_tasks(&g->search, l, &g->reader, s)) {
		g->found_late = true;
		g->unknown_before = guest_tasks_stats(g->tasks)->unreadable;
		guest_tasks_members_known(g->tasks);
		guest_set_late_plan(g);
	}
	if (guest_search_maps(&g->search, l, &g->reader, g->target->symbols, s))
		return guest_create_maps(g, e);
	return 0;
}

static int see_task(struct guest *g, const struct sample *s, struct profile_sample *out,
		    const struct guest_task **task, struct err *e)
{
	bool due;
	int ret;

	*task = NULL;
	if (!g->tasks)
		return pseudo_task(g, s, out, e);
	ret = search(g, s, e);
	if (ret)
		return ret;
	due = clock_is_due(s->time_ns, g->swept_ns, SWEEP_NS);
	if (due)
		g->swept_ns = s->time_ns;
	if (due || !guest_tasks_swept(g->tasks)) {
		ret = guest_tasks_sweep(g->tasks, s->time_ns, e);
		if (ret)
			return ret;
	}
	return guest_tasks_see(g->tasks, s, &out->pid, &out->tid, task, e);
}

/*
 * While the kernel switches tasks, stack and page tables are the next task's before the
 * current task is: the frames of one program must not be shown under another's name.
 */
static bool is_on_other_stack(const struct sample *s, uint64_t stack_size)
{
	uint64_t base = s->task.stack;

	for (unsigned int i = s->nslices; base && i-- > 0;) {
		uint64_t va = s->slice[i].va;

		if (va & KERNEL_HALF)
			return va < LINUX_ENTRY_AREA && va - base >= stack_size;
	}
	return false;
}

static bool owns_user_frames(struct guest *g, const struct sample *s, const struct guest_task *task)
{
	/* The idle task has no program; where tasks can't be told apart nobody can say. */
	if (!task)
		return s->task.state != SAMPLE_TASK_FOUND;
	return !is_on_other_stack(s, target_stack_size(g->target)) &&
	       (!g->maps || guest_maps_owns(g->maps, task, s));
}

/* Code beside the kernel's own: modules, and what the kernel has made. */
static int see_code(struct guest *g, const struct sample *s, struct err *e)
{
	uint64_t ip = s->regs.rip;
	enum guest_ip where = ip >= g->unwinder.text_start && ip < g->unwinder.text_end
				      ? GUEST_IP_IN_IMAGE
				      : GUEST_IP_ELSEWHERE;
	struct target_linux *l = &g->target->linux_facts;
	uint64_t changes;
	int ret = 0;

	if (guest_search_modules(&g->search, l, &g->reader, s))
		ret = guest_modules_create(&g->modules, &l->modules, &g->reader, g->sink, e);
	if (!ret && g->modules) {
		ret = guest_modules_see(g->modules, ip, where, s->time_ns, e);
		g->unwinder.region = guest_modules_regions(g->modules, &g->unwinder.nregions);
	}
	if (!ret && g->dyncode)
		ret = guest_dyncode_see(g->dyncode, ip, where, s->time_ns, e);
	if (g->dyncode)
		g->unwinder.region =
			guest_dyncode_join(g->dyncode, g->modules, &g->unwinder.nregions);
	changes = (g->modules ? guest_modules_changes(g->modules) : 0) +
		  (g->dyncode ? guest_dyncode_changes(g->dyncode) : 0);
	if (changes != g->code_changes) {
		orc_memo_clear(g->unwinder.memo);
		memset(g->named, 0, sizeof(g->named));
	}
	g->code_changes = changes;
	return ret;
}

/* The mappings that a sample's user frames lie in; *fresh: they were read anew for it. */
static int see_maps(struct guest *g, const struct sample *s, const struct guest_task *task,
		    const struct stack *stack, bool *fresh, struct err *e)
{
	uint64_t reads = guest_maps_stats(g->maps)->reads;
	int ret = guest_maps_see(g->maps, task, s, stack->ip + stack->n_kernel,
				 stack->n - stack->n_kernel, e);

	*fresh = guest_maps_stats(g->maps)->reads != reads;
	return ret;
}

static int guest_frames(struct guest *g, const struct sample *s, struct stack *stack,
			struct profile_sample *out, struct err *e)
{
	const struct guest_task *task;
	bool fresh;
	int ret;

	*out = (struct profile_sample){
		.cpu = s->vcpu,
		.time_ns = s->time_ns,
		.period = s->weight,
		.event = s->event,
		.mode = s->mode,
		.stack = stack,
		.exit_ns = s->reason == SAMPLE_EXIT ? s->exit_ns : 0,
	};
	ret = see_task(g, s, out, &task, e);
	if (guest_vmm_nested(s, stack))
		return ret;
	if (!ret && (s->regs.rip & KERNEL_HALF))
		ret = see_code(g, s, e);
	if (g->cfi)
		guest_cfi_begin(g->cfi, task, s);
	unwind(&g->unwinder, s, stack);
	if (!ret && g->mem)
		out->mem = memprobe_take(g->mem, s, &g->reader, g->vmas, task);
	if (ret || stack->n == stack->n_kernel)
		return ret;
	if (!owns_user_frames(g, s, task)) {
		if (stack->n_kernel) {
			stack->n = stack->n_kernel;
			stack->user_end = 0;
		}
		return 0;
	}
	if (!g->maps || !task)
		return 0;
	ret = see_maps(g, s, task, stack, &fresh, e);
	if (!ret && fresh) {
		/* What is mapped says which tables count: with what is known now it may go further. */
		guest_cfi_begin(g->cfi, task, s);
		unwind(&g->unwinder, s, stack);
		ret = see_maps(g, s, task, stack, &fresh, e);
	}
	return ret || !g->python ? ret : guest_python_see(g->python, task, s, stack, e);
}

int guest_process(struct guest *g, const struct sample *s, struct stack *stack,
		  struct profile_sample *out, struct err *e)
{
	int ret = guest_frames(g, s, stack, out, e);

	ret = ret ? ret : guest_state_see(&g->states, g->sink, s, stack, e);
	ret = ret ? ret : guest_host_where(g->host, g->sink, s, stack, e);
	ret = ret ? ret : guest_vmm_see(&g->vmm, g->vm, g->sink, s, stack, e);
	return ret ? ret : guest_host_functions(g->host, g->sink, s, stack, e);
}

int guest_process_thread(struct guest *g, const struct sample *s, struct stack *stack,
			 struct profile_sample *out, struct err *e)
{
	*out = (struct profile_sample){
		.pid = s->task.pid,
		.tid = s->task.tid,
		.cpu = SAMPLE_NO_CPU,
		.time_ns = s->time_ns,
		.period = s->weight,
		.event = s->event,
		.mode = s->mode,
		.stack = stack,
	};
	return guest_host_thread(g->host, g->sink, s, stack, e);
}

int guest_finish(struct guest *g, struct err *e)
{
	int ret;

	guest_memory_renew(&g->memory);
	ret = g->dsos ? guest_dsos_finish(g->dsos, g->sink, e) : 0;

	ret = ret ? ret : guest_host_finish(g->host, g->sink, e);
	ret = ret || !g->jit ? ret : guest_jit_finish(g->jit, e);
	return ret || !g->python ? ret : guest_python_finish(g->python, e);
}

void guest_unwind(struct guest *g, const struct sample *s, struct stack *stack)
{
	if (g->cfi)
		guest_cfi_begin(g->cfi, NULL, s);
	unwind(&g->unwinder, s, stack);
}
