/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/guest.h"

#include "base/clock.h"
#include "profile/record/guest/private.h"
#include "symbolizer/unwind/orc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tid of a vCPU's samples in such a guest. */
#define GUEST_TID(vcpu) (GUEST_PID + (vcpu))
/* Samples wait so long for the tasks of a kernel without types. */
#define AWAIT_NS UINT64_C(3000000000)
/* How often exited tasks are searched for. */
#define SWEEP_NS 1000000000u

/* -- creation ------------------------------------------------------------------------- */

/*
 * Creates the parts that need memory or files. Unless the kernel has to be found first,
 * guest_begin() follows here.
 */
static int create_parts(struct guest *g, struct err *e)
{
	const struct guest_options *opt = &g->opt;
	struct target *t = g->target;
	int ret;

	if (g->is_linux) {
		ret = userfile_finder_init(&g->finder, &opt->files, e);
		if (ret)
			return ret;
		g->have_finder = true;
	}
	if (opt->host_frames) {
		ret = frame_host_create(&g->host_frames, opt->host_names, opt->host_switches,
					g->host.exit_name, e);
		if (ret)
			return ret;
	}
	if (opt->mem) {
		ret = memprobe_create(&g->mem, g->host.memory, e);
		if (ret)
			return ret;
	}
	if (t->live)
		return 0;
	if (!opt->moves)
		return guest_begin(g, true, e);
	if (opt->placed)
		return guest_place(g, e);
	g->slide_ref = calloc(1, sizeof(*g->slide_ref));
	if (!g->slide_ref)
		return err_nomem(e);
	kslide_prepare(g->slide_ref, &t->kernel, t->symbols);
	return 0;
}

int guest_create(struct guest **out, struct target *target, const struct guest_host *host,
		 struct sink *sink, const struct guest_options *opt, struct err *e)
{
	struct guest *g = calloc(1, sizeof(*g));
	int ret;

	if (!g)
		return err_nomem(e);
	g->target = target;
	if (opt->explains)
		target_explain(target);
	g->host = *host;
	g->sink = sink;
	g->opt = *opt;
	guest_memory_init(&g->memory, host->memory);
	g->memory.stands = host->stands;
	g->frames.devices = (struct frame_devices){ host->device_name, host->ctx };
	g->reader = guest_memory_reader(&g->memory);
	g->is_linux = target->is_linux;
	ret = create_parts(g, e);
	if (ret) {
		guest_destroy(g);
		return ret;
	}
	*out = g;
	return 0;
}

int guest_create_later(struct guest **out, const struct guest *before, struct target *target,
		       struct err *e)
{
	struct guest_options opt = before->opt;
	int ret;

	target_open_running(target, before->target->name);
	target_bind(target, before->target->mem);
	opt.runs = true;
	opt.moves = opt.placed = false;
	ret = guest_create(out, target, &before->host, before->sink, &opt, e);
	if (!ret)
		(*out)->later = true;
	return ret;
}

void guest_destroy(struct guest *g)
{
	if (!g)
		return;
	memprobe_destroy(g->mem);
	guest_vmas_destroy(g->vmas);
	guest_code_destroy(g->code);
	guest_cfi_destroy(g->cfi);
	guest_python_destroy(g->python);
	guest_maps_destroy(g->maps);
	guest_jit_destroy(g->jit);
	guest_dsos_destroy(g->dsos);
	guest_tasks_destroy(g->tasks);
	guest_task_index_destroy(g->index);
	free(g->named_sample);
	if (g->have_finder)
		userfile_finder_deinit(&g->finder);
	symtab_destroy(g->boot_symbols);
	orc_memo_destroy(g->unwinder.memo);
	frame_names_deinit(&g->frames);
	frame_host_destroy(g->host_frames);
	free(g->slide_ref);
	free(g);
}

/* -- samples ------------------------------------------------------------------------- */

/* Reports one thread for each vCPU, for a guest whose tasks cannot be told apart. */
static int pseudo_task(struct guest *g, const struct sample *s, struct profile_sample *out,
		       struct err *e)
{
	/* More may be added to a machine of another process. */
	const unsigned int n = s->vcpu < g->host.vcpus ? g->host.vcpus : s->vcpu + 1u;
	int ret = 0;

	if (s->mode == SAMPLE_IDLE) {
		out->pid = out->tid = 0;
	} else {
		out->pid = GUEST_PID;
		out->tid = GUEST_TID(s->vcpu);
	}
	for (; !ret && g->told_pseudo < n; g->told_pseudo++) {
		const unsigned int i = g->told_pseudo;
		char comm[16];

		snprintf(comm, sizeof(comm), i ? "vcpu%u" : "guest", i);
		ret = g->sink->ops->comm(g->sink,
					 &(struct profile_comm){ GUEST_PID, GUEST_TID(i), comm,
								 false, s->time_ns },
					 e);
	}
	return ret;
}

