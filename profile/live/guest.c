/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/live/guest.h"

#include "base/clock.h"
#include "profile/live/cfi.h"
#include "profile/live/dyncode.h"
#include "profile/live/python.h"
#include "profile/live/search.h"
#include "profile/live/frame_state.h"
#include "profile/live/frame_vmm.h"
#include "symbolizer/kernel/livekernel.h"
#include "symbolizer/unwind/orc_memo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_HALF (UINT64_C(1) << 63)
/* Threads of a guest whose tasks can't be told apart: see docs/perf-data.md. */
#define GUEST_PID 1u
#define GUEST_TID(vcpu) (1u + (vcpu))
/* How often tasks that are gone are looked for. */
#define SWEEP_NS 1000000000u
/* Kernel addresses that are known to have a name. */
#define NAMED_SLOTS 8192u
/* A guest that stands while its mappings are read loses nothing by it: 12,500 instructions. */
#define EXACT_RETRY_NS 100000u

struct guest {
	struct target *target;
	struct vm *vm;
	struct sink *sink;
	struct guest_options opt;
	bool is_linux, ready, known, told_pseudo;
	const uint8_t *text; /* the kernel's, from text_va on, in this process; NULL: none */
	uint64_t text_va, text_len;
	struct guest_memory memory;
	struct memory reader;
	struct unwinder unwinder;
	uint64_t code_changes; /* of the lists for which its memo and `named` hold */
	uint64_t named[NAMED_SLOTS];
	struct kslide_ref *slide_ref; /* while the slide is looked for */
	struct kslide slide;
	struct symtab *boot_symbols; /* the decompressor's one name; NULL: none */
	struct userfile_finder finder;
	bool have_finder;
	struct guest_tasks *tasks; /* NULL: they can't be told apart */
	struct guest_dsos *dsos;
	struct guest_jit *jit;
	struct jit_source jit_source;
	struct guest_maps *maps;
	struct guest_cfi *cfi;	     /* NULL: as long as maps is */
	struct guest_python *python; /* NULL: as long as maps is, or not asked for */
	struct guest_modules *modules;
	struct guest_dyncode *dyncode;
	struct memprobe *mem;	 /* NULL: not asked for */
	struct guest_vmas *vmas; /* NULL: mappings can't be told, or nobody asks */
	struct guest_search search;
	struct guest_vmm vmm;
	struct guest_states states;
	uint64_t swept_ns;
	bool found_late;	 /* tasks were found in its memory */
	uint64_t unknown_before; /* samples of unknown tasks until then */
};

/*
 * Kernel text by the image's own mapping, all else as the kernel has it mapped. Where
 * the kernel is not known, the image's addresses are somebody else's.
 */
static size_t read_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	struct guest *g = ctx;
	uint64_t off = va - g->text_va;
	size_t n;

	if (g->text && off < g->text_len && len <= g->text_len - off) {
		/* Mostly what is before a return address: that is one instruction. */
		if (len == 8)
			memcpy(dst, g->text + off, 8);
		else
			memcpy(dst, g->text + off, len);
		return len;
	}
	n = g->known ? target_read_text(g->target, va, dst, len) : 0;

	return n ? n : g->reader.read(g->reader.ctx, MEMORY_KERNEL, va, dst, len);
}

/* -- the kernel ---------------------------------------------------------------------- */

static uint64_t kernel_address(const struct guest *g, const char *name)
{
	const struct symbol *s = g->target->symbols ? symtab_find(g->target->symbols, name) : NULL;

	return s ? s->addr : 0;
}

/* Mappings are read while the guest stands at the sample. */
static uint64_t exact_now(void *vm)
{
	return vm_now_ns(vm);
}

static int create_maps(struct guest *g, struct err *e)
{
	const struct target_linux *l = &g->target->linux_facts;
	struct userfile_finder *finder = g->have_finder ? &g->finder : NULL;
	int ret = guest_dsos_create(&g->dsos, &l->mm, l->have_file ? &l->file : NULL, &g->reader,
				    finder, e);

	ret = ret ? ret : guest_jit_create(&g->jit, finder, g->sink, e);
	if (!ret && g->tasks) {
		g->jit_source = (struct jit_source){ l, &g->reader };
		guest_jit_use_guest(g->jit, &g->jit_source);
	}
	if (!ret && g->mem)
		ret = guest_vmas_create(&g->vmas, &l->mm, &g->reader, g->tasks, e);
	ret = ret ? ret
		  : guest_maps_create(&g->maps,
				      &(struct guest_maps_parts){ &l->mm, &g->reader, g->tasks,
								  g->dsos, g->jit, g->sink },
				      e);
	if (!ret && vm_is_exact(g->vm)) {
		guest_maps_set_clock(g->maps, exact_now, g->vm);
		guest_maps_set_retry(g->maps, EXACT_RETRY_NS);
	}
	ret = ret ? ret
		  : guest_cfi_create(
			    &g->cfi,
			    &(struct guest_cfi_parts){ &l->mm, &g->reader, g->maps, g->dsos }, e);
	if (!ret)
		g->unwinder.cfi = guest_cfi_unwind(g->cfi);
	if (!ret && g->opt.python)
		ret = guest_python_create(&g->python,
					  &(struct guest_python_parts){ &g->reader, g->maps,
									g->dsos, g->vm, g->sink },
					  e);
	return ret;
}

