/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi: the call frame information of one address, and a step to the caller by it.
 *
 * The tables of a program describe, for each of its instructions, how the caller's registers are
 * found. The rules of one address are a row. The canonical frame address (CFA) is a register plus
 * an offset, or an expression; each register has a rule relative to it. A row contains no
 * addresses: it is the same wherever the file is mapped.
 *
 * Sources: DWARF 5, section 6.4 (rules, instructions) and 2.5 (expressions); System V ABI, x86-64
 * supplement, figure 3.36 (register numbers) and 3.2.1 (which of them a function preserves); Linux
 * Standard Base Core 5.0, 10.6 (.eh_frame).
 *
 * Pure functions over values, no allocation; any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_H

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
enum cfi_reg {
	CFI_RAX, CFI_RDX, CFI_RCX, CFI_RBX, CFI_RSI, CFI_RDI, CFI_RBP, CFI_RSP,
	CFI_R8, CFI_R9, CFI_R10, CFI_R11, CFI_R12, CFI_R13, CFI_R14, CFI_R15,
	CFI_RIP, /* the return address */
	CFI_REGS
};
/* clang-format on */

/* Registers that a function preserves (psABI, figure 3.4). */
#define CFI_KEPT                                                                         \
	(1u << CFI_RBX | 1u << CFI_RBP | 1u << CFI_R12 | 1u << CFI_R13 | 1u << CFI_R14 | \
	 1u << CFI_R15)
#define CFI_KEPT_REGS 6u

/* Maximum bytes of all expressions of a row. A signal frame has about 60. */
#define CFI_MAX_EXPR 160u

enum cfi_how {
	CFI_DEFAULT = 0, /* no rule: unchanged if functions preserve it, else unknown */
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_SAVED,	/* its value is in memory at CFA + value */
	CFI_OFFSET,	/* its value is CFA + value */
	CFI_REGISTER,	/* its value is in register number `value` */
	CFI_SAVED_EXPR, /* its value is in memory at the address that an expression computes */
	CFI_EXPR,	/* its value is the result of an expression */
};

struct cfi_rule {
	int32_t value; /* offset or register; for an expression: its begin in the row's expr */
	uint8_t how;   /* enum cfi_how */
	uint8_t len;   /* bytes of an expression */
	uint16_t zero; /* keeps this byte 0: rows are compared bytewise */
};

struct cfi_row {
	int32_t cfa;	   /* offset; if cfa_len is not 0: begin of the expression in expr */
	uint8_t cfa_reg;   /* enum cfi_reg */
	uint8_t cfa_len;   /* bytes of the expression; 0: the CFA is a register + offset */
	uint8_t is_signal; /* the caller was interrupted, it did not call: augmentation 'S' */
	uint8_t expr_len;
	/* Computed by cfi_row_classify() from the rules, so that a step need not examine each. */
	uint32_t ruled; /* bit n: rule[n] is not CFI_DEFAULT */
	/* For cfi_plain_at(), in words of 8 bytes below the CFA. */
	uint8_t deepest;	      /* lowest saved word; 0: the row is not plain */
	uint8_t below[CFI_KEPT_REGS]; /* saved word of each register of cfi_kept[]; 0: not saved */
	uint8_t zero;
	struct cfi_rule rule[CFI_REGS];
	uint8_t expr[CFI_MAX_EXPR];
};

/* Computes the derived members of a row. Call it once all rules are set. */
void cfi_row_classify(struct cfi_row *row);

/* The registers of a frame, as far as they are known. */
struct cfi_regs {
	uint64_t r[CFI_REGS];
	uint32_t known; /* bit n: r[n] is the register's value */
};

static inline bool cfi_knows(const struct cfi_regs *g, unsigned int reg)
{
	return g->known >> reg & 1;
}

static inline void cfi_set(struct cfi_regs *g, unsigned int reg, uint64_t value)
{
	g->r[reg] = value;
	g->known |= 1u << reg;
}

/* Reads eight bytes of the stack at va. Returns false if they were not copied. */
typedef bool (*cfi_read_stack)(void *ctx, uint64_t va, uint64_t *out);

/* The result of a step. */
enum cfi_step {
	CFI_STEP_ON,	  /* the caller's registers are known */
	CFI_STEP_ROOT,	  /* there is no caller: the return address is undefined */
	CFI_STEP_MISSING, /* bytes at `missing` are not available */
	CFI_STEP_UNKNOWN, /* a rule needs an unknown register, or is invalid */
};

/* The stack of a frame. */
struct cfi_stack {
	cfi_read_stack read;
	void *ctx;
	/* Bytes [near_va, near_va + near_len) of it, which most steps need only; may be none. */
	const uint8_t *near;
	uint64_t near_va, near_len;
	uint64_t missing; /* set by CFI_STEP_MISSING */
};
/*
 * Steps from registers *g to the caller's in *out, which must be another object. *out is valid for
 * CFI_STEP_ON only.
 */
enum cfi_step cfi_step(const struct cfi_row *row, const struct cfi_regs *g, struct cfi_stack *stack,
		       struct cfi_regs *out);

/*
 * A plain step, as most are: the CFA is a register plus an offset, the return address is directly
 * below it, and some registers that functions preserve are saved further below, all within the
 * near bytes and above rsp. Its result is the same as that of cfi_step(), in less time.
 */
struct cfi_plain {
	uint64_t cfa, ret;
	const uint8_t *top; /* pointer to the near byte at the CFA */
	uint32_t ruled;	    /* copied from the row, as is below */
	uint8_t below[CFI_KEPT_REGS];
};
/* Prepares a plain step. Returns false if this step is not plain; then use cfi_step(). */
bool cfi_plain_at(const struct cfi_row *row, const struct cfi_regs *g,
		  const struct cfi_stack *stack, struct cfi_plain *out);
/* Changes *g to the caller's registers. g must be the one passed to cfi_plain_at(). */
void cfi_plain_apply(const struct cfi_plain *at, struct cfi_regs *g);

#endif