/* Searches the memory of a kernel without types for its structures, once programs run. */
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

bool guest_awaits_tasks(struct guest *g, const struct sample *s, int *ret, struct err *e)
{
	const struct target_linux *l = &g->target->linux_facts;

	*ret = 0;
	if (!g->tasks || !g->opt.runs || g->later || (l->have_task && l->have_mm) ||
	    !l->have_current)
		return false;
	if (!g->awaited_ns)
		g->awaited_ns = s->time_ns;
	if (s->time_ns > g->awaited_ns + AWAIT_NS)
		return false;
	*ret = search(g, s, e);
	return !*ret && !(l->have_task && l->have_mm);
}

/* Sees the sample without a task: the capture read its task by the layout of the kernel before. */
static int see_no_task(struct guest *g, const struct sample *s, struct profile_sample *out,
		       struct err *e)
{
	const struct guest_task *none;
	struct sample bare = *s;

	memset(&bare.task, 0, sizeof(bare.task));
	bare.task.state = SAMPLE_TASK_NOT_YET;
	return guest_tasks_identify(g->tasks, &bare, &out->pid, &out->tid, &none, e);
}

static int see_task(struct guest *g, const struct sample *s, struct profile_sample *out,
		    const struct guest_task **task, struct err *e)
{
	bool due;
	int ret;

	*task = NULL;
	if (!g->tasks)
		return pseudo_task(g, s, out, e);
	if (g->later && s->time_ns <= g->plan_ns)
		return see_no_task(g, s, out, e);
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
	return guest_tasks_identify(g->tasks, s, &out->pid, &out->tid, task, e);
}

/*
 * While the kernel switches tasks, stack and page tables are the next task's before `current` is.
 * The frames of one program must not be shown under the name of another one.
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

static bool owns_user_frames(struct guest *g, const struct sample *s, struct guest_owner *owner)
{
	/* The idle task has no program; if tasks cannot be told apart the owner is unknown. */
	if (!owner->task)
		return s->task.state != SAMPLE_TASK_FOUND;
	return !is_on_other_stack(s, target_stack_size(g->target)) &&
	       (!g->maps || guest_maps_owns(g->maps, owner, s));
}

/* Passes the known code to the unwinder. Returns whether it has changed. */
static bool take_regions(struct guest *g)
{
	const uint64_t changes = guest_code_changes(g->code);

	g->unwinder.region = guest_code_regions(g->code, &g->unwinder.nregions);
	if (changes == g->code_changes)
		return false;
	orc_memo_clear(g->unwinder.memo);
	memset(g->named, 0, sizeof(g->named));
	g->code_changes = changes;
	return true;
}

/* Learns about kernel code that is not in the image: modules and generated code. */
static int see_code(struct guest *g, const struct sample *s, struct err *e)
{
	uint64_t ip = s->regs.rip;
	enum guest_ip where = ip >= g->unwinder.text_start && ip < g->unwinder.text_end
				      ? GUEST_IP_IN_IMAGE
				      : GUEST_IP_ELSEWHERE;
	struct target_linux *l = &g->target->linux_facts;
	int ret;

	if (!g->code)
		return 0;
	if (guest_search_modules(&g->search, l, &g->reader, s))
		guest_code_use_modules(g->code, &l->modules);
	ret = guest_code_update(g->code, ip, where, s->time_ns, e);
	(void)take_regions(g);
	return ret;
}

/*
 * Proves the code outside of the image in which a sample's frames lie. If it may have been other
 * code, the frame is replaced by one that says so, and the outer frames are dropped.
 */
static int prove_code(struct guest *g, const struct sample *s, struct stack *stack, struct err *e)
{
	int ret;

	if (!g->code || !g->unwinder.nregions)
		return 0;
	ret = guest_code_prove(g->code, stack->ip, stack->n_kernel, s->time_ns, e);
	if (take_regions(g))
		unwind(&g->unwinder, s, stack);
	for (unsigned int i = 0; !ret && i < stack->n_kernel; i++)
		if (guest_code_is_uncertain(g->code, stack->ip[i], s->time_ns))
			return frame_replace_changed(&g->frames, g->sink, stack, i, e);
	return ret;
}

/* Reports the mappings in which a sample's user frames lie; *fresh: they were read again for it. */
static int see_maps(struct guest *g, const struct sample *s, struct guest_owner *owner,
		    const struct stack *stack, bool *fresh, struct err *e)
{
	uint64_t reads = guest_maps_stats(g->maps)->reads;
	int ret = guest_maps_update(g->maps, owner, s, stack->ip + stack->n_kernel,
				    stack->n - stack->n_kernel, e);

	*fresh = guest_maps_stats(g->maps)->reads != reads;
	return ret;
}

