/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/mm.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/core/elf64.h"
#include "symbolizer/linux/maple.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE_SIZE UINT64_C(4096)
#define MAX_USER (UINT64_C(1) << 56) /* the end of user space with five levels */
#define KERNEL_HALF (UINT64_C(1) << 63)
#define TRIES 4u
/* Maximum number of program headers of a vDSO. */
#define MAX_PHDRS 128u

#define VMA_MAX_SPAN 512u

const char *linux_why_text(enum linux_why why)
{
	switch (why) {
	case LINUX_OK:
		return "no problem";
	case LINUX_UNREADABLE:
		return "guest memory cannot be read";
	case LINUX_CHANGING:
		return "the guest's data contradicts itself";
	case LINUX_TOO_MANY:
		return "more than the limit";
	case LINUX_UNKNOWN:
		return "an unknown form of data";
	case LINUX_NO_MEMORY:
		return "out of memory";
	case LINUX_NOT_THERE:
		return "it does not exist";
	case LINUX_WHY_COUNT:
		break;
	}
	return "?";
}

/* -- where the members are ---------------------------------------------------- */

struct mm_want {
	uint32_t at; /* offset of the member in struct linux_mm_layout */
	const char *structure, *path;
	uint32_t size; /* required size; 0: any up to 8 */
	bool optional;
};

#define AT(member) offsetof(struct linux_mm_layout, member)

static const struct mm_want wants[] = {
	{ AT(mm_map_count), "mm_struct", "map_count", 4, true },
	{ AT(mm_pgd), "mm_struct", "pgd", 8, true },
	{ AT(mm_vdso), "mm_struct", "context.vdso", 8, true },
	{ AT(mm_start_brk), "mm_struct", "start_brk", 8, true },
	{ AT(mm_brk), "mm_struct", "brk", 8, true },
	{ AT(mm_vdso_image), "mm_struct", "context.vdso_image", 8, true },
	{ AT(image_data), "vdso_image", "data", 8, true },
	{ AT(image_size), "vdso_image", "size", 8, true },
	{ AT(vma_start), "vm_area_struct", "vm_start", 8, false },
	{ AT(vma_end), "vm_area_struct", "vm_end", 8, false },
	{ AT(vma_mm), "vm_area_struct", "vm_mm", 8, false },
	{ AT(vma_flags), "vm_area_struct", "vm_flags", 8, false },
	{ AT(vma_pgoff), "vm_area_struct", "vm_pgoff", 8, false },
	{ AT(vma_file), "vm_area_struct", "vm_file", 8, false },
	{ AT(file_mnt), "file", "f_path.mnt", 8, false },
	{ AT(file_dentry), "file", "f_path.dentry", 8, false },
	{ AT(file_inode), "file", "f_inode", 8, false },
	{ AT(file_mapping), "file", "f_mapping", 8, true },
	{ AT(file_mode), "file", "f_mode", 4, false },
	{ AT(user_mnt), "backing_file", "user_path.mnt", 8, true },
	{ AT(user_dentry), "backing_file", "user_path.dentry", 8, true },
	{ AT(dentry_parent), "dentry", "d_parent", 8, false },
	{ AT(dentry_name), "dentry", "d_name.name", 8, false },
	{ AT(dentry_name_len), "dentry", "d_name.len", 4, false },
	{ AT(dentry_pprev), "dentry", "d_hash.pprev", 8, false },
	{ AT(mount_mnt), "mount", "mnt", 0, false },
	{ AT(mount_parent), "mount", "mnt_parent", 8, false },
	{ AT(mount_mountpoint), "mount", "mnt_mountpoint", 8, false },
	{ AT(mnt_root), "vfsmount", "mnt_root", 8, false },
	{ AT(inode_ino), "inode", "i_ino", 8, false },
	{ AT(inode_size), "inode", "i_size", 8, true },
	{ AT(inode_sb), "inode", "i_sb", 8, true },
	{ AT(inode_generation), "inode", "i_generation", 4, true },
	{ AT(sb_dev), "super_block", "s_dev", 4, true },
};

