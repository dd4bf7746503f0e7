/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes as instructions, 15 at a time, as they come from a guest's memory: what is said of
 * each must be within its limits, the same when asked again, and not depend on what is
 * behind the instruction.
 */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/core/memop.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST 15u

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_operand(const struct memop_insn *i, const struct memop *op)
{
	struct sample_regs zero = { 0 };
	uint64_t va;

	require(op->size <= 512);
	require(op->scale == 1 || op->scale == 2 || op->scale == 4 || op->scale == 8);
	require(op->base < GPR_COUNT || op->base == MEMOP_RIP || op->base == MEMOP_NO_REG);
	require(op->index < GPR_COUNT || op->index == MEMOP_NO_REG);
	require(op->bit_reg < GPR_COUNT || op->bit_reg == MEMOP_NO_REG);
	require(op->segment <= MEMOP_GS && op->access <= (MEMOP_READ | MEMOP_WRITE));
	va = memop_address(i, op, &zero);
	require(!op->addr32 || va <= UINT32_MAX);
}

static void check_one(struct memop_decoder *d, const uint8_t *bytes, size_t len)
{
	struct memop_insn first = *memop_decode(d, bytes, len), again;
	uint8_t alone[LONGEST];

	again = *memop_decode(d, bytes, len);
	require(!memcmp(&first, &again, sizeof(first)));
	require(first.why < MEMOP_WHY_COUNT && first.n <= MEMOP_MAX && first.len <= len);
	require(first.why == MEMOP_OK || first.n == 0);
	require((first.len != 0) == (first.why == MEMOP_OK || first.why == MEMOP_VECTOR_INDEX));
	for (unsigned int i = 0; i < first.n; i++)
		check_operand(&first, &first.op[i]);
	if (!first.len)
		return;
	memcpy(alone, bytes, first.len);
	again = *memop_decode(d, alone, first.len);
	require(!memcmp(&first, &again, sizeof(first)));
	/* Cut short it is not taken for another one's end. */
	again = *memop_decode(d, alone, first.len - 1u);
	require(again.len < first.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memop_decoder *d = NULL;

	require(memop_open(&d, NULL) == 0);
	for (size_t at = 0; at < size; at += LONGEST)
		check_one(d, data + at, size - at < LONGEST ? size - at : LONGEST);
	memop_close(d);
	return 0;
}
