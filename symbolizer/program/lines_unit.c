/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/lines_unit.h"

#include "base/array.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

/*
 * Maximum number of ranges examined for one address; more than a few overlap only in damaged
 * files.
 */
#define MAX_OVERLAP 4096u
#define MAX_DIE_RANGES (1u << 16)

/* -- ranges ----------------------------------------------------------------------------- */

int lines_unit_ranges_add(struct line_ranges *r, uint64_t lo, uint64_t hi, uint32_t owner)
{
	if (lo >= hi)
		return 0;
	if (r->n >= LINES_MAX_RANGES)
		return -E2BIG;
	if (ARRAY_ROOM(r->at, r->n, r->cap))
		return -ENOMEM;
	r->at[r->n++] = (struct line_range){ .lo = lo, .hi = hi, .owner = owner };
	return 0;
}

int lines_unit_ranges_add_die(struct line_ranges *r, Dwarf_Die *die, uint32_t owner)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;
	int ret;

	/*
	 * A negative result is also returned for a DIE without addresses, so it is not an error
	 * here.
	 */
	for (unsigned int i = 0; i < MAX_DIE_RANGES; i++) {
		at = dwarf_ranges(die, at, &base, &lo, &hi);
		if (at <= 0)
			return 0;
		ret = lines_unit_ranges_add(r, lo, hi, owner);
		if (ret)
			return ret;
	}
	return 0;
}

static int cmp_range(const void *a, const void *b)
{
	const struct line_range *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	if (x->hi != y->hi)
		return x->hi > y->hi ? -1 : 1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

void lines_unit_ranges_sort(struct line_ranges *r)
{
	uint64_t top = 0;

	if (r->n == 0)
		return;
	qsort(r->at, r->n, sizeof(*r->at), cmp_range);
	for (size_t i = 0; i < r->n; i++) {
		if (r->at[i].hi > top)
			top = r->at[i].hi;
		r->at[i].top = top;
	}
}

const struct line_range *lines_unit_ranges_find(const struct line_ranges *r, uint64_t va)
{
	const struct line_range *best = NULL;
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->at[mid].lo <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* Go backwards as long as any earlier range can contain va. */
	for (unsigned int i = 0; i < MAX_OVERLAP && lo-- > 0 && r->at[lo].top > va; i++) {
		const struct line_range *x = &r->at[lo];

		if (x->hi > va && (!best || x->hi - x->lo < best->hi - best->lo))
			best = x;
	}
	return best;
}

/* -- entries ------------------------------------------------------------------------------ */

/*
 * Moves to the sibling. A sibling attribute leads anywhere in the file; only going forward is
 * certain to end.
 */
static bool next_sibling(Dwarf_Die *die)
{
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next) != 0 || dwarf_dieoffset(&next) <= dwarf_dieoffset(die))
		return false;
	*die = next;
	return true;
}

/* Returns whether an entry of this tag can contain functions with addresses (C++, Rust). */
static bool holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_enumeration_type;
}

static bool holds_calls(int tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt;
}

/*
 * Calls visit for each entry below top, in file order, level 0 first, and descends into those that
 * `holds` accepts. visit returns 0 or -errno.
 */
struct lines_unit_walk {
	bool (*holds)(int tag);
	int (*visit)(struct lines_unit_walk *w, Dwarf_Die *die, int tag, unsigned int level);
	struct line_unit *unit;
	struct line_function *function;
	uint32_t around[LINES_MAX_NESTING + 1]; /* the call that encloses each level */
};

static int walk_below(struct lines_unit_walk *w, Dwarf_Die *top)
{
	Dwarf_Die at[LINES_MAX_NESTING];
	unsigned int level = 0;

	if (dwarf_child(top, &at[0]) != 0)
		return 0;
	for (unsigned int n = 0; n < LINES_MAX_DIES; n++) {
		int tag = dwarf_tag(&at[level]);
		int ret = w->visit(w, &at[level], tag, level);

		if (ret)
			return ret;
		if (w->holds(tag) && dwarf_haschildren(&at[level]) > 0) {
			if (level + 1 == LINES_MAX_NESTING)
				return -EINVAL;
			if (dwarf_child(&at[level], &at[level + 1]) == 0) {
				level++;
				continue;
			}
		}
		while (!next_sibling(&at[level]))
			if (level-- == 0)
				return 0;
	}
	return -EINVAL;
}

