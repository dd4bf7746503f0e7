/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces of exact runs: a file is what it says, or refused, and two of any records can be compared:
 * the answer is of instructions that are in them.
 */
#include "tests/fuzz/fuzz.h"

#include "profile/record/diverge/difference.h"

#include <stdlib.h>
#include <string.h>

static void must(bool what)
{
	if (!what)
		abort();
}

/* Records of the second half begin at the same place as those of the first. */
static void compare(const struct trace_reader side[2])
{
	struct trace_reader r[2];
	struct difference_flow flow;
	struct difference_value value;
	struct difference_regs regs;
	struct err e = { 0 };

	memcpy(r, side, sizeof(r));
	if (!difference_find_flow(&flow, r, &e) && flow.found) {
		must(flow.next[0].number || flow.next[1].number);
		must(flow.how != DIFFERENCE_END || !flow.next[flow.side].number);
	}
	memcpy(r, side, sizeof(r));
	if (!difference_find_value(&value, r, UINT64_MAX, &e) && value.found)
		must(value.insn.len && value.access[0].kind && value.access[1].kind);
	memcpy(r, side, sizeof(r));
	if (!difference_skip(&r[0], 3, &e) && !difference_find_regs(&regs, r, 100, &e) &&
	    regs.found)
		must(regs.number && (regs.before || regs.from.number));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = calloc(1, TRACE_DATA + size + 1);
	struct trace_reader r[2];
	struct err e = { 0 };
	size_t head = size < sizeof(struct trace_head) ? size : sizeof(struct trace_head);

	if (!file)
		return 0;
	/* The head's unused bytes are not in the corpus. */
	memcpy(file, data, head);
	memcpy(file + TRACE_DATA, data + head, size - head);
	if (!trace_open(&r[0], file, TRACE_DATA + size - head, &e)) {
		must(r[0].head.step ? r[0].head.nchecks * 16 <= size : r[0].len <= size);
		r[1] = r[0];
		r[0].len /= 2;
		r[0].len &= ~(size_t)7;
		r[1].data += r[0].len;
		r[1].len -= r[0].len;
		if (!r[0].head.step)
			compare(r);
	}
	free(file);
	return 0;
}
