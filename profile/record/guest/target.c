/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/target.h"

#include "base/cleanup.h"
#include "base/linux_regs.h"
#include "symbolizer/types/btf_types.h"
#include "symbolizer/kernel/kallsyms.h"
#include "symbolizer/kernel/livekernel.h"
#include "symbolizer/kernel/variables.h"
#include "symbolizer/types/dwarf.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYMFILE_MAX (2ull << 30)
/* Init text of a Linux kernel is a few hundred KiB. */
#define INIT_TEXT_MAX (16u << 20)
#define KERNEL_HALF (1ull << 63)

/*
 * An ELF32 that contains 64-bit code has no room for its addresses (Xen): the link address and the
 * code itself are in the file with its symbols, which has the same build id. A 32-bit kernel's own
 * file is an ELF32 as well.
 */
static int adopt(struct target *t, const char *path, const struct file_map *map, struct err *e)
{
	struct kimage k;
	int ret = kimage_parse(&k, path, map->data, map->len, e);

	if (ret)
		return ret;
	t->kernel = k;
	t->adopted = true;
	return 0;
}

/* map: the file's bytes, which are taken over; if empty the file is opened. */
static int load_symbols(struct target *t, const char *path, struct file_map map, struct err *e)
{
	struct symfile f = { 0 };
	int ret;

	if (path && !strcmp(path, TARGET_LIVE)) {
		if (!t->is_linux)
			return err_set(e, EINVAL,
				       "%s: --symbols " TARGET_LIVE
				       " needs a Linux kernel, which has its names in memory",
				       t->name);
		t->live = true;
		return 0;
	}
	if (!path) {
		if (!t->kernel.has_symtab) {
			/*
			 * These symbols were not requested: if they cannot be read, the summary
			 * says why.
			 */
			ret = t->is_linux ? kallsyms_from_image(&t->kernel, "the image",
								&t->symbols, NULL, &t->symbol_note)
					  : 0;
			if (t->symbols)
				t->symbol_source = "the image's own kallsyms";
			return ret == -ENOMEM ? err_set(e, ENOMEM, "%s", t->symbol_note.text) : 0;
		}
		ret = kimage_symbols(&t->kernel, &t->symbols, e);
		if (ret == 0)
			t->symbol_source = "the image's .symtab";
		return ret;
	}
	ret = map.data ? 0 : file_map_open(&map, path, SYMFILE_MAX, e);
	ret = ret ? ret : symfile_parse(&f, path, map.data, map.len, e);
	ret = ret ? ret : symfile_verify(&f, path, &t->kernel, t->name, e);
	if (ret == 0 && f.kind == SYMFILE_ELF && t->is_elf32)
		ret = adopt(t, path, &map, e);
	if (ret == 0) {
		t->symbols = f.symbols;
		f.symbols = NULL;
		t->symbol_source = path;
	}
	if (ret == 0 && f.kind == SYMFILE_ELF)
		t->symbols_file = map;
	else
		file_map_close(&map);
	symfile_deinit(&f);
	return ret;
}

/* It was not requested: if it is another kernel's, or Debian's stub, there are no symbols. */
static void take_map(struct target *t, const struct target_image *b)
{
	struct symfile f = { 0 };

	if (symfile_parse(&f, b->map_name, b->map, b->map_len, NULL) == 0 &&
	    symfile_verify(&f, b->map_name, &t->kernel, t->name, NULL) == 0) {
		t->symbols = take_ptr(f.symbols);
		t->symbol_source = b->map_name;
		err_clear(&t->symbol_note);
	}
	symfile_deinit(&f);
}

/*
 * Adds variables to the symbols of a kernel without CONFIG_KALLSYMS_ALL, which has functions only.
 */
static int name_variables(struct target *t, struct err *e)
{
	if (!t->is_linux || !t->symbols || symtab_find(t->symbols, "init_task"))
		return 0;
	return variables_add(&t->kernel, &t->symbols, e);
}

/* Finds the third word of "Linux version 6.1.0-56-cloud-amd64 (...)". */
static void find_osrelease(struct target *t)
{
	static const char prefix[] = "Linux version ";
	const char *s = t->kernel.banner;

	if (strncmp(s, prefix, sizeof(prefix) - 1))
		return;
	s += sizeof(prefix) - 1;
	snprintf(t->osrelease, sizeof(t->osrelease), "%.*s", (int)strcspn(s, " "), s);
}

