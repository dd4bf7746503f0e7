/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_code: reads the name of a CPython code object, and its table of lines.
 *
 * A string is "compact": its characters follow its header, 1, 2 or 4 bytes each (bits 2 to 4 of
 * its state), and is ASCII (bit 6) or has a longer header. It is converted to UTF-8; control
 * characters, ';' and invalid characters become '?'.
 *
 * Sources: as python_layout.h. No state, no allocation: any thread that may use the program's
 * memory.
 */
#ifndef KVMPROF_SYMBOLIZER_PYTHON_PYTHON_CODE_H
#define KVMPROF_SYMBOLIZER_PYTHON_PYTHON_CODE_H

#include "symbolizer/python/python_layout.h"

#include <stddef.h>
#include <stdint.h>

/* bytes with the NUL; longer ones are cut at the front, as paths are */
#define PYTHON_MAX_NAME 256u
#define PYTHON_MAX_LINES 65536u /* bytes of a table of lines; a longer one is ignored */
#define PYTHON_CODE_IDS 4u

/* Identifies a code object: three pointers, and 8 bytes with the first line. */
struct python_code_id {
	uint64_t v[PYTHON_CODE_IDS];
};

struct python_code {
	char name[PYTHON_MAX_NAME], file[PYTHON_MAX_NAME];
	struct python_code_id id;
	uint32_t first;	 /* line of its `def`, from 1; 0: none */
	uint64_t start;	 /* address of its instructions */
	uint64_t lines;	 /* address of its table of lines */
	uint32_t nlines; /* bytes of that table; 0: none that can be used */
};

/*
 * Reads the code object at `at`. Returns false, with *out unspecified, if there is none or it
 * cannot be read.
 */
bool python_code_read(struct python_code *out, const struct python_layout *l,
		      const struct python_program *p, uint64_t at);

/* Stores the offsets of the members of python_code_id in a code object. */
void python_code_id_offsets(const struct python_layout *l, uint32_t off[PYTHON_CODE_IDS]);

/* Copies up to len bytes of its table of lines. Returns how many, 0 if it cannot be read. */
uint32_t python_code_lines(const struct python_code *c, const struct python_program *p,
			   uint8_t *dst, uint32_t len);

/*
 * The table of lines of a code object, CPython 3.11 to 3.13.
 *
 *	entry	a byte: bit 7 set, bits 6..3 a kind, bits 2..0 the length - 1 in units of
 *		code (2 bytes); then bytes without bit 7, up to the next entry
 *	kind	0..9: the line of the entry before; 10..12: that + 0, 1, 2; 13 and 14:
 *		that + a number; 15: no line
 *	number	6 bits of each byte, the lowest first, as long as bit 6 is set; the lowest
 *		bit of it all is the sign
 *
 * The first entry begins at the code's first unit, and counts from the code's first line.
 * Source: Objects/locations.md of CPython 3.11. No state: any thread.
 */

/* Returns the line of a unit of code (2 bytes); 0: none. first: the code's first line. */
uint32_t python_line_at(const uint8_t *table, size_t len, uint32_t first, uint64_t unit);

struct python_line_range {
	uint32_t low, high; /* both 0: no lines */
};
/* Returns the lowest and the highest line of all code. */
struct python_line_range python_lines_range(const uint8_t *table, size_t len, uint32_t first);

#endif
