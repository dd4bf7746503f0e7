/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_file: reads the bytes of a file from a Linux guest's page cache.
 *
 * file->f_mapping->i_pages is an xarray, indexed by the page's number in the file:
 *
 *	entry	0: nothing; bit 0: a value (swapped out, or the trace of an evicted
 *		page); bits 1..0 = 2: internal; else a struct page or struct folio
 *	internal in xa_head, or in a node whose shift is not 0: struct xa_node + 2;
 *		below 62 in a node: the number << 2 of the slot that has this entry
 *	node	slot = index >> shift & (slots - 1); shift falls by log2(slots)
 *
 * Since 4.20. The position of a struct page among all of them determines which page it is
 * (SPARSEMEM_VMEMMAP, as in x86-64's kernels), and its bytes are in the kernel's direct map. A page
 * is accepted if it names the file and the index itself, and still does after its bytes were
 * copied; with an entry for many pages (a large folio), if the page in question names the first one
 * as its head.
 *
 * Sources: include/linux/xarray.h, lib/xarray.c, include/linux/page-flags.h,
 * Documentation/arch/x86/x86_64/mm.rst of Linux 4.20 to 6.12; 7.1 for compound_info.
 *
 * The guest does not read pages for us: a page that is not resident is missing. Files of tmpfs and
 * of an initramfs are always resident. No state beyond struct linux_file: any thread.
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

#define LINUX_FILE_MAX_NODES 11u /* between the head and a page: 64 bits, 6 for each node */
#define LINUX_FILE_MAX_PAGE 256u /* bytes of a struct page */

/* Offsets of members and addresses of variables. Computed once per kernel, then constant. */
struct linux_file_layout {
	uint32_t file_mapping, mapping_host, mapping_head, inode_size;
	uint32_t node_shift, node_slots, chunk_shift;
	uint32_t page_size, page_flags, page_mapping, page_index, page_head;
	/*
	 * Bit number of PG_uptodate in page_flags. LINUX_NO_MEMBER: unknown; then a page that is
	 * locked (bit 0), as while it is being read, is invalid.
	 */
	uint32_t uptodate;
	/*
	 * Addresses of vmemmap_base and page_offset_base. The kernel sets them early in its boot,
	 * so they are read when a file is opened. 0: the kernel does not have them, and uses the
	 * fixed addresses of four levels of page tables.
	 */
	uint64_t vmemmap_at, page_offset_at;
};

/*
 * Finds the offsets. s must have runtime addresses and data symbols: without them, a kernel that
 * randomises its memory would be taken for one that does not, and no page would be found. Returns
 * 0; -ENOENT if the kernel lacks something (the message names it); or -EINVAL for damaged types.
 */
int linux_file_layout_init(struct linux_file_layout *l, const struct types *t,
			   const struct symtab *s, struct err *e);

/* Sets only vmemmap_at and page_offset_at. Returns 0 or -ENOENT. */
int linux_file_variables(struct linux_file_layout *l, const struct symtab *s, struct err *e);

/* An open file. It owns nothing. */
struct linux_file {
	const struct linux_file_layout *l; /* borrowed, like m */
	const struct memory *m;
	uint64_t mapping; /* address of its struct address_space */
	uint64_t size;	  /* bytes, when it was opened */
	uint64_t vmemmap, page_offset;
};

/*
 * Opens the file whose struct file is at guest address `file`. Returns LINUX_OK, or a reason with
 * *f unchanged. Borrows l and m.
 */
enum linux_why linux_file_open(struct linux_file *f, const struct linux_file_layout *l,
			       const struct memory *m, uint64_t file);

/* Does the same for the struct address_space at `mapping`, which a file's inode contains. */
enum linux_why linux_file_of_mapping(struct linux_file *f, const struct linux_file_layout *l,
				     const struct memory *m, uint64_t mapping);

/* Returns the size in bytes when the file was opened. */
uint64_t linux_file_size(const struct linux_file *f);

/*
 * Stores the kernel address of the bytes of page `index` in *va. Returns LINUX_OK, LINUX_NOT_THERE
 * if the page is not resident or invalid, or another reason.
 */
enum linux_why linux_file_page(const struct linux_file *f, uint64_t index, uint64_t *va);

/*
 * Copies bytes from off on, up to the end of the file or the first page that is not resident.
 * Returns how many.
 */
size_t linux_file_read(const struct linux_file *f, uint64_t off, void *dst, size_t len);

/* Does the same as a callback; ctx is a const struct linux_file. */
size_t linux_file_read_cb(void *ctx, uint64_t off, void *dst, size_t len);

#endif
