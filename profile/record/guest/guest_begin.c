/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_begin: where the kernel is in the guest's memory, and what is known of it from then on.
 */
#include "profile/record/guest/guest_private.h"

#include "symbolizer/kernel/livekernel.h"
#include "symbolizer/unwind/orc_memo.h"

#include <errno.h>
#include <string.h>

/* A guest that stands while its mappings are read loses nothing by it: 12,500 instructions. */
#define EXACT_RETRY_NS 100000u

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

int guest_create_maps(struct guest *g, struct err *e)
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
	return guest_create_maps(g, e);
}

void guest_set_late_plan(struct guest *g)
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
int guest_begin(struct guest *g, bool known, struct err *e)
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
	guest_set_late_plan(g);
	return guest_begin(g, true, e);
}

int guest_place(struct guest *g, struct err *e)
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
