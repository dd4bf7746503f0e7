/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 3000 runs */
/*
 * Bytes as instructions, as they come from a guest's memory: each is decoded from a copy
 * of its own, which ends where the bytes do, and says the same with others behind it.
 */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/core/insn.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES 1024u
#define VA UINT64_C(0xffffffff81000000)

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_insn(const struct insn *i, size_t avail)
{
	require(i->len >= 1 && i->len <= INSN_MAX_LEN && i->len <= avail);
	require(i->kind >= INSN_OTHER && i->kind <= INSN_TRAP);
}

static void check_at(const uint8_t *bytes, size_t n)
{
	uint8_t *alone = malloc(n);
	struct insn insn, again;
	unsigned int push, mov;
	uint64_t target;
	size_t tail = n < 8 ? n : 8;

	require(alone != NULL);
	memcpy(alone, bytes, n);
	if (insn_decode(&insn, VA, alone, n)) {
		check_insn(&insn, n);
		require(insn_decode(&again, VA, bytes, insn.len));
		require(again.len == insn.len && again.kind == insn.kind &&
			again.value == insn.value);
		require(insn.len == 1 || !insn_decode(&again, VA, bytes, insn.len - 1u));
	}
	require(insn_standard_prologue(alone, n) <= n);
	if (insn_prologue32(alone, n, &push, &mov))
		require(push < mov && mov < n);
	for (uint64_t off = 0; off < 6; off++)
		insn_is_fentry(alone, n, off);
	insn_call_before(VA, alone + n - tail, tail, &target);
	free(alone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > MAX_BYTES)
		return 0;
	for (size_t at = 0; at < size; at++) {
		size_t n = size - at < 2 * INSN_MAX_LEN ? size - at : 2 * INSN_MAX_LEN;

		for (size_t len = n > INSN_MAX_LEN ? INSN_MAX_LEN : n; len; len--)
			check_at(data + at, len);
		check_at(data + at, n);
	}
	return 0;
}