static bool index_walk(void *ctx, uint64_t va, uint64_t *gpa)
{
	const struct guest *g = ctx;

	return guest_memory_walk(&g->memory, va, gpa);
}

static void index_forget(void *ctx)
{
	struct guest *g = ctx;

	guest_memory_read_anew(&g->memory);
}

static bool have_index(struct guest *g)
{
	const struct target_linux *l = &g->target->linux_facts;

	if (!g->index)
		g->index = guest_task_index_create(&(struct guest_task_index_parts){
			.layout = &l->task,
			.mm = &l->mm,
			.have_mm = &l->have_mm,
			.memory = &g->reader,
			.stack_size = target_stack_size(g->target),
			.walk = index_walk,
			.forget = index_forget,
			.ctx = g,
		});
	if (!g->named_sample)
		g->named_sample = malloc(sizeof(*g->named_sample) + SAMPLE_MAX_STACK);
	return g->index && g->named_sample;
}

/*
 * Returns the sample, or a copy of it with its task, if the guest ran before it was known where its tasks
 * are. The copy is valid until the next call.
 */
static const struct sample *with_task(struct guest *g, const struct sample *s)
{
	struct sample_task task;

	if (s->task.state == SAMPLE_TASK_FOUND || !g->opt.runs || g->later || !g->tasks ||
	    !g->target->linux_facts.have_task || s->mode == SAMPLE_IDLE ||
	    s->stack_len > SAMPLE_MAX_STACK || !have_index(g))
		return s;
	if (!guest_task_index_find(g->index, s, g->host.now_ns(g->host.ctx), &task))
		return s;
	memcpy(g->named_sample, s, sample_size(s));
	g->named_sample->task = task;
	g->named_late++;
	return g->named_sample;
}

static int guest_frames(struct guest *g, const struct sample *s, struct stack *stack,
			struct profile_sample *out, struct err *e)
{
	const struct guest_task *task;
	struct guest_owner owner;
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
	s = with_task(g, s);
	ret = see_task(g, s, out, &task, e);
	if (frame_nested(s, stack))
		return ret;
	if (!ret && (s->regs.rip & KERNEL_HALF))
		ret = see_code(g, s, e);
	owner = guest_maps_owner(g->maps, task);
	if (g->cfi)
		guest_cfi_begin(g->cfi, &owner, s);
	unwind(&g->unwinder, s, stack);
	ret = ret ? ret : prove_code(g, s, stack, e);
	if (!ret && g->mem)
		out->mem = memprobe_sample(g->mem, s, &g->reader, g->vmas, &owner);
	if (ret || stack->n == stack->n_kernel)
		return ret;
	if (!owns_user_frames(g, s, &owner)) {
		if (stack->n_kernel) {
			stack->n = stack->n_kernel;
			stack->user_end = 0;
		}
		return 0;
	}
	if (!g->maps || !task)
		return 0;
	ret = see_maps(g, s, &owner, stack, &fresh, e);
	if (!ret && fresh) {
		/*
		 * The mappings determine which tables apply: with the new ones the stack may be
		 * unwound further.
		 */
		guest_cfi_begin(g->cfi, &owner, s);
		unwind(&g->unwinder, s, stack);
		ret = see_maps(g, s, &owner, stack, &fresh, e);
	}
	return ret || !g->python ? ret : guest_python_add_frames(g->python, &owner, s, stack, e);
}

int guest_process(struct guest *g, const struct sample *s, struct stack *stack,
		  struct profile_sample *out, struct err *e)
{
	int ret = guest_frames(g, s, stack, out, e);

	if (ret)
		return ret;
	ret = frame_add_state(&g->frames, g->sink, s, stack, e);
	if (ret)
		return ret;
	ret = frame_host_where(g->host_frames, g->sink, s, stack, e);
	if (ret)
		return ret;
	ret = frame_add_device(&g->frames, g->sink, s, stack, e);
	return ret ? ret : frame_host_functions(g->host_frames, g->sink, s, stack, e);
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
	return frame_host_thread(g->host_frames, g->sink, s, stack, e);
}

int guest_finish(struct guest *g, struct err *e)
{
	int ret;

	guest_memory_renew(&g->memory);
	if (g->dsos) {
		ret = guest_dsos_finish(g->dsos, g->sink, e);
		if (ret)
			return ret;
	}
	ret = frame_host_finish(g->host_frames, g->sink, e);
	if (ret)
		return ret;
	if (g->jit) {
		ret = guest_jit_finish(g->jit, e);
		if (ret)
			return ret;
	}
	return g->python ? guest_python_finish(g->python, e) : 0;
}

