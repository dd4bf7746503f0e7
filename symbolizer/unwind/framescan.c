/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/unwind/framescan.h"

#include "symbolizer/core/insn.h"

#include <string.h>

/* Limits of one scan: instructions decoded, paths not followed yet, jump targets remembered. */
#define MAX_STEPS 768u
#define MAX_WAYS 24u
#define MAX_SEEN 48u
/* Maximum distance of an instruction from its function's start for reading the prologue. */
#define MAX_LINEAR 8192u

/* A buffered view of the text, so that each instruction does not cost a call. */
struct framescan_window {
	const struct unwinder *u;
	uint64_t va;
	size_t len;
	uint8_t bytes[128];
};

static bool decode_at(struct framescan_window *w, uint64_t va, struct insn *i)
{
	uint64_t off = va - w->va;

	if (off >= w->len || w->len - off < INSN_MAX_LEN) {
		size_t n = w->u->read_text(w->u->ctx, va, w->bytes, sizeof(w->bytes));

		w->va = va;
		w->len = n < sizeof(w->bytes) ? n : sizeof(w->bytes);
		off = 0;
	}
	return insn_decode(i, va, w->bytes + off, w->len - (size_t)off);
}

struct way {
	uint64_t va;
	int64_t delta; /* rsp, relative to rsp at the start */
	int64_t rbp_off;
	int64_t r10_off; /* r10 = rsp at the start + this, if r10_set */
	bool delta_lost, popped, r10_set;
};

struct scanner {
	const struct code *code;
	const struct unwind_region *here; /* the region of the path that is being followed */
	const struct scan_regs *regs;
	struct framescan_window win;
	bool over_calls;
	unsigned int steps, nways, nseen;
	struct way way[MAX_WAYS];
	uint64_t seen[MAX_SEEN];
};

/* Returns whether the call at va is the one that -pg -mfentry puts at the start of a function. */
static bool is_fentry(struct scanner *s, uint64_t va, unsigned int len)
{
	uint64_t off;
	const struct symbol *sym;
	struct insn next;
	uint8_t head[4];

	sym = framescan_symbol(s->code, va, &off);
	if (sym)
		return off == 0 ||
		       (off == 4 &&
			insn_is_fentry(head, s->win.u->read_text(s->win.u->ctx, sym->addr, head, 4),
				       off));
	return decode_at(&s->win, va + len, &next) && next.kind == INSN_PUSH_RBP &&
	       (va % 16 == 0 || va % 16 == 4);
}

static struct scan at_rsp(const struct way *w, int64_t off)
{
	if (w->delta_lost)
		return (struct scan){ .kind = SCAN_UNKNOWN };
	return (struct scan){ .kind = SCAN_AT_RSP,
			      .off = w->delta + off,
			      .rbp_saved = w->popped,
			      .rbp_off = w->rbp_off };
}

