/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 600 runs */
/*
 * Bytes as SSE and AVX instructions, 15 at a time. What is assembled for each runs on this
 * machine's CPU: it must change and read no general register, no flag and no memory but those
 * that the form states. It must not depend on what is behind the instruction.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/simd_judge.h"

#include "vmm/pvm/simd_form.h"

#include <stdlib.h>
#include <string.h>

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_one(const uint8_t *bytes, size_t n, uint64_t seed)
{
	struct simd_form f, again;
	struct simd_permit permit;
	uint8_t alone[SIMD_FORM_MAX];

	if (simd_form_parse(bytes, n, &f) < 0)
		return;
	require(f.len && f.len <= SIMD_FORM_MAX && f.source_len && f.source_len <= n);
	require(f.memory_size <= SIMD_OPERAND_MAX && simd_form_check(&f));
	memcpy(alone, bytes, f.source_len);
	require(simd_form_parse(alone, f.source_len, &again) == 0);
	require(!memcmp(f.code, again.code, f.len) && f.len == again.len);
	require(simd_form_parse(alone, f.source_len - 1, &again) < 0);
	permit = simd_form_permits(&f);
	require(!(simd_judge(f.code, f.len, &permit, seed) & ~JUDGE_UNKNOWN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct simd_permit none;
	static const uint8_t to_rsp[] = { 0xf2, 0x48, 0x0f, 0x2c, 0xe0 };

	require(simd_judge_start() == 0);
	/* The judge itself: cvttsd2si rsp, xmm0. */
	require(simd_judge(to_rsp, sizeof(to_rsp), &none, 7) == JUDGE_WROTE_REGISTER);
	for (size_t at = 0; at < size; at += SIMD_FORM_MAX)
		check_one(data + at, size - at < SIMD_FORM_MAX ? size - at : SIMD_FORM_MAX, at + 1);
	return 0;
}
