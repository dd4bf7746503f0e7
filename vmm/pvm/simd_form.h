/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simd_form: assembles an SSE or AVX instruction that does the same as a guest's instruction.
 *
 * The guest's bytes are decoded and never copied. The executed instruction is assembled from a row
 * of simd_table, with general registers that this file chose: a general register operand of the
 * guest becomes rax, whatever its number, and a memory operand becomes (rbx). A second decoder,
 * which accepts no other registers, then decodes the assembled bytes; a difference refuses the
 * instruction. Other general registers, rsp in particular, cannot occur. Any thread may call these
 * functions.
 *
 * Format: SDM vol. 2, 2.1 to 2.3 (prefixes, REX, VEX, ModRM).
 */
#ifndef KVMPROF_VMM_PVM_SIMD_FORM_H
#define KVMPROF_VMM_PVM_SIMD_FORM_H

#include "vmm/pvm/simd_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIMD_FORM_MAX 15
#define SIMD_OPERAND_MAX 32u /* maximum length of a memory operand */
#define SIMD_NO_GPR 0xffu

struct simd_form {
	uint8_t code[SIMD_FORM_MAX];
	unsigned int len;
	unsigned int source_len;  /* length of the guest's instruction */
	unsigned int memory_size; /* bytes at (rbx); 0: no memory operand */
	bool stores;		  /* the memory operand may change */
	/*
	 * Number of the guest's register for which rax is used before or after; SIMD_NO_GPR: none.
	 */
	unsigned int gpr_read, gpr_written;
	bool lengths; /* rax and rdx of the guest are read */
	bool index;   /* rcx of the guest is written */
	bool flags;   /* the arithmetic flags of the guest are written */
};

/*
 * Decodes the guest's 64-bit code and assembles the instruction to run. Returns 0, or -ENOTSUP if
 * the instruction is not in the table or is incomplete.
 */
int simd_form_parse(const uint8_t *bytes, size_t n, struct simd_form *out);

/*
 * Decodes assembled bytes. Returns true if they are one instruction of the table whose effects are
 * those that *f states. Only then may f->code run.
 */
bool simd_form_check(const struct simd_form *f);

#endif
