/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds by the kernel's ORC table, and by a search where the table has no entry.
 *
 * It follows what arch/x86/kernel/unwind_orc.c does with an entry. In addition, a return address
 * must follow a call, as with frame pointers: the table describes the code as linked, and the
 * stack bytes come from a guest.
 *
 * The table is ordered by address. Alternatives, paravirt and static calls are patched within the
 * size of what they replace and with the same effect on rsp at each boundary where code can be
 * stopped; a few leave code that differs inside (objtool makes separate ORC entries for
 * alternatives with pushes).
 */
#include "symbolizer/unwind/unwind_orc.h"

#include "base/linux_regs.h"
#include "symbolizer/core/insn.h"
#include "symbolizer/unwind/orc.h"
#include "symbolizer/unwind/unwind_special.h"

#include <string.h>

/* Bytes of the stack that are searched for a return address. */
#define SCAN_BYTES 1024u
/* Maximum number and size of a kernel's start frames, at the top of its first stack. */
#define START_FRAMES 8u
#define START_BYTES 1024u
#define STACK_ALIGN 4096u
/* Maximum number of instructions before a jump in code without entries. */
#define MAX_AHEAD 4u

static const struct orc_entry *entry_of(const struct walk *w, uint64_t va)
{
	const struct unwind_region *text = framescan_code_at(&w->code, va);
	const struct orc_entry *x;

	/* As orc_ftrace_find() in the kernel's own unwinder: use the copied code's address. */
	if (text && text->form == UNWIND_FORM_COPY) {
		va = text->copy_of + (va - text->start);
		text = framescan_code_at(&w->code, va);
	}
	x = text && text->orc ? orc_lookup(text->orc, va) : NULL;
	return x && x->type != ORC_UNDEFINED ? x : NULL;
}

static bool is_end_of_stack(const struct walk *w, uint64_t va)
{
	const struct orc_entry *x = entry_of(w, va);

	return x && x->type == ORC_END_OF_STACK;
}

/* Computes the CFA. Returns false if the stack has ended. */
static bool find_cfa(struct walk *w, const struct scan_regs *r, const struct orc_entry *x,
		     uint64_t *cfa)
{
	uint64_t offset = (uint64_t)(int64_t)x->sp_offset, at;

	switch (x->sp_reg) {
	case ORC_SP:
		*cfa = r->rsp + offset;
		return true;
	case ORC_BP:
		*cfa = r->rbp + offset;
		return true;
	case ORC_SP_INDIRECT: /* orc.h explains the two meanings */
		at = x->type == ORC_CALL ? r->rsp : r->rsp + offset;
		break;
	case ORC_BP_INDIRECT:
		at = r->rbp + offset;
		break;
	case ORC_R10:
	case ORC_R13:
	case ORC_DI:
	case ORC_DX:
	case ORC_AX:
		/* Valid only at an interruption: a call in between may have changed them. */
		if (!r->whole) {
			walk_finish(w, STACK_END_BAD_CHAIN);
			return false;
		}
		*cfa = x->sp_reg == ORC_R10   ? r->r10
		       : x->sp_reg == ORC_R13 ? r->r13
		       : x->sp_reg == ORC_DI  ? r->rdi
		       : x->sp_reg == ORC_DX  ? r->rdx
					      : r->rax;
		return true;
	default:
		walk_finish(w, STACK_END_BAD_CHAIN);
		return false;
	}
	if (walk_read(w, at, cfa, 8) < 0) {
		walk_finish(w, walk_missing(w, at + 7));
		return false;
	}
	if (x->sp_reg == ORC_SP_INDIRECT && x->type == ORC_CALL)
		*cfa += offset;
	return true;
}

/* Computes the caller's rbp. Returns false if the stack has ended. */
static bool find_rbp(struct walk *w, const struct orc_entry *x, uint64_t cfa, uint64_t *rbp)
{
	uint64_t at;

	switch (x->bp_reg) {
	case ORC_PREV_SP:
		at = cfa + (uint64_t)(int64_t)x->bp_offset;
		break;
	case ORC_BP:
		at = *rbp + (uint64_t)(int64_t)x->bp_offset;
		break;
	default:
		return true;
	}
	if (walk_read(w, at, rbp, 8) >= 0)
		return true;
	walk_finish(w, walk_missing(w, at + 7));
	return false;
}

