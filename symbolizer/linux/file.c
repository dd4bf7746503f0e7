/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/file.h"

#include "base/cleanup.h"

#include <errno.h>

#define PAGE_SHIFT 12
#define PAGE_BYTES (UINT64_C(1) << PAGE_SHIFT)
#define KERNEL_HALF (UINT64_C(1) << 63)
#define MAX_PFN (UINT64_C(1) << 40) /* 52 bits of physical address */

/* x86_64/mm.rst: four levels, not randomised. */
#define DEFAULT_VMEMMAP UINT64_C(0xffffea0000000000)
#define DEFAULT_PAGE_OFFSET UINT64_C(0xffff888000000000)

#define XA_INTERNAL UINT64_C(2)
#define XA_MAX_INTERNAL_VALUE UINT64_C(4096)

/* -- where the members are ---------------------------------------------------- */

struct file_want {
	uint32_t at; /* offset of the member in struct linux_file_layout */
	uint32_t size;
	/* The first name that exists is used; names changed with folios (5.16, 6.16). */
	const char *name[3][2];
};

#define AT(member) offsetof(struct linux_file_layout, member)

static const struct file_want wants[] = {
	{ AT(file_mapping), 8, { { "file", "f_mapping" } } },
	{ AT(mapping_host), 8, { { "address_space", "host" } } },
	{ AT(mapping_head), 8, { { "address_space", "i_pages.xa_head" } } },
	{ AT(inode_size), 8, { { "inode", "i_size" } } },
	{ AT(node_shift), 1, { { "xa_node", "shift" } } },
	{ AT(page_flags), 8, { { "page", "flags" } } },
	{ AT(page_mapping), 8, { { "folio", "mapping" }, { "page", "mapping" } } },
	{ AT(page_index), 8, { { "folio", "index" }, { "page", "index" } } },
	{ AT(page_head), 8, { { "page", "compound_head" }, { "page", "compound_info" } } },
};

static int linux_file_resolve(struct linux_file_layout *l, const struct types *t,
			      const struct file_want *w, struct err *e)
{
	uint32_t *to = (uint32_t *)((char *)l + w->at);
	struct type_member m;
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(w->name) && w->name[i][0] && r == -ENOENT; i++)
		r = t->member(t->ctx, w->name[i][0], w->name[i][1], &m);
	if (r < 0)
		return err_set(e, -r, "guest kernel's types: no %s in struct %s", w->name[0][1],
			       w->name[0][0]);
	if (m.size != w->size || m.bit_count)
		return err_set(e, EINVAL, "guest kernel's types: %s.%s has %u bytes, expected %u",
			       w->name[0][0], w->name[0][1], m.size, w->size);
	*to = m.off;
	return 0;
}

static int resolve_slots(struct linux_file_layout *l, const struct types *t, struct err *e)
{
	struct type_member slots;
	int r = t->member(t->ctx, "xa_node", "slots", &slots);

	if (r < 0)
		return err_set(e, -r, "guest kernel's types: no slots in struct xa_node");
	if (slots.size != 16 * 8 && slots.size != 64 * 8) /* CONFIG_BASE_SMALL, or not */
		return err_set(e, EINVAL,
			       "guest kernel's types: xa_node.slots has %u bytes, "
			       "expected 512 or 128",
			       slots.size);
	l->node_slots = slots.off;
	l->chunk_shift = slots.size == 16 * 8 ? 4 : 6;
	return 0;
}

static int resolve_page(struct linux_file_layout *l, const struct types *t, struct err *e)
{
	const uint32_t in_page[] = { l->page_flags, l->page_mapping, l->page_index, l->page_head };
	int64_t bit;
	uint64_t size;
	int r = t->size(t->ctx, "page", &size);

	if (r == 0)
		r = t->enumerator(t->ctx, "PG_uptodate", &bit);
	if (r < 0)
		return err_set(e, -r, "guest kernel's types: no struct page or PG_uptodate");
	for (size_t i = 0; i < ARRAY_SIZE(in_page); i++)
		if (size < 8 || size > LINUX_FILE_MAX_PAGE || in_page[i] > size - 8)
			return err_set(e, EINVAL,
				       "guest kernel's types: struct page isn't laid out as known");
	if (bit < 0 || bit > 63)
		return err_set(e, EINVAL, "guest kernel's types: PG_uptodate is bit %lld",
			       (long long)bit);
	l->page_size = (uint32_t)size;
	l->uptodate = (uint32_t)bit;
	return 0;
}

int linux_file_variables(struct linux_file_layout *l, const struct symtab *s, struct err *e)
{
	const struct symbol *vmemmap = symtab_find(s, "vmemmap_base");
	const struct symbol *page_offset = symtab_find(s, "page_offset_base");

	if (!vmemmap != !page_offset)
		return err_set(e, ENOENT,
			       "guest kernel's symbols: only one of vmemmap_base and "
			       "page_offset_base");
	l->vmemmap_at = vmemmap ? vmemmap->addr : 0;
	l->page_offset_at = page_offset ? page_offset->addr : 0;
	return 0;
}

