/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the members in a kernel without types. Each step finds the only offset at which all known
 * objects have what the previous step requires.
 */
#include "symbolizer/linux/mm_find.h"

#include "base/cleanup.h"
#include "symbolizer/linux/maple.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE_SHIFT 12
#define MM_WORDS 192u
#define VMA_WORDS 32u
#define FILE_WORDS 32u
#define INODE_WORDS 128u
#define DENTRY_WORDS 16u
#define MAX_SEEN 4096u
#define MIN_SEEN 16u
#define MAX_FILES 64u
/* Maximum number of objects that are read in total; some thousands are usual. */
#define MAX_READS (1u << 20)
#define MIN_FILES 2u /* files that must agree */
#define MAX_SEEDS 8u
#define AT_SYSINFO_EHDR 33u
#define MAX_FILE_PAGES (UINT64_C(1) << 20) /* 4 GiB */
#define GIB_MASK ((UINT64_C(1) << 30) - 1)
#define CR3_ADDR UINT64_C(0x000ffffffffff000)
#define NONE LINUX_NO_MEMBER

/* A mapping according to the tree, and the words at the address that the tree contains for it. */
struct mm_find_seen {
	uint64_t mm, at, first, last;
	uint64_t word[VMA_WORDS];
};

struct mm_find_finder {
	struct linux_mm_layout *l;
	const struct memory *m;
	const struct linux_mm_known *known;
	size_t nknown;
	struct mm_find_seen *seen;
	size_t n;
	uint64_t mm; /* the process whose tree is being walked */
	uint32_t *reads_left;
	uint64_t file[MAX_FILES];
	size_t nfiles;
	/*
	 * Objects of one kind do not overlap, so none is longer than the smallest distance between
	 * two.
	 */
	size_t mm_words, vma_words, file_words;
};

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Returns the smallest distance between two of these addresses, in words, at most max. */
static size_t words_apart(uint64_t *at, size_t n, size_t max)
{
	qsort(at, n, sizeof(*at), compare_u64);
	for (size_t i = 1; i < n; i++)
		if (at[i] != at[i - 1] && (at[i] - at[i - 1]) / 8 < max)
			max = (size_t)((at[i] - at[i - 1]) / 8);
	return max;
}

/*
 * Returns whether it is an address in the direct map or in the kernel's other data, but not in its
 * image.
 */
static bool is_data(uint64_t p)
{
	return p % 8 == 0 && p >= UINT64_C(0xff00000000000000) && p < UINT64_C(0xffffff0000000000);
}

static bool read_words(const struct mm_find_finder *f, uint64_t va, uint64_t *w, size_t n)
{
	if (!is_data(va) || !*f->reads_left)
		return false;
	--*f->reads_left;
	return memory_read(f->m, MEMORY_KERNEL, va, w, n * 8);
}

static enum linux_why collect_vma(void *ctx, uint64_t first, uint64_t last, uint64_t entry)
{
	struct mm_find_finder *f = ctx;
	struct mm_find_seen *s = &f->seen[f->n];
	bool ours = false;

	if (f->n == MAX_SEEN)
		return LINUX_TOO_MANY;
	if (first % 4096 || (last + 1) % 4096 || last >> 56 ||
	    !read_words(f, entry, s->word, VMA_WORDS))
		return LINUX_CHANGING;
	/* Another mm_struct may follow in memory, whose tree is not ours. */
	for (size_t i = 0; i < VMA_WORDS; i++)
		ours = ours || s->word[i] == f->mm;
	if (!ours)
		return LINUX_CHANGING;
	s->mm = f->mm;
	s->at = entry;
	s->first = first;
	s->last = last;
	f->n++;
	return LINUX_OK;
}

static bool root_is_at(struct mm_find_finder *f, uint32_t off)
{
	f->n = 0;
	for (size_t i = 0; i < f->nknown; i++) {
		uint64_t root;

		f->mm = f->known[i].mm;
		if (!memory_u64(f->m, f->mm + off, &root) || !root ||
		    linux_maple_walk(f->l, f->m, root, collect_vma, f) != LINUX_OK)
			return false;
	}
	return f->n >= MIN_SEEN;
}

/* Finds the trees' place in struct mm_struct, and leaves the mappings in f->seen. */
static bool find_root(struct mm_find_finder *f)
{
	uint64_t at[MAX_SEEN];
	uint32_t found = NONE;

	for (size_t i = 0; i < f->nknown; i++)
		at[i] = f->known[i].mm;
	f->mm_words = words_apart(at, f->nknown, MM_WORDS);
	for (uint32_t off = 0; off < f->mm_words * 8; off += 8) {
		if (!root_is_at(f, off))
			continue;
		if (found != NONE)
			return false;
		found = off;
	}
	f->l->mm_root = found;
	if (found == NONE || !root_is_at(f, found))
		return false;
	for (size_t i = 0; i < f->n; i++)
		at[i] = f->seen[i].at;
	f->vma_words = words_apart(at, f->n, VMA_WORDS);
	return true;
}

