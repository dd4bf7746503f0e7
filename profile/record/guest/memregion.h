/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memregion: what lies at an address, by the kernel's layout.
 *
 * Of Linux on x86-64 (Documentation/arch/x86/x86_64/mm.rst): the image by its symbols,
 * stacks by the stack pointer and the task, the rest by the borders between direct map,
 * vmalloc and vmemmap, which KASLR moves and the kernel keeps in variables. User addresses
 * by the process's mappings where those are known. Other kernels: the image and stacks.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_MEMREGION_H
#define KVMPROF_PROFILE_RECORD_GUEST_MEMREGION_H

#include "base/sample.h"
#include "profile/format/sink/memref.h"
#include "symbolizer/linux/mm.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/core/symtab.h"

/* Run-time addresses; 0 where not known. */
struct mem_layout {
	bool is_linux;
	uint32_t stack_size;	      /* of a kernel stack; 16 KiB unless somebody knows better */
	uint64_t text, etext, end;    /* of the kernel's image */
	uint64_t user_text, user_end; /* of a program in the kernel's own image */
	/*
	 * Per-CPU variables: [percpu, percpu_end), which is from each CPU's GS base on, or
	 * as it stands (percpu_fixed: a kernel for one CPU).
	 */
	uint64_t percpu, percpu_end;
	bool percpu_fixed;
	/* Addresses of the variables with the borders; and what they said, when read. */
	uint64_t page_offset_at, vmalloc_at, vmemmap_at;
	uint64_t page_offset, vmalloc, vmemmap;
	bool borders_known;
};

enum mem_layout_of { MEM_LAYOUT_LINUX, MEM_LAYOUT_UNKNOWN };

/* symbols: run-time addresses, may be NULL. text and end as in struct profile_kernel. */
void memregion_layout_init(struct mem_layout *l, enum mem_layout_of kernel,
			   const struct symtab *symbols, uint64_t text, uint64_t end);
/* Read the borders, once they are readable. levels: of page tables, for kernels that can't move. */
void memregion_layout_read(struct mem_layout *l, const struct memory *m, unsigned int levels);

/* What is known of a process; NULL where nothing is. */
struct mem_process {
	const struct linux_vmas *vmas;
	uint64_t brk_start, brk_end; /* 0,0: not known */
};

/* op may be NULL: of code. */
uint8_t memregion_of(const struct mem_layout *l, const struct sample *s,
		     const struct mem_process *p, const struct memop *op, uint64_t va);

#endif
