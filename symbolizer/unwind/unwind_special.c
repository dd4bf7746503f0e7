/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_special: handles frames that no table describes: those of functions that are traced or
 * probed, of a signal handler, and of HotSpot's interpreter.
 */
#include "symbolizer/unwind/unwind_special.h"

#include "base/cleanup.h"
#include "symbolizer/unwind/unwind_cfi.h"

#include <string.h>
/* -- functions that are traced or probed ---------------------------------------------- */

/*
 * How the function graph tracer works: at the start of a function it replaces the return address
 * by return_to_handler, and stores the original in an entry of the task's own stack, with the
 * stack address that held it (retp). A sample has a copy of these entries. A stack address has at
 * most one current entry with a real return address: a function that is entered by a jump at the
 * end of another one has the tracer's own address in its entry. Entries above the current ones are
 * old, and are examined last. A return probe does the same, with entries on a list.
 *
 * Source: kernel/trace/fgraph.c (ftrace_graph_ret_addr), arch/x86/kernel/ftrace_64.S,
 * kernel/trace/rethook.c, kernel/kprobes.c.
 */

#define HANDLER "return_to_handler"
/* Bytes of return_to_handler up to where it has restored rsp. */
#define MAX_BELOW 256
/* Both tracers may have replaced the address of one function. */
#define MAX_REPLACED 2u

bool walk_in_handler(const struct walk *w, uint64_t va)
{
	uint64_t off;
	const struct symbol *sym = framescan_symbol(&w->code, va, &off);

	return sym && !strcmp(sym->name, HANDLER);
}

/* Returns the tracer that uses this address as a replacement, or NULL if it is not a known one. */
static const struct unwind_graph *graph_of(const struct walk *w, uint64_t ret)
{
	static const char *const probes[] = { "arch_rethook_trampoline", "__kretprobe_trampoline",
					      "kretprobe_trampoline" };
	uint64_t off;
	const struct symbol *sym = framescan_symbol(&w->code, ret, &off);

	if (!sym || off)
		return NULL;
	if (!strcmp(sym->name, HANDLER))
		return w->u->graph.known ? &w->u->graph : NULL;
	for (unsigned int i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(sym->name, probes[i]))
			return w->u->rethook.known ? &w->u->rethook : NULL;
	return NULL;
}

static uint64_t graph_word(const struct walk *w, uint32_t at)
{
	uint64_t v;

	memcpy(&v, w->s->stack + w->s->returns.off + at, sizeof(v));
	return v;
}

/* Returns the address that was at retp before the tracer replaced it; 0: unknown. */
static uint64_t graph_return(const struct walk *w, const struct unwind_graph *g, uint64_t retp)
{
	uint32_t len = w->s->returns.len & ~7u;

	if (g->ret >= SAMPLE_MAX_RETURNS || g->retp >= SAMPLE_MAX_RETURNS)
		return 0;
	for (uint32_t at = 0; at < len; at += 8) {
		uint32_t other = at - g->retp + g->ret;
		const struct unwind_graph *next;
		uint64_t ret, target;

		if (at < g->retp || other > len - 8 || graph_word(w, at) != retp)
			continue;
		ret = graph_word(w, other);
		next = graph_of(w, ret);
		if (next ? next != g : !walk_in_handler(w, ret) && walk_is_return(w, ret, &target))
			return ret;
	}
	return 0;
}

void walk_traced(const struct walk *w, uint64_t at, uint64_t *ret)
{
	if (!w->s->returns.len || w->code.user)
		return;
	for (unsigned int n = 0; n < MAX_REPLACED; n++) {
		const struct unwind_graph *g = graph_of(w, *ret);
		uint64_t real = g ? graph_return(w, g, at) : 0;

		if (!real)
			return;
		*ret = real;
	}
}

enum step walk_from_handler(struct walk *w, struct scan_regs *r)
{
	struct scan sc = framescan_linear(&w->code, r->rip);
	uint64_t at, ret, byte;
	int slice;

	/* It was reached by a ret: rsp was after the place of the return address. */
	if (sc.kind != SCAN_AT_RSP || sc.off < 0 || sc.off > MAX_BELOW || !w->s->returns.len ||
	    !w->u->graph.known)
		return STEP_UNKNOWN;
	at = r->rsp + (uint64_t)sc.off - 8;
	ret = graph_return(w, &w->u->graph, at);
	slice = walk_read(w, at, &byte, 8);
	if (!ret || slice < 0 || at + 8 < w->floor[slice])
		return STEP_UNKNOWN;
	w->floor[slice] = at + 8;
	r->rip = ret;
	r->rsp = at + 8;
	r->r10 = 0;
	r->whole = false;
	return walk_push(w, ret, FRAME_ORC, WALK_IP_RETURN) ? STEP_ON : STEP_END;
}

/* -- the return from a signal's handler -------------------------------------------------- */

/*
 * The return from a signal handler to what the signal has interrupted, recognised by its code
 * alone.
 *
 * The handler returns to a few instructions that request the kernel to resume, rt_sigreturn(2).
 * The GNU C library has call frame information for them; musl has none, and Go's runtime says that
 * the function that returns there has no caller. The kernel supports no other method
 * (SA_RESTORER):
 *
 *	mov	$15, %rax (or %eax)
 *	syscall
 *
 * There, rsp is the address of a struct ucontext with all registers of the interrupted place.
 * Sources: arch/x86/kernel/signal_64.c, arch/x86/include/uapi/asm/ucontext.h and sigcontext.h.
 */