void guest_unwind(struct guest *g, const struct sample *s, struct stack *stack)
{
	if (g->cfi)
		guest_cfi_begin(g->cfi, NULL, s);
	unwind(&g->unwinder, s, stack);
}

/* -- facts for other files ------------------------------------------------------------- */

const struct target *guest_target(const struct guest *g)
{
	return g->target;
}

const char *guest_release(const struct guest *g)
{
	return g->target->osrelease;
}

bool guest_is_known_linux(const struct guest *g)
{
	return g->is_linux && g->ready && g->known;
}

const struct symbol *guest_function(const struct guest *g, const char *name)
{
	return g->target->symbols ? symtab_find(g->target->symbols, name) : NULL;
}

bool guest_variable(const struct guest *g, const char *name, uint64_t *gpa)
{
	const struct symbol *s = guest_is_known_linux(g) ? guest_function(g, name) : NULL;

	return s && guest_memory_walk(&g->memory, s->addr, gpa);
}

bool guest_address(const struct guest *g, uint64_t va, uint64_t *gpa)
{
	return guest_memory_walk(&g->memory, va, gpa);
}

const struct symbol *guest_kernel_symbol(const struct guest *g, uint64_t va, uint64_t *off)
{
	const struct unwind_region *r;

	if (frame_vmm_owns(va) || frame_state_owns(va) || frame_changed_owns(va))
		return frame_names_at(&g->frames, va, off);
	if (frame_host_owns(va))
		return frame_host_symbol(g->host_frames, va, off);
	if (!(va & KERNEL_HALF)) {
		const struct symbol *s =
			g->boot_symbols ? symtab_lookup(g->boot_symbols, va, off) : NULL;

		/* A 32-bit kernel, or one without paging, is linked at low addresses. */
		if (s || g->target->live || g->target->kernel.text & KERNEL_HALF)
			return s;
	}
	r = unwind_region_at(g->unwinder.region, g->unwinder.nregions, va);
	if (r)
		return r->symbols ? symtab_lookup(r->symbols, va, off) : NULL;
	return g->unwinder.symbols ? symtab_lookup(g->unwinder.symbols, va, off) : NULL;
}

bool guest_kernel_is_named(struct guest *g, uint64_t va)
{
	uint64_t *slot = &g->named[va * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (NAMED_SLOTS - 1)];
	uint64_t off;

	/*
	 * A function of the host always has a name, or an address in place of one, even before the
	 * sink has it.
	 */
	if ((va && *slot == va) || frame_host_owns(va))
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
	if (g->code) {
		out->modules = *guest_code_module_stats(g->code);
		out->dyncode = *guest_code_dynamic_stats(g->code);
	}
	if (g->mem)
		out->mem = *memprobe_stats(g->mem);
	out->slide = g->slide;
	out->is_linux = g->is_linux;
	out->moves = g->opt.moves && !g->target->live;
	out->have_tasks = l->have_task && g->tasks;
	out->found_late = g->found_late;
	out->named_late = g->named_late;
	out->unknown_before = g->unknown_before;
	out->have_maps = g->maps != NULL;
	out->have_modules = g->code && l->have_modules;
	if (!out->have_tasks)
		snprintf(out->no_tasks, sizeof(out->no_tasks), "%.199s", l->task_note.text);
	if (!out->have_maps)
		snprintf(out->no_maps, sizeof(out->no_maps), "%.199s", l->mm_note.text);
	if (!out->have_modules)
		snprintf(out->no_modules, sizeof(out->no_modules), "%.199s", l->module_note.text);
}

/* Returns whether the kernel is known; otherwise *e has the reason. */
static bool is_found(const struct guest *g, struct err *e)
{
	if (g->is_linux && g->ready && g->known)
		return true;
	err_set(e, EAGAIN, "%s",
		!g->is_linux ? "the guest is not Linux"
		: !g->ready  ? "the address of the kernel is not known yet"
			     : "the address of the kernel could not be found");
	return false;
}

const struct memory *guest_reader(struct guest *g, struct err *e)
{
	if (!is_found(g, e))
		return NULL;
	if (!g->memory.root.cr3) {
		err_set(e, EAGAIN, "the guest has not run");
		return NULL;
	}
	guest_memory_read_anew(&g->memory);
	return &g->reader;
}

bool guest_view(struct guest *g, struct guest_view *out, struct err *e)
{
	const struct target_linux *l = &g->target->linux_facts;

	if (!is_found(g, e))
		return false;
	if (!g->tasks || !l->have_task || !g->memory.root.cr3) {
		/* Without types they may be found later; without `current` they never are. */
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
		.vcpus = g->host.vcpus,
		.have_mm = l->have_mm,
	};
	return true;
}
