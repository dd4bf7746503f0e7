/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hostile .sframe sections. The input: 8 bytes of an address, one that says how many bytes at the
 * end are not in memory, then the section. Rows that are found are gone by, from registers that
 * point into the same bytes.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "symbolizer/cfi/sframe.h"
#include "tests/fuzz/cfi_bytes.h"

#include <stdlib.h>
#include <string.h>

static void go(const struct sframe *t, struct bytes *b, uint64_t va)
{
	struct cfi_stack stack = { .read = read_stack, .ctx = b };
	struct cfi_regs g = { .known = 0 }, out;
	struct cfi_row row, settled;

	if (sframe_row(t, va, &row) != CFI_FOUND)
		return;
	for (unsigned int i = 0; i < CFI_REGS; i++) {
		const struct cfi_rule *rule = &row.rule[i];

		if (rule->how > CFI_EXPR || (rule->len && rule->value + rule->len > row.expr_len))
			abort();
		cfi_set(&g, i, BASE + 8 * i);
	}
	settled = row;
	cfi_row_classify(&settled);
	if (row.expr_len > CFI_MAX_EXPR || row.cfa_reg >= CFI_RIP ||
	    memcmp(&row, &settled, sizeof(row)) != 0)
		abort();
	if (cfi_step(&row, &g, &stack, &out) != CFI_STEP_ON)
		return;
	/* It tells of nothing but these. */
	if (out.known & ~(1u << CFI_RSP | 1u << CFI_RIP | 1u << CFI_RBP) ||
	    !cfi_knows(&out, CFI_RIP) || !cfi_knows(&out, CFI_RSP))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_source src;
	struct sframe t;
	struct bytes b;
	struct cursor c;
	size_t len, missing;
	uint64_t va;

	cursor_init(&c, data, size);
	va = cursor_u64(&c);
	missing = cursor_u8(&c);
	len = cursor_left(&c);
	b.at = len ? cursor_bytes(&c, len) : data;
	b.len = missing < len ? len - missing : len;
	src = (struct cfi_source){ read_bytes, &b };
	if (sframe_open(&t, &src, BASE, len) != CFI_FOUND)
		return 0;
	for (unsigned int i = 0; i < 24; i++)
		go(&t, &b, va + i * 3);
	sframe_deinit(&t);
	return 0;
}
