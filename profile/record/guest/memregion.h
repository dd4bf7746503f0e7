/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memregion: what kind of memory lies at an address, by the kernel's layout.
 *
 * For Linux on x86-64 (Documentation/arch/x86/x86_64/mm.rst): the image is found by its symbols,
 * stacks by the stack pointer and the task, and the rest by the borders between direct map, vmalloc
 * and vmemmap, which KASLR moves and the kernel stores in variables. User addresses are found by
 * the process's mappings if these are known. For other kernels only the image and stacks are known.
 * All functions work on their arguments only; any thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_MEMREGION_H
#define KVMPROF_PROFILE_RECORD_GUEST_MEMREGION_H

#include "base/sample.h"
#include "profile/format/sink/memref.h"
#include "symbolizer/linux/mm.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/core/symtab.h"

/* Run-time addresses; 0 if unknown. */
struct mem_layout {
	bool is_linux;
	/* bytes of a kernel stack; 16 KiB unless the caller knows better */
	uint32_t stack_size;
	uint64_t text, etext, end;    /* the kernel's image */
	uint64_t user_text, user_end; /* a program in the kernel's own image */
	/*
	 * Per-CPU variables: [percpu, percpu_end), relative to each CPU's GS base, or absolute if
	 * percpu_fixed is set (a kernel for one CPU).
	 */
	uint64_t percpu, percpu_end;
	bool percpu_fixed;
	/* Addresses of the variables with the borders, and their values when these were read. */
	uint64_t page_offset_at, vmalloc_at, vmemmap_at;
	uint64_t page_offset, vmalloc, vmemmap;
	bool borders_known;
};

enum mem_layout_of { MEM_LAYOUT_LINUX, MEM_LAYOUT_UNKNOWN };

/*
 * Initializes *l. symbols have run-time addresses and may be NULL. text and end are as in struct
 * profile_kernel.
 */
void memregion_layout_init(struct mem_layout *l, enum mem_layout_of kernel,
			   const struct symtab *symbols, uint64_t text, uint64_t end);
/*
 * Reads the borders if they are readable now. `levels` is the number of page-table levels, for
 * kernels that cannot move.
 */
void memregion_layout_read(struct mem_layout *l, const struct memory *m, unsigned int levels);

/* The known facts about a process; NULL or 0 if unknown. */
struct mem_process {
	const struct linux_vmas *vmas;
	uint64_t brk_start, brk_end; /* 0,0: unknown */
};

/* Returns the enum mem_region of va. op is the instruction's operand, or NULL for its code. */
uint8_t memregion_of(const struct mem_layout *l, const struct sample *s,
		     const struct mem_process *p, const struct memop *op, uint64_t va);

#endif