static int create_tasks(struct guest *g, struct err *e)
{
	const struct target_linux *l = &g->target->linux_facts;
	int ret = 0;

	if (l->have_modules)
		ret = guest_modules_create(&g->modules, &l->modules, &g->reader, g->sink, e);
	if (!ret && l->have_dyncode)
		ret = guest_dyncode_create(&g->dyncode, &l->dyncode, &g->reader, g->sink, e);
	if (!ret && l->have_current)
		ret = guest_tasks_create(&g->tasks, &l->task, &g->reader, g->sink, e);
	if (g->tasks && (g->opt.runs || g->opt.placed))
		guest_tasks_joined(g->tasks);
	if (g->tasks && l->have_task)
		guest_tasks_members_known(g->tasks);
	if (ret || !l->have_task || !l->have_mm)
		return ret;
	return create_maps(g, e);
}

/* Tell the capture path where tasks are, which it could not know when the guest started. */
static void set_late_plan(struct guest *g)
{
	const struct target *t = g->target;
	struct capture_task_plan plan;

	if (!t->linux_facts.have_current)
		return;
	plan = target_task_plan(&t->linux_facts);
	plan.stack_align = target_stack_size(t);
	/* It counts from linked addresses. */
	if (plan.current >= t->kernel.text + t->slide && plan.current < t->kernel.end + t->slide)
		plan.current -= t->slide;
	vm_set_task_plan(g->vm, &plan);
}

/*
 * The decompressor runs where it was loaded, without names: one for all of it tells
 * where the time before the kernel went.
 */
static int name_decompressor(struct guest *g, struct err *e)
{
	struct profile_module m = { .name = "decompressor", .time_ns = 1 };
	uint64_t high;
	int ret;

	vm_boot_memory(g->vm, &m.addr, &high);
	m.len = high - m.addr;
	g->boot_symbols = symtab_create();
	if (!g->boot_symbols)
		return err_set(e, ENOMEM, "out of memory");
	ret = symtab_add(g->boot_symbols, m.addr, m.len, 'T', "decompressor");
	if (ret)
		return err_set(e, -ret, "the decompressor's name: %s", strerror(-ret));
	ret = symtab_freeze(g->boot_symbols, e);
	m.symbols = g->boot_symbols;
	return ret ? ret : g->sink->ops->module(g->sink, &m, e);
}

/* Where the kernel is has been settled, whatever came out. */
static int guest_begin(struct guest *g, bool known, struct err *e)
{
	struct target *t = g->target;
	struct profile_kernel k = {
		.image = &t->kernel,
		.read_text = read_text,
		.read_ctx = g,
		.osrelease = t->osrelease,
	};
	int ret;

	g->ready = true;
	g->known = known;
	if (known) {
		k.symbols = t->symbols;
		k.text = t->kernel.text + t->slide;
		k.end = t->kernel.end + t->slide;
		guest_memory_set_tables(&g->memory, kernel_address(g, "init_top_pgt"));
	}
	g->unwinder = target_unwinder(t);
	g->unwinder.read_text = read_text;
	g->unwinder.ctx = g;
	/* Without memory for it each address is looked up anew. */
	g->unwinder.memo = known && t->orc ? orc_memo_create() : NULL;
	if (g->is_linux)
		g->unwinder.programs = g->reader;
	if (!known) {
		/* Names and tables at wrong addresses are worse than none. */
		g->unwinder.symbols = NULL;
		g->unwinder.orc = NULL;
		g->unwinder.text_start = g->unwinder.text_end = 0;
		g->unwinder.frame_pointers = false;
		target_drop_names(t);
	}
	if (g->mem) {
		struct mem_layout *l = memprobe_layout(g->mem);

		mem_layout_init(l, g->is_linux ? MEM_LAYOUT_LINUX : MEM_LAYOUT_UNKNOWN, k.symbols,
				k.text, k.end);
		l->stack_size = target_stack_size(t);
		l->user_text = g->unwinder.user_start;
		l->user_end = g->unwinder.user_end;
	}
	ret = g->sink->ops->kernel(g->sink, &k, e);
	if (!ret && g->opt.moves && !g->opt.placed) {
		/* It may lie where the kernel came to lie afterwards. */
		g->unwinder.load_len = 0;
		ret = name_decompressor(g, e);
	}
	/* What is read of the image is read by now. */
	target_settle(t);
	if (known)
		g->text = target_text(t, &g->text_va, &g->text_len);
	return ret || !known ? ret : create_tasks(g, e);
}

