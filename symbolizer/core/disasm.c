/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/disasm.h"

#include "symbolizer/core/insn.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct disasm {
	csh handle;
	cs_insn *insn;
};

int disasm_open(struct disasm **out, bool intel, struct err *e)
{
	struct disasm *d = calloc(1, sizeof(*d));
	cs_err ret;

	if (!d)
		return err_set(e, ENOMEM, "out of memory");
	ret = cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle);
	if (ret != CS_ERR_OK) {
		free(d);
		return err_set(e, ENOSYS, "capstone cannot disassemble x86-64: %s",
			       cs_strerror(ret));
	}
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	cs_option(d->handle, CS_OPT_SYNTAX, intel ? CS_OPT_SYNTAX_INTEL : CS_OPT_SYNTAX_ATT);
	d->insn = cs_malloc(d->handle);
	if (!d->insn) {
		disasm_close(d);
		return err_set(e, ENOMEM, "out of memory");
	}
	*out = d;
	return 0;
}

void disasm_close(struct disasm *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	cs_close(&d->handle);
	free(d);
}

static void put_bytes(struct disasm_insn *out, const uint8_t *bytes, unsigned int len)
{
	out->bad = true;
	out->len = (uint8_t)len;
	snprintf(out->mnemonic, sizeof(out->mnemonic), ".byte");
	for (unsigned int i = 0; i < len; i++) {
		size_t n = strlen(out->operands);

		snprintf(out->operands + n, sizeof(out->operands) - n, "%s0x%02x", i ? ", " : "",
			 bytes[i]);
	}
}

static void find_target(struct disasm_insn *out, const cs_insn *in, const struct insn *flow)
{
	const cs_x86 *x = &in->detail->x86;

	if (flow->kind == INSN_CALL || flow->kind == INSN_JMP || flow->kind == INSN_JCC) {
		out->kind = flow->kind == INSN_CALL ? DISASM_CALL : DISASM_JUMP;
		out->has_target = true;
		out->target = (uint64_t)flow->value;
		out->operands[0] = '\0';
		return;
	}
	for (unsigned int i = 0; i < x->op_count; i++) {
		if (x->operands[i].type != X86_OP_MEM || x->operands[i].mem.base != X86_REG_RIP)
			continue;
		out->has_target = true;
		out->target = in->address + in->size + (uint64_t)x->operands[i].mem.disp;
	}
}

void disasm_one(struct disasm *d, uint64_t va, const uint8_t *bytes, size_t avail,
		struct disasm_insn *out)
{
	const uint8_t *p = bytes;
	size_t left = avail;
	uint64_t at = va;
	struct insn flow = { 0 };
	bool known = insn_decode(&flow, va, bytes, avail);

	*out = (struct disasm_insn){ 0 };
	if (!cs_disasm_iter(d->handle, &p, &left, &at, d->insn)) {
		put_bytes(out, bytes, known ? flow.len : 1);
		return;
	}
	out->len = (uint8_t)d->insn->size;
	snprintf(out->mnemonic, sizeof(out->mnemonic), "%.31s", d->insn->mnemonic);
	snprintf(out->operands, sizeof(out->operands), "%.*s", (int)DISASM_OPERANDS - 1,
		 d->insn->op_str);
	if (!known || flow.len != out->len)
		flow.kind = INSN_OTHER;
	find_target(out, d->insn, &flow);
}
