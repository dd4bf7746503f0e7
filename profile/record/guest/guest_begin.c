/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/guest_begin.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/gmem_remote.h"
#include "base/mmu.h"
#include "profile/record/guest/known.h"
#include "profile/record/guest/private.h"
#include "symbolizer/kernel/live_copy.h"
#include "symbolizer/kernel/livekernel.h"
#include "symbolizer/linux/file_find.h"
#include "symbolizer/linux/module_find.h"
#include "symbolizer/linux/task_find.h"
#include "symbolizer/unwind/orc.h"

#include <errno.h>
#include <string.h>

/* A guest that is stopped while its mappings are read loses no time by it: 12,500 instructions. */
#define EXACT_RETRY_NS 100000u
/* The process that takes the samples has carried out an order before this time has passed. */
#define PLAN_SETTLE_NS 20000000u
/*
 * A kernel that is replaced while it is read cannot be read, but the next one can. A kernel without
 * symbols never can.
 */
#define READ_TRIES 4u
#define READ_RETRY_NS 250000000u

/*
 * Reads kernel text through the image's own mapping, and all else as the kernel has it mapped. If
 * the kernel was not found, the image's addresses belong to something else.
 */
static size_t read_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	struct guest *g = ctx;
	uint64_t off = va - g->text_va;
	size_t n;

	if (g->text && off < g->text_len && len <= g->text_len - off) {
		/*
		 * The most frequent read is that before a return address; with a constant length it
		 * is one instruction.
		 */
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

int guest_create_maps(struct guest *g, struct err *e)
{
	const struct target_linux *l = &g->target->linux_facts;
	struct userfile_finder *finder = g->have_finder ? &g->finder : NULL;
	int ret = guest_dsos_create(&g->dsos, &l->mm, l->have_file ? &l->file : NULL, &g->reader,
				    finder, e);

	if (ret)
		return ret;
	ret = guest_jit_create(&g->jit, finder, g->sink, e);
	if (ret)
		return ret;
	if (g->tasks) {
		g->jit_source = (struct jit_source){ l, &g->reader };
		guest_jit_use_guest(g->jit, &g->jit_source);
	}
	if (g->mem) {
		ret = guest_vmas_create(&g->vmas, &l->mm, &g->reader, g->tasks, e);
		if (ret)
			return ret;
	}
	ret = guest_maps_create(&g->maps,
				&(struct guest_maps_parts){ &l->mm, &g->reader, g->tasks, g->dsos,
							    g->jit, g->sink },
				e);
	if (ret)
		return ret;
	if (g->host.stands) {
		/* Mappings are read while the guest is stopped at the sample. */
		guest_maps_set_clock(g->maps, g->host.now_ns, g->host.ctx);
		guest_maps_set_retry(g->maps, EXACT_RETRY_NS);
	}
	ret = guest_cfi_create(&g->cfi, &(struct guest_cfi_parts){ &l->mm, &g->reader, g->dsos },
			       e);
	if (ret)
		return ret;
	g->unwinder.cfi = guest_cfi_unwind(g->cfi);
	if (!g->opt.python || !g->host.add_python_layout || !g->host.add_python_thread)
		return 0;
	return guest_python_create(
		&g->python, &(struct guest_python_parts){ &g->reader, g->dsos, &g->host, g->sink },
		e);
}

static int create_tasks(struct guest *g, struct err *e)
{
	const struct target_linux *l = &g->target->linux_facts;
	int ret;

	ret = guest_code_create(&g->code, &g->reader, g->sink, e);
	if (ret)
		return ret;
	if (g->host.stands)
		guest_code_set_clock(g->code, g->host.now_ns, g->host.ctx);
	if (l->have_modules)
		guest_code_use_modules(g->code, &l->modules);
	if (l->have_dyncode)
		guest_code_use_dynamic(g->code, &l->dyncode);
	if (l->have_current)
		ret = guest_tasks_create(&g->tasks, &l->task, &g->reader, g->sink, e);
	if (g->tasks && (g->opt.runs || g->opt.placed))
		guest_tasks_set_running(g->tasks);
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

	if (!t->linux_facts.have_current || !g->host.set_task_plan)
		return;
	plan = target_task_plan(&t->linux_facts);
	plan.stack_align = target_stack_size(t);
	plan.other_kernel = g->later;
	/* The plan counts from linked addresses. */
	if (plan.current >= t->kernel.text + t->slide && plan.current < t->kernel.end + t->slide)
		plan.current -= t->slide;
	g->host.set_task_plan(g->host.ctx, &plan);
	if (g->later)
		g->plan_ns = g->host.stands ? g->host.now_ns(g->host.ctx)
					    : clock_mono_ns() + PLAN_SETTLE_NS;
}

/* -- what runs before the kernel ------------------------------------------------------------- */

/*
 * Addresses of a PC whose firmware is SeaBIOS, and into which QEMU loads a bzImage (QEMU
 * hw/i386/x86.c, x86_load_linux(); SeaBIOS src/malloc.c, src/post.c): option ROMs and firmware
 * below 1 MiB, the ROM below 4 GiB, and the firmware's own copy, which it makes below the area that
 * it reserves at the end of low memory: 16 MiB, or 256 KiB of a small machine.
 */
#define LOW_ROM UINT64_C(0xc0000)
#define LOW_END UINT64_C(0x100000)
#define HIGH_ROM UINT64_C(0xfff00000)
#define HIGH_END UINT64_C(0x100000000)
#define PCI_HOLE UINT64_C(0xc0000000)
#define COPY_SIZE UINT64_C(0x20000)
#define SETUP_CODE UINT64_C(0x10000)
#define SETUP_END UINT64_C(0x20000)
#define CR0_PG (UINT64_C(1) << 31)

#define FIRMWARE "firmware"
#define FIRMWARE_COPY FIRMWARE "_copy"
#define DECOMPRESSOR "decompressor"
#define DECOMPRESSOR_STEP UINT64_C(0x10000)
#define BOOT_MAX_RANGES 12u

struct guest_boot_range {
	uint64_t from, to;
	const char *name, *symbol; /* names of the module and of its only symbol */
};

struct guest_boot_ranges {
	struct guest_boot_range at[BOOT_MAX_RANGES];
	unsigned int n;
};

/* Adds [from, to) except for the parts that are in other ranges or in the kernel's own code. */
static void add_range(struct guest_boot_ranges *r, const struct guest_boot_range *kernel,
		      const struct guest_boot_range *add)
{
	uint64_t from = add->from, to = add->to, next;

	for (; from < to && r->n < BOOT_MAX_RANGES; from = next) {
		uint64_t end = to;

		next = 0;
		for (unsigned int i = 0; i <= r->n; i++) {
			const struct guest_boot_range *x = i < r->n ? &r->at[i] : kernel;

			if (x->to <= from || x->from >= end)
				continue;
			end = x->from > from ? x->from : from;
			next = x->to;
		}
		if (end > from)
			r->at[r->n++] =
				(struct guest_boot_range){ from, end, add->name, add->symbol };
		if (!next)
			return;
	}
}

/*
 * Finds the guest-physical addresses of the kernel's code: a decompressor never lies there, as it
 * would overwrite itself, but the kernel's first instructions run there before it has its own page
 * tables.
 */
static struct guest_boot_range kernel_code(const struct guest *g)
{
	const struct kimage *k = &g->target->kernel;
	struct guest_boot_range r = { 0 };

	for (unsigned int i = 0; i < k->nseg && g->known; i++)
		if (k->seg[i].va == k->text)
			r.from = k->seg[i].pa + g->target->pa_slide;
	if (r.from)
		r.to = r.from + (k->etext - k->text);
	return r;
}

/* Adds the firmware's copy of itself: where it was seen, or else where it may be. */
static void add_firmware_copy(const struct guest *g, struct guest_boot_ranges *r,
			      const struct guest_boot_range *kernel)
{
	static const uint64_t kept[] = { UINT64_C(16) << 20, UINT64_C(256) << 10 };
	const struct guest_seen_code *seen = &g->seen_code[GUEST_CODE_FIRMWARE];
	const struct gmem *m = g->host.memory;
	uint64_t top = m && m->n ? m->region[0].gpa + m->region[0].size : 0;
	struct guest_boot_range x = { .name = FIRMWARE, .symbol = FIRMWARE_COPY };

	if (top > PCI_HOLE)
		top = PCI_HOLE;
	for (size_t i = 0; !seen->high && i < ARRAY_SIZE(kept); i++) {
		/* A small machine has no such area. */
		if (top < 4 * kept[i])
			continue;
		x.to = top - kept[i];
		x.from = x.to - COPY_SIZE;
		add_range(r, kernel, &x);
	}
	if (!seen->high)
		return;
	x.from = seen->low & ~(COPY_SIZE - 1);
	x.to = (seen->high | (COPY_SIZE - 1)) + 1;
	add_range(r, kernel, &x);
}

static void find_boot_ranges(const struct guest *g, struct guest_boot_ranges *r)
{
	static const struct guest_boot_range firmware[] = {
		{ LOW_ROM, LOW_END, FIRMWARE, FIRMWARE },
		{ HIGH_ROM, HIGH_END, FIRMWARE, FIRMWARE "_rom" },
	};
	static const struct guest_boot_range setup = { SETUP_CODE, SETUP_END, DECOMPRESSOR,
						       "setup" };
	const struct guest_boot_range kernel = kernel_code(g);
	const struct guest_seen_code *seen = &g->seen_code[GUEST_CODE_DECOMPRESSOR];
	bool decompressor = g->opt.moves && !g->opt.placed;
	struct guest_boot_range all = { g->host.boot_low, g->host.boot_high, DECOMPRESSOR,
					DECOMPRESSOR };

	r->n = 0;
	if (!g->host.firmware) {
		if (decompressor)
			add_range(r, &(struct guest_boot_range){ 0 }, &all);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(firmware); i++)
		add_range(r, &kernel, &firmware[i]);
	add_firmware_copy(g, r, &kernel);
	if (!decompressor)
		return;
	add_range(r, &kernel, &setup);
	/* The image as it was loaded, with its compressed kernel. */
	all.symbol = DECOMPRESSOR "_start";
	add_range(r, &kernel, &all);
	/* Its copy of itself behind the buffer that it unpacks into. */
	all = (struct guest_boot_range){ LOW_END, PCI_HOLE, DECOMPRESSOR, DECOMPRESSOR };
	if (seen->high) {
		all.from = (seen->low & ~(DECOMPRESSOR_STEP - 1)) - DECOMPRESSOR_STEP;
		all.to = (seen->high | (DECOMPRESSOR_STEP - 1)) + 1 + DECOMPRESSOR_STEP;
	}
	add_range(r, &kernel, &all);
}

/*
 * Adds the symbols of a range. The list of symbols in a profile has no sizes: its readers, perf
 * among them, assume that a symbol reaches to the next one if that is near, and the last one to the
 * end of its page. Therefore the last byte has the name, too.
 */
static int name_range(struct symtab *t, const struct guest_boot_range *r)
{
	uint64_t last = r->to - 1, next;
	int ret = 0;

	for (uint64_t at = r->from; at < last && !ret; at = next) {
		next = last - at > SYMTAB_MAX_GAP ? at + SYMTAB_MAX_GAP : last;
		ret = symtab_add(t, at, next - at, 'T', r->symbol);
	}
	return ret ? ret : symtab_add(t, last, 1, 'T', r->symbol);
}

/*
 * Names the firmware and the decompressor, which have no symbols: one name for each shows where the
 * time before the kernel was spent. Each piece is a module, as it is not in the kernel's half.
 */
static int name_boot_code(struct guest *g, struct err *e)
{
	struct guest_boot_ranges r;
	int ret = 0;

	find_boot_ranges(g, &r);
	if (!r.n)
		return 0;
	g->boot_symbols = symtab_create();
	if (!g->boot_symbols)
		return err_nomem(e);
	for (unsigned int i = 0; i < r.n && !ret; i++)
		ret = name_range(g->boot_symbols, &r.at[i]);
	if (ret)
		return err_set(e, -ret, "the names of firmware and decompressor: %s",
			       strerror(-ret));
	ret = symtab_freeze(g->boot_symbols, e);
	for (unsigned int i = 0; i < r.n && !ret; i++) {
		const struct profile_module m = {
			.name = r.at[i].name,
			.addr = r.at[i].from,
			.len = r.at[i].to - r.at[i].from,
			.time_ns = 1,
			.symbols = g->boot_symbols,
		};

		ret = g->sink->ops->module(g->sink, &m, e);
	}
	return ret;
}

/*
 * Notes where firmware and decompressor run above 1 MiB, before the kernel does: without paging it
 * is the firmware, as a decompressor runs so only where it was loaded
 * (arch/x86/boot/compressed/head_64.S).
 */
static void see_boot_code(struct guest *g, const struct sample *s)
{
	struct guest_seen_code *seen =
		&g->seen_code[s->regs.cr0 & CR0_PG ? GUEST_CODE_DECOMPRESSOR : GUEST_CODE_FIRMWARE];
	uint64_t ip = s->regs.rip;

	if (!g->host.firmware || !g->opt.moves || ip < LOW_END || ip >= PCI_HOLE ||
	    (ip >= g->host.boot_low && ip < g->host.boot_high))
		return;
	if (!seen->low || ip < seen->low)
		seen->low = ip;
	if (ip > seen->high)
		seen->high = ip;
}

/* Called when the search for the kernel has ended, with or without success. */
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
	/* Without memory for the memo each address is looked up anew. */
	g->unwinder.memo = known && t->orc ? orc_memo_create() : NULL;
	if (g->is_linux)
		g->unwinder.programs = g->reader;
	if (!known) {
		/* Symbols and tables at wrong addresses are worse than none. */
		g->unwinder.symbols = NULL;
		g->unwinder.orc = NULL;
		g->unwinder.text_start = g->unwinder.text_end = 0;
		g->unwinder.frame_pointers = false;
		target_drop_names(t);
	}
	if (g->mem) {
		struct mem_layout *l = memprobe_layout(g->mem);

		memregion_layout_init(l, g->is_linux ? MEM_LAYOUT_LINUX : MEM_LAYOUT_UNKNOWN,
				      k.symbols, k.text, k.end);
		l->stack_size = target_stack_size(t);
		l->user_text = g->unwinder.user_start;
		l->user_end = g->unwinder.user_end;
	}
	ret = g->sink->ops->kernel(g->sink, &k, e);
	/* A decompressor may lie where the kernel is afterwards. */
	if (g->opt.moves && !g->opt.placed)
		g->unwinder.load_len = 0;
	ret = ret ? ret : name_boot_code(g, e);
	/* All that is needed of the image was read. */
	target_settle(t);
	if (known)
		g->text = target_text(t, &g->text_va, &g->text_len);
	return ret || !known ? ret : create_tasks(g, e);
}