/* Returns whether a function starts here, as far as that is visible without names. */
static bool starts_function(const struct walk *w, uint64_t va)
{
	const struct orc_entry *x = entry_of(w, va);

	return x && x->type == ORC_CALL && x->sp_reg == ORC_SP && x->sp_offset == 8 &&
	       (va % 16 == 0 || x != entry_of(w, va - 1));
}

/* Recognises mov %reg,(%rsp). */
static bool is_store_to_top(const uint8_t p[4])
{
	return (p[0] & 0xfb) == 0x48 && p[1] == 0x89 && (p[2] & 0xc7) == 0x04 && p[3] == 0x24;
}

/*
 * Returns whether the code at rip returns: ret, int3 while that is being patched, or jmp to the
 * return thunk.
 */
static bool is_ret(const struct walk *w, uint64_t rip)
{
	const struct symbol *sym;
	uint64_t off;
	uint8_t p[5];
	struct insn i;
	size_t n = w->u->read_text(w->u->ctx, rip, p, sizeof(p));

	if (n && (p[0] == 0xc3 || p[0] == 0xcc))
		return true;
	if (n < sizeof(p) || p[0] != 0xe9 || !insn_decode(&i, rip, p, n))
		return false;
	sym = framescan_symbol(&w->code, (uint64_t)i.value, &off);
	return !sym || strstr(sym->name, "return_thunk");
}

/*
 * Returns whether a retpoline is about to return to `to`. At its ret, the stack has the address to
 * which it will jump; its caller is above. Directly after the store that is certain; on the return
 * thunk it follows from an address that does not follow a call and that starts a function.
 */
static bool goes_by_ret(const struct walk *w, uint64_t rip, uint64_t to, bool after_call)
{
	uint8_t p[4];

	/* Other code stores there, too. */
	if (w->u->read_text(w->u->ctx, rip - sizeof(p), p, sizeof(p)) == sizeof(p) &&
	    is_store_to_top(p) && is_ret(w, rip))
		return true;
	return !after_call && starts_function(w, to);
}

/*
 * Returns whether rip is in a retpoline (arch/x86/lib/retpoline.S), which is marked as an end or
 * as unknown, and sets *x to a suitable entry:
 *
 *	call 1f; (a trap for speculation); 1: mov %reg,(%rsp); ret
 *
 * The place of rsp follows from the instruction.
 */
static bool in_retpoline(const struct walk *w, uint64_t rip, struct orc_entry *x)
{
	uint8_t p[5];

	if (w->u->read_text(w->u->ctx, rip, p, sizeof(p)) < sizeof(p))
		return false;
	*x = (struct orc_entry){ .type = ORC_CALL, .sp_reg = ORC_SP, .sp_offset = 8 };
	if (p[0] == 0xe8 && p[1] < 64 && !p[2] && !p[3] && !p[4])
		return true;
	x->sp_offset = 16;
	return is_store_to_top(p);
}

/*
 * Returns whether ret is one of a kernel's start frames. A kernel's first task becomes the idle
 * task. At the top of its stack are return addresses into code that has started the kernel and was
 * freed then (free_initmem), so that no call can be seen before them. They are accepted if
 * everything that can be known agrees: they are the topmost words of a stack that was copied to
 * its end, and the table, which still describes that code, leads from one to the next by constant
 * steps to where it says that stacks end.
 */
