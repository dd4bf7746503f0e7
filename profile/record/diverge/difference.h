/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * difference: finds where the records of two runs diverge. The functions work on their arguments only;
 * any thread. They return 0, or -EINVAL with the reason in *e if a record is damaged.
 */
#ifndef KVMPROF_PROFILE_RECORD_DIVERGE_DIFFERENCE_H
#define KVMPROF_PROFILE_RECORD_DIVERGE_DIFFERENCE_H

#include "vmm/exact/trace.h"

#define DIFFERENCE_INSN_MAX 15u

struct difference_insn {
	uint64_t number; /* from 1 on; 0: there is none */
	uint64_t pc;
	uint8_t len, code[DIFFERENCE_INSN_MAX];
};

enum difference_how {
	DIFFERENCE_END,	      /* one side has ended */
	DIFFERENCE_CODE,      /* another instruction is at the same address */
	DIFFERENCE_JUMP,      /* the instruction before continued elsewhere */
	DIFFERENCE_INTERRUPT, /* an interrupt or exception came on one side only */
};

struct difference_flow {
	bool found;
	enum difference_how how;
	/* DIFFERENCE_END: the side that ended; DIFFERENCE_INTERRUPT: the side that was interrupted */
	unsigned int side;
	/* the last instruction that both executed; number 0: it is not in the records */
	struct difference_insn last;
	struct difference_insn next[2]; /* the next instructions of sides A and B */
	/*
	 * Registers at the start of the block of next[i]; regs_at: the number of the instruction
	 * that follows.
	 */
	struct exact_regs regs[2];
	uint64_t regs_at[2];
};

struct difference_value {
	bool found;
	struct difference_insn insn; /* equal on both sides */
	struct trace_access access[2];
};

/* The first difference of registers. */
struct difference_regs {
	bool found;
	bool before;		     /* they differed before the records begin */
	struct difference_insn from; /* first instruction of the block in which it arose */
	uint64_t number;	     /* they differ before this instruction */
	/* The value that caused it, among the accesses of that block; kind 0: none of them. */
	struct difference_insn insn;
	struct trace_access access[2];
};

/*
 * Finds the first difference in the flow of control. Both readers are at their start, and are
 * advanced.
 */
int difference_find_flow(struct difference_flow *out, struct trace_reader side[2], struct err *e);
/* Advances the reader to the first block that reaches beyond instruction `from`. */
int difference_skip(struct trace_reader *r, uint64_t from, struct err *e);
/*
 * Find the first difference of accessed values, and of registers, before instruction `end`. The
 * readers are advanced.
 */
int difference_find_value(struct difference_value *out, struct trace_reader side[2], uint64_t end,
			  struct err *e);
int difference_find_regs(struct difference_regs *out, struct trace_reader side[2], uint64_t end,
			 struct err *e);

#endif