/* The kernel without its image: when its entry points are set its tables are all there. */
static int read_live(struct guest *g, uint64_t inside, struct err *e)
{
	struct livekernel *l = NULL;
	struct err why = { 0 };
	int ret = livekernel_read(&l, &g->reader, inside, &why);

	if (ret == -ENOMEM)
		return err_set(e, ENOMEM, "out of memory");
	if (ret < 0) {
		g->target->symbol_note = why;
		return guest_begin(g, false, e);
	}
	target_take_live(g->target, l, &g->reader);
	livekernel_destroy(l);
	set_late_plan(g);
	return guest_begin(g, true, e);
}

/* A snapshot tells where the kernel was found to be. */
static int guest_place(struct guest *g, struct err *e)
{
	int ret = target_move(g->target, g->opt.slide, g->opt.pa_slide, e);

	if (ret)
		return ret;
	g->slide = (struct kslide){ .status = KSLIDE_SOLVED, .slide = g->opt.slide };
	vm_set_slide(g->vm, g->opt.slide);
	return guest_begin(g, true, e);
}

static int move(struct guest *g, struct err *e)
{
	const struct kimage *k = &g->target->kernel;
	uint64_t text_pa = 0, gpa;
	int ret;

	for (unsigned int i = 0; i < k->nseg; i++)
		if (k->seg[i].va == k->text)
			text_pa = k->seg[i].pa;
	if (!guest_memory_walk(&g->memory, k->text + g->slide.slide, &gpa))
		return guest_begin(g, false, e);
	ret = target_move(g->target, g->slide.slide, gpa - text_pa, e);
	if (ret)
		return ret;
	vm_set_slide(g->vm, g->slide.slide);
	return guest_begin(g, true, e);
}

/*
 * Where a kernel that runs handles page faults is inside of it: gate 14 of the IDT (SDM
 * vol. 3, 6.14.1). LSTAR cannot be asked of another process's vCPU.
 */
static uint64_t fault_handler(const struct guest *g, const struct sample *s)
{
	uint32_t gate[4];

	if (!memory_read(&g->reader, MEMORY_KERNEL, s->idt_base + 14 * sizeof(gate), gate,
			 sizeof(gate)))
		return 0;
	return (uint64_t)gate[2] << 32 | (gate[1] & 0xffff0000u) | (gate[0] & 0xffffu);
}

bool guest_is_ready(struct guest *g, const struct sample *s, int *ret, struct err *e)
{
	const struct kslide_cpu cpu = { .lstar = s->lstar, .idt_base = s->idt_base };

	*ret = 0;
	guest_memory_see(&g->memory, s);
	if (g->ready)
		return true;
	if (!g->memory.root.cr3 || !(s->regs.rip & KERNEL_HALF))
		return false;
	if (g->target->live) {
		uint64_t inside = g->opt.runs ? fault_handler(g, s) : s->lstar;

		if (!inside)
			return false;
		*ret = read_live(g, inside, e);
		return true;
	}
	kslide_solve(&g->slide, g->slide_ref, &g->reader, &cpu);
	if (g->slide.status == KSLIDE_NOT_YET)
		return false;
	*ret = g->slide.status == KSLIDE_SOLVED ? move(g, e) : guest_begin(g, false, e);
	return true;
}

int guest_give_up(struct guest *g, struct err *e)
{
	return g->ready ? 0 : guest_begin(g, false, e);
}

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
		set_late_plan(g);
	}
	if (guest_search_maps(&g->search, l, &g->reader, g->target->symbols, s))
		return create_maps(g, e);
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
	return ret ? ret : guest_vmm_see(&g->vmm, g->vm, g->sink, s, stack, e);
}

int guest_finish(struct guest *g, struct err *e)
{
	int ret;

	guest_memory_renew(&g->memory);
	ret = g->dsos ? guest_dsos_finish(g->dsos, g->sink, e) : 0;

	ret = ret || !g->jit ? ret : guest_jit_finish(g->jit, e);
	return ret || !g->python ? ret : guest_python_finish(g->python, e);
}

const struct symbol *guest_kernel_symbol(const struct guest *g, uint64_t va, uint64_t *off)
{
	const struct unwind_region *r;

	if (guest_vmm_owns(va))
		return g->vmm.symbols ? symtab_lookup(g->vmm.symbols, va, off) : NULL;
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

	if (va && *slot == va)
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

void guest_unwind(struct guest *g, const struct sample *s, struct stack *stack)
{
	if (g->cfi)
		guest_cfi_begin(g->cfi, NULL, s);
	unwind(&g->unwinder, s, stack);
}
