/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disasm: converts x86-64 instructions to text, and reports what they refer to, with capstone.
 *
 * An instruction that capstone does not know (a newer one) is shown as bytes. Its length is that
 * of symbolizer/core/insn.h, or else one byte, so that the following instructions are decoded
 * correctly. Not thread-safe: one thread per object.
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
	DISASM_JUMP, /* direct, also conditional */
	DISASM_CALL, /* direct */
};

struct disasm_insn {
	uint8_t len; /* bytes, 1 to 15, at most those available */
	uint8_t kind;
	bool bad; /* not a known instruction; mnemonic and operands show its bytes */
	/* Target is valid: of a jump or call, or the address of a rip-relative operand. */
	bool has_target;
	uint64_t target;
	char mnemonic[32];
	/* Empty for direct jumps and calls: the caller prints the target. */
	char operands[DISASM_OPERANDS];
};

struct disasm;

enum disasm_syntax { DISASM_ATT, DISASM_INTEL };
/*
 * Creates a disassembler. Returns 0, or -errno of disasm_decoder_open() with *e set. The caller
 * frees *out with disasm_close(), which accepts NULL.
 */
int disasm_open(struct disasm **out, enum disasm_syntax syntax, struct err *e);
void disasm_close(struct disasm *d);

/* Decodes the instruction at address va from `avail` bytes, at least one. */
void disasm_one(struct disasm *d, uint64_t va, const uint8_t *bytes, size_t avail,
		struct disasm_insn *out);

/*
 * An open capstone for 64-bit code with operand details. insn holds the decoded instruction until
 * the next one is decoded.
 */
struct disasm_decoder {
	const struct capstone *cs;
	csh handle;
	cs_insn *insn;
};

/*
 * Opens capstone. Returns 0; -ENOENT if it is not installed, -ENOSYS if it does not support
 * x86-64, or -ENOMEM, with *e set. Only after success, the caller closes *d with
 * disasm_decoder_close().
 */
int disasm_decoder_open(struct disasm_decoder *d, struct err *e);
void disasm_decoder_close(struct disasm_decoder *d);

#endif
