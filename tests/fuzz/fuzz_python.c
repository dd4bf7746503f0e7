/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile program that says it is Python. The input: 8 bytes of fs_base, 2 bytes of an offset, then
 * what lies in its memory, _PyRuntime first; what lies at the offset is taken for a code
 * object, for a table of lines and for a thread that runs.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/memory_bytes.h"

#include "symbolizer/python/python_code.h"

#include <stdlib.h>

#define BASE 0x10000u

static void check_code(const struct python_layout *l, const struct python_program *p, uint64_t at)
{
	static uint8_t table[PYTHON_MAX_LINES];
	struct python_code c;

	if (!python_code_read(&c, l, p, at))
		return;
	if (!memchr(c.name, 0, sizeof(c.name)) || !memchr(c.file, 0, sizeof(c.file)) ||
	    strchr(c.name, ';') || strchr(c.file, '\n') || c.nlines > PYTHON_MAX_LINES ||
	    python_code_lines(&c, p, table, sizeof(table)) > c.nlines)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* CPython 3.12's, so that code objects are reached without a thread. */
	struct python_layout l = { .code_file = 112,
				   .code_qualname = 128,
				   .code_lines = 136,
				   .code_first = 68,
				   .code_start = 192,
				   .object_type = 8,
				   .type_name = 24,
				   .bytes_len = 16,
				   .bytes_data = 32,
				   .string_len = 16,
				   .string_state = 32,
				   .string_ascii = 40,
				   .string_compact = 56 };
	struct memory_bytes b;
	const struct memory memory = { memory_bytes_read, &b };
	const struct python_program p = { &memory, 1, BASE };
	struct python_line_range r;
	uint64_t fs_base;
	uint16_t off;

	if (size < sizeof(fs_base) + sizeof(off))
		return 0;
	memcpy(&fs_base, data, sizeof(fs_base));
	memcpy(&off, data + sizeof(fs_base), sizeof(off));
	b = (struct memory_bytes){ BASE, data + sizeof(fs_base) + sizeof(off),
				   size - sizeof(fs_base) - sizeof(off) };
	check_code(&l, &p, BASE + off);
	if (off < b.len) {
		r = python_lines_range((const uint8_t *)b.bytes + off, b.len - off, off);
		if (r.low > r.high)
			abort();
		for (uint64_t unit = 0; unit < 64; unit++) {
			uint32_t line = python_line_at((const uint8_t *)b.bytes + off, b.len - off,
						       off, unit);

			if (line && (line < r.low || line > r.high))
				abort();
		}
	}
	if (python_layout_find(&l, &p, fs_base) == PYTHON_FOUND) {
		if (!python_thread(&l, &p, fs_base) || l.frame_span > PYTHON_MAX_FRAME)
			abort();
		check_code(&l, &p, BASE + off);
	}
	return 0;
}
