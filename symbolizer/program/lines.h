/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lines: from an address to the source lines that it was made from, inlined calls included.
 *
 * Reads DWARF 2 to 5 of an ELF file's bytes through elfutils' libdw. Opening reads
 * section headers only; the first lookup makes an index of the compilation units, and
 * the first lookup in a unit one of its functions. .debug_aranges is not needed, as
 * some compilers write none.
 *
 * Addresses are link-time virtual addresses of the file; the caller subtracts the slide.
 * Relocatable files (.o, .ko) are refused: their debug information has no addresses yet.
 * Units whose DWARF was split off (.dwo) are reported as such.
 *
 * libdw was not written against hostile files. What we know it to trust is checked here
 * before it looks (sizes of compressed sections, strings without an end, references that
 * lead backwards, depth and number of entries); it never opens a file of its own.
 *
 * Bytes are borrowed until lines_close, strings of a lookup belong to the struct lines.
 * One thread.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_LINES_H
#define KVMPROF_SYMBOLIZER_PROGRAM_LINES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions inlined into each other at one address; bench_lines sees up to 12 in kernels. */
#define LINES_MAX_FRAMES 64u
#define LINES_MAX_ALT_ID 64u

struct lines;

struct line_frame {
	const char *function; /* as the linker knows it, else as written; NULL: not known */
	const char *file;     /* absolute where the directory is known; NULL: not known */
	unsigned int line;    /* 0: not known */
	unsigned int column;  /* 0: not known */
	bool inlined;	      /* function was inlined into that of the next frame */
};

/*
 * name is for messages, copied. -ENOENT: an ELF file without .debug_info or
 * .debug_line; -EINVAL: no ELF64 file for x86-64, or relocatable, or damaged.
 */
int lines_open(const uint8_t *data, size_t len, const char *name, struct lines **out,
	       struct err *e);
void lines_close(struct lines *l);

/*
 * A file made by dwz keeps what it shares with others in one more file. Tells its build
 * id (up to LINES_MAX_ALT_ID bytes) and path as written; 0 when there is none.
 */
unsigned int lines_alt(const struct lines *l, uint8_t id[LINES_MAX_ALT_ID], const char **path);
/* Give that file, before the first lookup. Without it, names that are in it are not known. */
int lines_set_alt(struct lines *l, const uint8_t *data, size_t len, const char *name,
		  struct err *e);

/*
 * The frames at va, innermost (most inlined) first: the first has the line of the
 * instruction, each other one that of the call that was inlined. Returns how many
 * (at most max; outer ones are cut), 0 when the file says nothing about va, and
 *   -EOPNOTSUPP  split DWARF: the file that has it is in the message
 *   -EINVAL      the debug information is damaged
 *   -ENOMEM
 */
int lines_lookup(struct lines *l, uint64_t va, struct line_frame *out, unsigned int max,
		 struct err *e);

/*
 * Returns the source file of the compilation unit that has the code at va, as its compiler was given it: a path,
 * mostly a relative one. NULL: it is not known. The string belongs to l.
 */
const char *lines_unit_name(struct lines *l, uint64_t va);

/*
 * All that a file's debug information says: each run of instructions with the line that it was
 * made from, and each function with its own code.
 *
 * Strings belong to the struct lines. Split units are left out. One thread.
 */

#define LINES_MAX_ROWS (64u << 20) /* of all units; the largest kernels have a sixth of that */

struct lines_row {
	uint64_t lo, hi; /* link-time addresses, [lo, hi) */
	const char *file;
	unsigned int line;
};

struct lines_function {
	const char *name; /* as it is written */
	const char *file;
	unsigned int line; /* where it is declared, from 1 on */
	uint64_t entry;
};

struct lines_visitor {
	void *ctx;
	/* 0 to go on, or -errno. */
	int (*row)(void *ctx, const struct lines_row *row);
	int (*function)(void *ctx, const struct lines_function *f); /* NULL: only rows are read */
};

/*
 * Of each unit first the rows, then the functions. *left_out: units whose lines or functions can't be
 * read. The visitor's error, or -EINVAL, -ENOMEM: no unit can be read.
 */
int lines_each(struct lines *l, const struct lines_visitor *v, uint64_t *left_out, struct err *e);

#endif
