/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind: a sample's registers and stack bytes to a call chain.
 *
 * Each frame of the kernel goes by the first of these that knows its code: the
 * ORC table (unwind_orc.c), frame pointers where the kernel keeps them, a search
 * of the stack; where a kernel with names has neither table nor frame pointers, the
 * code's way to its return and that search (unwind_search.c). A stack with a searched
 * frame never counts as complete.
 *
 * Frames of programs go by call frame information (unwind_cfi.c), where there is none by
 * frame pointers and the code at each place (unwind_user.c).
 *
 * Pure but for the callbacks: bytes in, stack out. An invented frame is worse than a
 * short stack, so each step is checked: frame pointer aligned, inside the copied
 * bytes and strictly growing; return address inside known text and preceded by
 * a call instruction. Where rip stands in a prologue or at a ret the return
 * address is taken from where the instruction bytes say it is. Frame pointers
 * tagged by ENCODE_FRAME_POINTER (bit 0 set, Linux 4.9+,
 * arch/x86/include/asm/frame.h) lead to a pt_regs, across interrupt and
 * exception stacks; a pt_regs with CPL 3 ends the kernel part, and is followed
 * into user frames where user_start..user_end covers its rip or programs can be read. An interrupt
 * stub that keeps neither frame nor tag is crossed when its code leads to an
 * iretq with rsp followed all the way; what cannot be decided so ends the stack
 * with STACK_END_BAD_CHAIN.
 *
 * Code in 32-bit mode (EFER.LMA clear) has frame pointers or its innermost frame only.
 *
 * Without symbols, functions without a frame of their own (assembly) cannot
 * always be told from functions with one: stacks are then shorter.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_H

#include "base/sample.h"
#include "symbolizer/core/kimage.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/cfi/cfi_cache.h"
#include "symbolizer/unwind/orc.h"
#include "symbolizer/core/stack.h"

/*
 * Read text bytes at run-time virtual address va into dst: returns how many of
 * len could be read (0 = none).
 */
typedef size_t (*unwind_read_text)(void *ctx, uint64_t va, void *dst, size_t len);

/* How code without an ORC table of its own keeps its caller. */
enum unwind_form {
	UNWIND_FORM_PLAIN = 0, /* as the rest of the kernel */
	UNWIND_FORM_FRAMES,    /* with frame pointers: what BPF's JIT makes */
	UNWIND_FORM_COPY,      /* as the kernel's code that it is a copy of: ftrace's trampolines */
	/* Its calls have a struct pt_regs of the place that jumped here at rsp: optimised kprobes. */
	UNWIND_FORM_REGS,
};

/* Code outside of the kernel's own text: a module's, or made at run time. */
struct unwind_region {
	uint64_t start, end;	      /* [start, end), in the kernel's half of the address space */
	const struct orc *orc;	      /* run-time addresses; NULL: it has none */
	const struct symtab *symbols; /* run-time addresses; may be NULL */
	enum unwind_form form;
	uint64_t copy_of; /* UNWIND_FORM_COPY: the address of the copied code */
};

/* Which of n sorted regions has va; NULL: none. */
const struct unwind_region *unwind_region_at(const struct unwind_region *r, size_t n, uint64_t va);

/* In an entry of a sample's `returns`: offsets of two words, multiples of 8. */
struct unwind_graph {
	bool known;
	uint32_t ret, retp; /* where a function returns to, and where on the stack that lay */
};

/* What is known of one address of a program. Valid until the next one is asked for. */
struct unwind_place {
	const struct cfi_row *row; /* NULL: there are no rules for it */
	/* enum cfi_call, which the unwinder sets; NULL: its bytes may change, ask each time. */
	uint8_t *call;
};

/* The call frame information of the program that a sample is of. */
struct unwind_cfi {
	/* false: nobody knows what is mapped at this address. NULL: there are no tables at all. */
	bool (*find)(void *ctx, uint64_t va, struct unwind_place *out);
	/*
	 * Text that the program's page tables do not lead to, out of the file that is mapped
	 * there. Returns how many of len bytes there are (0: none). NULL: there are no files.
	 */
	size_t (*text)(void *ctx, uint64_t va, void *dst, size_t len);
	void *ctx;
};

struct unwinder {
	unwind_read_text read_text;
	void *ctx;
	const struct symtab *symbols;  /* run-time addresses; may be NULL */
	uint64_t text_start, text_end; /* kernel text [start, end) */
	/*
	 * Where the text was loaded: a kernel runs there, mapped one to one, until its own
	 * page tables are on. Such a rip is named by its linked address. Length 0: unknown.
	 */
	uint64_t load_start, load_len;
	uint64_t user_start, user_end; /* user text known to keep frame pointers; both 0: none */
	bool frame_pointers;	       /* the kernel's code keeps them */
	bool frame_pointers32;	       /* its 32-bit code keeps them */
	const struct orc *orc;	       /* run-time addresses; NULL: the kernel has none */
	struct orc_memo *memo;	       /* of these; NULL: each address is looked up anew */
	struct unwind_graph graph, rethook; /* of the function graph tracer, of return probes */
	/*
	 * A program's memory, with the sample's CR3 as its space: user frames are found
	 * and checked by its text (unwind_user.c). read NULL: only user_start..user_end.
	 */
	struct memory programs;
	struct unwind_cfi cfi; /* its tables go before the reading of its text */
	/* Sorted, not overlapping; borrowed, may be replaced between two calls of unwind(). */
	const struct unwind_region *region;
	size_t nregions;
};

/* What a kernel's own stacks go by. */
enum unwind_way {
	UNWIND_INNERMOST, /* by nothing: the innermost frame only */
	UNWIND_SEARCH,	  /* by names, which show what function each call calls */
	UNWIND_FRAME_POINTERS,
	UNWIND_ORC,
};

static inline enum unwind_way unwind_way(const struct unwinder *u)
{
	return u->orc		   ? UNWIND_ORC
	       : u->frame_pointers ? UNWIND_FRAME_POINTERS
	       : u->symbols	   ? UNWIND_SEARCH
				   : UNWIND_INNERMOST;
}

/*
 * Any thread that has u's memo, if any, for itself; no allocation. out->n >= 1 always: ip[0] is the sampled rip.
 * The counts and slices of s lie within its stack_len, as capture makes them.
 */
void unwind(const struct unwinder *u, const struct sample *s, struct stack *out);

#endif
