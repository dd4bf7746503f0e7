/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/memregion.h"

#include "base/linux_regs.h"
#include "symbolizer/linux/sched.h"

#define KERNEL_HALF (UINT64_C(1) << 63)

/* Documentation/arch/x86/x86_64/mm.rst: where the areas begin that nothing has moved. */
#define PAGE_OFFSET_L4 UINT64_C(0xffff888000000000)
#define VMALLOC_L4 UINT64_C(0xffffc90000000000)
#define VMEMMAP_L4 UINT64_C(0xffffea0000000000)
#define PAGE_OFFSET_L5 UINT64_C(0xff11000000000000)
#define VMALLOC_L5 UINT64_C(0xffa0000000000000)
#define VMEMMAP_L5 UINT64_C(0xffd4000000000000)
#define VMALLOC_SIZE_L4 (UINT64_C(32) << 40)
#define VMALLOC_SIZE_L5 (UINT64_C(12800) << 40)
#define VMEMMAP_SIZE_L4 (UINT64_C(1) << 40)
#define VMEMMAP_SIZE_L5 (UINT64_C(512) << 40)
#define ENTRY_AREA UINT64_C(0xfffffe0000000000)
#define ENTRY_AREA_LEN (UINT64_C(1) << 39)
#define IMAGE_MAP UINT64_C(0xffffffff80000000)
#define MODULES_END UINT64_C(0xffffffffff000000)

/*
 * If a process's mappings are unknown, memory near rsp counts as its stack: below, the red zone
 * that a leaf function may use (psABI); above, the callers' frames.
 */
#define USER_RED_ZONE 128u
#define USER_STACK_NEAR 65536u

static uint64_t memregion_find(const struct symtab *t, const char *name)
{
	const struct symbol *s = t ? symtab_find(t, name) : NULL;

	return s ? s->addr : 0;
}

void memregion_layout_init(struct mem_layout *l, enum mem_layout_of kernel,
			   const struct symtab *symbols, uint64_t text, uint64_t end)
{
	*l = (struct mem_layout){
		.is_linux = kernel == MEM_LAYOUT_LINUX,
		.text = text,
		.end = end,
		.stack_size = LINUX_STACK_LEN, /* the demo keeps to it */
	};
	l->etext = memregion_find(symbols, "_etext");
	if (l->etext <= text || l->etext > end)
		l->etext = 0;
	l->percpu = memregion_find(symbols, "__per_cpu_start");
	l->percpu_end = memregion_find(symbols, "__per_cpu_end");
	/* They are linked into the image without one area for each CPU: a kernel for one CPU. */
	l->percpu_fixed = l->percpu >= text && l->percpu < end && text &&
			  !memregion_find(symbols, "__per_cpu_offset");
	l->page_offset_at = memregion_find(symbols, "page_offset_base");
	l->vmalloc_at = memregion_find(symbols, "vmalloc_base");
	l->vmemmap_at = memregion_find(symbols, "vmemmap_base");
}

void memregion_layout_read(struct mem_layout *l, const struct memory *m, unsigned int levels)
{
	const bool la57 = levels == 5;
	uint64_t page_offset, vmalloc, vmemmap;

	if (!l->is_linux || l->borders_known)
		return;
	if (!l->page_offset_at || !l->vmalloc_at || !l->vmemmap_at) {
		l->page_offset = la57 ? PAGE_OFFSET_L5 : PAGE_OFFSET_L4;
		l->vmalloc = la57 ? VMALLOC_L5 : VMALLOC_L4;
		l->vmemmap = la57 ? VMEMMAP_L5 : VMEMMAP_L4;
	} else {
		if (!memory_u64(m, l->page_offset_at, &page_offset) ||
		    !memory_u64(m, l->vmalloc_at, &vmalloc) ||
		    !memory_u64(m, l->vmemmap_at, &vmemmap))
			return;
		/*
		 * They are always in this order (kernel_randomize_memory()); otherwise they are not
		 * set yet.
		 */
		if (!(page_offset & KERNEL_HALF) || page_offset >= vmalloc || vmalloc >= vmemmap)
			return;
		l->page_offset = page_offset;
		l->vmalloc = vmalloc;
		l->vmemmap = vmemmap;
	}
	l->borders_known = true;
}

/* -- the kernel's half --------------------------------------------------------------------- */