static uint64_t address_of(const struct target *t, const char *name)
{
	const struct symbol *s = t->symbols ? symtab_find(t->symbols, name) : NULL;

	return s ? s->addr : 0;
}

struct capture_task_plan target_task_plan(const struct target_linux *facts)
{
	const struct linux_task_layout *l = &facts->task;
	const struct linux_graph_layout *g = &facts->graph;

	return (struct capture_task_plan){
		.known = true,
		.current = l->current,
		.percpu = l->per_cpu,
		.members = facts->have_task,
		.tid = l->pid,
		.pid = l->tgid,
		.comm = l->comm,
		.comm_size = LINUX_TASK_COMM,
		.mm = l->mm,
		.stack = l->stack == LINUX_TASK_NONE ? CAPTURE_NONE : l->stack,
		.start = l->start_time == LINUX_TASK_NONE ? CAPTURE_NONE : l->start_time,
		.exec_id = l->exec_id == LINUX_TASK_NONE ? CAPTURE_NONE : l->exec_id,
		.mm_changes = facts->have_mm && facts->mm.mm_changes != LINUX_NO_MEMBER
				      ? facts->mm.mm_changes
				      : CAPTURE_NONE,
		.returns = { .entry = facts->have_graph ? g->entry : 0,
			     .stack = g->stack,
			     .index = g->index,
			     .unit = g->unit,
			     .top = g->top,
			     .node = facts->rethook.len,
			     .list = facts->rethook.list,
			     .link = facts->rethook.link },
	};
}

uint32_t target_stack_size(const struct target *t)
{
	uint32_t size = t->linux_facts.sched.stack_size;

	return size ? size : LINUX_STACK_LEN;
}

struct capture_plan target_capture_plan(const struct target *t, uint32_t stack_max)
{
	const struct target_linux *l = &t->linux_facts;
	struct capture_plan plan = {
		.stack_max = stack_max,
		.stack_align = t->is_linux ? target_stack_size(t) : 0,
		.irq_stack_ptr = t->irq_stack_ptr,
		.irq_stack_percpu = t->irq_stack_percpu,
		.image_start = t->kernel.text,
		.image_end = t->kernel.end,
	};

	/* Symbols from memory have run-time addresses. */
	if (t->live)
		plan.image_start = plan.image_end = 0;
	if (t->is_linux)
		plan.user_stack_max = stack_max;
	if (l->have_current)
		plan.task = target_task_plan(l);
	return plan;
}

/*
 * The variable's name changed over time (hardirq_stack_ptr, then a member of pcpu_hot); if there is
 * ORC, the code that loads it shows it without symbols.
 */
static void find_irq_stack(struct target *t)
{
	uint64_t va;

	if (!t->is_linux)
		return;
	va = address_of(t, "hardirq_stack_ptr");
	t->irq_stack_ptr = va;
	/*
	 * Per-CPU variables were linked from 0 on, until "x86/percpu/64: Use relative
	 * percpu offsets" (6.15); since then in a range of the kernel's own addresses,
	 * and the GS base takes that off again. A kernel for one CPU has plain variables,
	 * and that range is empty.
	 */
	t->irq_stack_percpu = va <= UINT32_MAX || (va >= address_of(t, "__per_cpu_start") &&
						   va < address_of(t, "__per_cpu_end"));
	if (!t->irq_stack_ptr && t->linux_facts.irq_stack_ptr) {
		t->irq_stack_ptr = t->linux_facts.irq_stack_ptr;
		t->irq_stack_percpu = t->linux_facts.task.per_cpu;
	}
	if (!t->irq_stack_ptr && t->orc)
		t->irq_stack_ptr = orc_irq_stack_ptr(t->orc, &t->kernel, &t->irq_stack_percpu);
}

/* A kernel without its tables can still be profiled: the reason why they are missing is a note. */
static void load_orc(struct target *t)
{
	int ret;

	if (!t->is_linux)
		return;
	ret = orc_open(&t->orc, &t->kernel, &t->orc_note);
	if (ret == -ENOENT)
		err_clear(&t->orc_note);
	/* Without sections only the table shows code that lies among data. */
	if (t->orc && orc_last(t->orc) > t->kernel.etext)
		t->kernel.etext = orc_last(t->orc);
}

