/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk: shared by the methods of unwinding. Only for files in this folder.
 *
 * A step reads the registers of the outermost frame so far, and either replaces them by its
 * caller's, having pushed that frame, or ends the stack. All functions work on one struct walk, on
 * the thread that called unwind().
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_WALK_H
#define KVMPROF_SYMBOLIZER_UNWIND_WALK_H

#include "base/linux_regs.h"
#include "symbolizer/unwind/framescan.h"

struct walk {
	const struct unwinder *u;
	const struct sample *s;
	struct stack *out;
	struct code code;      /* code at the current privilege level */
	bool program;	       /* in a program, whose text is read through u->programs */
	struct cfi_regs regs;  /* a program's registers at the outermost frame so far */
	struct unwind_cfi cfi; /* copied from the unwinder */
	/* The last lookup by cfi: a caller's address is looked up before and after it is pushed. */
	struct {
		bool asked, known;
		uint64_t va;
		struct unwind_place place;
	} last;
	uint64_t signal_return; /* where a signal handler returns, by its code; 0: none */
	bool guessed;		/* a frame was searched for, so the stack cannot be complete */
	/*
	 * For each slice, the lowest address that the walk may still use. Frames are consumed
	 * outward only, which guarantees that every walk ends.
	 */
	uint64_t floor[SAMPLE_MAX_SLICES];
};

/* The result of one step. */
enum step {
	STEP_ON,      /* continue with the returned registers */
	STEP_END,     /* the stack ends; out->end is set */
	STEP_UNKNOWN, /* nothing changed: this method does not know the code */
};

/* Steps by the frame of the function at rip, to which rbp points. */
enum step walk_frame(struct walk *w, struct scan_regs *r);
/* Go where the scan says. */
/* Steps to where the scan says. */
enum step walk_scan(struct walk *w, struct scan_regs *r, const struct scan *sc);

/* Sets out->end (adjusted if a frame was searched for) and returns STEP_END. */
enum step walk_finish(struct walk *w, enum stack_end end);
/*
 * Whether ip is the instruction itself, or the address after a call, which is looked up one byte
 * before.
 */
enum walk_ip { WALK_IP_EXACT, WALK_IP_RETURN };

/* Pushes a frame. Returns false if the stack is full; out->end is then set. */
bool walk_push(struct walk *w, uint64_t ip, enum frame_quality q, enum walk_ip is);

/*
 * Copies n stack bytes at va. Returns the number of their slice, or -1 if they were not captured.
 */
int walk_read(const struct walk *w, uint64_t va, void *dst, size_t n);
/*
 * Returns the reason why a read at va failed: STACK_END_CUT if nothing was captured, or if va is
 * at most 64 KiB above the end of a slice, so that the chain continues in bytes that were not
 * captured; else STACK_END_BAD_CHAIN, as va is no plausible stack address.
 */
enum stack_end walk_missing(const struct walk *w, uint64_t va);

/*
 * Returns whether a call in known text ends before this address; CFI_CALL_UNKNOWN if its bytes
 * cannot be read. *target: target of a direct call, else 0.
 */
enum cfi_call walk_call_before(const struct walk *w, uint64_t ret, uint64_t *target);
/*
 * Returns true if it is a call (see walk_call_before()), or if a Java machine's interpreter
 * continues at ret.
 */
bool walk_is_return(const struct walk *w, uint64_t ret, uint64_t *target);

/*
 * Continue at the place to which a struct pt_regs, or an interrupt return frame, at `at` returns.
 */
enum step walk_cross_pt_regs(struct walk *w, struct scan_regs *r, uint64_t at);
enum step walk_cross_iret(struct walk *w, struct scan_regs *r, uint64_t at);

/* Returns whether rip is in program text that the kernel's own image contains for ring 3. */
bool walk_in_user_text(const struct unwinder *u, uint64_t rip);
/* Sets the code to the program text user_start..user_end. */
void walk_enter_user(struct walk *w);
/*
 * Returns whether this is a supported place of a program: 64-bit code, in the lower half. Frames
 * of 32-bit programs are not unwound.
 */
bool walk_is_program(const struct unwinder *u, uint64_t rip, uint64_t cs);
/*
 * Sets the code to a program's, anywhere in its address space; its text is read while it is
 * checked.
 */
void walk_enter_program(struct walk *w);

#endif
