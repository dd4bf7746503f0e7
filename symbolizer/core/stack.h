/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack: the unwound call chain of one sample, as a value.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_STACK_H
#define KVMPROF_SYMBOLIZER_CORE_STACK_H

#include <stdint.h>

#define STACK_MAX_FRAMES 256

/* The method by which a frame was found. */
enum frame_quality {
	FRAME_REGS = 1, /* the sampled rip, or one from a saved pt_regs */
	FRAME_FP,	/* frame pointer chain; the return address follows a call */
	FRAME_LEAF,	/* return address found by decoding the prologue or epilogue at rip */
	FRAME_ORC,	/* return address from the kernel's ORC table; it follows a call */
	FRAME_CFI, /* return address from a program's call frame information; it follows a call */
	/* Return address found by searching the stack; it follows a call of the inner function. */
	FRAME_SCAN,
};

/* The reason why the walk ended. Each reason is counted per profile. */
enum stack_end {
	/* Complete: a zero frame pointer or return address at the outermost frame. */
	STACK_END_ROOT = 1,
	STACK_END_USER,	     /* complete: entry from user mode */
	STACK_END_NO_FP,     /* neither frame pointers nor ORC tables, and no caller was found */
	STACK_END_NO_TEXT,   /* no image bytes at rip, so the frame cannot be located */
	STACK_END_BAD_CHAIN, /* the chain failed a check (alignment, order, not after a call) */
	STACK_END_CUT,	     /* the copied stack bytes end before the chain */
	STACK_END_DEPTH,     /* STACK_MAX_FRAMES reached */
	/* The ORC table has no entry for this code, and no other method helped. */
	STACK_END_NO_ORC,
	/*
	 * Complete except for a function of the C library that calls main() or a thread's start
	 * function.
	 */
	STACK_END_START,
	STACK_END_SCANNED, /* a root or user entry, but some frames were found only by searching */
	STACK_END_COUNT
};

struct stack {
	uint16_t n;	   /* number of frames, innermost first; at least 1 */
	uint16_t n_kernel; /* ip[0..n_kernel) are kernel frames, the rest user frames */
	uint8_t end;	   /* enum stack_end of the kernel's part, or of a stack that is all user */
	uint8_t user_end;  /* enum stack_end of the user frames; 0: none were searched for */
	/* [0] = rip; callers: return addresses (look up at ip - 1). */
	uint64_t ip[STACK_MAX_FRAMES];
	/* User frames: rsp in the frame, which extends up to the next one's. */
	uint64_t sp[STACK_MAX_FRAMES];
	uint8_t quality[STACK_MAX_FRAMES];
	/* 1: look up at ip, because the frame was interrupted there; 0: look up at ip - 1. */
	uint8_t exact[STACK_MAX_FRAMES];
};

/* Returns a short word for messages and JSON ("root", "no-frame-pointers", ...); static text. */
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