#define UCONTEXT_MCONTEXT 40u /* after uc_flags, uc_link, uc_stack */
#define SYSCALL_LEN 2u

/* The registers in struct sigcontext. */
static const uint8_t of_sigcontext[] = {
	CFI_R8,	 CFI_R9,  CFI_R10, CFI_R11, CFI_R12, CFI_R13, CFI_R14, CFI_R15, CFI_RDI,
	CFI_RSI, CFI_RBP, CFI_RBX, CFI_RDX, CFI_RAX, CFI_RCX, CFI_RSP, CFI_RIP,
};

static const uint8_t long_form[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t short_form[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };

#define LONGEST sizeof(long_form)

static bool signal_code(const uint8_t *p)
{
	return !memcmp(p, long_form, sizeof(long_form)) ||
	       !memcmp(p, short_form, sizeof(short_form));
}

bool walk_signal_return(struct walk *w, uint64_t ret)
{
	uint8_t p[LONGEST] = { 0 };

	if (!w->program || w->u->read_text(w->u->ctx, ret, p, sizeof(p)) < sizeof(short_form) ||
	    !signal_code(p))
		return false;
	w->signal_return = ret;
	return true;
}

bool walk_signal_interrupted(const struct walk *w, uint64_t rip)
{
	/*
	 * Bytes of the code that have been executed: rip is at the first instruction of either
	 * form, at its system call, or after that.
	 */
	static const uint8_t done[] = { 0, sizeof(long_form) - SYSCALL_LEN, sizeof(long_form),
					sizeof(short_form) - SYSCALL_LEN, sizeof(short_form) };
	uint8_t p[2 * LONGEST] = { 0 };
	size_t n = w->u->read_text(w->u->ctx, rip - LONGEST, p, sizeof(p));

	for (unsigned int i = 0; n >= LONGEST && i < sizeof(done); i++)
		if (signal_code(p + LONGEST - done[i]))
			return true;
	return false;
}

enum step walk_from_signal(struct walk *w)
{
	uint64_t at = w->regs.r[CFI_RSP] + UCONTEXT_MCONTEXT, value[sizeof(of_sigcontext)];
	struct cfi_regs next = { .known = 0 };
	enum step st;

	if (walk_read(w, at, value, sizeof(value)) < 0)
		return walk_finish(w, walk_missing(w, at + sizeof(value) - 1));
	for (unsigned int i = 0; i < sizeof(of_sigcontext); i++)
		cfi_set(&next, of_sigcontext[i], value[i]);
	st = walk_interrupted(w, &next);
	return st == STEP_UNKNOWN ? walk_finish(w, STACK_END_BAD_CHAIN) : st;
}

/* -- frames of HotSpot's interpreter ----------------------------------------------------- */

/*
 * The frames of HotSpot's interpreter, which is generated at run time itself.
 *
 * The interpreter does not call a method: it pushes the address at which it will continue and
 * jumps. The code there first loads rsp from the frame, and clears the place that contained it
 * (src/hotspot/cpu/x86, TemplateInterpreterGenerator::generate_return_entry_for; frame_x86.hpp):
 *
 *	up to 17 or so	mov -0x10(%rbp), %rsp		movq $0, -0x10(%rbp)
 *	since then	mov -0x10(%rbp), %rcx
 *			lea (%rbp,%rcx,8), %rsp		movq $0, -0x10(%rbp)
 *
 * So rbp is the address of its frame there. Below it is the caller's rsp, which is not the end of
 * the frame: the method's locals are between them, and what adapts a call of compiled code.
 */
/* Bytes of locals (at most 65535) and of an adapter's arguments (at most 255). */
#define JAVA_MAX_LOCALS (65536u * 8 + 4096)

bool walk_java_return(const struct walk *w, uint64_t ret)
{
	static const uint8_t
		moves[] = { 0x48, 0x8b, 0x65, 0xf0, 0x48, 0xc7, 0x45, 0xf0, 0, 0, 0, 0 },
		scales[] = { 0x48, 0x8b, 0x4d, 0xf0, 0x48, 0x8d, 0x64, 0xcd, 0x00,
			     0x48, 0xc7, 0x45, 0xf0, 0,	   0,	 0,    0 };
	uint8_t p[sizeof(scales)];

	return w->program && w->u->read_text(w->u->ctx, ret, p, sizeof(p)) == sizeof(p) &&
	       (!memcmp(p, moves, sizeof(moves)) || !memcmp(p, scales, sizeof(scales)));
}

bool walk_java_sender(const struct walk *w, uint64_t fp, bool calls, uint64_t *rsp)
{
	/* its resume address after a method, 0 outside of calls; the caller's rsp */
	uint64_t below[2];

	if (fp % 8 || walk_read(w, fp - 16, below, sizeof(below)) < 0 || !below[0] == calls)
		return false;
	if (below[1] % 8 || below[1] < fp + 16 || below[1] - fp > JAVA_MAX_LOCALS)
		return false;
	*rsp = below[1];
	return true;
}