static bool is_start_of_kernel(const struct walk *w, uint64_t ret, uint64_t cfa, int slice)
{
	const struct sample_slice *stack = &w->s->slice[slice];
	uint64_t end = stack->va + stack->len;

	if (end % STACK_ALIGN || end - cfa > START_BYTES)
		return false;
	for (unsigned int n = 0; n < START_FRAMES; n++) {
		const struct orc_entry *x = entry_of(w, ret - 1);

		if (is_end_of_stack(w, ret) || is_end_of_stack(w, ret - 1))
			return n > 0;
		if (!x || x->type != ORC_CALL || x->sp_reg != ORC_SP || x->sp_offset < 8)
			return false;
		cfa += (uint64_t)x->sp_offset;
		if (walk_read(w, cfa - 8, &ret, sizeof(ret)) != slice)
			return false;
	}
	return false;
}

/*
 * Returns whether a call ends before this address. A positive result is cached together with the
 * entry.
 */
static bool is_call_before(const struct walk *w, uint64_t ret)
{
	const struct unwind_region *text;
	const struct orc_entry *x;
	uint64_t target;

	if (orc_memo_find(w->u->memo, ret))
		return true;
	if (!walk_is_return(w, ret, &target))
		return false;
	text = framescan_code_at(&w->code, ret - 1);
	x = entry_of(w, ret - 1);
	if (x && text->form == UNWIND_FORM_PLAIN)
		orc_memo_keep(w->u->memo, ret, x);
	return true;
}

static enum step return_by_orc(struct walk *w, struct scan_regs *r, const struct orc_entry *x,
			       uint64_t cfa)
{
	enum walk_ip is = x->signal ? WALK_IP_EXACT : WALK_IP_RETURN;
	bool after_call;
	uint64_t ret, next;
	int slice;

	if (cfa % 8)
		return walk_finish(w, STACK_END_BAD_CHAIN);
	slice = walk_read(w, cfa - 8, &ret, 8);
	if (slice < 0)
		return walk_finish(w, walk_missing(w, cfa - 1));
	if (cfa - 8 < w->floor[slice])
		return walk_finish(w, STACK_END_BAD_CHAIN);
	walk_traced(w, cfa - 8, &ret);
	after_call = is_call_before(w, ret);
	if (w->out->exact[w->out->n - 1] && goes_by_ret(w, r->rip, ret, after_call) &&
	    walk_read(w, cfa, &next, 8) == slice && is_call_before(w, next)) {
		ret = next;
		cfa += 8;
	} else if (!after_call) {
		/*
		 * The outermost frame has no caller: a new task returns to the start of
		 * ret_from_fork, a CPU's first C function to after an lretq.
		 */
		if (!is_end_of_stack(w, ret - 1) && !is_start_of_kernel(w, ret, cfa, slice)) {
			if (!is_end_of_stack(w, ret))
				return walk_finish(w, STACK_END_BAD_CHAIN);
			is = WALK_IP_EXACT;
		}
	}
	if (!find_rbp(w, x, cfa, &r->rbp))
		return STEP_END;
	w->floor[slice] = cfa;
	r->rip = ret;
	r->rsp = cfa;
	r->r10 = 0;
	r->whole = false;
	return walk_push(w, ret, FRAME_ORC, is) ? STEP_ON : STEP_END;
}

/*
 * Finds the entry for parts of functions that are elsewhere without entries of their own, such as
 * .altinstr_aux (_static_cpu_has, arch/x86/include/asm/cpufeature.h): if nothing there changes the
 * stack, the entry of their jump's target applies.
 */
static const struct orc_entry *entry_ahead(const struct walk *w, uint64_t va)
{
	uint8_t text[MAX_AHEAD * INSN_MAX_LEN];
	size_t len, at = 0;

	if (!framescan_code_at(&w->code, va))
		return NULL;
	len = w->u->read_text(w->u->ctx, va, text, sizeof(text));
	for (unsigned int n = 0; n < MAX_AHEAD && at < len; n++) {
		struct insn i;

		if (!insn_decode(&i, va + at, text + at, len - at))
			return NULL;
		if (i.kind == INSN_JMP || i.kind == INSN_JCC)
			return entry_of(w, (uint64_t)i.value);
		if (i.kind != INSN_OTHER)
			return NULL;
		at += i.len;
	}
	return NULL;
}

