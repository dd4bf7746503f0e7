/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes as SSE and AVX instructions, 15 at a time: what is made ready to run here must reach
 * memory by its one base register alone, in the eyes of another decoder, and must not depend
 * on what is behind the instruction.
 */
#include "tests/fuzz/fuzz.h"

#include "vmm/pvm/simd_form.h"

#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_decoded(csh handle, const struct simd_form *f, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	require(insn->size == f->len);
	for (unsigned int i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];

		require(op->type != X86_OP_REG || op->reg < X86_REG_MM0 || op->reg > X86_REG_MM7);
		if (op->type != X86_OP_MEM)
			continue;
		require(f->memory && op->mem.disp == 0 && op->mem.index == X86_REG_INVALID &&
			op->mem.segment == X86_REG_INVALID &&
			op->mem.base == (f->base == 3 ? X86_REG_RBX : X86_REG_RSI));
	}
	require(!cs_insn_group(handle, insn, CS_GRP_JUMP) &&
		!cs_insn_group(handle, insn, CS_GRP_CALL) &&
		!cs_insn_group(handle, insn, CS_GRP_INT) &&
		!cs_insn_group(handle, insn, CS_GRP_PRIVILEGE));
}

static void check_one(csh handle, const uint8_t *bytes, size_t n)
{
	struct simd_form f, again;
	uint8_t alone[SIMD_FORM_MAX];
	cs_insn *insn = NULL;

	if (simd_form_parse(bytes, n, &f) < 0)
		return;
	require(f.len && f.len <= SIMD_FORM_MAX && f.source_len && f.source_len <= n);
	require(!f.memory || f.base == 3 || f.base == 6);
	memcpy(alone, bytes, f.source_len);
	require(simd_form_parse(alone, f.source_len, &again) == 0);
	require(!memcmp(f.code, again.code, f.len) && f.len == again.len);
	require(simd_form_parse(alone, f.source_len - 1, &again) < 0);
	if (cs_disasm(handle, f.code, f.len, 0, 1, &insn) == 1) {
		check_decoded(handle, &f, insn);
		cs_free(insn, 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	csh handle;

	require(cs_open(CS_ARCH_X86, CS_MODE_64, &handle) == CS_ERR_OK);
	require(cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK);
	for (size_t at = 0; at < size; at += SIMD_FORM_MAX)
		check_one(handle, data + at, size - at < SIMD_FORM_MAX ? size - at : SIMD_FORM_MAX);
	cs_close(&handle);
	return 0;
}