/*
 * Returns the time at which a read that began with the sample *s has ended. Where it took long, or
 * the sample had waited for it, the samples until then may be of the kernel before.
 */
static uint64_t read_end_ns(const struct guest *g, const struct sample *s)
{
	const uint64_t now = g->host.now_ns ? g->host.now_ns(g->host.ctx) : 0;

	return now > s->time_ns ? now : s->time_ns;
}

static bool find_page(void *ctx, uint64_t va, struct live_page *out)
{
	const struct guest *g = ctx;
	struct mmu_page page;

	if (mmu_walk(g->memory.mem, &g->memory.root, va, &page) < 0)
		return false;
	*out = (struct live_page){ .end = (va | (page.size - 1)) + 1,
				   .write = page.write,
				   .exec = page.exec };
	return true;
}

static void reads_tables(void *ctx, bool tables)
{
	const struct guest *g = ctx;

	if (g->memory.mem->remote)
		g->memory.mem->remote->tables = tables;
}

static uint8_t *load_known(void *ctx, uint64_t inside, unsigned int n, size_t *len)
{
	const struct guest *g = ctx;

	return guest_known_load(g->opt.kernel_dir, inside, n, len);
}

static void store_known(void *ctx, const uint8_t *build_id, size_t id_len, const uint8_t *bytes,
			size_t len)
{
	const struct guest *g = ctx;

	guest_known_store(g->opt.kernel_dir, build_id, id_len, bytes, len);
}

