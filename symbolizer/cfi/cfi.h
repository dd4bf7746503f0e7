/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi: what call frame information says of one address, and a step by it.
 *
 * Tables of a program give for each of its instructions how the caller's registers
 * are found. The rules of one address are a row. The canonical frame address (CFA) is
 * a register plus an offset, or an expression; each register has a rule relative to
 * it. A row holds no addresses of its own: it is the same wherever the file is mapped.
 *
 * Sources: DWARF 5, section 6.4 (rules, instructions) and 2.5 (expressions); System V
 * ABI, x86-64 supplement, figure 3.36 (register numbers) and 3.2.1 (which of them a
 * function keeps); Linux Standard Base Core 5.0, 10.6 (.eh_frame).
 *
 * All values, no allocation; any thread.
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

/* A function returns with these as they were (psABI, figure 3.4). */
#define CFI_KEPT                                                                         \
	(1u << CFI_RBX | 1u << CFI_RBP | 1u << CFI_R12 | 1u << CFI_R13 | 1u << CFI_R14 | \
	 1u << CFI_R15)
#define CFI_KEPT_REGS 6u

/* Bytes of all expressions of a row. Those of a signal frame take about 60. */
#define CFI_MAX_EXPR 160u

enum cfi_how {
	CFI_DEFAULT = 0, /* no rule: kept, if it is one that functions keep */
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_SAVED,	/* at CFA + value */
	CFI_OFFSET,	/* is CFA + value */
	CFI_REGISTER,	/* is in register number `value` */
	CFI_SAVED_EXPR, /* at the address that an expression gives */
	CFI_EXPR,	/* is what an expression gives */
};

struct cfi_rule {
	int32_t value; /* of an expression: where it begins in the row's expr */
	uint8_t how;   /* enum cfi_how */
	uint8_t len;   /* of an expression */
	uint16_t zero; /* rows are compared by their bytes */
};

struct cfi_row {
	int32_t cfa;	   /* offset; where cfa_len is not 0, begin of the expression in expr */
	uint8_t cfa_reg;   /* enum cfi_reg */
	uint8_t cfa_len;   /* of the expression; 0: register + offset */
	uint8_t is_signal; /* the caller was interrupted, not in a call: augmentation 'S' */
	uint8_t expr_len;
	/* What cfi_row_settle() makes of the rules, so that a step need not ask each. */
	uint32_t ruled; /* bit n: rule[n] is not CFI_DEFAULT */
	/* For cfi_plain_at(), in words of 8 bytes below the CFA. */
	uint8_t deepest;	      /* word that is saved; 0: the row is not plain */
	uint8_t below[CFI_KEPT_REGS]; /* where each register of cfi_kept[] is saved; 0: it is not */
	uint8_t zero;
	struct cfi_rule rule[CFI_REGS];
	uint8_t expr[CFI_MAX_EXPR];
};

/* Once all rules of a row are set. */
void cfi_row_settle(struct cfi_row *row);

/* Registers as far as they are known. */
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

/* Eight bytes of the stack at va. false: they were not copied. */
typedef bool (*cfi_read_stack)(void *ctx, uint64_t va, uint64_t *out);

enum cfi_step {
	CFI_STEP_ON,	  /* the caller's registers are known */
	CFI_STEP_ROOT,	  /* there is no caller: the return address is undefined */
	CFI_STEP_MISSING, /* bytes at *missing are not there */
	CFI_STEP_UNKNOWN, /* a rule needs a register that is not known, or makes no sense */
};

/* From g to the caller's registers in *out, another one, which counts for CFI_STEP_ON alone. */
struct cfi_stack {
	cfi_read_stack read;
	void *ctx;
	/* Bytes [near_va, near_va + near_len) of it, which mostly are all that is asked for; may be none. */
	const uint8_t *near;
	uint64_t near_va, near_len;
	uint64_t missing; /* set by CFI_STEP_MISSING */
};
enum cfi_step cfi_step(const struct cfi_row *row, const struct cfi_regs *g, struct cfi_stack *stack,
		       struct cfi_regs *out);

/*
 * The step of most rows is a plain one: the CFA is a register plus an offset, the return address
 * lies right below it, and some registers that functions keep are saved further below, all in the
 * near bytes and above rsp. It comes to what cfi_step() comes to, in less time.
 */
struct cfi_plain {
	uint64_t cfa, ret;
	const uint8_t *top; /* the near byte at the CFA */
	uint32_t ruled;	    /* these two are the row's */
	uint8_t below[CFI_KEPT_REGS];
};
/* false: this step is not plain. */
bool cfi_plain_at(const struct cfi_row *row, const struct cfi_regs *g,
		  const struct cfi_stack *stack, struct cfi_plain *out);
/* Make the caller's registers of those for which cfi_plain_at() was asked. */
void cfi_plain_take(const struct cfi_plain *at, struct cfi_regs *g);

#endif