/* Evaluates one instruction. Returns true if *out is the path's result. */
static bool framescan_judge(struct scanner *s, struct way *w, const struct insn *i,
			    struct scan *out)
{
	*out = (struct scan){ .kind = SCAN_UNKNOWN };
	switch (i->kind) {
	case INSN_PUSH_RBP:
		*out = at_rsp(w, 0);
		return true;
	case INSN_MOV_RSP_RBP:
		*out = at_rsp(w, 8);
		out->rbp_saved = true;
		out->rbp_off = w->delta;
		return true;
	case INSN_POP_RBP:
		/*
		 * In an epilogue rsp is back at the address in rbp. Elsewhere rbp was saved like
		 * any other register, and is not a frame pointer.
		 */
		if (w->delta_lost || s->regs->rsp + (uint64_t)w->delta == s->regs->rbp) {
			*out = (struct scan){ .kind = SCAN_FRAME, .weak = w->delta_lost };
			return true;
		}
		w->popped = true;
		w->rbp_off = w->delta;
		w->delta += 8;
		return false;
	case INSN_LEAVE:
	case INSN_RSP_FROM_RBP:
		if (!w->popped)
			*out = (struct scan){ .kind = SCAN_FRAME };
		return true;
	case INSN_R10_FROM_RSP:
		w->r10_set = !w->delta_lost;
		w->r10_off = w->delta + i->value;
		return false;
	case INSN_RSP_FROM_R10:
	case INSN_PUSH_R10_M8:
		if (w->r10_set) {
			*out = (struct scan){ .kind = SCAN_AT_RSP, .off = w->r10_off - 8 };
			return true;
		}
		*out = (struct scan){ .kind = SCAN_AT_R10,
				      .rbp_saved = w->popped,
				      .rbp_off = w->rbp_off };
		return true;
	case INSN_RSP_ADD:
		/* 64 KiB: no frame is larger, and sums cannot overflow. */
		if (i->value > 65536 || i->value < -65536)
			w->delta_lost = true;
		else
			w->delta += i->value;
		return false;
	case INSN_RSP_LOST:
		w->delta_lost = true;
		return false;
	case INSN_CALL:
	case INSN_CALL_IND:
		if (s->over_calls || (i->kind == INSN_CALL && is_fentry(s, w->va, i->len)))
			return false;
		if (!w->popped)
			*out = (struct scan){ .kind = SCAN_FRAME, .weak = true };
		return true;
	case INSN_JMP_IND:
		/* After rbp was restored this can only be a tail call. */
		if (w->popped)
			*out = at_rsp(w, 0);
		return true;
	case INSN_RET:
		*out = at_rsp(w, 0);
		out->by_return = out->kind == SCAN_AT_RSP;
		return true;
	case INSN_IRET:
		*out = at_rsp(w, 0);
		if (out->kind == SCAN_AT_RSP)
			out->kind = SCAN_IRET;
		return true;
	case INSN_TRAP:
		return true;
	default:
		return false;
	}
}

/*
 * Returns whether it is a nop (0x90), or a nop with an operand (0f 1f), either with prefixes: SDM
 * vol. 2.
 */
static bool framescan_is_fill(const struct scanner *s, uint64_t va, unsigned int len)
{
	const uint8_t *p = s->win.bytes + (va - s->win.va);

	while (len > 1 && (*p == 0x66 || *p == 0x2e || *p == 0x67)) {
		p++;
		len--;
	}
	return (len == 1 && *p == 0x90) || (len > 2 && p[0] == 0x0f && p[1] == 0x1f);
}

/* Returns whether va is text. Paths can leave a module: into the kernel's return thunk. */
static bool in_text(struct scanner *s, uint64_t va)
{
	if (!s->here || va < s->here->start || va >= s->here->end)
		s->here = framescan_code_at(s->code, va);
	return s->here;
}

/*
 * Returns whether a function starts after a call, which then does not return: by its name if there
 * are names. Otherwise by what compilers do: functions begin at multiples of 16, with endbr64, or,
 * after padding, by pushing something or making room on the stack.
 */