/* -- members of a VMA ----------------------------------------------------------- */

static bool is_start(const struct mm_find_finder *f, size_t w)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->seen[i].word[w] != f->seen[i].first)
			return false;
	return true;
}

static bool is_end(const struct mm_find_finder *f, size_t w)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->seen[i].word[w] != f->seen[i].last + 1)
			return false;
	return true;
}

static bool is_mm(const struct mm_find_finder *f, size_t w)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->seen[i].word[w] != f->seen[i].mm)
			return false;
	return true;
}

/*
 * Returns whether word w is vm_flags: permissions must be permitted (VM_MAYREAD...), and there
 * must be both code and data.
 */
static bool is_flags(const struct mm_find_finder *f, size_t w)
{
	size_t code = 0, data = 0;

	for (size_t i = 0; i < f->n; i++) {
		uint64_t v = f->seen[i].word[w];

		if (v >> 48 || !(v & 0x70) || (v & 7 & ~(v >> 4)))
			return false;
		code += (v & 7) == (LINUX_VM_READ | LINUX_VM_EXEC);
		data += (v & 7) == (LINUX_VM_READ | LINUX_VM_WRITE);
	}
	return code >= 2 && data >= 2;
}

/*
 * Returns whether word w is vm_pgoff: a page number of the address without a file, and in the file
 * with one.
 */
static bool is_pgoff(const struct mm_find_finder *f, size_t w)
{
	size_t anon = 0, file = 0, odd = 0;

	for (size_t i = 0; i < f->n; i++) {
		uint64_t v = f->seen[i].word[w];

		if (v == f->seen[i].first >> PAGE_SHIFT)
			anon++;
		else if (v && v < MAX_FILE_PAGES)
			file++;
		else if (v)
			odd++;
		if (v >> 44)
			return false;
	}
	/* A stack was moved down after its mapping was made, and keeps its number. */
	return anon >= 2 && file >= 2 && odd <= 2 * f->nknown;
}

/*
 * Stores the only word for which `is` holds, as an offset. Returns false if there is none or
 * several.
 */
static bool only(const struct mm_find_finder *f, bool (*is)(const struct mm_find_finder *, size_t),
		 uint32_t *off)
{
	uint32_t found = NONE;

	for (uint32_t w = 0; w < f->vma_words; w++) {
		if (!is(f, w))
			continue;
		if (found != NONE)
			return false;
		found = w * 8;
	}
	*off = found;
	return found != NONE;
}

/* -- files ---------------------------------------------------------------------- */

/* Collects the different files if each mapping has a file or none at this word. */
static bool gather_files(struct mm_find_finder *f, size_t w)
{
	uint64_t at[MAX_FILES];

	f->nfiles = 0;
	for (size_t i = 0; i < f->n; i++) {
		const struct mm_find_seen *s = &f->seen[i];
		uint64_t v = s->word[w], pgoff = s->word[f->l->vma_pgoff / 8];
		size_t k = 0;

		if (!v)
			continue;
		if (!is_data(v) || pgoff >= MAX_FILE_PAGES)
			return false;
		while (k < f->nfiles && f->file[k] != v)
			k++;
		if (k == f->nfiles && k < MAX_FILES)
			f->file[f->nfiles++] = v;
	}
	memcpy(at, f->file, sizeof(at));
	f->file_words = words_apart(at, f->nfiles, FILE_WORDS);
	return f->nfiles >= MIN_FILES;
}

/*
 * Returns whether these are f_inode and f_mapping of a regular file: the mapping is inside the
 * inode, has its address first (host), and the inode points to it (i_mapping).
 */
static bool is_inode_pair(const struct mm_find_finder *f, uint64_t inode, uint64_t mapping)
{
	uint64_t w[INODE_WORDS];
	bool points = false;

	if (mapping <= inode || mapping - inode >= sizeof(w) / 2 ||
	    !read_words(f, inode, w, INODE_WORDS) || w[(mapping - inode) / 8] != inode)
		return false;
	for (size_t i = 0; i < (mapping - inode) / 8; i++)
		points = points || w[i] == mapping;
	return points;
}

