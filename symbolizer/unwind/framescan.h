/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * framescan: finds the frame at one instruction from the code around it. Pure functions except for
 * reading text through the unwinder; any thread.
 *
 * Code with frame pointers has three states: the caller's frame pointer is still (or again) in
 * rbp; rbp is pushed but not yet replaced; rbp points to the frame. Which one applies at rip
 * follows from what the code does NEXT: it will push rbp, or set it, or undo it, or return. In
 * compiled code all paths agree, so following any one of them to its first such event decides.
 * This finds prologues wherever the compiler has moved them.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_FRAMESCAN_H
#define KVMPROF_SYMBOLIZER_UNWIND_FRAMESCAN_H

#include "symbolizer/unwind/unwind.h"

enum scan_kind {
	SCAN_UNKNOWN = 0,
	SCAN_FRAME,  /* rbp points to this function's frame */
	SCAN_AT_RSP, /* the return address is at rsp + off */
	SCAN_AT_R10, /* the return address is at r10 - 8 */
	SCAN_IRET,   /* an interrupt return frame is at rsp + off */
};

/* The code at one privilege level: the text known from the start, and the kernel's modules. */
struct code {
	const struct unwinder *u;
	struct unwind_region own; /* the kernel's text, or a program's */
	bool user;		  /* own is a program's; there are no modules */
};

/* Returns the region that contains va, usually &c->own, or NULL. */
static inline const struct unwind_region *framescan_code_at(const struct code *c, uint64_t va)
{
	if (va - c->own.start < c->own.end - c->own.start)
		return &c->own;
	return c->user ? NULL : unwind_region_at(c->u->region, c->u->nregions, va);
}

/* Returns the symbol that covers va, or NULL. off is as in symtab_lookup() and may be NULL. */
static inline const struct symbol *framescan_symbol(const struct code *c, uint64_t va,
						    uint64_t *off)
{
	const struct unwind_region *r = framescan_code_at(c, va);

	return r && r->symbols ? symtab_lookup(r->symbols, va, off) : NULL;
}

/* The result of a scan. */
struct scan {
	enum scan_kind kind;
	bool weak;	/* SCAN_FRAME only because the code goes on to call something or pops rbp */
	bool by_return; /* SCAN_AT_RSP found by following rsp to a return */
	bool rbp_saved; /* the caller's rbp is at rsp + rbp_off; false: still in rbp */
	int64_t off, rbp_off;
};

/* The registers from which a scan starts. */
struct scan_regs {
	uint64_t rip, rsp, rbp, r10;
	uint64_t r13, rdi, rdx, rax; /* these and r10 are known only if `whole` */
	bool whole;
};

enum scan_calls {
	SCAN_UNTIL_CALL,
	SCAN_OVER_CALLS, /* calls return with rsp unchanged: for code known to have no frame */
};

/* Follows the code from r->rip and returns where its frame is; SCAN_UNKNOWN if no path decides. */
struct scan framescan(const struct code *c, const struct scan_regs *r, enum scan_calls calls);

/*
 * Adds va to the *n addresses in seen. Returns false if it is there already, or if there are max
 * of them.
 */
static inline bool framescan_first_visit(uint64_t *seen, unsigned int *n, unsigned int max,
					 uint64_t va)
{
	for (unsigned int i = 0; i < *n; i++)
		if (seen[i] == va)
			return false;
	if (*n == max)
		return false;
	seen[(*n)++] = va;
	return true;
}

enum framescan_owner {
	OWNER_UNKNOWN, /* no symbol covers it */
	OWNER_FRAME,   /* the function sets up a frame before va */
	OWNER_NONE,    /* it does not */
	OWNER_PART,    /* a part split off a function (".cold"), entered with its frame */
};

/* Returns whether the function that covers va - back has a frame there. */
enum framescan_owner framescan_owner(const struct code *c, uint64_t va, unsigned int back);

/*
 * For code whose paths all end in an indirect jump, which may be a switch or a tail call: returns
 * what the straight line from the function's start to va shows, or SCAN_UNKNOWN if that is not
 * conclusive.
 */
struct scan framescan_linear(const struct code *c, uint64_t va);

#endif
