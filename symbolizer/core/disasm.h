/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disasm: x86-64 instructions as text, and what they refer to. By capstone.
 *
 * What capstone does not know (newer instructions) is as long as symbolizer/core/insn.h says,
 * else one byte, and is shown as bytes, so that what follows is still right. One thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_DISASM_H
#define KVMPROF_SYMBOLIZER_CORE_DISASM_H

#include "base/capstone.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISASM_OPERANDS 160u

enum disasm_kind {
	DISASM_OTHER,
	DISASM_JUMP, /* direct, conditional ones too: to target */
	DISASM_CALL, /* direct: to target */
};

struct disasm_insn {
	uint8_t len; /* 1 to 15, at most what was given */
	uint8_t kind;
	bool bad;	 /* not an instruction that is known */
	bool has_target; /* the address of a jump, a call, or a rip-relative operand */
	uint64_t target;
	char mnemonic[32];
	/* Of jumps and calls empty: the caller prints the target. */
	char operands[DISASM_OPERANDS];
};

struct disasm;

enum disasm_syntax { DISASM_ATT, DISASM_INTEL };
int disasm_open(struct disasm **out, enum disasm_syntax syntax, struct err *e);
void disasm_close(struct disasm *d);

/* The instruction at va, in avail bytes, which are at least one. */
void disasm_one(struct disasm *d, uint64_t va, const uint8_t *bytes, size_t avail,
		struct disasm_insn *out);

/* capstone for 64-bit code, with operands. What it decodes stands in insn until the next call. */
struct disasm_decoder {
	const struct capstone *cs;
	csh handle;
	cs_insn *insn;
};

/* -ENOENT: no capstone; -ENOSYS: it knows no x86-64; -ENOMEM. Then there is nothing to close. */
int disasm_decoder_open(struct disasm_decoder *d, struct err *e);
void disasm_decoder_close(struct disasm_decoder *d);

#endif