int linux_file_layout_init(struct linux_file_layout *l, const struct types *t,
			   const struct symtab *s, struct err *e)
{
	int r;

	memset(l, 0, sizeof(*l));
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++) {
		r = linux_file_resolve(l, t, &wants[i], e);
		if (r)
			return r;
	}
	r = resolve_slots(l, t, e);
	if (r)
		return r;
	r = resolve_page(l, t, e);
	if (r)
		return r;
	return linux_file_variables(l, s, e);
}

/* -- files -------------------------------------------------------------------- */

enum linux_why linux_file_open(struct linux_file *f, const struct linux_file_layout *l,
			       const struct memory *m, uint64_t file)
{
	uint64_t mapping;

	return memory_u64(m, file + l->file_mapping, &mapping)
		       ? linux_file_of_mapping(f, l, m, mapping)
		       : LINUX_UNREADABLE;
}

enum linux_why linux_file_of_mapping(struct linux_file *f, const struct linux_file_layout *l,
				     const struct memory *m, uint64_t mapping)
{
	struct linux_file n = { .l = l,
				.m = m,
				.mapping = mapping,
				.vmemmap = DEFAULT_VMEMMAP,
				.page_offset = DEFAULT_PAGE_OFFSET };
	uint64_t host;

	if (!memory_u64(m, n.mapping + l->mapping_host, &host) ||
	    !memory_u64(m, host + l->inode_size, &n.size) ||
	    (l->vmemmap_at && (!memory_u64(m, l->vmemmap_at, &n.vmemmap) ||
			       !memory_u64(m, l->page_offset_at, &n.page_offset))))
		return LINUX_UNREADABLE;
	if (n.vmemmap < KERNEL_HALF || n.page_offset < KERNEL_HALF || n.size >> 63 ||
	    (n.page_offset & (PAGE_BYTES - 1)))
		return LINUX_CHANGING;
	*f = n;
	return LINUX_OK;
}

uint64_t linux_file_size(const struct linux_file *f)
{
	return f->size;
}

static bool is_node(uint64_t entry)
{
	return (entry & 3) == XA_INTERNAL && entry > XA_MAX_INTERNAL_VALUE;
}

/*
 * Reads the entry of one slot; a sibling entry is replaced by that of the slot to which it refers.
 */
static enum linux_why read_slot(const struct linux_file *f, uint64_t node, unsigned int slot,
				uint64_t *entry)
{
	const uint64_t slots = node + f->l->node_slots;
	const uint64_t siblings = ((UINT64_C(1) << f->l->chunk_shift) - 2) << 2;

	if (!memory_u64(f->m, slots + 8 * slot, entry))
		return LINUX_UNREADABLE;
	if ((*entry & 3) != XA_INTERNAL || *entry >= siblings)
		return LINUX_OK;
	if (!memory_u64(f->m, slots + 8 * (*entry >> 2), entry))
		return LINUX_UNREADABLE;
	return (*entry & 3) == XA_INTERNAL && *entry < siblings ? LINUX_CHANGING : LINUX_OK;
}

/* Finds the array's entry for index, which points to a page. */
static enum linux_why find_entry(const struct linux_file *f, uint64_t index, uint64_t *out)
{
	const unsigned int step = f->l->chunk_shift;
	unsigned int shift = 64; /* shift of the node above */
	uint64_t entry;

	if (!memory_u64(f->m, f->mapping + f->l->mapping_head, &entry))
		return LINUX_UNREADABLE;
	if (!is_node(entry) && index) /* the only entry of the array: index 0 */
		return LINUX_NOT_THERE;
	for (unsigned int depth = 0; is_node(entry); depth++) {
		uint64_t node = entry - XA_INTERNAL;
		enum linux_why why;
		uint8_t raw;

		if (depth >= 64 / step + 1)
			return LINUX_TOO_MANY;
		if (!memory_read(f->m, MEMORY_KERNEL, node + f->l->node_shift, &raw, 1))
			return LINUX_UNREADABLE;
		if (raw % step || raw >= shift || (depth && raw + step != shift))
			return LINUX_CHANGING;
		shift = raw;
		if (!depth && shift + step < 64 && index >> (shift + step))
			return LINUX_NOT_THERE;
		why = read_slot(f, node, index >> shift & ((1u << step) - 1), &entry);
		if (why != LINUX_OK)
			return why;
		if (!shift)
			break;
	}
	/* It is empty, a value, or an internal entry that requests a retry. */
	if (!entry || (entry & 3))
		return LINUX_NOT_THERE;
	*out = entry;
	return LINUX_OK;
}