/* A table that cannot be used says nothing about frame pointers: then the code is examined. */
static void find_frame_pointers(struct target *t)
{
	struct kimage k = t->kernel;

	k.has_orc = t->orc;
	t->frame_pointers = kimage_keeps_frame_pointers(&k, t->symbols);
	t->frame_pointers32 = !t->is_linux && kimage_keeps_frame_pointers32(&k, t->symbols);
}

/*
 * Opens the debug information of the image or of the file with its symbols. Returns NULL if neither
 * has any.
 */
static struct types_dwarf *open_dwarf(const struct target *t, struct err *e)
{
	struct types_dwarf *d = NULL;

	if (types_dwarf_open(&d, t->elf, t->elf_len, t->name, e) == 0)
		return d;
	if (t->symbols_file.data && types_dwarf_open(&d, t->symbols_file.data, t->symbols_file.len,
						     t->symbol_source, e) == 0)
		return d;
	return NULL;
}

/* A module's table alone does not always show its format; it is the kernel's. */
static void set_module_orc(struct target *t)
{
	if (t->orc)
		t->linux_facts.modules.orc_format = *orc_format_of(t->orc);
}

/* Fills in t->linux_facts from the kernel's types, which may be NULL, and its symbols. */
static void set_facts(struct target *t, const struct types *types)
{
	linux_target_init(&t->linux_facts, types, t->symbols);
	if (t->explains)
		linux_target_explain(&t->linux_facts, types, t->symbols);
	set_module_orc(t);
}

/* Reads the kernel's own types first: DWARF takes seconds. */
static void load_linux(struct target *t)
{
	struct target_linux *l = &t->linux_facts;
	struct types_dwarf *dwarf = NULL;
	struct btf *btf = NULL;
	struct types types;
	struct err e = { 0 };

	if (!t->is_linux)
		return;
	if (btf_from_image(&btf, &t->kernel, t->name, &l->types_note) == 0)
		types = btf_types(btf);
	else if ((dwarf = open_dwarf(t, &e)) != NULL)
		types = types_dwarf_types(dwarf);
	set_facts(t, btf || dwarf ? &types : NULL);
	btf_destroy(btf);
	types_dwarf_destroy(dwarf);
}

void target_explain(struct target *t)
{
	if (t->explains)
		return;
	t->explains = true;
	if (t->symbols)
		load_linux(t);
}

/* A bare-metal kernel may carry its user program in the same file, linked in the lower half. */
static void find_user_text(struct target *t)
{
	if (t->is_linux || !(t->kernel.text & KERNEL_HALF))
		return;
	for (unsigned int i = 0; i < t->kernel.nseg; i++) {
		const struct kimage_segment *s = &t->kernel.seg[i];

		if ((s->flags & PF_X) && !(s->va & KERNEL_HALF)) {
			t->user_start = s->va;
			t->user_end = s->va + s->mem_len;
			return;
		}
	}
}

/* Symbols contain it, and so do sections, which a bzImage still has. */
static void find_init_text(struct target *t)
{
	uint64_t len;

	t->init_start = address_of(t, "_sinittext");
	t->init_end = address_of(t, "_einittext");
	if (t->is_linux && !t->init_end &&
	    kimage_section(&t->kernel, ".init.text", &t->init_start, &len) &&
	    len <= UINT64_MAX - t->init_start)
		t->init_end = t->init_start + len;
}

int target_open(struct target *t, const struct target_image *image, const char *symbols_path,
		struct err *e)
{
	int ret;

	*t = (struct target){
		.name = image->name,
		.is_linux = image->is_linux,
		.is_elf32 = image->is_elf32,
		.stays = image->stays,
		.elf = image->elf,
		.elf_len = image->elf_len,
		.unpacked = image->unpacked,
		.file = image->file,
	};
	ret = kimage_parse(&t->kernel, t->name, t->elf, t->elf_len, e);
	if (ret) {
		struct file_map symbols_file = image->symbols_file;

		file_map_close(&symbols_file);
	} else {
		ret = load_symbols(t, symbols_path, image->symbols_file, e);
	}
	if (!ret && !t->live && !t->symbols && !symbols_path && image->map)
		take_map(t, image);
	if (!ret && !t->live)
		ret = name_variables(t, e);
	if (ret) {
		target_close(t);
		return ret;
	}
	if (t->live)
		return 0;
	load_orc(t);
	find_frame_pointers(t);
	load_linux(t);
	find_irq_stack(t);
	find_user_text(t);
	find_osrelease(t);
	find_init_text(t);
	return 0;
}

