/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk: what the ways of unwinding share; inside of unwind*.c, not for others.
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

/*
 * unwind_graph.c. The function graph tracer puts the address of return_to_handler in the place of
 * the one that a function returns to, and a return probe that of its trampoline. *ret was read at
 * `at`: is it one of these, then it becomes the function's own, where that is known.
 */
void walk_traced(const struct walk *w, uint64_t at, uint64_t *ret);
/* Is va in return_to_handler? */
bool walk_in_handler(const struct walk *w, uint64_t va);
/*
 * r is in return_to_handler: go on where the function returns to for which it was reached.
 * STEP_UNKNOWN: that is not known.
 */
enum step walk_from_handler(struct walk *w, struct scan_regs *r);

/* Go on at the place that a struct pt_regs, or an interrupt return frame, at `at` leads to. */
enum step walk_cross_pt_regs(struct walk *w, struct scan_regs *r, uint64_t at);
enum step walk_cross_iret(struct walk *w, struct scan_regs *r, uint64_t at);

/* unwind_user.c: all frames of a program, from its registers on; the first is pushed already. */
void walk_program(struct walk *w, struct scan_regs *r);

/*
 * unwind_java.c. Does the interpreter of a Java machine go on at ret, where a method returns to it?
 * Then rbp is its frame there.
 */
bool walk_java_return(const struct walk *w, uint64_t ret);
/* The caller's rsp, if the frame at fp can be the interpreter's; calls: it has called a method. */
bool walk_java_sender(const struct walk *w, uint64_t fp, bool calls, uint64_t *rsp);

/* unwind_signal.c. Does a signal's handler return to ret, by the code that is there? Then it is w->signal_return. */
bool walk_signal_return(struct walk *w, uint64_t ret);
/* Is rip in such code, or behind its system call? */
bool walk_signal_interrupted(const struct walk *w, uint64_t rip);
/* w->regs are in such code: go on at the interrupted place. Never STEP_UNKNOWN. */
enum step walk_from_signal(struct walk *w);

/*
 * Is the code at rip of a procedure linkage table: [endbr64] [bnd] jmp *slot(%rip)? In *slot is
 * the address of the function that its calls lead to.
 */
bool walk_linkage_stub(const struct walk *w, uint64_t rip, uint64_t *slot);

/*
 * unwind_cfi.c: a program's registers, w->regs, as they were sampled, or as a struct pt_regs
 * has them, of which the first bytes were popped already; rip and rsp are the caller's.
 */
void walk_regs_of_sample(struct walk *w);
void walk_regs_of_pt_regs(struct walk *w, const uint8_t *b, uint64_t popped);
/* One frame of a program by its tables. STEP_UNKNOWN: they do not tell, w->regs are as before. */
enum step walk_cfi(struct walk *w);
/* Go on at an interrupted place, all of whose registers are known. STEP_UNKNOWN: it makes no sense. */
enum step walk_interrupted(struct walk *w, const struct cfi_regs *next);
/* Is w->regs' rip in a file, or in code made at run time, known to have no tables for it? */
bool walk_has_no_tables(struct walk *w);

/* unwind32.c: all frames of a kernel in 32-bit mode; the first is pushed already. */
void walk_32(struct walk *w);

/* unwind_search.c: a kernel without either, by names; never STEP_UNKNOWN. */
enum step step_searched(struct walk *w, struct scan_regs *r);

/* unwind_orc.c; the kernel has ORC tables and the frame is the kernel's. */
enum step step_orc(struct walk *w, struct scan_regs *r);
/* The last resort; never STEP_UNKNOWN. */
enum step step_scanned(struct walk *w, struct scan_regs *r);

#endif