/* handler: `inside` is the page-fault handler, which is at the same place in all guests of this kernel. */
static int read_kernel(struct guest *g, uint64_t inside, bool handler, struct livekernel **out,
		       struct err *e)
{
	struct live_guest from = {
		.memory = g->reader, .page = find_page, .reads_tables = reads_tables, .ctx = g
	};

	if (handler && g->opt.known_kernels) {
		from.load = load_known;
		from.store = g->opt.adds_kernels ? store_known : NULL;
	}
	return livekernel_read(out, &from, inside, e);
}

/*
 * Reads the kernel without its image: when its entry points are set its tables are all there.
 * Returns false if that failed and is to be tried again.
 */
static bool read_live(struct guest *g, const struct sample *s, uint64_t inside, int *ret,
		      struct err *e)
{
	struct livekernel *l = NULL;
	struct err why = { 0 };
	const bool handler = inside && inside == guest_fault_handler(g, s);
	int read = read_kernel(g, inside, handler, &l, &why);

	if (read == -ENOMEM) {
		*ret = err_nomem(e);
		return true;
	}
	if (read < 0) {
		g->target->symbol_note = why;
		g->read_ns = read_end_ns(g, s);
		/* A machine that this process starts has no kernel before its first one. */
		if (++g->failed_reads < READ_TRIES && g->opt.runs)
			return false;
		*ret = guest_begin(g, false, e);
		return true;
	}
	err_clear(&g->target->symbol_note);
	target_adopt_live(g->target, l, &g->reader);
	livekernel_destroy(l);
	guest_set_late_plan(g);
	*ret = guest_begin(g, true, e);
	guest_expect_kernel(g);
	return true;
}