void target_open_running(struct target *t, const char *name)
{
	memset(t, 0, sizeof(*t));
	t->name = name;
	t->live = t->is_linux = true;
}

void target_close(struct target *t)
{
	file_map_close(&t->symbols_file);
	symtab_destroy(t->symbols);
	orc_destroy(t->orc);
	free(t->init_text);
	free(t->unpacked);
	file_map_close(&t->file);
	memset(t, 0, sizeof(*t));
}

void target_settle(struct target *t)
{
	cleanup_free uint8_t *copy = NULL;
	uint64_t len = t->init_end - t->init_start;

	/* Code is read from this file; without a build id the code's bytes are its identity. */
	if (t->adopted || !t->kernel.build_id_len)
		return;
	file_map_close(&t->symbols_file);
	if (t->user_end > t->user_start || t->stays)
		return;
	if (t->init_end > t->init_start && !t->init_text) {
		/* If it cannot be copied it is read from the image, which then stays. */
		copy = len <= INIT_TEXT_MAX ? malloc(len) : NULL;
		if (!copy || kimage_read(&t->kernel, t->init_start, copy, len) < 0)
			return;
		t->init_text = take_ptr(copy);
	}
	t->kernel.elf = t->elf = NULL;
	t->kernel.elf_len = t->elf_len = 0;
	free(take_ptr(t->unpacked));
	file_map_close(&t->file);
}

int target_move(struct target *t, uint64_t slide, uint64_t pa_slide, struct err *e)
{
	struct symtab *moved = NULL;
	int ret = 0;

	if (t->symbols && slide)
		ret = symtab_slide(t->symbols, t->kernel.text, t->kernel.end, slide, &moved, e);
	if (!ret && t->orc && slide)
		ret = orc_slide(t->orc, slide, e);
	if (ret) {
		symtab_destroy(moved);
		return ret;
	}
	if (moved) {
		symtab_destroy(t->symbols);
		t->symbols = moved;
	}
	t->slide = slide;
	t->pa_slide = pa_slide;
	/* Its addresses are found by symbols, which have moved. */
	if (slide)
		load_linux(t);
	return 0;
}

void target_drop_names(struct target *t)
{
	symtab_destroy(t->symbols);
	orc_destroy(t->orc);
	t->symbols = NULL;
	t->orc = NULL;
	t->symbol_source = NULL;
	t->frame_pointers = t->frame_pointers32 = false;
}

static void take_types(struct target *t, const struct livekernel *l)
{
	struct btf *btf = NULL;
	struct types types;

	if (!l->btf)
		t->linux_facts.types_note = l->btf_note;
	else if (btf_open(&btf, l->btf, l->btf_len, "the guest's memory",
			  &t->linux_facts.types_note) == 0)
		types = btf_types(btf);
	set_facts(t, btf ? &types : NULL);
	btf_destroy(btf);
}

/*
 * Returns whether the kernel has freed its init text: system_state is 2 or more then (include/linux/kernel.h: SYSTEM_FREEING_INITMEM, or before
 * Linux 5.16 SYSTEM_RUNNING).
 */
static bool has_freed_init(const struct target *t, const struct memory *m)
{
	const uint64_t at = address_of(t, "system_state");
	uint32_t state = 0;

	return at && memory_u32(m, at, &state) && state >= 2 && state < 16;
}

static void take_init_text(struct target *t, const struct memory *m)
{
	cleanup_free uint8_t *copy = NULL;
	uint64_t len;

	if (has_freed_init(t, m))
		return;
	t->init_start = address_of(t, "_sinittext");
	t->init_end = address_of(t, "_einittext");
	len = t->init_end - t->init_start;
	if (t->init_end > t->init_start && len <= INIT_TEXT_MAX)
		copy = malloc(len);
	if (copy && memory_read(m, MEMORY_KERNEL, t->init_start, copy, len))
		t->init_text = take_ptr(copy);
	else
		t->init_start = t->init_end = 0;
}

