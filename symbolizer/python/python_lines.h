/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_lines: the table of lines of a code object, CPython 3.11 to 3.13.
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
#ifndef KVMPROF_SYMBOLIZER_PYTHON_PYTHON_LINES_H
#define KVMPROF_SYMBOLIZER_PYTHON_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/* The line of a unit of code; 0: none. first: the code's first line. */
uint32_t python_line_at(const uint8_t *table, size_t len, uint32_t first, uint64_t unit);

struct python_line_range {
	uint32_t low, high; /* both 0: there are no lines */
};
/* Between which lines all code lies. */
struct python_line_range python_lines_range(const uint8_t *table, size_t len, uint32_t first);

#endif