static const struct mm_want maple_wants[] = {
	{ AT(mm_root), "mm_struct", "mm_mt.ma_root", 8, false },
	{ AT(range.meta_end), "maple_range_64", "meta.end", 1, false },
	{ AT(arange.meta_end), "maple_arange_64", "meta.end", 1, false },
};

static const struct mm_want list_wants[] = {
	{ AT(mm_root), "mm_struct", "mmap", 8, false },
	{ AT(vma_next), "vm_area_struct", "vm_next", 8, false },
};

static int linux_mm_resolve(struct linux_mm_layout *l, const struct types *t,
			    const struct mm_want *w, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++, w++) {
		uint32_t *to = (uint32_t *)((char *)l + w->at);
		struct type_member m;
		int r = t->member(t->ctx, w->structure, w->path, &m);

		if (r == 0 && ((w->size && m.size != w->size) || m.bit_count))
			return err_set(e, EINVAL,
				       "guest kernel's types: %s.%s has %u bytes, expected %u",
				       w->structure, w->path, m.size, w->size);
		if (r == 0)
			*to = m.off;
		else if (r == -ENOENT && w->optional)
			*to = LINUX_NO_MEMBER;
		else
			return err_set(e, -r, "guest kernel's types: no %s in struct %s", w->path,
				       w->structure);
	}
	return 0;
}

/* Finds the arrays of one kind of node. */
static int resolve_node(struct linux_maple *n, const struct types *t, const char *name,
			struct err *e)
{
	struct type_member pivot, slot;
	int r = t->member(t->ctx, name, "pivot", &pivot);

	if (r == 0)
		r = t->member(t->ctx, name, "slot", &slot);
	if (r < 0)
		return err_set(e, -r, "guest kernel's types: no pivot and slot in struct %s", name);
	n->pivot = pivot.off;
	n->npivots = pivot.size / 8;
	n->slot = slot.off;
	n->nslots = slot.size / 8;
	if (n->nslots < 2 || n->nslots > LINUX_MAPLE_NODE / 8 || n->npivots + 1 < n->nslots ||
	    n->npivots > n->nslots || (pivot.off | slot.off) % 8 ||
	    pivot.off > LINUX_MAPLE_NODE - n->npivots * 8 ||
	    slot.off > LINUX_MAPLE_NODE - n->nslots * 8 || n->meta_end >= LINUX_MAPLE_NODE)
		return err_set(e, EINVAL, "guest kernel's types: struct %s isn't laid out as known",
			       name);
	return 0;
}

static int resolve_vma_lookup(struct linux_mm_layout *l, const struct types *t, struct err *e)
{
	struct type_member any;
	int r;

	l->maple = t->member(t->ctx, "mm_struct", "mm_mt", &any) == 0;
	l->vma_next = LINUX_NO_MEMBER;
	if (!l->maple)
		return linux_mm_resolve(l, t, list_wants, ARRAY_SIZE(list_wants), e);
	r = linux_mm_resolve(l, t, maple_wants, ARRAY_SIZE(maple_wants), e);
	if (r)
		return r;
	r = resolve_node(&l->range, t, "maple_range_64", e);
	if (r)
		return r;
	return resolve_node(&l->arange, t, "maple_arange_64", e);
}

/*
 * Finds the modification time, which has had three names. Without it, files are distinguished by
 * their other attributes.
 */
static void resolve_mtime(struct linux_mm_layout *l, const struct types *t)
{
	static const char *const names[][2] = {
		{ "i_mtime_sec", "i_mtime_nsec" },	     /* 6.11 */
		{ "__i_mtime.tv_sec", "__i_mtime.tv_nsec" }, /* 6.7 */
		{ "i_mtime.tv_sec", "i_mtime.tv_nsec" },
	};
	struct type_member s, ns;

	l->inode_mtime = l->inode_mtime_ns = LINUX_NO_MEMBER;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (t->member(t->ctx, "inode", names[i][0], &s) < 0 || s.size != 8 ||
		    t->member(t->ctx, "inode", names[i][1], &ns) < 0 || ns.size < 4)
			continue;
		l->inode_mtime = s.off;
		l->inode_mtime_ns = ns.off; /* little endian: below 2^32 in either size */
		return;
	}
}

