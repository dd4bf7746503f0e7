/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memop: determines which memory an instruction reads and writes, as formulas for addresses.
 *
 * capstone decodes each instruction once, from bytes alone; an address is computed from a formula
 * and the registers before the instruction. Implicit operands (push, call, ret, string
 * instructions, xlat) are included; lea, nop and instructions that only take an address (invlpg)
 * have none. The bytes are the guest's and may be anything. 64-bit code only. Not thread-safe: one
 * thread per decoder; the functions without one are pure.
 *
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
#define MEMOP_RIP 0xfeu /* as base: the address of the next instruction */

enum memop_access {
	MEMOP_READ = 1,
	MEMOP_WRITE = 2,
};

enum memop_segment { MEMOP_FLAT, MEMOP_FS, MEMOP_GS };

/* The reason why an instruction's operands are not known. */
enum memop_why {
	MEMOP_OK,
	MEMOP_NO_BYTES,	    /* no bytes, or fewer than the instruction has */
	MEMOP_UNKNOWN_INSN, /* unknown to capstone */
	MEMOP_VECTOR_INDEX, /* gather, scatter: the addresses are in a vector register */
	MEMOP_WHY_COUNT
};

/*
 * One operand. address = segment base + (base + index * scale + disp, truncated to 32 bits with
 * addr32); for bit strings, the word that contains the bit in register bit_reg.
 */
struct memop {
	int64_t disp;
	uint16_t size;	 /* bytes, of one iteration if repeated; 0: unknown */
	uint8_t base;	 /* enum sample_gpr, MEMOP_RIP or MEMOP_NO_REG */
	uint8_t index;	 /* enum sample_gpr or MEMOP_NO_REG */
	uint8_t scale;	 /* 1, 2, 4, 8 */
	uint8_t segment; /* enum memop_segment; other segments begin at 0 */
	uint8_t access;	 /* MEMOP_READ | MEMOP_WRITE; 0: unknown */
	/*
	 * Bt, btc, btr, bts: register with the bit offset, counted in words of `size`; or
	 * MEMOP_NO_REG.
	 */
	uint8_t bit_reg;
	bool addr32;
	bool index_low8; /* xlat: only the low byte of the index counts */
	bool implicit;
};

struct memop_insn {
	uint8_t len; /* bytes; 0 unless why is MEMOP_OK or MEMOP_VECTOR_INDEX */
	uint8_t n;
	uint8_t why;		    /* enum memop_why */
	bool repeated;		    /* has a rep prefix: does nothing if the counter is 0 */
	bool locked;		    /* has LOCK, or is an xchg, which is always locked */
	bool counter32;		    /* the counter is ECX */
	struct memop op[MEMOP_MAX]; /* in the instruction's order, implicit ones last */
};

struct memop_decoder;

/*
 * Creates a decoder. Returns 0; -ENOENT if capstone is not installed, -ENOSYS if it does not
 * support x86-64, or -ENOMEM, with *e set. The caller frees *out with memop_close(), which accepts
 * NULL.
 */
int memop_open(struct memop_decoder **out, struct err *e);
void memop_close(struct memop_decoder *d);

/*
 * Decodes the instruction at the beginning of len bytes. Never returns NULL: on failure `why` has
 * the reason. The result belongs to d and is valid until the next call.
 */
const struct memop_insn *memop_decode(struct memop_decoder *d, const uint8_t *bytes, size_t len);

/*
 * Returns whether the instruction accesses memory with these registers. False: it has no operands,
 * or a rep counter of 0.
 */
bool memop_touches(const struct memop_insn *i, const struct sample_regs *r);
/*
 * Returns the guest-virtual address of operand op of instruction i, for the registers before the
 * instruction.
 */
uint64_t memop_address(const struct memop_insn *i, const struct memop *op,
		       const struct sample_regs *r);

/* Returns the reason as text for messages; static. */
const char *memop_why_text(enum memop_why why);

#endif
