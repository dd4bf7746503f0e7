/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simd_table: the closed table of SSE and AVX instructions that complete_simd executes.
 *
 * An instruction that is not in the table is refused. Each row states all operands: which ModRM
 * field is a general register, the size of the memory operand, and the registers that the encoding
 * does not name. MMX registers, mask registers, gathers, EVEX, and stores whose address is not in
 * ModRM (maskmovdqu) have no row. Any thread may call these functions.
 *
 * Format: SDM vol. 2, appendix A (opcode maps) and the pages of the instructions.
 */
#ifndef KVMPROF_VMM_PVM_SIMD_TABLE_H
#define KVMPROF_VMM_PVM_SIMD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum simd_pp { PP_NONE, PP_66, PP_F3, PP_F2 }; /* numbered as VEX.pp */
enum simd_map { MAP_0F = 1, MAP_0F38, MAP_0F3A };

#define SIMD_REG_GPR 0x1u    /* ModRM.reg is a general register, which is written */
#define SIMD_RM_READS 0x2u   /* ModRM.rm is a general register that is read, unless it is memory */
#define SIMD_RM_WRITES 0x4u  /* ModRM.rm is a general register that is written, unless memory */
#define SIMD_NO_MEM 0x8u     /* only the register form exists */
#define SIMD_NO_REG 0x10u    /* only the memory form exists */
#define SIMD_STORES 0x20u    /* the memory operand is written, else read */
#define SIMD_IMM 0x40u	     /* an immediate byte follows */
#define SIMD_V 0x80u	     /* VEX.vvvv names a vector register, else it must be 15 */
#define SIMD_V_REG 0x100u    /* ... in the register form only */
#define SIMD_L0 0x200u	     /* VEX.L must be 0 */
#define SIMD_L1 0x400u	     /* VEX.L must be 1 */
#define SIMD_LEGACY 0x800u   /* no VEX form */
#define SIMD_VEX 0x1000u     /* no legacy form */
#define SIMD_LENGTHS 0x2000u /* reads rax and rdx (pcmpestri, pcmpestrm) */
#define SIMD_INDEX 0x4000u   /* writes rcx (pcmpestri, pcmpistri) */
#define SIMD_FLAGS 0x8000u   /* writes the arithmetic flags */
#define SIMD_GROUP 0x10000u  /* ModRM.reg is a part of the opcode */

/* Size of the memory operand. */
enum simd_size {
	SIZE_NONE,
	SIZE_1 = 1,
	SIZE_2 = 2,
	SIZE_4 = 4,
	SIZE_8 = 8,
	SIZE_16 = 16,
	SIZE_VECTOR = 100, /* 16 bytes, 32 with VEX.L */
	SIZE_HALF,
	SIZE_QUARTER,
	SIZE_EIGHTH,
	SIZE_W,	  /* 4 bytes, 8 with W */
	SIZE_DUP, /* movddup: 8 bytes, 32 with VEX.L */
};

struct simd_row {
	uint8_t map, pp, first, last; /* opcodes first to last */
	uint8_t size;		      /* enum simd_size */
	uint8_t group;		      /* bit n: ModRM.reg may be n; only with SIMD_GROUP */
	uint32_t flags;
};

/* An opcode with its map and prefix. */
struct simd_opcode {
	uint8_t map, pp, opcode;
	bool vex;
};

/* Returns the row, a static object, or NULL if the instruction is not in the table. */
const struct simd_row *simd_table_find(const struct simd_opcode *o);

/* Returns the number of bytes of the memory operand, at most 32. */
unsigned int simd_row_size(const struct simd_row *r, bool w, bool l);

#endif