/*
 * Finds the number of changes. A kernel of 6.4 and later counts how often the mappings were locked
 * for writing (CONFIG_PER_VMA_LOCK; a seqcount since 6.13), one before 6.1 how often a mapping was
 * removed (vmacache_invalidate() of mm/vmacache.c).
 */
static void resolve_changes(struct linux_mm_layout *l, const struct types *t)
{
	static const char *const names[] = { "mm_lock_seq.sequence", "mm_lock_seq",
					     "vmacache_seqnum" };
	struct type_member m;

	l->mm_changes = LINUX_NO_MEMBER;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (t->member(t->ctx, "mm_struct", names[i], &m) < 0 ||
		    (m.size != 4 && m.size != 8) || m.bit_count)
			continue;
		l->mm_changes = m.off; /* little endian: the low half in either size */
		return;
	}
}

int linux_mm_layout_init(struct linux_mm_layout *l, const struct types *t, struct err *e)
{
	const uint32_t *in_vma[] = { &l->vma_start, &l->vma_end,  &l->vma_mm,  &l->vma_flags,
				     &l->vma_pgoff, &l->vma_file, &l->vma_next };
	int r;

	memset(l, 0, sizeof(*l));
	r = linux_mm_resolve(l, t, wants, ARRAY_SIZE(wants), e);
	if (r < 0)
		return r;
	r = resolve_vma_lookup(l, t, e);
	if (r < 0)
		return r;
	resolve_mtime(l, t);
	resolve_changes(l, t);
	for (size_t i = 0; i < ARRAY_SIZE(in_vma); i++)
		if (*in_vma[i] != LINUX_NO_MEMBER && *in_vma[i] + 8 > l->vma_span)
			l->vma_span = *in_vma[i] + 8;
	if (l->vma_span > VMA_MAX_SPAN)
		return err_set(e, EINVAL,
			       "guest kernel's types: struct vm_area_struct has %u bytes, "
			       "at most %u are known",
			       l->vma_span, VMA_MAX_SPAN);
	return 0;
}

/* -- walks -------------------------------------------------------------------- */

struct mm_walk {
	const struct linux_mm_layout *l;
	const struct memory *m;
	uint64_t mm;
	uint32_t flags;
	uint32_t seen;
	uint64_t end; /* end of the last mapping */
	struct linux_vmas *out;
};

void linux_vmas_deinit(struct linux_vmas *s)
{
	free(s->v);
	*s = (struct linux_vmas){ 0 };
}

static enum linux_why linux_mm_append(struct linux_vmas *s, const struct linux_vma *v)
{
	if (ARRAY_ROOM(s->v, s->n, s->cap))
		return LINUX_NO_MEMORY;
	s->v[s->n++] = *v;
	return LINUX_OK;
}

static uint64_t linux_mm_word(const uint8_t *bytes, uint32_t off)
{
	uint64_t v;

	memcpy(&v, bytes + off, sizeof(v));
	return v;
}

/*
 * Reads one VMA, which must touch first..last; *next, unless NULL, receives the next one of a
 * list.
 */
static enum linux_why read_vma(const struct mm_walk *w, uint64_t at, uint64_t first, uint64_t last,
			       struct linux_vma *v, uint64_t *next)
{
	const struct linux_mm_layout *l = w->l;
	uint8_t raw[VMA_MAX_SPAN];

