/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blockend: what an instruction does to the flow of control and to the stack pointer.
 *
 * Only as much of x86's encoding as that takes (Intel SDM volume 2, appendix A). Bytes are the
 * guest's: nothing beyond len is read, and what is not known is BLOCKEND_FALL.
 */
#ifndef KVMPROF_VMM_EXACT_BLOCKEND_H
#define KVMPROF_VMM_EXACT_BLOCKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum blockend_kind {
	BLOCKEND_FALL,	   /* goes on at the next instruction */
	BLOCKEND_JUMP,	   /* to a target that the instruction names, or on: also conditional */
	BLOCKEND_JUMP_IND, /* to where a register or memory says */
	BLOCKEND_CALL,
	BLOCKEND_CALL_IND,
	BLOCKEND_RET,	  /* also far */
	BLOCKEND_IRET,	  /* from an interrupt */
	BLOCKEND_SYSCALL, /* SYSCALL, SYSENTER, INT n */
	BLOCKEND_SYSRET,  /* SYSRET, SYSEXIT */
};

struct blockend {
	enum blockend_kind kind;
	bool has_target;
	int64_t target; /* has_target: from the end of the instruction */
	bool moves_sp;	/* loads the stack pointer anew: not push, pop, add or subtract */
};

/*
 * Of one whole instruction. In 32-bit code 40 to 4f are instructions of one byte, which is all prefix
 * here: nothing that ends a block either.
 */
struct blockend blockend_of(const uint8_t *insn, size_t len);

#endif
