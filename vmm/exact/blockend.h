/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blockend: classifies what an x86 instruction does to the control flow and to the stack pointer.
 *
 * It decodes only as much of x86's encoding as that needs (Intel SDM volume 2, appendix A). The
 * bytes come from the guest: the decoder reads nothing beyond len, and reports an unknown
 * instruction as BLOCKEND_FALL. Pure function, callable by any thread.
 */
#ifndef KVMPROF_VMM_EXACT_BLOCKEND_H
#define KVMPROF_VMM_EXACT_BLOCKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum blockend_kind {
	BLOCKEND_FALL,	   /* continues at the next instruction */
	BLOCKEND_JUMP,	   /* direct jump, conditional or not; may also fall through */
	BLOCKEND_JUMP_IND, /* jump to an address in a register or in memory */
	BLOCKEND_CALL,
	BLOCKEND_CALL_IND,
	BLOCKEND_RET,	  /* near or far */
	BLOCKEND_IRET,	  /* return from an interrupt */
	BLOCKEND_SYSCALL, /* SYSCALL, SYSENTER, INT n */
	BLOCKEND_SYSRET,  /* SYSRET, SYSEXIT */
};

struct blockend {
	enum blockend_kind kind;
	bool has_target;
	int64_t target; /* valid if has_target; relative to the end of the instruction */
	/*
	 * Whether the instruction loads the stack pointer (MOV, LEA, POP, XCHG, LEAVE). PUSH, POP
	 * of another register, ADD and SUB do not count.
	 */
	bool moves_sp;
};

/*
 * Returns the classification of the one instruction in insn[0..len), which must be complete. It
 * assumes 64-bit code: in 32-bit code it takes the one-byte instructions 40 to 4f for prefixes,
 * which does no harm because none of them ends a block.
 */
struct blockend blockend_of(const uint8_t *insn, size_t len);

#endif