void target_adopt_live(struct target *t, struct livekernel *l, const struct memory *m)
{
	t->symbols = take_ptr(l->symbols);
	t->symbol_source = l->stored ? "the kernel's own kallsyms, as an earlier attach read it"
				     : "the kernel's own kallsyms, in guest memory";
	t->orc = take_ptr(l->orc);
	t->orc_note = l->orc_note;
	t->frame_pointers = l->frame_pointers;
	t->irq_stack_ptr = l->irq_stack_ptr;
	t->irq_stack_percpu = l->irq_stack_percpu;
	snprintf(t->osrelease, sizeof(t->osrelease), "%s", l->osrelease);
	memcpy(t->kernel.build_id, l->build_id, sizeof(t->kernel.build_id));
	t->kernel.build_id_len = l->build_id_len;
	/* From now on the image is not used; the kernel's address is where it was found. */
	t->kernel.nseg = 0;
	t->kernel.text = l->text;
	t->kernel.etext = l->text_end;
	t->kernel.end = l->image_end;
	take_init_text(t, m);
	take_types(t, l);
}

void target_bind(struct target *t, const struct gmem *mem)
{
	t->mem = mem;
}

size_t target_read_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct target *t = ctx;

	va -= t->slide;
	/* Only such a kernel itself knows where it lies in memory: Xen moves. */
	if (t->adopted)
		return kimage_read(&t->kernel, va, dst, len) == 0 ? len : 0;
	if (va >= t->init_start && va < t->init_end) {
		if (len > t->init_end - va)
			len = (size_t)(t->init_end - va);
		if (!t->init_text)
			return kimage_read(&t->kernel, va, dst, len) == 0 ? len : 0;
		memcpy(dst, t->init_text + (va - t->init_start), len);
		return len;
	}
	for (unsigned int i = 0; t->mem && i < t->kernel.nseg; i++) {
		const struct kimage_segment *s = &t->kernel.seg[i];
		uint64_t off = va - s->va;

		/* Init code may lie in a segment of data (kimage.c). */
		if (va < s->va || off >= s->mem_len || va >= t->kernel.etext ||
		    (!(s->flags & PF_X) && va < t->kernel.text))
			continue;
		if (len > s->mem_len - off)
			len = (size_t)(s->mem_len - off);
		return gmem_read(t->mem, s->pa + t->pa_slide + off, dst, len) == 0 ? len : 0;
	}
	return 0;
}

const uint8_t *target_text(const struct target *t, uint64_t *va, uint64_t *len)
{
	for (unsigned int i = 0; t->mem && !t->adopted && i < t->kernel.nseg; i++) {
		const struct kimage_segment *s = &t->kernel.seg[i];
		uint64_t end = s->va + s->mem_len;

		if (s->va != t->kernel.text || !(s->flags & PF_X))
			continue;
		end = end < t->kernel.etext ? end : t->kernel.etext;
		/* Init text comes from elsewhere. */
		if (t->init_end > s->va && t->init_start < end)
			end = t->init_start;
		if (end <= s->va)
			return NULL;
		*va = s->va + t->slide;
		*len = end - s->va;
		return gmem_ptr(t->mem, s->pa + t->pa_slide, *len);
	}
	return NULL;
}

struct unwinder target_unwinder(const struct target *t)
{
	const struct target_linux *l = &t->linux_facts;
	const struct kimage_segment *text = NULL;

	for (unsigned int i = 0; i < t->kernel.nseg; i++)
		if ((t->kernel.seg[i].flags & PF_X) && t->kernel.seg[i].va == t->kernel.text)
			text = &t->kernel.seg[i];
	return (struct unwinder){
		.read_text = target_read_text,
		.ctx = (void *)t, /* target_read_text() does not change it */
		.symbols = t->symbols,
		.text_start = t->kernel.text + t->slide,
		.text_end = t->kernel.etext + t->slide,
		.load_start = text ? text->pa + t->pa_slide : 0,
		.load_len = text ? text->mem_len : 0,
		.user_start = t->frame_pointers ? t->user_start : 0,
		.user_end = t->frame_pointers ? t->user_end : 0,
		.frame_pointers = t->frame_pointers,
		.frame_pointers32 = t->frame_pointers32,
		.orc = t->orc,
		.graph = { l->have_graph, l->graph.ret, l->graph.retp },
		.rethook = { l->rethook.len != 0, l->rethook.ret, l->rethook.retp },
	};
}
