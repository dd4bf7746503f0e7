/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/disasm.h"

#include "symbolizer/core/insn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct disasm {
	struct disasm_decoder x86;
};

int disasm_decoder_open(struct disasm_decoder *d, struct err *e)
{
	const struct capstone *cs = capstone_get(e);
	cs_err ret;

	if (!cs)
		return -ENOENT;
	ret = cs->cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle);
	if (ret != CS_ERR_OK)
		return err_set(e, ENOSYS, "capstone cannot decode x86-64: %s",
			       cs->cs_strerror(ret));
	cs->cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->insn = cs->cs_malloc(d->handle);
	d->cs = cs;
	if (d->insn)
		return 0;
	cs->cs_close(&d->handle);
	return err_nomem(e);
}

void disasm_decoder_close(struct disasm_decoder *d)
{
	d->cs->cs_free(d->insn, 1);
	d->cs->cs_close(&d->handle);
}

int disasm_open(struct disasm **out, enum disasm_syntax syntax, struct err *e)
{
	struct disasm *d = calloc(1, sizeof(*d));
	int ret = d ? disasm_decoder_open(&d->x86, e) : err_nomem(e);

	if (ret) {
		free(d);
		return ret;
	}
	d->x86.cs->cs_option(d->x86.handle, CS_OPT_SYNTAX,
			     syntax == DISASM_INTEL ? CS_OPT_SYNTAX_INTEL : CS_OPT_SYNTAX_ATT);
	*out = d;
	return 0;
}

void disasm_close(struct disasm *d)
{
	if (!d)
		return;
	disasm_decoder_close(&d->x86);
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
	if (!d->x86.cs->cs_disasm_iter(d->x86.handle, &p, &left, &at, d->x86.insn)) {
		put_bytes(out, bytes, known ? flow.len : 1);
		return;
	}
	out->len = (uint8_t)d->x86.insn->size;
	snprintf(out->mnemonic, sizeof(out->mnemonic), "%.31s", d->x86.insn->mnemonic);
	snprintf(out->operands, sizeof(out->operands), "%.*s", (int)DISASM_OPERANDS - 1,
		 d->x86.insn->op_str);
	if (!known || flow.len != out->len)
		flow.kind = INSN_OTHER;
	find_target(out, d->x86.insn, &flow);
}
