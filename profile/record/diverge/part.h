/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * part: where the records of two runs part. Pure functions of them; any thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_DIVERGE_PART_H
#define KVMPROF_PROFILE_RECORD_DIVERGE_PART_H

#include "vmm/exact/trace.h"

#define PART_INSN_MAX 15u

struct part_insn {
	uint64_t number; /* from 1 on; 0: there is none */
	uint64_t pc;
	uint8_t len, code[PART_INSN_MAX];
};

enum part_how {
	PART_END,	/* one side has ended */
	PART_CODE,	/* at the same address there is another instruction */
	PART_JUMP,	/* the instruction before went elsewhere */
	PART_INTERRUPT, /* an interrupt or exception came on one side only */
};

struct part_flow {
	bool found;
	enum part_how how;
	unsigned int side;	  /* of PART_END: that has ended; of PART_INTERRUPT: that has it */
	struct part_insn last;	  /* that both have executed; number 0: it is not in the records */
	struct part_insn next[2]; /* of side A, B */
	/* As the block of next[i] begins; regs_at: before which instruction that is. */
	struct exact_regs regs[2];
	uint64_t regs_at[2];
};

struct part_value {
	bool found;
	struct part_insn insn; /* the same on both sides */
	struct trace_access access[2];
};

/* Registers differ for the first time. */
struct part_regs {
	bool found;
	bool before;	       /* since before the records begin */
	struct part_insn from; /* the first instruction of the block in which it happened */
	uint64_t number;       /* they differ before this instruction */
	/* The value by which they do, of the accesses of that block; kind 0: it is none of them. */
	struct part_insn insn;
	struct trace_access access[2];
};

/* Readers stand at their beginnings, and are moved. 0, or -EINVAL: a record is damaged. */
int part_find_flow(struct part_flow *out, struct trace_reader side[2], struct err *e);
/* Up to the first block that reaches beyond instruction `from`. */
int part_skip(struct trace_reader *r, uint64_t from, struct err *e);
/* Accesses before instruction `end` alone. */
int part_find_value(struct part_value *out, struct trace_reader side[2], uint64_t end,
		    struct err *e);
int part_find_regs(struct part_regs *out, struct trace_reader side[2], uint64_t end, struct err *e);

#endif
