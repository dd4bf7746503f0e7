/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simd_form: an SSE or AVX instruction of a guest, made ready to run in this process.
 *
 * The bytes are the guest's. What comes out can reach no memory but what one register
 * points at: the form of the memory operand is replaced, and only opcodes are taken that
 * have no other way to memory, control flow or the system. MMX registers, gathers,
 * masked stores to (rdi), mask registers and EVEX are not among them.
 *
 * Format: SDM vol. 2, 2.1 to 2.3 (prefixes, REX, VEX, ModRM) and appendix A (opcode maps).
 */
#ifndef KVMPROF_VMM_PVM_SIMD_FORM_H
#define KVMPROF_VMM_PVM_SIMD_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIMD_FORM_MAX 15

struct simd_form {
	uint8_t code[SIMD_FORM_MAX];
	unsigned int len;
	unsigned int source_len; /* of the guest's instruction */
	bool memory;		 /* it has a memory operand, now (base) */
	unsigned int base;	 /* number of the register that shall point at it: 3 rbx, 6 rsi */
};

/* Of 64-bit code. -ENOTSUP: it is none of these, or cut short. */
int simd_form_parse(const uint8_t *bytes, size_t n, struct simd_form *out);

#endif
