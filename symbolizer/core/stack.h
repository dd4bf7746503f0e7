/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack: the unwound call chain of one sample.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_STACK_H
#define KVMPROF_SYMBOLIZER_CORE_STACK_H

#include <stdint.h>

#define STACK_MAX_FRAMES 256

/* How a frame was found. */
enum frame_quality {
	FRAME_REGS = 1, /* the sampled rip itself, or one from a saved pt_regs */
	FRAME_FP,	/* frame pointer chain, return address checked to follow a call */
	FRAME_LEAF,	/* return address found by decoding prologue or epilogue at rip */
	FRAME_ORC, /* where the kernel's ORC table says, return address checked to follow a call */
	FRAME_CFI, /* where a program's call frame information says, return address checked likewise */
	FRAME_SCAN, /* found by searching the stack: a return address after a call of the inner function */
};

/* Why the walk ended. Counted per profile; never lost. */
enum stack_end {
	STACK_END_ROOT =
		1, /* complete: a zero frame pointer or return address at the outermost frame */
	STACK_END_USER,	     /* complete: entry from user mode */
	STACK_END_NO_FP,     /* neither frame pointers nor ORC tables, and no caller was found */
	STACK_END_NO_TEXT,   /* no image bytes at rip: cannot say where the frame is */
	STACK_END_BAD_CHAIN, /* the chain failed a check (alignment, order, not after a call) */
	STACK_END_CUT,	     /* the copied stack bytes end before the chain does */
	STACK_END_DEPTH,     /* STACK_MAX_FRAMES reached */
	STACK_END_NO_ORC,    /* the ORC table knows nothing of this code, and nothing else helped */
	STACK_END_START, /* whole but for a function of the C library that calls main() or a thread's */
	STACK_END_SCANNED, /* a root or user entry, but part of the way there was only searched for */
	STACK_END_COUNT
};

struct stack {
	uint16_t n;	   /* frames, innermost first; at least 1 */
	uint16_t n_kernel; /* ip[0..n_kernel) are kernel frames, the rest user frames */
	uint8_t end; /* enum stack_end: of the kernel's part, or of a stack that is all user's */
	uint8_t user_end; /* the same for the user frames; 0: none was looked for */
	uint64_t
		ip[STACK_MAX_FRAMES]; /* [0] = rip; callers: return addresses (look up at ip - 1) */
	uint64_t sp
		[STACK_MAX_FRAMES]; /* of user frames: rsp there; a frame reaches up to the next one's */
	uint8_t quality[STACK_MAX_FRAMES];
	/* Frames just below an interrupted one hold the interrupted ip itself: look up at ip. */
	uint8_t exact[STACK_MAX_FRAMES]; /* 1: look up at ip, 0: at ip - 1 */
};

/* Short word for messages and JSON ("root", "no-frame-pointers", ...). */
static inline const char *stack_end_name(enum stack_end end)
{
	switch (end) {
	case STACK_END_ROOT:
		return "root";
	case STACK_END_USER:
		return "user-entry";
	case STACK_END_NO_FP:
		return "no-frame-pointers";
	case STACK_END_NO_TEXT:
		return "no-text";
	case STACK_END_BAD_CHAIN:
		return "bad-chain";
	case STACK_END_CUT:
		return "stack-cut";
	case STACK_END_DEPTH:
		return "depth-limit";
	case STACK_END_NO_ORC:
		return "no-orc-entry";
	case STACK_END_START:
		return "start-code";
	case STACK_END_SCANNED:
		return "scanned";
	case STACK_END_COUNT:
		break;
	}
	return "unknown";
}

#endif
