/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hlt: decides whether code ends with HLT. The byte 0xf4 also ends other instructions.
 *
 * Encodings: SDM vol. 2, 2.1 and appendix A. Any thread may call it.
 */
#ifndef KVMPROF_VMM_HLT_H
#define KVMPROF_VMM_HLT_H

#include <stdbool.h>
#include <stdint.h>

/* The number of bytes of code that are examined. */
#define HLT_BYTES 6u

#define HLT_OPCODE 0xf4
#define HLT_STI 0xfb

/* Returns whether the last of these bytes is a HLT instruction. */
static inline bool hlt_is_last(const uint8_t b[HLT_BYTES])
{
	if (b[5] != HLT_OPCODE)
		return false;
	/* Idle loops have STI before HLT, because no interrupt is taken between the two. */
	if (b[4] == HLT_STI)
		return true;
	/*
	 * 0xf4 is the displacement of a short jump or LOOP, or of a memory operand: -12(%rbp),
	 * -12(%rsp).
	 */
	if ((b[4] & 0xc0) == 0x40 || b[4] == 0xeb || (b[4] & 0xfc) == 0xe0 || b[4] == 0x24)
		return false;
	/* 0xf4 is the highest byte of the displacement of a near call or jump. */
	return b[1] != 0xe8 && b[1] != 0xe9 && !(b[0] == 0x0f && (b[1] & 0xf0) == 0x80);
}

#endif
