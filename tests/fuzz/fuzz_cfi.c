/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hostile call frame information. The input: a byte of flags, 8 bytes of an address,
 * then what lies at the table's address. Bit 0 of the flags: it begins with .eh_frame_hdr,
 * else it is a section, with bit 1 a .debug_frame. Rows that are found are gone by, from
 * registers that point into the same bytes.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "symbolizer/cfi/cfi_table.h"
#include "tests/fuzz/cfi_bytes.h"

#include <stdlib.h>
#include <string.h>

/* A plain step comes to the same as any. */
static void plain(const struct cfi_row *row, const struct cfi_regs *g, const struct bytes *b)
{
	struct cfi_stack stack = { read_stack, (void *)(uintptr_t)b, b->at, BASE, b->len, 0 };
	struct cfi_regs mine = *g, out;
	struct cfi_plain at;

	if (!cfi_plain_at(row, g, &stack, &at))
		return;
	cfi_plain_apply(&at, &mine);
	if (cfi_step(row, g, &stack, &out) != CFI_STEP_ON || mine.known != out.known)
		abort();
	for (unsigned int i = 0; i < CFI_REGS; i++)
		if (cfi_knows(&out, i) && mine.r[i] != out.r[i])
			abort();
}

static void go(const struct cfi_table *t, struct bytes *b, uint64_t va)
{
	struct cfi_stack stack = { .read = read_stack, .ctx = b };
	struct cfi_regs g = { .known = 0 }, out;
	struct cfi_row row;

	if (cfi_table_row(t, va, &row) != CFI_FOUND)
		return;
	for (unsigned int i = 0; i < CFI_REGS; i++) {
		if (row.rule[i].how > CFI_EXPR)
			abort();
		if (i % 5)
			cfi_set(&g, i, BASE + 8 * i);
	}
	if (row.expr_len > CFI_MAX_EXPR || (!row.cfa_len && row.cfa_reg >= CFI_REGS))
		abort();
	if (cfi_step(&row, &g, &stack, &out) == CFI_STEP_ON &&
	    (!cfi_knows(&out, CFI_RIP) || !cfi_knows(&out, CFI_RSP)))
		abort();
	plain(&row, &g, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_table t;
	enum cfi_found found;
	struct bytes b;
	struct cursor c;
	uint64_t va, frame;
	uint8_t flags;

	cursor_init(&c, data, size);
	flags = cursor_u8(&c);
	va = cursor_u64(&c);
	b.len = cursor_left(&c);
	b.at = b.len ? cursor_bytes(&c, b.len) : data;
	if (flags & 1) {
		struct cfi_source src = { read_bytes, &b };

		found = cfi_table_by_header(&t, &src, BASE, b.len, &frame);
	} else {
		struct cfi_section s = {
			.src = { read_bytes, &b },
			.kind = flags & 2 ? CFI_DEBUG_FRAME : CFI_EH_FRAME,
			.va = BASE,
			.len = b.len,
		};

		found = cfi_table_by_section(&t, &s);
	}
	if (found != CFI_FOUND)
		return 0;
	go(&t, &b, va);
	for (unsigned int i = 0; i < 16; i++)
		go(&t, &b, va + i * 7);
	cfi_table_deinit(&t);
	return 0;
}