/* -- functions ---------------------------------------------------------------------------- */

static int add_function(struct lines_unit_walk *w, Dwarf_Die *die, int tag, unsigned int level)
{
	struct line_unit *u = w->unit;
	size_t before = u->ranges.n;
	int ret;

	(void)level;
	if (tag != DW_TAG_subprogram)
		return 0;
	ret = lines_unit_ranges_add_die(&u->ranges, die, (uint32_t)u->nfunction);
	/* It is a declaration, or the abstract origin of inlined code. */
	if (ret || u->ranges.n == before)
		return ret;
	if (ARRAY_ROOM(u->function, u->nfunction, u->function_cap))
		return -ENOMEM;
	u->function[u->nfunction++] = (struct line_function){ .die = *die };
	return 0;
}

static int add_call(struct lines_unit_walk *w, Dwarf_Die *die, int tag, unsigned int level)
{
	struct line_function *f = w->function;
	uint32_t parent = w->around[level];

	w->around[level + 1] = parent;
	if (tag != DW_TAG_inlined_subroutine)
		return 0;
	if (ARRAY_ROOM(f->call, f->ncall, f->call_cap))
		return -ENOMEM;
	f->call[f->ncall] = (struct line_call){
		.die = *die,
		.parent = parent,
		.depth = parent == LINE_NO_CALL ? 0 : f->call[parent].depth + 1,
	};
	w->around[level + 1] = (uint32_t)f->ncall;
	return lines_unit_ranges_add_die(&f->ranges, die, (uint32_t)f->ncall++);
}

int lines_unit_walk(struct line_unit *u)
{
	struct lines_unit_walk w = { .holds = holds_functions, .visit = add_function, .unit = u };

	if (u->walked)
		return u->status;
	u->walked = true;
	u->status = walk_below(&w, &u->die);
	lines_unit_ranges_sort(&u->ranges);
	return u->status;
}

int lines_unit_function(struct line_unit *u, uint64_t va, struct line_function **out)
{
	const struct line_range *r;
	struct line_function *f;
	int ret = lines_unit_walk(u);

	*out = NULL;
	if (ret)
		return ret;
	r = lines_unit_ranges_find(&u->ranges, va);
	if (!r || r->owner >= u->nfunction)
		return 0;
	f = &u->function[r->owner];
	if (!f->walked) {
		struct lines_unit_walk w = { .holds = holds_calls,
					     .visit = add_call,
					     .function = f };

		w.around[0] = LINE_NO_CALL;
		f->walked = true;
		f->status = walk_below(&w, &f->die);
	}
	*out = f;
	return f->status;
}

/*
 * Returns the deepest matching call. The blocks and calls around it need not cover va: GCC moves
 * code out of a block without changing the block's ranges.
 */
uint32_t lines_unit_call(const struct line_function *f, uint64_t va)
{
	const struct line_range *best = NULL;

	for (size_t i = 0; i < f->ranges.n; i++) {
		const struct line_range *r = &f->ranges.at[i];
		uint32_t deep = f->call[r->owner].depth;

		if (va < r->lo || va >= r->hi)
			continue;
		if (!best || deep > f->call[best->owner].depth ||
		    (deep == f->call[best->owner].depth && r->hi - r->lo < best->hi - best->lo))
			best = r;
	}
	return best ? best->owner : LINE_NO_CALL;
}

void lines_unit_deinit(struct line_unit *u)
{
	for (size_t i = 0; i < u->nfunction; i++) {
		free(u->function[i].call);
		free(u->function[i].ranges.at);
	}
	free(u->function);
	free(u->ranges.at);
}
