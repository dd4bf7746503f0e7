/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn: decodes the length of an x86-64 instruction and its effect on rsp, rbp and rip.
 *
 * This is not a disassembler: unwinding needs a few facts about very many instructions, some
 * hundred times per sample. Lengths follow the opcode maps of SDM vol. 2, appendix A (legacy, VEX
 * and EVEX encodings, 64-bit mode). Pure functions; any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_INSN_H
#define KVMPROF_SYMBOLIZER_CORE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_MAX_LEN 15u

enum insn_kind {
	INSN_OTHER = 1, /* no effect on rsp and the control flow */
	INSN_PUSH_RBP,
	INSN_POP_RBP,
	INSN_MOV_RSP_RBP, /* rbp = rsp: establishes a frame */
	INSN_LEAVE,
	INSN_RSP_FROM_RBP, /* rsp = rbp or rbp + displacement */
	INSN_RSP_FROM_R10, /* lea -8(%r10),%rsp: end of a function that has realigned its stack */
	INSN_R10_FROM_RSP, /* lea value(%rsp),%r10: start of such a function */
	INSN_PUSH_R10_M8,  /* push -8(%r10): copies the return address */
	INSN_RSP_ADD,	   /* push, pop, add, sub, lea: rsp += value */
	INSN_RSP_LOST,	   /* rsp changes in a way that is not tracked */
	INSN_CALL,	   /* direct: target in value */
	INSN_CALL_IND,
	INSN_JMP, /* target in value */
	INSN_JCC, /* target in value */
	INSN_JMP_IND,
	INSN_RET,
	INSN_IRET,
	INSN_TRAP, /* ud2, int3, hlt, sysret ...: execution does not continue in a usable way */
};

struct insn {
	uint8_t len;
	uint8_t kind;  /* enum insn_kind */
	int64_t value; /* RSP_ADD, R10_FROM_RSP: bytes; CALL, JMP, JCC: target address */
};

/*
 * Decodes the instruction at address va from the avail bytes at p into *i. Returns false, with *i
 * unspecified, if it is not an instruction or does not fit.
 */
bool insn_decode(struct insn *i, uint64_t va, const uint8_t *p, size_t avail);

/*
 * Returns whether the bytes are the usual start of a function with a frame pointer: optional
 * endbr64, optional 5-byte nop or call (fentry), push %rbp, mov %rsp,%rbp. The result is the
 * offset of the push plus one, or 0.
 */
unsigned int insn_standard_prologue(const uint8_t *p, size_t avail);

/*
 * Does the same for 32-bit code, where other instructions may be between the two. Returns true and
 * stores the offsets of push %ebp and of mov %esp,%ebp in the function's first INSN_PROLOGUE32_MAX
 * bytes if both are found. It searches byte by byte, not instruction by instruction.
 */
#define INSN_PROLOGUE32_MAX 32u
bool insn_prologue32(const uint8_t *p, size_t avail, unsigned int *push, unsigned int *mov);

/*
 * Returns whether a call at offset off of its function (bytes p) is the one that -pg -mfentry
 * inserts: at the start, or directly after endbr64.
 */
bool insn_is_fentry(const uint8_t *p, size_t avail, uint64_t off);

/*
 * Returns whether a call ends at the end of p[0..n), of which up to 8 bytes are examined; end_va
 * is the address after it. *target receives the target of a direct call, and 0 for an indirect
 * one.
 */
bool insn_call_before(uint64_t end_va, const uint8_t *p, size_t n, uint64_t *target);

#endif
