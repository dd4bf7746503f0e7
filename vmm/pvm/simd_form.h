/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simd_form: assembles an SSE or AVX instruction that does what a guest's does.
 *
 * The guest's bytes are decoded and never copied. What runs is assembled from a row of
 * simd_table, with general registers that this file chose: a general register operand of the
 * guest becomes rax, whatever its number, and a memory operand becomes (rbx). The assembled
 * bytes are then decoded again, by a decoder that accepts no other registers; a difference
 * refuses the instruction. Other general registers, rsp in particular, cannot be named.
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
#define SIMD_OPERAND_MAX 32u /* no memory operand is longer */
#define SIMD_NO_GPR 0xffu

struct simd_form {
	uint8_t code[SIMD_FORM_MAX];
	unsigned int len;
	unsigned int source_len;  /* length of the guest's instruction */
	unsigned int memory_size; /* bytes at (rbx); 0: no memory operand */
	bool stores;		  /* the memory operand may change */
	/* Number of the guest's register that rax stands for before or after, or SIMD_NO_GPR. */
	unsigned int gpr_read, gpr_written;
	bool lengths; /* rax and rdx are the guest's, and are read */
	bool index;   /* rcx becomes the guest's */
	bool flags;   /* the arithmetic flags become the guest's */
};

/*
 * Decodes the guest's 64-bit code and assembles what runs. Returns 0, or -ENOTSUP if the
 * instruction is not in the table or is cut short.
 */
int simd_form_parse(const uint8_t *bytes, size_t n, struct simd_form *out);

/*
 * Decodes assembled bytes. Returns true if they are one instruction of the table whose
 * effects are those that *f states. It is what decides whether f->code runs.
 */
bool simd_form_check(const struct simd_form *f);

#endif