/* A struct page. head: the first page of the folio to which it belongs, or its own address. */
struct file_page {
	uint64_t at, flags, mapping, index, head;
};

/*
 * Returns the head to which a tail page refers. page.compound_head is the head's address plus 1.
 * Since 7.1, page.compound_info may instead be, plus 1, the mask that converts the tail's own
 * address to the head's (_compound_head() in include/linux/page-flags.h). A value of only upper
 * bits, down to some bit of the lower half, is not the address of a struct page.
 */
static uint64_t head_of(uint64_t at, uint64_t info)
{
	uint64_t value = info - 1, low = ~value;

	if (!(info & 1))
		return at;
	return !(low & (low + 1)) && low <= UINT32_MAX ? at & value : value;
}

static bool read_page(const struct linux_file *f, uint64_t at, struct file_page *p)
{
	const struct linux_file_layout *l = f->l;
	uint8_t raw[LINUX_FILE_MAX_PAGE];

	if (!memory_read(f->m, MEMORY_KERNEL, at, raw, l->page_size))
		return false;
	p->at = at;
	memcpy(&p->flags, raw + l->page_flags, 8);
	memcpy(&p->mapping, raw + l->page_mapping, 8);
	memcpy(&p->index, raw + l->page_index, 8);
	memcpy(&p->head, raw + l->page_head, 8);
	p->head = head_of(at, p->head);
	return true;
}

static bool is_valid(const struct linux_file *f, const struct file_page *p)
{
	if (f->l->uptodate == LINUX_NO_MEMBER)
		return !(p->flags & 1);
	return p->flags >> f->l->uptodate & 1;
}

/*
 * Finds the struct page of one page in the file from an entry, which is a head page (or a single
 * page); kernels before 5.3 have a tail's own struct page in its slot.
 */
static enum linux_why page_of_entry(const struct linux_file *f, uint64_t entry, uint64_t index,
				    uint64_t *at)
{
	struct file_page head, tail;
	uint64_t delta;

	if (!read_page(f, entry, &head))
		return LINUX_UNREADABLE;
	if (head.head != head.at && !read_page(f, head.head, &head))
		return LINUX_UNREADABLE;
	if (head.head != head.at || head.mapping != f->mapping || index < head.index)
		return LINUX_CHANGING;
	if (!is_valid(f, &head))
		return LINUX_NOT_THERE;
	delta = index - head.index;
	*at = head.at + delta * f->l->page_size;
	if (delta >= MAX_PFN || (entry != head.at && entry != *at))
		return LINUX_CHANGING;
	if (!delta)
		return LINUX_OK;
	if (!read_page(f, *at, &tail))
		return LINUX_UNREADABLE;
	return tail.head == head.at ? LINUX_OK : LINUX_CHANGING;
}

/* Also stores the entry, so that a caller can check later whether it is unchanged. */
static enum linux_why find_page(const struct linux_file *f, uint64_t index, uint64_t *entry,
				uint64_t *va)
{
	enum linux_why why = find_entry(f, index, entry);
	uint64_t at, pfn;

	if (why == LINUX_OK)
		why = page_of_entry(f, *entry, index, &at);
	if (why != LINUX_OK)
		return why;
	if (at < f->vmemmap || (at - f->vmemmap) % f->l->page_size)
		return LINUX_UNKNOWN; /* pages are not numbered by their addresses */
	pfn = (at - f->vmemmap) / f->l->page_size;
	if (pfn >= MAX_PFN)
		return LINUX_UNKNOWN;
	*va = f->page_offset + (pfn << PAGE_SHIFT);
	return LINUX_OK;
}

enum linux_why linux_file_page(const struct linux_file *f, uint64_t index, uint64_t *va)
{
	uint64_t entry;

	return find_page(f, index, &entry, va);
}

size_t linux_file_read(const struct linux_file *f, uint64_t off, void *dst, size_t len)
{
	uint8_t *to = dst;
	size_t done = 0;

	if (off >= f->size)
		return 0;
	if (len > f->size - off)
		len = (size_t)(f->size - off);
	while (done < len) {
		uint64_t index = (off + done) >> PAGE_SHIFT, in = (off + done) & (PAGE_BYTES - 1);
		size_t n = len - done < PAGE_BYTES - in ? len - done : (size_t)(PAGE_BYTES - in);
		uint64_t entry, va, again;

		if (find_page(f, index, &entry, &va) != LINUX_OK ||
		    !memory_read(f->m, MEMORY_KERNEL, va + in, to + done, n) ||
		    page_of_entry(f, entry, index, &again) != LINUX_OK)
			break;
		done += n;
	}
	return done;
}

size_t linux_file_read_cb(void *ctx, uint64_t off, void *dst, size_t len)
{
	return linux_file_read(ctx, off, dst, len);
}
