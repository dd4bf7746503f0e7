/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memop: which memory an instruction reads and writes, as recipes for addresses.
 *
 * Decoded from bytes alone, by capstone, once for each instruction; an address comes
 * from a recipe and the registers before the instruction. Implicit operands (push, call,
 * ret, string instructions, xlat) are there; lea, nop and what only takes an address
 * (invlpg) have none. Bytes are the guest's and may be anything. 64-bit code only.
 * Sources: SDM vol. 1, 3.7.5 "Specifying an offset"; vol. 2, the instructions' pages.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_MEMOP_H
#define KVMPROF_SYMBOLIZER_CORE_MEMOP_H

#include "base/err.h"
#include "base/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMOP_MAX 4u
#define MEMOP_NO_REG 0xffu
#define MEMOP_RIP 0xfeu /* base: the address of the next instruction */

enum memop_access {
	MEMOP_READ = 1,
	MEMOP_WRITE = 2,
};

enum memop_segment { MEMOP_FLAT, MEMOP_FS, MEMOP_GS };

/* Why an instruction's operands are not known. */
enum memop_why {
	MEMOP_OK,
	MEMOP_NO_BYTES,	    /* none given, or fewer than the instruction has */
	MEMOP_UNKNOWN_INSN, /* not one that capstone knows */
	MEMOP_VECTOR_INDEX, /* gather, scatter: addresses are in a vector register */
	MEMOP_WHY_COUNT
};

/*
 * address = segment base + (base + index * scale + disp, cut to 32 bits with addr32),
 * and for bit strings the word that the register bit_reg counts to.
 */
struct memop {
	int64_t disp;
	uint16_t size;	 /* bytes, 0 not known; of a repeated instruction: of one round */
	uint8_t base;	 /* enum sample_gpr, MEMOP_RIP or MEMOP_NO_REG */
	uint8_t index;	 /* enum sample_gpr or MEMOP_NO_REG */
	uint8_t scale;	 /* 1, 2, 4, 8 */
	uint8_t segment; /* enum memop_segment; the others begin at 0 */
	uint8_t access;	 /* MEMOP_READ | MEMOP_WRITE; 0 not known */
	uint8_t bit_reg; /* of bt, btc, btr, bts: counts bits of words of `size`; or MEMOP_NO_REG */
	bool addr32;
	bool index_low8; /* xlat: of the index only the low byte counts */
	bool implicit;
};

struct memop_insn {
	uint8_t len; /* bytes; 0 unless why is MEMOP_OK or MEMOP_VECTOR_INDEX */
	uint8_t n;
	uint8_t why;		    /* enum memop_why */
	bool repeated;		    /* rep: does nothing when the counter is 0 */
	bool locked;		    /* LOCK, and xchg, which has it always */
	bool counter32;		    /* the counter is ECX */
	struct memop op[MEMOP_MAX]; /* in the instruction's order, implicit ones last */
};

struct memop_decoder;

int memop_open(struct memop_decoder **out, struct err *e);
void memop_close(struct memop_decoder *d);

/*
 * The instruction at the beginning of len bytes. The result is d's own, and valid until
 * the next call. One thread.
 */
const struct memop_insn *memop_decode(struct memop_decoder *d, const uint8_t *bytes, size_t len);

/* Will it touch memory, with these registers? False: no operands, or rep with nothing to do. */
bool memop_touches(const struct memop_insn *i, const struct sample_regs *r);
uint64_t memop_address(const struct memop_insn *i, const struct memop *op,
		       const struct sample_regs *r);

const char *memop_why_text(enum memop_why why);

#endif