/* Returns whether a name of that length is at that address. */
static bool is_name(const struct mm_find_finder *f, uint64_t va, uint64_t hash_len)
{
	uint32_t len = (uint32_t)(hash_len >> 32);
	char name[LINUX_NAME_MAX + 1];

	return va >= UINT64_C(0xff00000000000000) && len && len <= LINUX_NAME_MAX &&
	       memory_read(f->m, MEMORY_KERNEL, va, name, len + 1) &&
	       memchr(name, '\0', len + 1) == name + len;
}

/*
 * Returns whether d_parent is at word p. d_hash.next, d_hash.pprev, d_parent, d_name, d_inode have
 * been consecutive since 2.6.38. The list that contains the dentry must point back to it.
 */
static bool is_dentry(const struct mm_find_finder *f, uint64_t at, size_t p, uint64_t inode)
{
	uint64_t w[DENTRY_WORDS], back, parent[DENTRY_WORDS];

	if (p < 2 || p + 4 > DENTRY_WORDS || !read_words(f, at, w, DENTRY_WORDS) ||
	    (inode && w[p + 3] != inode) || !is_name(f, w[p + 2], w[p + 1]) ||
	    !read_words(f, w[p], parent, DENTRY_WORDS) || !is_name(f, parent[p + 2], parent[p + 1]))
		return false;
	if (!w[p - 1]) /* in no list: deleted, or a root */
		return true;
	return memory_u64(f->m, w[p - 1], &back) && (back & ~UINT64_C(1)) == at + 8 * (p - 2);
}

/*
 * Offsets in struct mount around a struct vfsmount, unchanged since 3.3: mnt_root is its dentries'
 * root.
 */
#define MOUNT_MNT 32u
#define MOUNT_PARENT 16u
#define MOUNT_MOUNTPOINT 24u

static bool is_mount(const struct mm_find_finder *f, uint64_t mnt, uint64_t dentry, size_t p)
{
	uint64_t root, parent, at[2];

	if (!is_data(mnt) || !memory_u64(f->m, mnt, &root) ||
	    !read_words(f, mnt - MOUNT_MNT + MOUNT_PARENT, at, 2) || !is_dentry(f, at[1], p, 0) ||
	    !is_data(at[0]))
		return false;
	for (unsigned int i = 0; i < LINUX_PATH_MAX_DEPTH && dentry != root; i++) {
		if (!memory_u64(f->m, dentry + 8 * p, &parent) || parent == dentry)
			return false;
		dentry = parent;
	}
	return dentry == root;
}

/* Candidate words of a struct file: f_inode, f_mapping, f_path.dentry. */
struct file_words {
	size_t inode, mapping, dentry, parent;
};

static bool file_fits(const struct mm_find_finder *f, uint64_t file, const struct file_words *c)
{
	uint64_t w[FILE_WORDS];

	return read_words(f, file, w, FILE_WORDS) && is_inode_pair(f, w[c->inode], w[c->mapping]) &&
	       is_dentry(f, w[c->dentry], c->parent, w[c->inode]) &&
	       is_mount(f, w[c->dentry - 1], w[c->dentry], c->parent);
}

/* The candidates that fit most files. */
struct best {
	struct file_words words;
	size_t fit;
	bool tie;
};

static bool same_words(const struct file_words *a, const struct file_words *b)
{
	return a->inode == b->inode && a->mapping == b->mapping && a->dentry == b->dentry &&
	       a->parent == b->parent;
}

static void weigh(const struct mm_find_finder *f, const struct file_words *c, struct best *best)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nfiles; i++)
		n += file_fits(f, f->file[i], c);
	if (n == best->fit && !same_words(c, &best->words))
		best->tie = true;
	if (n <= best->fit)
		return;
	*best = (struct best){ .words = *c, .fit = n };
}

static void try_dentries(const struct mm_find_finder *f, const uint64_t *w, struct file_words c,
			 struct best *best)
{
	for (c.dentry = 1; c.dentry < f->file_words; c.dentry++)
		for (c.parent = 2; c.parent + 4 <= DENTRY_WORDS; c.parent++)
			if (is_dentry(f, w[c.dentry], c.parent, w[c.inode]))
				weigh(f, &c, best);
}

/*
 * Finds which words of f->file are the members, and whether they are files at all. Some differ: a
 * memfd is in no directory, an overlay's inode is not its dentry's, a device may lend its mapping.
 * And the struct file after this one in memory may belong to the same file, so that its members
 * fit too, but not for every file.
 */
