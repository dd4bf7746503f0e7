/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * User files with holes: the first 8 bytes say which of the first 64 pages of
 * the file that follows them are missing.
 */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/program/userelf.h"

#include <stdlib.h>
#include <string.h>

struct holed {
	const uint8_t *data;
	size_t len;
	uint64_t missing;
};

static size_t read_holed(void *ctx, uint64_t off, void *dst, size_t len)
{
	const struct holed *h = ctx;
	size_t n = 0;

	while (n < len) {
		uint64_t at = off + n, page = at / FILEPIECE_PAGE;
		size_t part = FILEPIECE_PAGE - (size_t)(at % FILEPIECE_PAGE);

		if (page < 64 && (h->missing >> page & 1))
			break;
		if (part > len - n)
			part = len - n;
		if (at + part > h->len)
			abort();
		memcpy((uint8_t *)dst + n, h->data + at, part);
		n += part;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct holed h = { 0 };
	struct file_source src = { .read = read_holed, .ctx = &h };
	struct userelf_names n;
	struct userelf u;
	struct symtab *t;
	struct err e = { 0 };
	uint64_t va, off;

	if (size < 8)
		return 0;
	memcpy(&h.missing, data, 8);
	h.data = data + 8;
	h.len = size - 8;
	src.len = h.len;
	if (userelf_open(&u, "fuzz", &src, &e) < 0) {
		if (!e.text[0])
			abort();
		return 0;
	}
	if (userelf_va_of(&u, u.entry, &va))
		(void)userelf_off_of(&u, va, &off);
	(void)userelf_is_text(&u, u.entry);
	if (userelf_symbols(&u, &t, &n, &e) < 0) {
		if (!e.text[0])
			abort();
		return 0;
	}
	if (symtab_count(t) > n.from_symtab + n.from_dynsym + n.from_plt + n.from_debugdata)
		abort();
	symtab_destroy(t);
	return 0;
}
