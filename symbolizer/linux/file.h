/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_file: bytes of a file out of a Linux guest's page cache.
 *
 * file->f_mapping->i_pages is an xarray, indexed by the page's number in the file:
 *
 *	entry	0: nothing; bit 0: a value (swapped out, or the trace of an evicted
 *		page); bits 1..0 = 2: internal; else a struct page or struct folio
 *	internal in xa_head, or in a node whose shift is not 0: struct xa_node + 2;
 *		below 62 in a node: the number << 2 of the slot that has this entry
 *	node	slot = index >> shift & (slots - 1); shift falls by log2(slots)
 *
 * Since 4.20. A struct page's place among all of them says which page it is
 * (SPARSEMEM_VMEMMAP, as x86-64's kernels have it), and the kernel's direct map has
 * its bytes. A page is believed when it names the file and the index itself, and
 * says so still after its bytes were copied; an entry for many pages (a large
 * folio), when the page in question names the first as its head.
 *
 * Sources: include/linux/xarray.h, lib/xarray.c, include/linux/page-flags.h,
 * Documentation/arch/x86/x86_64/mm.rst of Linux 4.20 to 6.12; 7.1 for compound_info.
 *
 * Nothing is read in for us: what is not resident isn't there. Files of tmpfs and of
 * an initramfs always are. No state beyond struct linux_file: any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_FILE_H
#define KVMPROF_SYMBOLIZER_LINUX_FILE_H

#include "base/err.h"
#include "symbolizer/linux/mm.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/types/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINUX_FILE_MAX_NODES 11u /* between the head and a page: 64 bits by 6 each */
#define LINUX_FILE_MAX_PAGE 256u /* bytes of a struct page */

/* Offsets of members and addresses of variables; made once per kernel, const afterwards. */
struct linux_file_layout {
	uint32_t file_mapping, mapping_host, mapping_head, inode_size;
	uint32_t node_shift, node_slots, chunk_shift;
	uint32_t page_size, page_flags, page_mapping, page_index, page_head;
	/*
	 * PG_uptodate: number of the bit in page_flags. LINUX_NO_MEMBER: not known;
	 * then a page that is locked (bit 0), as while it is read in, isn't valid.
	 */
	uint32_t uptodate;
	/*
	 * vmemmap_base and page_offset_base. The kernel sets them early while it
	 * boots, so they are read when a file is opened. 0: it has none, and the
	 * addresses are the fixed ones of four levels of page tables.
	 */
	uint64_t vmemmap_at, page_offset_at;
};

/*
 * s has run-time addresses, data symbols included: without them a kernel that moves
 * its memory about would be taken for one that doesn't, and no page be found.
 * -ENOENT: the kernel lacks something (the message names it), -EINVAL: damaged types.
 */
int linux_file_layout_init(struct linux_file_layout *l, const struct types *t,
			   const struct symtab *s, struct err *e);

/* Only vmemmap_at and page_offset_at. */
int linux_file_variables(struct linux_file_layout *l, const struct symtab *s, struct err *e);

struct linux_file {
	const struct linux_file_layout *l; /* borrowed, as is m */
	const struct memory *m;
	uint64_t mapping; /* struct address_space */
	uint64_t size;	  /* bytes, when it was opened */
	uint64_t vmemmap, page_offset;
};

/* file: guest address of a struct file. LINUX_OK, or *f is left alone. */
enum linux_why linux_file_open(struct linux_file *f, const struct linux_file_layout *l,
			       const struct memory *m, uint64_t file);

/* The same by its struct address_space, which is what a file's inode has. */
enum linux_why linux_file_of_mapping(struct linux_file *f, const struct linux_file_layout *l,
				     const struct memory *m, uint64_t mapping);

uint64_t linux_file_size(const struct linux_file *f);

/* Kernel address of the bytes of page `index`. LINUX_NOT_THERE: not resident or not valid. */
enum linux_why linux_file_page(const struct linux_file *f, uint64_t index, uint64_t *va);

/*
 * Copies from off on, up to the end of the file or the first page that is not there;
 * returns how many bytes.
 */
size_t linux_file_read(const struct linux_file *f, uint64_t off, void *dst, size_t len);

/* The same as a callback; ctx is a const struct linux_file. */
size_t linux_file_read_cb(void *ctx, uint64_t off, void *dst, size_t len);

#endif
