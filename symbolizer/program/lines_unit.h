/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lines_unit: the functions of one DWARF unit, and the calls inlined into them.
 *
 * Private to lines*.c. Everything is created at first use and kept: profiles look up many
 * addresses in few functions. Not thread-safe.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_LINES_UNIT_H
#define KVMPROF_SYMBOLIZER_PROGRAM_LINES_UNIT_H

#include "symbolizer/program/lines.h"

#include <elfutils/libdw.h>

/* Limits for hostile files, a multiple of what the largest kernels have. */
#define LINES_MAX_RANGES (8u << 20) /* most ranges of one kind: units, functions of one unit, ... */
#define LINES_MAX_DIES (4u << 20)   /* entries examined for one index */
#define LINES_MAX_NESTING 128u	    /* nested entries */

/* Address ranges, each owned by a numbered object; they may overlap. */
struct line_range {
	uint64_t lo, hi; /* [lo, hi) */
	uint64_t top;	 /* highest hi of this range and all before it, once sorted */
	uint32_t owner;
};

struct line_ranges {
	struct line_range *at;
	size_t n, cap;
};

/* Adds a range; an empty one is omitted. Returns 0, -ENOMEM, or -E2BIG beyond LINES_MAX_RANGES. */
int lines_unit_ranges_add(struct line_ranges *r, uint64_t lo, uint64_t hi, uint32_t owner);
/* Adds the ranges of a DIE, none if it has none. Returns like lines_unit_ranges_add(). */
int lines_unit_ranges_add_die(struct line_ranges *r, Dwarf_Die *die, uint32_t owner);
/* Sorts the ranges for lines_unit_ranges_find(). */
void lines_unit_ranges_sort(struct line_ranges *r);
/* Returns the smallest range that contains va, or NULL. The ranges must be sorted. */
const struct line_range *lines_unit_ranges_find(const struct line_ranges *r, uint64_t va);

/* An inlined call. */
struct line_call {
	Dwarf_Die die;
	uint32_t parent; /* index of the enclosing call, or LINE_NO_CALL */
	uint32_t depth;	 /* number of enclosing calls */
};

#define LINE_NO_CALL UINT32_MAX

struct line_function {
	Dwarf_Die die;
	bool walked;
	int status; /* result of the walk: 0 or -errno */
	struct line_call *call;
	size_t ncall, call_cap;
	struct line_ranges ranges; /* address ranges of the calls, not sorted */
};

struct line_unit {
	Dwarf_Die die;
	uint8_t version;
	bool split;  /* a skeleton: the rest is in another file */
	bool walked; /* the functions below have been read */
	int status;  /* result of that: 0 or -errno */
	struct line_function *function;
	size_t nfunction, function_cap;
	struct line_ranges ranges; /* address ranges of the functions */
};

/* Frees what u owns. */
void lines_unit_deinit(struct line_unit *u);

/*
 * Reads the unit's functions, if that has not been done. Returns 0, -EINVAL for nesting or numbers
 * of entries beyond the limits, -E2BIG beyond LINES_MAX_RANGES, or -ENOMEM; each call the same.
 */
int lines_unit_walk(struct line_unit *u);

/*
 * Finds the function at va, with its inlined calls; *out is NULL if none is known, and belongs to
 * u. Returns 0 or the errors of lines_unit_walk().
 */
int lines_unit_function(struct line_unit *u, uint64_t va, struct line_function **out);
/* Returns the index of the innermost inlined call of f at va, or LINE_NO_CALL. */
uint32_t lines_unit_call(const struct line_function *f, uint64_t va);

#endif
