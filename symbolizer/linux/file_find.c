/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the page cache of a kernel without types. Nodes and struct page have the layout in use
 * since 4.20; xa_head, the nodes' size and i_size are searched for. The final criteria are that
 * the pages found equal those that the process itself has mapped, and that ELF files end where
 * their section tables do.
 */
#include "symbolizer/linux/file_find.h"

#include <elf.h>
#include <errno.h>

#define PAGE_BYTES 4096u
#define MAX_FILES 16u
#define MIN_FILES 2u /* files that must agree */
#define MIN_PAGES 4u
#define MAX_PAGES 64u /* pages of one mapping that are compared */
#define MAPPING_SPAN 128u
#define INODE_SPAN 512u

struct file_find_finder {
	struct linux_file_layout *l;
	const struct linux_mm_layout *mm;
	const struct memory *m;
	struct linux_file_known file[MAX_FILES];
	uint64_t end[MAX_FILES]; /* end of the section table */
	size_t n;
};

/*
 * Determines the expected end of a file. Only the first mapping of a file is used, if its start is
 * mapped and an ELF image.
 */
static bool elf_end(const struct memory *m, const struct linux_file_known *k, uint64_t *end)
{
	Elf64_Ehdr h;

	if (k->vma.file_off || !memory_read(m, k->space, k->vma.start, &h, sizeof(h)) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    !h.e_shoff || !h.e_shnum || h.e_shentsize != sizeof(Elf64_Shdr))
		return false;
	return !__builtin_add_overflow(h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize, end);
}

static void gather(struct file_find_finder *f, struct linux_files_known known)
{
	for (size_t i = 0; i < known.n && f->n < MAX_FILES; i++) {
		bool twice = false;

		for (size_t k = 0; k < f->n; k++)
			twice = twice || f->file[k].vma.file == known.v[i].vma.file;
		if (twice || !elf_end(f->m, &known.v[i], &f->end[f->n]))
			continue;
		f->file[f->n++] = known.v[i];
	}
}

/*
 * Compares the pages that both have. Returns how many are equal, or -1 if one differs, or if the
 * process has a page that the cache does not lead to.
 */
static int compare_pages(const struct file_find_finder *f, const struct linux_file_known *k)
{
	uint8_t theirs[PAGE_BYTES], cached[PAGE_BYTES];
	struct linux_file file;
	uint64_t va;
	int same = 0;

	if (linux_file_open(&file, f->l, f->m, k->vma.file) != LINUX_OK)
		return -1;
	for (uint64_t off = 0; off < k->vma.end - k->vma.start && off < MAX_PAGES * PAGE_BYTES;
	     off += PAGE_BYTES) {
		enum linux_why why = linux_file_page(&file, off / PAGE_BYTES, &va);

		if (!memory_read(f->m, k->space, k->vma.start + off, theirs, PAGE_BYTES) ||
		    why == LINUX_NOT_THERE)
			continue;
		if (why != LINUX_OK || !memory_read(f->m, MEMORY_KERNEL, va, cached, PAGE_BYTES) ||
		    memcmp(theirs, cached, PAGE_BYTES) != 0)
			return -1;
		same++;
	}
	return same;
}

/* Tests an offset of the array's head and a number of slots of its nodes. */
static bool head_is_at(struct file_find_finder *f, uint32_t off, uint32_t chunk_shift)
{
	size_t files = 0, pages = 0;

	f->l->mapping_head = off;
	f->l->chunk_shift = chunk_shift;
	for (size_t i = 0; i < f->n; i++) {
		int n = compare_pages(f, &f->file[i]);

		if (n < 0)
			return false;
		files += n > 0;
		pages += (size_t)n;
	}
	return files >= MIN_FILES && pages >= MIN_PAGES;
}

/*
 * Files of few pages alone do not distinguish nodes of 16 slots (CONFIG_BASE_SMALL) from those of
 * 64.
 */
static bool find_head(struct file_find_finder *f)
{
	uint32_t found = 0, shift = 0;

	for (uint32_t off = 8; off < MAPPING_SPAN; off += 8)
		for (uint32_t s = 4; s <= 6; s += 2) {
			if (!head_is_at(f, off, s))
				continue;
			if (found)
				return false;
			found = off;
			shift = s;
		}
	f->l->mapping_head = found;
	f->l->chunk_shift = shift;
	return found;
}

static bool size_is_at(const struct file_find_finder *f, uint32_t off)
{
	for (size_t i = 0; i < f->n; i++) {
		uint64_t inode, size;

		if (!memory_u64(f->m, f->file[i].vma.file + f->mm->file_inode, &inode) ||
		    !memory_u64(f->m, inode + off, &size) || size != f->end[i])
			return false;
	}
	return true;
}

static bool find_size(struct file_find_finder *f)
{
	uint32_t found = 0;

	for (uint32_t off = 8; off < INODE_SPAN; off += 8) {
		if (!size_is_at(f, off))
			continue;
		if (found)
			return false;
		found = off;
	}
	f->l->inode_size = found;
	return found;
}

int linux_file_layout_find(struct linux_file_layout *l, const struct linux_mm_layout *mm,
			   const struct memory *m, const struct symtab *s,
			   struct linux_files_known known, struct err *e)
{
	struct linux_file_layout new = {
		.file_mapping = mm->file_mapping,
		.node_slots = 40,
		.page_size = 64,
		.page_mapping = 24,
		.page_index = 32,
		.page_head = 8,
		.uptodate = LINUX_NO_MEMBER,
	};
	struct file_find_finder f = { .l = &new, .mm = mm, .m = m };
	const char *missing = NULL;
	int r = linux_file_variables(&new, s, e);

	if (r < 0)
		return r;
	gather(&f, known);
	if (mm->file_mapping == LINUX_NO_MEMBER || f.n < MIN_FILES)
		missing = "two different ELF files";
	else if (!find_head(&f))
		missing = "pages as the processes have them, or no file of many";
	else if (!find_size(&f))
		missing = "the files' sizes";
	if (missing)
		return err_set(
			e, ENOENT,
			"guest kernel without types (BTF): page cache not found for certain, "
			"among %zu files: no %s",
			f.n, missing);
	*l = new;
	return 0;
}