static bool find_file_words(const struct mm_find_finder *f, struct best *best)
{
	struct file_words c = { 0 };
	uint64_t w[FILE_WORDS];

	*best = (struct best){ .fit = MIN_FILES - 1 };
	for (size_t i = 0; i < f->nfiles && i < MAX_SEEDS; i++) {
		if (!read_words(f, f->file[i], w, FILE_WORDS))
			return false;
		for (c.inode = 0; c.inode < f->file_words; c.inode++)
			for (c.mapping = 0; c.mapping < f->file_words; c.mapping++)
				if (is_inode_pair(f, w[c.inode], w[c.mapping]))
					try_dentries(f, w, c, best);
	}
	return best->fit >= MIN_FILES;
}

static void set_file_words(struct linux_mm_layout *l, const struct file_words *c)
{
	l->file_inode = (uint32_t)c->inode * 8;
	l->file_mapping = (uint32_t)c->mapping * 8;
	l->file_dentry = (uint32_t)c->dentry * 8;
	l->file_mnt = l->file_dentry - 8; /* struct path: mnt, dentry */
	l->dentry_parent = (uint32_t)c->parent * 8;
	l->dentry_pprev = l->dentry_parent - 8;
	l->dentry_name_len = l->dentry_parent + 12; /* struct qstr: hash, len, name */
	l->dentry_name = l->dentry_parent + 16;
	l->mount_mnt = MOUNT_MNT;
	l->mount_parent = MOUNT_PARENT;
	l->mount_mountpoint = MOUNT_MOUNTPOINT;
	l->mnt_root = 0;
}

static bool find_files(struct mm_find_finder *f)
{
	struct best best = { 0 }, b;

	for (size_t w = 0; w < f->vma_words; w++) {
		if (!gather_files(f, w) || !find_file_words(f, &b))
			continue;
		if (b.fit == best.fit)
			best.tie = true;
		if (b.fit <= best.fit)
			continue;
		best = b;
		f->l->vma_file = (uint32_t)w * 8;
	}
	if (!best.fit || best.tie)
		return false;
	set_file_words(f->l, &best.words);
	return true;
}

/* -- the rest -------------------------------------------------------------------- */

/*
 * Returns whether v looks like a page table, by the entries of the kernel's half, which all
 * processes share.
 */
static bool same_kernel_half(const struct mm_find_finder *f, uint64_t v, uint64_t first[256])
{
	uint64_t half[256];
	size_t present = 0;

	if (v % 4096 || !read_words(f, v + 2048, half, 256))
		return false;
	for (size_t i = 0; i < 256; i++) {
		if (half[i] && !(half[i] & 1))
			return false;
		present += half[i] != 0;
	}
	if (!first[0])
		memcpy(first + 1, half, 255 * 8);
	first[0] = 1;
	return present >= 2 && !memcmp(first + 1, half, 255 * 8);
}

/*
 * Compares a page table's address with CR3, which has its physical address; the difference is the
 * start of the direct map, a multiple of 1 GiB. With page table isolation, user space uses the
 * second page of two.
 */
static bool fits_cr3(uint64_t v, uint64_t cr3)
{
	uint64_t pa = cr3 & CR3_ADDR;

	return !pa || !((v - pa) & GIB_MASK) || !((v - (pa & ~UINT64_C(4096))) & GIB_MASK);
}

static bool is_pgd(const struct mm_find_finder *f, uint32_t off)
{
	uint64_t first[256] = { 0 }, v, before = 0, seen = 0;

	for (size_t i = 0; i < f->nknown; i++) {
		if (!memory_u64(f->m, f->known[i].mm + off, &v) || v == before ||
		    !fits_cr3(v, f->known[i].cr3) || !same_kernel_half(f, v, first))
			return false;
		before = v;
		seen |= f->known[i].cr3;
	}
	return seen || f->nknown > 1; /* a single one cannot be compared with others */
}

static void find_pgd(struct mm_find_finder *f)
{
	uint32_t found = NONE;

	for (uint32_t off = 0; off < f->mm_words * 8; off += 8) {
		if (!is_pgd(f, off))
			continue;
		if (found != NONE)
			return;
		found = off;
	}
	f->l->mm_pgd = found;
}

/* -- the vDSO -------------------------------------------------------------------- */

/* Returns whether code without a file starts at va. */
static bool is_code_at(const struct mm_find_finder *f, uint64_t mm, uint64_t va)
{
	const struct linux_mm_layout *l = f->l;

	for (size_t i = 0; i < f->n; i++) {
		const uint64_t *w = f->seen[i].word;

		if (f->seen[i].mm == mm && f->seen[i].first == va)
			return !w[l->vma_file / 8] && (w[l->vma_flags / 8] & LINUX_VM_EXEC);
	}
	return false;
}

