/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk: what the ways of unwinding share; inside of this folder, not for others.
 *
 * A step looks at the registers of the outermost frame so far and either replaces
 * them by its caller's, having pushed that frame, or ends the stack.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_WALK_H
#define KVMPROF_SYMBOLIZER_UNWIND_WALK_H

#include "base/linux_regs.h"
#include "symbolizer/unwind/framescan.h"

struct walk {
	const struct unwinder *u;
	const struct sample *s;
	struct stack *out;
	struct code code;      /* of the privilege level that we are at */
	bool program;	       /* a program's, whose text is read through u->programs */
	struct cfi_regs regs;  /* a program's, where the walk has come to */
	struct unwind_cfi cfi; /* the unwinder's */
	/* What it has said last: a caller's address is asked for before and after it is pushed. */
	struct {
		bool asked, known;
		uint64_t va;
		struct unwind_place place;
	} last;
	uint64_t signal_return; /* where a signal's handler returns to, by its code; 0: none */
	bool guessed;		/* a frame was searched for: the stack can't be complete any more */
	/*
	 * Per slice, the lowest address that the walk may still use. Frames are
	 * consumed outward only, which is what makes every walk end.
	 */
	uint64_t floor[SAMPLE_MAX_SLICES];
};

/* What one step came to. */
enum step {
	STEP_ON,      /* go on from the registers it gave */
	STEP_END,     /* out->end is set */
	STEP_UNKNOWN, /* nothing changed: this way of unwinding does not know the code */
};

/* rbp leads to the frame of the function at rip. */
enum step walk_frame(struct walk *w, struct scan_regs *r);
/* Go where the scan says. */
enum step walk_scan(struct walk *w, struct scan_regs *r, const struct scan *sc);

enum step walk_finish(struct walk *w, enum stack_end end);
/* Is ip the instruction itself, or the address after a call, which is looked up one byte before? */
enum walk_ip { WALK_IP_EXACT, WALK_IP_RETURN };

/* false: the stack is full, and out->end says so. */
bool walk_push(struct walk *w, uint64_t ip, enum frame_quality q, enum walk_ip is);

/* Copy n stack bytes at va; returns their slice, or -1 when they were not copied. */
int walk_read(const struct walk *w, uint64_t va, void *dst, size_t n);
/*
 * Why a read failed: a slice that ends short of it means that the chain goes on
 * where nothing was copied; an address that is no plausible stack means that
 * the chain is broken.
 */
enum stack_end walk_missing(const struct walk *w, uint64_t va);

/*
 * Does a call in known text end before this address? *target: of a direct one, else 0.
 * CFI_CALL_UNKNOWN: its bytes cannot be read.
 */
enum cfi_call walk_call_before(const struct walk *w, uint64_t ret, uint64_t *target);
/* The same, and nothing else counts but where a Java machine's interpreter goes on. */
bool walk_is_return(const struct walk *w, uint64_t ret, uint64_t *target);

/* Go on at the place that a struct pt_regs, or an interrupt return frame, at `at` leads to. */
enum step walk_cross_pt_regs(struct walk *w, struct scan_regs *r, uint64_t at);
enum step walk_cross_iret(struct walk *w, struct scan_regs *r, uint64_t at);

/* Text of programs that the kernel's own image has for ring 3. */
bool walk_in_user_text(const struct unwinder *u, uint64_t rip);
void walk_enter_user(struct walk *w);
/* A program's place: 64-bit code, in the lower half. Frames of 32-bit programs are not unwound. */
bool walk_is_program(const struct unwinder *u, uint64_t rip, uint64_t cs);
/* The text may be anywhere; what is there is read as it is checked. */
void walk_enter_program(struct walk *w);

#endif