/* Segments of Linux's GDT, arch/x86/include/asm/segment.h. */
enum { KERNEL_CS = 0x10, USER32_CS = 0x23 };
#define RFLAGS_FIXED 2u /* always set (SDM vol. 1, 3.4.3) */

/*
 * Returns whether the words at `at` are what the processor saves at an interruption. The bottom of
 * a kernel thread's stack has zeros instead. *end: the reason if not.
 */
static bool looks_saved(const struct walk *w, uint64_t at, enum stack_end *end)
{
	uint64_t f[3];
	uint16_t cs;

	if (walk_read(w, at, f, sizeof(f)) < 0) {
		*end = walk_missing(w, at + sizeof(f) - 1);
		return false;
	}
	*end = STACK_END_BAD_CHAIN;
	if (f[0] == 0 && f[1] == 0)
		return true;
	cs = linux_regs_selector(f[1]);
	/* A program that has not run yet has the flags that the kernel set (start_thread). */
	return (cs == KERNEL_CS && (f[2] & RFLAGS_FIXED)) || cs == LINUX_USER_CS64 ||
	       cs == USER32_CS;
}

/*
 * Returns whether rip is after the call in an optimised kprobe, which jumps to code that pushes
 * all registers and calls the handler; the handler writes rip, cs and rsp into them
 * (optimized_callback, arch/x86/kernel/kprobes/opt.c).
 */
static bool is_call_of_probe(const struct walk *w, const struct scan_regs *r)
{
	const struct unwind_region *text = framescan_code_at(&w->code, r->rip - 1);

	return text && text->form == UNWIND_FORM_REGS;
}

/*
 * Returns whether rip is directly after the call of error_entry(), which returns with a whole
 * pt_regs pushed; the table does not know this for that one instruction (idtentry_body,
 * arch/x86/entry/entry_64.S). The function's last jump goes to sync_regs(), which is on the stack
 * while that instruction, which sets rsp to the registers, is still to come.
 */
static bool is_behind_error_entry(const struct walk *w, uint64_t rip, bool exact)
{
	static const uint8_t mov_rax_rsp[] = { 0x48, 0x89, 0xc4 };
	uint8_t p[sizeof(mov_rax_rsp)];

	return exact || (w->u->read_text(w->u->ctx, rip, p, sizeof(p)) == sizeof(p) &&
			 !memcmp(p, mov_rax_rsp, sizeof(p)));
}

enum step walk_step_orc(struct walk *w, struct scan_regs *r)
{
	bool exact = w->out->exact[w->out->n - 1];
	const struct orc_entry *x = exact ? NULL : orc_memo_find(w->u->memo, r->rip);
	enum stack_end end, other;
	struct orc_entry own; /* a copy: the cache may replace the entry, and a thunk has none */
	bool known = x;
	uint64_t cfa;

	if (known) {
		own = *x;
		x = &own;
	} else {
		x = entry_of(w, exact ? r->rip : r->rip - 1);
	}
	if (!exact && !known && is_call_of_probe(w, r))
		return looks_saved(w, r->rsp + PT_IP, &end) ? walk_cross_pt_regs(w, r, r->rsp)
							    : walk_finish(w, end);
	if (exact && (!x || x->type == ORC_END_OF_STACK) && in_retpoline(w, r->rip, &own))
		x = &own;
	if (!x && exact)
		x = entry_ahead(w, r->rip);
	/*
	 * The table says for return_to_handler that stacks end there (up to 6.3), or nothing
	 * (since 6.4; arch/x86/kernel/ftrace_64.S).
	 */
	if ((!x || x->type == ORC_END_OF_STACK) && walk_in_handler(w, r->rip)) {
		enum step st = walk_from_handler(w, r);

		return st == STEP_UNKNOWN ? walk_finish(w, STACK_END_NO_ORC) : st;
	}
	if (!x)
		return STEP_UNKNOWN;
	if (x->type == ORC_END_OF_STACK)
		/* On the first instructions of a system call the stack is still the program's. */
		return walk_finish(w, exact && !(r->rsp >> 63) ? STACK_END_USER : STACK_END_ROOT);
	if (!find_cfa(w, r, x, &cfa))
		return STEP_END;
	switch (x->type) {
	case ORC_CALL:
		return return_by_orc(w, r, x, cfa);
	case ORC_REGS:
		if (!looks_saved(w, cfa + PT_IP, &end))
			return walk_finish(w, end);
		return walk_cross_pt_regs(w, r, cfa);
	case ORC_REGS_PARTIAL:
		if (!looks_saved(w, cfa, &end)) {
			if (is_behind_error_entry(w, r->rip, exact) &&
			    looks_saved(w, r->rsp + PT_IP, &other))
				return walk_cross_pt_regs(w, r, r->rsp);
			return walk_finish(w, end);
		}
		if (!find_rbp(w, x, cfa, &r->rbp))
			return STEP_END;
		return walk_cross_iret(w, r, cfa);
	default:
		return walk_finish(w, STACK_END_BAD_CHAIN);
	}
}