/*
 * Returns whether it is a struct vdso_image, which begins with the address of the ELF image, and
 * its size in whole pages.
 */
static bool is_vdso_image(const struct mm_find_finder *f, uint64_t at)
{
	uint64_t w[2];
	char magic[4];

	return at % 8 == 0 && at >> 63 && memory_read(f->m, MEMORY_KERNEL, at, w, sizeof(w)) &&
	       w[0] % 4096 == 0 && w[0] >> 63 && w[1] && w[1] % 4096 == 0 && w[1] <= 1u << 16 &&
	       memory_read(f->m, MEMORY_KERNEL, w[0], magic, 4) && !memcmp(magic, "\177ELF", 4);
}

/* Returns whether the word of struct mm_struct contains the vDSO's address in all processes. */
static bool is_vdso(const struct mm_find_finder *f, uint32_t off, bool *is_auxv, bool *is_context)
{
	for (size_t i = 0; i < f->nknown; i++) {
		uint64_t mm = f->known[i].mm, w[3];

		if (!memory_read(f->m, MEMORY_KERNEL, mm + off - 8, w, sizeof(w)) ||
		    !is_code_at(f, mm, w[1]))
			return false;
		*is_auxv = *is_auxv && w[0] == AT_SYSINFO_EHDR;
		*is_context = *is_context && is_vdso_image(f, w[2]);
	}
	return true;
}

/* Finds context.vdso. saved_auxv contains a copy of it, preceded by its tag. */
static void find_vdso(struct mm_find_finder *f)
{
	struct linux_mm_layout *l = f->l;
	uint32_t auxv = NONE, context = NONE;

	for (uint32_t off = 8; off < f->mm_words * 8; off += 8) {
		bool is_auxv = true, is_context = true;

		if (!is_vdso(f, off, &is_auxv, &is_context))
			continue;
		if ((is_auxv && auxv != NONE) || (is_context && context != NONE))
			return;
		if (is_auxv)
			auxv = off;
		if (is_context)
			context = off;
	}
	l->mm_vdso = auxv;
	if (auxv == NONE || context == NONE)
		return;
	l->mm_vdso = context;
	l->mm_vdso_image = context + 8;
	l->image_data = 0;
	l->image_size = 8;
}

static const char *find_all(struct mm_find_finder *f)
{
	struct linux_mm_layout *l = f->l;
	const uint32_t *in_vma[] = { &l->vma_start, &l->vma_end,   &l->vma_mm,
				     &l->vma_flags, &l->vma_pgoff, &l->vma_file };

	if (!find_root(f))
		return "no maple tree of mappings in struct mm_struct";
	if (!only(f, is_start, &l->vma_start) || !only(f, is_end, &l->vma_end) ||
	    !only(f, is_mm, &l->vma_mm))
		return "start, end and mm of struct vm_area_struct";
	if (!only(f, is_flags, &l->vma_flags))
		return "vm_flags";
	if (!only(f, is_pgoff, &l->vma_pgoff))
		return "vm_pgoff";
	if (!find_files(f))
		return "vm_file and what lies behind it";
	for (size_t i = 0; i < ARRAY_SIZE(in_vma); i++)
		if (*in_vma[i] + 8 > l->vma_span)
			l->vma_span = *in_vma[i] + 8;
	find_pgd(f);
	find_vdso(f);
	/* The remaining possibilities were not examined, so the result may not be unique. */
	if (!*f->reads_left)
		return "too many things look like files";
	return NULL;
}

int linux_mm_layout_find(struct linux_mm_layout *l, const struct memory *m,
			 const struct linux_mm_known *known, size_t n, struct err *e)
{
	struct linux_mm_layout new;
	struct mm_find_finder f = { .l = &new,
				    .m = m,
				    .known = known,
				    .nknown = n < LINUX_MM_MAX_KNOWN ? n : LINUX_MM_MAX_KNOWN };
	cleanup_free struct mm_find_seen *seen = malloc(MAX_SEEN * sizeof(*seen));
	uint32_t reads_left = MAX_READS;
	const char *missing;

	if (!seen)
		return err_nomem(e);
	f.seen = seen;
	f.reads_left = &reads_left;
	memset(&new, 0xff, sizeof(new)); /* LINUX_NO_MEMBER */
	new.maple = true;
	new.vma_span = 0;
	new.range = linux_maple_range_64;
	new.arange = linux_maple_arange_64;
	missing = find_all(&f);
	if (missing)
		return err_set(e, ENOENT,
			       "guest kernel without types (BTF): not found for certain in the "
			       "memory of %zu processes: %s",
			       f.nknown, missing);
	*l = new;
	return 0;
}