	if (at % 8 || at < KERNEL_HALF)
		return LINUX_CHANGING;
	if (!memory_read(w->m, MEMORY_KERNEL, at, raw, l->vma_span))
		return LINUX_UNREADABLE;
	v->at = at;
	v->start = linux_mm_word(raw, l->vma_start);
	v->end = linux_mm_word(raw, l->vma_end);
	v->flags = (uint32_t)linux_mm_word(raw, l->vma_flags);
	v->file = linux_mm_word(raw, l->vma_file);
	v->file_off = v->file ? linux_mm_word(raw, l->vma_pgoff) * PAGE_SIZE : 0;
	if ((v->start | v->end) % PAGE_SIZE || v->start >= v->end || v->end > MAX_USER ||
	    v->start > last || v->end <= first || linux_mm_word(raw, l->vma_mm) != w->mm)
		return LINUX_CHANGING;
	if (next)
		*next = linux_mm_word(raw, l->vma_next);
	return LINUX_OK;
}

/* Adds the next VMA, which must be after the previous one. */
static enum linux_why take_vma(struct mm_walk *w, uint64_t at, uint64_t first, uint64_t last,
			       uint64_t *next)
{
	struct linux_vma v;
	enum linux_why why = read_vma(w, at, first, last, &v, next);

	if (why != LINUX_OK)
		return why;
	if (v.start < w->end)
		return LINUX_CHANGING;
	if (++w->seen > LINUX_MM_MAX_VMAS)
		return LINUX_TOO_MANY;
	w->end = v.end;
	return (v.flags & w->flags) == w->flags ? linux_mm_append(w->out, &v) : LINUX_OK;
}

/* Walks a list. Each VMA must be after the one before, so a cycle ends the walk. */
static enum linux_why walk_list(struct mm_walk *w, uint64_t at)
{
	enum linux_why why = LINUX_OK;

	while (at && why == LINUX_OK)
		why = take_vma(w, at, 0, UINT64_MAX, &at);
	return why;
}

static enum linux_why take_entry(void *ctx, uint64_t first, uint64_t last, uint64_t entry)
{
	return take_vma(ctx, entry, first, last, NULL);
}

static enum linux_why walk_once(struct mm_walk *w)
{
	const struct linux_mm_layout *l = w->l;
	enum linux_why why;
	uint32_t count;
	uint64_t root;

	w->seen = 0;
	w->end = 0;
	w->out->n = 0;
	if (!memory_u64(w->m, w->mm + l->mm_root, &root))
		return LINUX_UNREADABLE;
	why = l->maple ? linux_maple_walk(l, w->m, root, take_entry, w) : walk_list(w, root);
	if (why != LINUX_OK)
		return why;
	if (l->mm_map_count == LINUX_NO_MEMBER)
		return LINUX_OK;
	if (!memory_u32(w->m, w->mm + l->mm_map_count, &count))
		return LINUX_UNREADABLE;
	return count == w->seen ? LINUX_OK : LINUX_CHANGING;
}

enum linux_why linux_mm_vmas(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
			     uint32_t flags, struct linux_vmas *out)
{
	struct mm_walk w = { .l = l, .m = m, .mm = mm, .flags = flags, .out = out };
	enum linux_why why = LINUX_CHANGING;

	for (unsigned int i = 0; i < TRIES; i++) {
		why = walk_once(&w);
		if (why == LINUX_OK || why == LINUX_NO_MEMORY || why == LINUX_TOO_MANY)
			break;
	}
	return why;
}

enum linux_why linux_mm_lookup(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
			       uint64_t va, struct linux_vma *out)
{
	const struct mm_walk w = { .l = l, .m = m, .mm = mm };
	enum linux_why why = LINUX_CHANGING;
	uint64_t root, entry;

	if (!l->maple)
		return LINUX_UNKNOWN;
	for (unsigned int i = 0; i < TRIES && why == LINUX_CHANGING; i++) {
		if (!memory_u64(m, mm + l->mm_root, &root))
			return LINUX_UNREADABLE;
		why = linux_maple_find(l, m, root, va, &entry);
		if (why == LINUX_OK)
			why = read_vma(&w, entry, va, va, out, NULL);
	}
	return why;
}

bool linux_mm_changes(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
		      uint32_t *out)
{
	return l->mm_changes != LINUX_NO_MEMBER && memory_u32(m, mm + l->mm_changes, out);
}

const struct linux_vma *linux_vmas_find(const struct linux_vmas *s, uint64_t va)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid].end <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->n && s->v[lo].start <= va ? &s->v[lo] : NULL;
}

