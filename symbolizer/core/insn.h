/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn: how long an x86-64 instruction is, and what it does to rsp, rbp and rip.
 *
 * Not a disassembler: unwinding asks a few questions of very many instructions,
 * and must answer them some hundred times per sample. Lengths follow the opcode
 * maps of SDM vol. 2, appendix A (legacy, VEX and EVEX encodings, 64-bit mode).
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_INSN_H
#define KVMPROF_SYMBOLIZER_CORE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_MAX_LEN 15u

enum insn_kind {
	INSN_OTHER = 1, /* leaves rsp and the flow of control alone */
	INSN_PUSH_RBP,
	INSN_POP_RBP,
	INSN_MOV_RSP_RBP, /* rbp = rsp: a frame begins */
	INSN_LEAVE,
	INSN_RSP_FROM_RBP, /* rsp = rbp or rbp + displacement */
	INSN_RSP_FROM_R10, /* lea -8(%r10),%rsp: end of a function that realigned its stack */
	INSN_R10_FROM_RSP, /* lea value(%rsp),%r10: its start */
	INSN_PUSH_R10_M8,  /* push -8(%r10): then it copies the return address */
	INSN_RSP_ADD,	   /* push, pop, add, sub, lea: rsp += value */
	INSN_RSP_LOST,	   /* rsp changes in a way that we do not follow */
	INSN_CALL,	   /* direct: target in value */
	INSN_CALL_IND,
	INSN_JMP, /* target in value */
	INSN_JCC, /* target in value */
	INSN_JMP_IND,
	INSN_RET,
	INSN_IRET,
	INSN_TRAP, /* ud2, int3, hlt, sysret ...: nothing follows that we could use */
};

struct insn {
	uint8_t len;
	uint8_t kind;  /* enum insn_kind */
	int64_t value; /* RSP_ADD, R10_FROM_RSP: bytes; CALL, JMP, JCC: target */
};

/* Decode at va from the avail bytes at p. false: not an instruction, or it does not fit. */
bool insn_decode(struct insn *i, uint64_t va, const uint8_t *p, size_t avail);

/*
 * Do these bytes start a function that keeps a frame pointer, in the usual way:
 * optional endbr64, optional 5-byte nop or call (fentry), push %rbp,
 * mov %rsp,%rbp? Returns the offset of the push plus one, or 0.
 */
unsigned int insn_standard_prologue(const uint8_t *p, size_t avail);

/*
 * The same for 32-bit code, where other instructions may stand between the two: the
 * offsets of push %ebp and of mov %esp,%ebp in a function's first bytes. They are looked
 * for byte by byte, not instruction by instruction.
 */
#define INSN_PROLOGUE32_MAX 32u
bool insn_prologue32(const uint8_t *p, size_t avail, unsigned int *push, unsigned int *mov);

/*
 * Is a call at this offset from its function's start (bytes p) the one that
 * -pg -mfentry puts there: first, or right after endbr64?
 */
bool insn_is_fentry(const uint8_t *p, size_t avail, uint64_t off);

/*
 * Is there a call that ends at the end of p[0..n)? n up to 8 bytes are looked
 * at. A direct call's target goes to *target, which is 0 for an indirect one.
 */
bool insn_call_before(uint64_t end_va, const uint8_t *p, size_t n, uint64_t *target);

#endif
