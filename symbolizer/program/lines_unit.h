/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lines_unit: the functions of one DWARF unit, and what was inlined into them.
 *
 * Private to lines*.c. Everything is made on first use and kept: profiles ask for
 * many addresses of few functions.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_LINES_UNIT_H
#define KVMPROF_SYMBOLIZER_PROGRAM_LINES_UNIT_H

#include "symbolizer/program/lines.h"

#include <elfutils/libdw.h>

/* Caps against hostile files, a multiple of what the largest kernels have. */
#define LINES_MAX_RANGES (8u << 20) /* of one kind: units, functions of one unit, ... */
#define LINES_MAX_DIES (4u << 20)   /* entries looked at for one index */
#define LINES_MAX_NESTING 128u	    /* of entries inside each other */

/* Address ranges, each of which belongs to a numbered thing; they may overlap. */
struct line_range {
	uint64_t lo, hi; /* [lo, hi) */
	uint64_t top;	 /* highest hi of this range and all before it, once sorted */
	uint32_t owner;
};

struct line_ranges {
	struct line_range *at;
	size_t n, cap;
};

/* -ENOMEM, or -E2BIG beyond LINES_MAX_RANGES. An empty range is left out. */
int lines_unit_ranges_add(struct line_ranges *r, uint64_t lo, uint64_t hi, uint32_t owner);
/* Those of a DIE. */
int lines_unit_ranges_add_die(struct line_ranges *r, Dwarf_Die *die, uint32_t owner);
void lines_unit_ranges_sort(struct line_ranges *r);
/* The smallest sorted range around va, or NULL. */
const struct line_range *lines_unit_ranges_find(const struct line_ranges *r, uint64_t va);

/* An inlined call. */
struct line_call {
	Dwarf_Die die;
	uint32_t parent; /* the call around it, or LINE_NO_CALL */
	uint32_t depth;
};

#define LINE_NO_CALL UINT32_MAX

struct line_function {
	Dwarf_Die die;
	bool walked;
	int status; /* of the walk: 0 or -errno */
	struct line_call *call;
	size_t ncall, call_cap;
	struct line_ranges ranges; /* of the calls, not sorted */
};

struct line_unit {
	Dwarf_Die die;
	uint8_t version;
	bool split;  /* a skeleton: the rest is in another file */
	bool walked; /* functions below are there */
	int status;  /* of that: 0 or -errno */
	struct line_function *function;
	size_t nfunction, function_cap;
	struct line_ranges ranges; /* of the functions */
};

void lines_unit_deinit(struct line_unit *u);

/* u->function is there afterwards. -EINVAL, -ENOMEM. */
int lines_unit_walk(struct line_unit *u);

/* The function at va, with its calls; NULL when none is known. -EINVAL, -ENOMEM. */
int lines_unit_function(struct line_unit *u, uint64_t va, struct line_function **out);
/* The innermost inlined call of f at va, or LINE_NO_CALL. */
uint32_t lines_unit_call(const struct line_function *f, uint64_t va);

#endif
