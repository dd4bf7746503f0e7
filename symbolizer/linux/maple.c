/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/maple.h"

#define KERNEL_HALF (UINT64_C(1) << 63)
#define MAPLE_TYPE(enode) ((enode) >> 3 & 15)
#define MAPLE_ROOT_BIT UINT64_C(2)
enum { MAPLE_DENSE, MAPLE_LEAF_64, MAPLE_RANGE_64, MAPLE_ARANGE_64 };
/* A "reserved" entry, left by a fork that failed half-way (XA_ZERO_ENTRY). */
#define MAPLE_ZERO_ENTRY UINT64_C(0x406)

const struct linux_maple linux_maple_range_64 = { 8, 15, 128, 16, 248 };
const struct linux_maple linux_maple_arange_64 = { 8, 9, 80, 10, 240 };

struct maple_walk {
	const struct linux_mm_layout *l;
	const struct memory *m;
	uint32_t nodes;
	linux_maple_entry each;
	void *ctx;
};

static uint64_t linux_maple_word(const uint8_t *bytes, uint32_t off)
{
	uint64_t v;

	memcpy(&v, bytes + off, sizeof(v));
	return v;
}

static enum linux_why walk_node(struct maple_walk *w, uint64_t enode, uint64_t lo, uint64_t hi,
				unsigned int depth);

static enum linux_why walk_slot(struct maple_walk *w, uint64_t entry, bool leaf, uint64_t lo,
				uint64_t hi, unsigned int depth)
{
	if (!leaf)
		return entry ? walk_node(w, entry, lo, hi, depth) : LINUX_CHANGING;
	if (!entry || entry == MAPLE_ZERO_ENTRY)
		return LINUX_OK;
	return w->each(w->ctx, lo, hi, entry);
}

/* Returns the last used slot, like ma_data_end() of lib/maple_tree.c. */
static unsigned int last_slot(const struct linux_maple *k, const uint8_t *node, bool arange,
			      uint64_t hi)
{
	uint64_t pivot = linux_maple_word(node, k->pivot + 8 * (k->npivots - 1));
	unsigned int last;

	if (arange || !pivot)
		last = node[k->meta_end];
	else
		last = pivot == hi ? k->npivots - 1 : k->npivots;
	return last < k->nslots ? last : k->nslots - 1;
}

static enum linux_why read_node(const struct maple_walk *w, uint64_t enode, unsigned int depth,
				uint8_t node[LINUX_MAPLE_NODE])
{
	uint64_t at = enode & ~(uint64_t)(LINUX_MAPLE_NODE - 1);
	unsigned int type = MAPLE_TYPE(enode);

	if (at < KERNEL_HALF || (enode & 3))
		return LINUX_CHANGING;
	if (type == MAPLE_DENSE || type > MAPLE_ARANGE_64)
		return LINUX_UNKNOWN;
	if (depth >= LINUX_MM_MAX_HEIGHT)
		return LINUX_TOO_MANY;
	if (!memory_read(w->m, MEMORY_KERNEL, at, node, LINUX_MAPLE_NODE))
		return LINUX_UNREADABLE;
	/* A dead node is its own parent. */
	return (linux_maple_word(node, 0) & ~(uint64_t)(LINUX_MAPLE_NODE - 1)) == at
		       ? LINUX_CHANGING
		       : LINUX_OK;
}

/* A range of indexes, both inclusive. */
struct maple_range {
	uint64_t lo, hi;
};

/* Finds where slot i ends; left: from the slot's first index to the node's last one. */
static enum linux_why slot_end(const struct linux_maple *k, const uint8_t *node, unsigned int i,
			       unsigned int last, struct maple_range left, uint64_t *end)
{
	*end = i < k->npivots ? linux_maple_word(node, k->pivot + 8 * i) : left.hi;
	if (i == last || (!*end && i))
		*end = left.hi;
	return *end < left.lo || *end > left.hi ? LINUX_CHANGING : LINUX_OK;
}

/* Walks node enode, which covers lo..hi. */
static enum linux_why walk_node(struct maple_walk *w, uint64_t enode, uint64_t lo, uint64_t hi,
				unsigned int depth)
{
	unsigned int type = MAPLE_TYPE(enode), last;
	const struct linux_maple *k = type == MAPLE_ARANGE_64 ? &w->l->arange : &w->l->range;
	uint8_t node[LINUX_MAPLE_NODE];
	enum linux_why why;

	if (++w->nodes > LINUX_MM_MAX_NODES)
		return LINUX_TOO_MANY;
	why = read_node(w, enode, depth, node);
	if (why != LINUX_OK)
		return why;
	last = last_slot(k, node, type == MAPLE_ARANGE_64, hi);
	for (unsigned int i = 0; i <= last && why == LINUX_OK; i++) {
		uint64_t pivot;

		if (slot_end(k, node, i, last, (struct maple_range){ lo, hi }, &pivot) != LINUX_OK)
			return LINUX_CHANGING;
		why = walk_slot(w, linux_maple_word(node, k->slot + 8 * i), type == MAPLE_LEAF_64,
				lo, pivot, depth + 1);
		if (pivot == hi)
			break;
		lo = pivot + 1;
	}
	return why;
}

enum linux_why linux_maple_walk(const struct linux_mm_layout *l, const struct memory *m,
				uint64_t root, linux_maple_entry each, void *ctx)
{
	struct maple_walk w = { .l = l, .m = m, .each = each, .ctx = ctx };

	if (!root)
		return LINUX_OK;
	/* A tree without nodes has one entry, for index 0, which is not a VMA. */
	if (!(root & MAPLE_ROOT_BIT))
		return LINUX_CHANGING;
	return walk_node(&w, root & ~MAPLE_ROOT_BIT, 0, UINT64_MAX, 0);
}

enum linux_why linux_maple_find(const struct linux_mm_layout *l, const struct memory *m,
				uint64_t root, uint64_t index, uint64_t *entry)
{
	const struct maple_walk w = { .l = l, .m = m };
	struct maple_range left = { 0, UINT64_MAX };
	uint64_t at = root & ~MAPLE_ROOT_BIT;
	uint8_t node[LINUX_MAPLE_NODE];

	if (!root)
		return LINUX_NOT_THERE;
	if (!(root & MAPLE_ROOT_BIT))
		return LINUX_CHANGING;
	for (unsigned int depth = 0;; depth++) {
		unsigned int type = MAPLE_TYPE(at), last, i = 0;
		const struct linux_maple *k = type == MAPLE_ARANGE_64 ? &l->arange : &l->range;
		enum linux_why why = read_node(&w, at, depth, node);
		uint64_t end;

		if (why != LINUX_OK)
			return why;
		last = last_slot(k, node, type == MAPLE_ARANGE_64, left.hi);
		for (;; i++, left.lo = end + 1) {
			if (i > last || slot_end(k, node, i, last, left, &end) != LINUX_OK)
				return LINUX_CHANGING;
			if (index <= end)
				break;
		}
		left.hi = end;
		at = linux_maple_word(node, k->slot + 8 * i);
		if (type == MAPLE_LEAF_64)
			break;
		if (!at)
			return LINUX_CHANGING;
	}
	if (!at || at == MAPLE_ZERO_ENTRY)
		return LINUX_NOT_THERE;
	*entry = at;
	return LINUX_OK;
}