/* -- the last resort ------------------------------------------------------------- */

/* Returns whether the call before a return address can have led to the code at ip. */
static bool calls_this(const struct walk *w, uint64_t target, uint64_t ip)
{
	const struct unwind_region *text = framescan_code_at(&w->code, ip);
	const struct symbol *here, *there;
	uint64_t off;

	if (!target)
		return true; /* indirect: it can have gone anywhere */
	if (!text)
		return false; /* the kernel's text has no direct calls of generated code */
	/* Without names: the target must be in the same piece that the table does not know. */
	if (!text->symbols)
		return text->orc && target <= ip && target >= text->start &&
		       orc_lookup(text->orc, target) == orc_lookup(text->orc, ip);
	here = symtab_lookup(text->symbols, ip, NULL);
	there = framescan_symbol(&w->code, target, &off);
	return here && here == there && off == 0;
}

static enum step accept_scanned(struct walk *w, struct scan_regs *r, int slice, uint64_t at,
				uint64_t ret)
{
	w->guessed = true;
	w->floor[slice] = at + 8;
	r->rip = ret;
	r->rsp = at + 8;
	r->r10 = 0;
	r->whole = false;
	return walk_push(w, ret, FRAME_SCAN, WALK_IP_RETURN) ? STEP_ON : STEP_END;
}

/*
 * Handles code that the table does not know: a module without a table, assembly without hints,
 * code generated at run time that no list of the kernel mentions. It usually has a frame to which
 * rbp points.
 */
enum step walk_step_scanned(struct walk *w, struct scan_regs *r)
{
	uint64_t ip = w->out->exact[w->out->n - 1] ? r->rip : r->rip - 1, frame[2], target;
	const struct unwind_region *text = framescan_code_at(&w->code, ip);
	int slice;

	/* Before the kernel's mappings exist, nothing is at its address. */
	if (!(ip >> 63))
		return walk_finish(w, STACK_END_NO_TEXT);
	if ((!text || !text->orc) && r->rbp % 8 == 0 && r->rbp >= r->rsp) {
		slice = walk_read(w, r->rbp, frame, sizeof(frame));
		if (slice >= 0 && r->rbp >= w->floor[slice] &&
		    walk_is_return(w, frame[1], &target) && calls_this(w, target, ip)) {
			uint64_t at = r->rbp + 8;

			r->rbp = frame[0];
			return accept_scanned(w, r, slice, at, frame[1]);
		}
	}
	for (uint64_t at = (r->rsp + 7) & ~7ull, n = 0; n < SCAN_BYTES; at += 8, n += 8) {
		uint64_t ret;

		slice = walk_read(w, at, &ret, 8);
		if (slice < 0)
			break;
		if (at < w->floor[slice] || !walk_is_return(w, ret, &target) ||
		    !calls_this(w, target, ip))
			continue;
		return accept_scanned(w, r, slice, at, ret);
	}
	return walk_finish(w, text ? STACK_END_NO_ORC : STACK_END_NO_TEXT);
}