static bool starts_behind_call(struct scanner *s, uint64_t call, uint64_t va)
{
	static const uint8_t endbr[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint64_t at = va, off;
	const struct symbol *sym = framescan_symbol(s->code, va, &off);
	struct insn i;

	if (sym)
		return off == 0 && sym != framescan_symbol(s->code, call, &off);
	while (at % 16 && decode_at(&s->win, at, &i) && framescan_is_fill(s, at, i.len))
		at += i.len;
	if (at % 16 || !decode_at(&s->win, at, &i))
		return false;
	if (i.len == sizeof(endbr) &&
	    !memcmp(s->win.bytes + (at - s->win.va), endbr, sizeof(endbr)))
		return true;
	return at > va && (i.kind == INSN_PUSH_RBP || (i.kind == INSN_RSP_ADD && i.value < 0));
}

static struct scan framescan_follow(struct scanner *s, struct way w)
{
	struct scan out = { .kind = SCAN_UNKNOWN };

	while (s->steps < MAX_STEPS && in_text(s, w.va)) {
		struct insn i;

		s->steps++;
		if (!decode_at(&s->win, w.va, &i))
			break;
		if (framescan_judge(s, &w, &i, &out))
			return out;
		if (i.kind == INSN_CALL && starts_behind_call(s, w.va, w.va + i.len))
			break;
		w.va += i.len;
		if (i.kind == INSN_JCC && s->nways < MAX_WAYS) {
			s->way[s->nways] = w;
			s->way[s->nways++].va = (uint64_t)i.value;
		} else if (i.kind == INSN_JMP) {
			w.va = (uint64_t)i.value;
			if (!framescan_first_visit(s->seen, &s->nseen, MAX_SEEN, w.va))
				break;
		}
	}
	return out;
}

struct scan framescan(const struct code *c, const struct scan_regs *r, enum scan_calls calls)
{
	struct scanner s;
	struct scan out;

	/* No initialiser: it would clear buffers that are read only after they were filled. */
	s.code = c;
	s.here = NULL;
	s.regs = r;
	s.win.u = c->u;
	s.win.va = 0;
	s.win.len = 0;
	s.over_calls = calls == SCAN_OVER_CALLS;
	s.steps = s.nways = s.nseen = 0;
	out = framescan_follow(&s, (struct way){ .va = r->rip });
	while (out.kind == SCAN_UNKNOWN && s.nways && s.steps < MAX_STEPS) {
		struct way w = s.way[--s.nways];

		if (framescan_first_visit(s.seen, &s.nseen, MAX_SEEN, w.va))
			out = framescan_follow(&s, w);
	}
	return out;
}

/* Returns whether the function sets up a frame between its start and `to`, in address order. */
static bool has_prologue(const struct unwinder *u, uint64_t start, uint64_t to)
{
	struct framescan_window w = { .u = u };
	bool pushed = false;

	if (to - start > MAX_LINEAR)
		to = start + MAX_LINEAR;
	for (uint64_t va = start; va < to;) {
		struct insn i;

		if (!decode_at(&w, va, &i))
			return false;
		if (i.kind == INSN_PUSH_RBP)
			pushed = true;
		else if (i.kind == INSN_MOV_RSP_RBP && pushed)
			return true;
		va += i.len;
	}
	return false;
}

enum framescan_owner framescan_owner(const struct code *c, uint64_t va, unsigned int back)
{
	const struct unwinder *u = c->u;
	const struct symbol *sym;
	uint64_t off;
	uint8_t head[16];
	unsigned int push;
	size_t n;

	sym = framescan_symbol(c, va - back, &off);
	if (!sym)
		return OWNER_UNKNOWN;
	n = u->read_text(u->ctx, sym->addr, head, sizeof(head));
	push = insn_standard_prologue(head, n < sizeof(head) ? n : sizeof(head));
	if (push && va - sym->addr >= push + 3) /* push is its offset plus one */
		return OWNER_FRAME;
	if (has_prologue(u, sym->addr, va))
		return OWNER_FRAME;
	return strstr(sym->name, ".cold") ? OWNER_PART : OWNER_NONE;
}

struct scan framescan_linear(const struct code *c, uint64_t va)
{
	const struct scan unknown = { .kind = SCAN_UNKNOWN };
	struct framescan_window w = { .u = c->u };
	const struct symbol *sym;
	uint64_t off, at;
	int64_t delta = 0;
	bool framed = false, pushed = false, down = false, ended = false;

	sym = framescan_symbol(c, va, &off);
	if (!sym || off > MAX_LINEAR || strstr(sym->name, ".cold"))
		return unknown;
	for (at = sym->addr; at < va;) {
		struct insn i;

		if (!decode_at(&w, at, &i))
			return unknown;
		switch (i.kind) {
		case INSN_PUSH_RBP:
			pushed = true;
			break;
		case INSN_MOV_RSP_RBP:
			framed = pushed;
			down = false;
			break;
		case INSN_LEAVE:
		case INSN_POP_RBP:
			down = framed;
			break;
		case INSN_JMP:
		case INSN_JMP_IND:
		case INSN_RET:
			/*
			 * The following code belongs to another path, which has the frame, if any.
			 */
			down = false;
			ended = true;
			break;
		case INSN_RSP_ADD:
			delta += i.value;
			break;
		case INSN_RSP_LOST:
			if (!framed)
				return unknown;
			break;
		default:
			break;
		}
		at += i.len;
	}
	if (at != va)
		return unknown;
	if (down)
		return (struct scan){ .kind = SCAN_AT_RSP };
	if (framed)
		return (struct scan){ .kind = SCAN_FRAME };
	/* No frame up to here: rsp is as at the entry, minus what was pushed. */
	if (pushed || (ended && delta))
		return unknown;
	return (struct scan){ .kind = SCAN_AT_RSP, .off = -delta };
}
