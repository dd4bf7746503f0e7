/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hostile tables of a Go program. The input: 8 bytes of an address, then the section. */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "symbolizer/program/gopclntab.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gopclntab_func f;
	struct gopclntab t;
	struct file_bytes bytes;
	struct file_source src;
	struct cfi_row row;
	uint64_t va;

	if (size < sizeof(va))
		return 0;
	memcpy(&va, data, sizeof(va));
	bytes = (struct file_bytes){ data + sizeof(va), size - sizeof(va) };
	src = filepiece_source_of_bytes(&bytes);
	if (gopclntab_open(&t, &src, 0, bytes.len, va) != CFI_FOUND)
		return 0;
	for (unsigned int i = 0; i < 16; i++) {
		if (gopclntab_row(&t, va + i * 7, &row) != CFI_FOUND)
			continue;
		if (row.cfa < 8 || row.cfa_reg != CFI_RSP || row.cfa_len)
			abort();
	}
	for (uint32_t i = 0; i < t.nfuncs && i < 64; i++)
		if (gopclntab_func_at(&t, i, &f) == CFI_FOUND &&
		    (f.start >= f.end || !memchr(f.name, 0, sizeof(f.name))))
			abort();
	return 0;
}
