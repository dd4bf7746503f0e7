/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lines: maps an address to the source lines from which it was compiled, including inlined calls.
 *
 * It reads DWARF 2 to 5 from an ELF file's bytes with elfutils' libdw. Opening reads only section
 * headers; the first lookup indexes the compilation units, and the first lookup in a unit indexes
 * its functions. .debug_aranges is not needed, as some compilers do not write it.
 *
 * Addresses are link-time virtual addresses of the file; the caller subtracts the slide.
 * Relocatable files (.o, .ko) are rejected: their debug information has no addresses yet. Units
 * whose DWARF was split off (.dwo) are reported as such.
 *
 * libdw was not written for hostile files. What it is known to trust is checked here first (sizes
 * of compressed sections, strings without an end, references that lead backwards, depth and number
 * of entries); it never opens a file itself.
 *
 * The file's bytes are borrowed until lines_close(); strings of a lookup belong to the struct
 * lines. Not thread-safe: one thread per object.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_LINES_H
#define KVMPROF_SYMBOLIZER_PROGRAM_LINES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions inlined into each other at one address; kernels have up to 12 (bench_lines). */
#define LINES_MAX_FRAMES 64u
#define LINES_MAX_ALT_ID 64u

struct lines;

struct line_frame {
	const char *function; /* linkage name, else as written in the source; NULL: unknown */
	const char *file;     /* absolute if the directory is known; NULL: unknown */
	unsigned int line;    /* 0: unknown */
	unsigned int column;  /* 0: unknown */
	bool inlined;	      /* the function was inlined into that of the next frame */
};

/*
 * Opens a file of len bytes. name is for messages, and is copied. Returns 0; -ENOENT for an ELF
 * file without .debug_info or .debug_line; -EINVAL if it is not an ELF64 file for x86-64, or is
 * relocatable or damaged; or -ENOMEM; with *e set. The caller frees *out with lines_close(), which
 * accepts NULL.
 */
int lines_open(const uint8_t *data, size_t len, const char *name, struct lines **out,
	       struct err *e);
void lines_close(struct lines *l);

/*
 * Returns the length of the build id, up to LINES_MAX_ALT_ID bytes stored in id, of the second
 * file that a file made by dwz refers to, and its path as written in *path; 0 if there is none.
 */
unsigned int lines_alt(const struct lines *l, uint8_t id[LINES_MAX_ALT_ID], const char **path);
/*
 * Provides that file's bytes, which are borrowed; call it before the first lookup. Without it,
 * names in that file stay unknown. Returns 0, -EBUSY after a lookup, or another -errno, with *e
 * set.
 */
int lines_set_alt(struct lines *l, const uint8_t *data, size_t len, const char *name,
		  struct err *e);

/*
 * Finds the frames at va, innermost (most inlined) first: the first has the line of the
 * instruction, each other one the line of the inlined call. Returns their number (at most max;
 * outer ones are omitted), 0 if the file has no information about va, or, with *e set:
 *
 *	-EOPNOTSUPP	split DWARF: the message names the file that has it
 *	-EINVAL		the debug information is damaged
 *	-ENOMEM
 */
int lines_lookup(struct lines *l, uint64_t va, struct line_frame *out, unsigned int max,
		 struct err *e);

/*
 * Returns the source file of the compilation unit that contains the code at va, as passed to its
 * compiler: a path, usually a relative one. Returns NULL if it is unknown. The string belongs to
 * l.
 */
const char *lines_unit_name(struct lines *l, uint64_t va);

/*
 * Enumeration of a file's debug information: each run of instructions with its line, and each
 * function with code of its own. Strings belong to the struct lines. Split units are omitted.
 */

#define LINES_MAX_ROWS (64u << 20) /* rows of all units; the largest kernels have a sixth of that */

struct lines_row {
	uint64_t lo, hi; /* link-time addresses [lo, hi) */
	const char *file;
	unsigned int line;
};

struct lines_function {
	const char *name; /* as written in the source */
	const char *file;
	unsigned int line; /* line of the declaration, from 1 */
	uint64_t entry;
};

struct lines_visitor {
	void *ctx;
	/* Called for each row; returns 0 to continue, or -errno. */
	int (*row)(void *ctx, const struct lines_row *row);
	/* Called for each function; may be NULL: then only rows are read. */
	int (*function)(void *ctx, const struct lines_function *f);
};

/*
 * Calls the visitor for each unit, first for its rows, then for its functions. *left_out counts
 * units whose lines or functions cannot be read. Returns 0; the visitor's error; or -EINVAL or
 * -ENOMEM if no unit can be read; with *e set.
 */
int lines_each(struct lines *l, const struct lines_visitor *v, uint64_t *left_out, struct err *e);

#endif