/* Begins after the target was moved by g->slide. */
static int guest_begin_moved(struct guest *g, struct err *e)
{
	if (g->host.set_slide)
		g->host.set_slide(g->host.ctx, g->slide.slide);
	return guest_begin(g, true, e);
}

int guest_place(struct guest *g, struct err *e)
{
	int ret = target_move(g->target, g->opt.slide, g->opt.pa_slide, e);

	if (ret)
		return ret;
	g->slide = (struct kslide){ .status = KSLIDE_SOLVED, .slide = g->opt.slide };
	return guest_begin_moved(g, e);
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
	return guest_begin_moved(g, e);
}

uint64_t guest_fault_handler(const struct guest *g, const struct sample *s)
{
	uint32_t gate[4];

	if (!memory_read(&g->reader, MEMORY_KERNEL, s->idt_base + 14 * sizeof(gate), gate,
			 sizeof(gate)))
		return 0;
	return (uint64_t)gate[2] << 32 | (gate[1] & 0xffff0000u) | (gate[0] & 0xffffu);
}

/* Returns the address of code of the kernel, or 0 if unknown (yet). */
static uint64_t address_inside(const struct guest *g, const struct sample *s)
{
	/*
	 * A kernel that has just begun has no IDT of its own, and LSTAR is still that of the kernel
	 * before.
	 */
	if ((g->later || g->failed_reads) && s->regs.rip >= LIVEKERNEL_LOW &&
	    s->regs.rip < LIVEKERNEL_HIGH)
		return s->regs.rip;
	/* LSTAR of another process's vCPU cannot be read. */
	return g->opt.runs ? guest_fault_handler(g, s) : s->lstar;
}