static bool is_percpu(const struct mem_layout *l, const struct sample *s, const struct memop *op,
		      uint64_t va)
{
	uint64_t gs = s->regs.gs_base;

	if (l->percpu_fixed)
		return va - l->percpu < l->percpu_end - l->percpu;
	/* At the kernel's entry GS is still the program's. */
	if (!l->is_linux || !(gs & KERNEL_HALF))
		return false;
	return (op && op->segment == MEMOP_GS) || va - (gs + l->percpu) < l->percpu_end - l->percpu;
}

static bool is_kernel_stack(const struct mem_layout *l, const struct sample *s, uint64_t va)
{
	uint64_t mask = l->stack_size - 1;
	uint64_t rsp = s->regs.gpr[GPR_RSP], task = s->task.stack;

	if (s->task.state == SAMPLE_TASK_FOUND && task && va - task < l->stack_size)
		return true;
	return (rsp & KERNEL_HALF) && (va | mask) == (rsp | mask);
}

static uint8_t linux_kernel_region(const struct mem_layout *l, const struct sample *s, uint64_t va)
{
	bool la57 = s->regs.cr4 & UINT64_C(1) << 12;

	if (va - ENTRY_AREA < ENTRY_AREA_LEN)
		return MEM_ENTRY_AREA;
	if (va >= MODULES_END)
		return MEM_FIXMAP;
	if (va >= IMAGE_MAP && va >= l->end)
		return MEM_MODULE;
	if (!l->borders_known || va >= IMAGE_MAP)
		return MEM_KERNEL_OTHER;
	if (va - l->vmemmap < (la57 ? VMEMMAP_SIZE_L5 : VMEMMAP_SIZE_L4))
		return MEM_VMEMMAP;
	if (va - l->vmalloc < (la57 ? VMALLOC_SIZE_L5 : VMALLOC_SIZE_L4))
		return MEM_VMALLOC;
	if (va >= l->page_offset && va < l->vmalloc)
		return MEM_DIRECT_MAP;
	return MEM_KERNEL_OTHER;
}

static uint8_t kernel_region(const struct mem_layout *l, const struct sample *s,
			     const struct memop *op, uint64_t va)
{
	bool in_image = va >= l->text && va < l->end;

	if (l->etext && in_image && va < l->etext)
		return MEM_KERNEL_TEXT;
	/* Exception stacks are in the entry area and are reported as that. */
	if (l->is_linux && va - ENTRY_AREA < ENTRY_AREA_LEN)
		return MEM_ENTRY_AREA;
	if (is_kernel_stack(l, s, va))
		return MEM_KERNEL_STACK;
	if (is_percpu(l, s, op, va))
		return MEM_PERCPU;
	if (in_image)
		return l->etext ? MEM_KERNEL_DATA : MEM_KERNEL_OTHER;
	return l->is_linux ? linux_kernel_region(l, s, va) : MEM_KERNEL_OTHER;
}

/* -- programs ------------------------------------------------------------------------------ */

static uint8_t vma_region(const struct linux_vmas *vmas, const struct mem_process *p,
			  const struct linux_vma *v, uint64_t rsp, uint64_t va)
{
	if (v->file)
		return v->flags & LINUX_VM_EXEC ? MEM_USER_TEXT : MEM_USER_FILE;
	if (linux_vmas_find(vmas, rsp) == v)
		return MEM_USER_STACK;
	if (va >= p->brk_start && va < p->brk_end)
		return MEM_USER_HEAP;
	return MEM_USER_ANON;
}

static uint8_t user_region(const struct mem_layout *l, const struct sample *s,
			   const struct mem_process *p, uint64_t va)
{
	uint64_t rsp = s->regs.gpr[GPR_RSP];
	const struct linux_vma *v = p ? linux_vmas_find(p->vmas, va) : NULL;

	/* In the kernel rsp is not the program's: its stack is then one of its mappings. */
	if (v)
		return vma_region(p->vmas, p, v, rsp, va);
	if (!(rsp & KERNEL_HALF) && va - (rsp - USER_RED_ZONE) < USER_RED_ZONE + USER_STACK_NEAR)
		return MEM_USER_STACK;
	if (l->user_text && va >= l->user_text && va < l->user_end)
		return MEM_USER_TEXT;
	return MEM_USER_OTHER;
}

uint8_t memregion_of(const struct mem_layout *l, const struct sample *s,
		     const struct mem_process *p, const struct memop *op, uint64_t va)
{
	return va & KERNEL_HALF ? kernel_region(l, s, op, va) : user_region(l, s, p, va);
}