uint64_t linux_mm_vdso(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm)
{
	uint64_t va = 0;

	if (l->mm_vdso == LINUX_NO_MEMBER || !memory_u64(m, mm + l->mm_vdso, &va) ||
	    va % PAGE_SIZE || va >= MAX_USER)
		return 0;
	return va;
}

/* -- the vDSO: ELF64 little endian (arch/x86/include/asm/vdso.h) ------------------- */

/* The bytes of an image, as far as they are mapped. */
struct vdso_mapped {
	const struct memory *m;
	uint64_t space; /* CR3, or MEMORY_KERNEL */
	uint64_t va;	/* address of the first byte */
	uint64_t len;	/* number of bytes mapped from there */
};

static size_t mapped_read(const struct vdso_mapped *p, uint64_t off, void *dst, size_t len)
{
	if (off >= p->len)
		return 0;
	if (len > p->len - off)
		len = (size_t)(p->len - off);
	return p->m->read(p->m->ctx, p->space, p->va + off, dst, len);
}

/* Reads only the header; the users of its tables check them. */
static bool read_header(const struct vdso_mapped *p, Elf64_Ehdr *h)
{
	return mapped_read(p, 0, h, sizeof(*h)) == sizeof(*h) &&
	       !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_phentsize == sizeof(Elf64_Phdr) &&
	       h->e_phnum <= MAX_PHDRS;
}

static bool read_phdr(const struct vdso_mapped *from, const Elf64_Ehdr *h, unsigned int i,
		      Elf64_Phdr *p)
{
	uint64_t off;

	return !__builtin_add_overflow(h->e_phoff, (uint64_t)i * sizeof(*p), &off) &&
	       mapped_read(from, off, p, sizeof(*p)) == sizeof(*p);
}

static uint64_t max_end(uint64_t so_far, uint64_t off, uint64_t len)
{
	uint64_t end;

	if (__builtin_add_overflow(off, len, &end) || end > LINUX_VDSO_MAX)
		return so_far; /* outside of what is read: its user detects that */
	return end > so_far ? end : so_far;
}

/* Returns how far segments and the section table extend; 0: not an ELF. */
static size_t vdso_length(const struct vdso_mapped *from)
{
	uint64_t end = sizeof(Elf64_Ehdr);
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (!read_header(from, &h))
		return 0;
	end = max_end(end, h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize);
	for (unsigned int i = 0; i < h.e_phnum; i++)
		if (read_phdr(from, &h, i, &p) && p.p_type == PT_LOAD)
			end = max_end(end, p.p_offset, p.p_filesz);
	return (size_t)end;
}

/* Finds the kernel's copy, which is mapped into all processes of this kind. */
static bool kernels_vdso(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
			 struct vdso_mapped *out)
{
	uint64_t image;

	*out = (struct vdso_mapped){ .m = m, .space = MEMORY_KERNEL };
	if (l->mm_vdso_image == LINUX_NO_MEMBER || l->image_data == LINUX_NO_MEMBER ||
	    l->image_size == LINUX_NO_MEMBER || !memory_u64(m, mm + l->mm_vdso_image, &image) ||
	    !memory_u64(m, image + l->image_data, &out->va) ||
	    !memory_u64(m, image + l->image_size, &out->len))
		return false;
	if (out->len > LINUX_VDSO_MAX)
		out->len = LINUX_VDSO_MAX;
	return true;
}

size_t linux_vdso_read(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
		       uint64_t space, uint8_t *buf)
{
	struct vdso_mapped from;
	size_t len = 0;
	uint64_t va = linux_mm_vdso(l, m, mm);

	if (!va)
		return 0;
	if (kernels_vdso(l, m, mm, &from))
		len = vdso_length(&from);
	if (!len) {
		from = (struct vdso_mapped){ m, space, va, LINUX_VDSO_MAX };
		len = vdso_length(&from);
	}
	return len ? mapped_read(&from, 0, buf, len) : 0;
}