bool guest_is_ready(struct guest *g, const struct sample *s, int *ret, struct err *e)
{
	const struct kslide_cpu cpu = { .lstar = s->lstar, .idt_base = s->idt_base };

	*ret = 0;
	guest_memory_begin_sample(&g->memory, s);
	if (g->ready)
		return true;
	see_boot_code(g, s);
	if (!g->memory.root.cr3 || !(s->regs.rip & KERNEL_HALF))
		return false;
	if (g->target->live) {
		uint64_t inside = address_inside(g, s);

		if (!inside ||
		    (g->failed_reads && !clock_is_due(s->time_ns, g->read_ns, READ_RETRY_NS)))
			return false;
		return read_live(g, s, inside, ret, e);
	}
	kslide_solve(&g->slide, g->slide_ref, &g->reader, &cpu);
	if (g->slide.status == KSLIDE_NOT_YET)
		return false;
	*ret = g->slide.status == KSLIDE_SOLVED ? move(g, e) : guest_begin(g, false, e);
	return true;
}

bool guest_was_retried(const struct guest *g)
{
	return g->known && g->failed_reads;
}

int guest_end_search(struct guest *g, struct err *e)
{
	return g->ready ? 0 : guest_begin(g, false, e);
}

/* -- kernels without type information ------------------------------------------------ */

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

/* Remembers a process that ran: the more are known, the more reliable the result is. */
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

	/* In the kernel the task's page tables may be borrowed by another task. */
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
