/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds a program's functions in the copies of its stack that perf record --call-graph dwarf
 * makes: each sample has the registers and the bytes from the stack pointer on, and the call frame
 * information of the mapped files locates each caller's registers. Files must be the mapped ones
 * (names_program.c); if one is missing or has no such information, the chain ends.
 */
#include "profile/format/names/private.h"

#include "profile/format/perfdata/format.h"
#include "symbolizer/cfi/cfi_cache.h"
#include "symbolizer/program/userelf_cfi.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file of a program whose call frame information is used. */
struct names_frames {
	struct file_map map;
	struct file_bytes bytes;
	struct userelf_cfi *cfi; /* NULL: it has none */
};

void names_frames_destroy(struct names_frames *f)
{
	if (!f)
		return;
	userelf_cfi_destroy(f->cfi);
	file_map_close(&f->map);
	free(f);
}

/* Returns the call frame information of the file that gave the symbols, or NULL. */
static const struct userelf_cfi *frames_of(const struct names *n, struct names_dso *d)
{
	struct userelf *u;
	struct file_source src;
	struct names_frames *f;

	if (!d->tried)
		names_load_dso(n, d);
	if (d->frames)
		return d->frames->cfi;
	f = d->frames = calloc(1, sizeof(*f));
	if (!f || !d->path || file_map_open(&f->map, d->path, NAMES_MAX_ELF, NULL) < 0)
		return NULL;
	f->bytes = (struct file_bytes){ f->map.data, f->map.len };
	src = filepiece_source_of_bytes(&f->bytes);
	u = calloc(1, sizeof(*u));
	if (!u || userelf_open(u, d->path, &src, NULL) < 0 ||
	    userelf_cfi_open(&f->cfi, u) != CFI_FOUND)
		f->cfi = NULL;
	free(u);
	return f->cfi;
}

/* -- one step ------------------------------------------------------------------------------ */

/* A copy of a stack. */
struct stack_copy {
	const uint8_t *bytes;
	uint64_t va, len;
};

static bool read_copy(void *ctx, uint64_t va, uint64_t *out)
{
	const struct stack_copy *s = ctx;

	if (va < s->va || va - s->va > s->len || s->len - (va - s->va) < 8)
		return false;
	memcpy(out, s->bytes + (va - s->va), 8);
	return true;
}

/* Returns the rules for the instruction at pc in a process, or NULL. */
static const struct cfi_row *row_at(struct names *n, uint32_t space, uint64_t pc)
{
	const struct mapping *m = spaces_find(&n->spaces, space, pc);
	const struct userelf_cfi *cfi;
	struct cfi_slot *slot;
	struct cfi_row row;
	enum cfi_found found;
	uint64_t va;

	if (!m)
		return NULL;
	cfi = frames_of(n, (struct names_dso *)n->dsos.item + m->dso);
	if (!cfi || !userelf_cfi_va(cfi, pc - m->addr + m->pgoff, &va))
		return NULL;
	slot = cfi_cache_find(n->from->rows, m->dso, va);
	if (!slot) {
		found = userelf_cfi_row(cfi, va, &row);
		slot = cfi_cache_keep(n->from->rows, m->dso, va, found, &row);
	}
	return slot ? cfi_cache_row(n->from->rows, slot) : NULL;
}

/* -- a sample -------------------------------------------------------------------------------- */

/* DWARF register numbers in the order of perf's bits; CFI_REGS: not a general register. */
static const uint8_t dwarf_of[] = {
	CFI_RAX, CFI_RBX,  CFI_RCX,  CFI_RDX,  CFI_RSI,	 CFI_RDI,  CFI_RBP,  CFI_RSP,
	CFI_RIP, CFI_REGS, CFI_REGS, CFI_REGS, CFI_REGS, CFI_REGS, CFI_REGS, CFI_REGS,
	CFI_R8,	 CFI_R9,   CFI_R10,  CFI_R11,  CFI_R12,	 CFI_R13,  CFI_R14,  CFI_R15,
};

static void read_regs(struct cfi_regs *g, const struct perfdata_record *r)
{
	const uint8_t *at = r->sample.regs;

	g->known = 0;
	for (unsigned int bit = 0; bit < 64; bit++) {
		uint64_t value;

		if (!(r->sample.regs_mask >> bit & 1))
			continue;
		memcpy(&value, at, 8);
		at += 8;
		if (bit < sizeof(dwarf_of) && dwarf_of[bit] < CFI_REGS)
			cfi_set(g, dwarf_of[bit], value);
	}
}

struct stack_words {
	uint64_t word[PERFDATA_MAX_FRAMES + 2 + NAMES_MAX_CALLERS];
	uint32_t nr;
};

/* Adds the frames from g on to `to`. The address of a caller is its return address. */
static enum cfi_step add_callers(struct names *n, uint32_t space, struct cfi_regs *g,
				 struct stack_copy *copy, struct stack_words *to)
{
	struct cfi_stack stack = { .read = read_copy,
				   .ctx = copy,
				   .near = copy->bytes,
				   .near_va = copy->va,
				   .near_len = copy->len };
	bool called = false; /* rip is a return address */
	enum cfi_step step;

	for (unsigned int i = 0;; i++) {
		struct cfi_regs caller = { .known = 0 };
		const struct cfi_row *row;

		to->word[to->nr++] = g->r[CFI_RIP];
		if (i + 1 == NAMES_MAX_CALLERS)
			return CFI_STEP_MISSING;
		row = row_at(n, space, g->r[CFI_RIP] - called);
		if (!row)
			return CFI_STEP_UNKNOWN;
		step = cfi_step(row, g, &stack, &caller);
		if (step != CFI_STEP_ON)
			return step;
		called = !row->is_signal;
		if (!cfi_knows(&caller, CFI_RIP) || !caller.r[CFI_RIP])
			return CFI_STEP_ROOT;
		/*
		 * Each caller must be at a higher stack address; otherwise the table is wrong or
		 * the stack was switched.
		 */
		if (!cfi_knows(&caller, CFI_RSP) || caller.r[CFI_RSP] <= g->r[CFI_RSP])
			return CFI_STEP_UNKNOWN;
		*g = caller;
	}
}

void names_stack_deinit(struct names_from_profile *f)
{
	cfi_cache_destroy(f->rows);
	free(f->words);
}

static bool has_user_frames(const struct perfdata_record *r)
{
	uint64_t word;

	for (uint32_t i = 0; i < r->sample.nr; i++) {
		memcpy(&word, r->sample.chain + 8 * (size_t)i, 8);
		if (word == PERFDATA_CONTEXT_USER)
			return true;
	}
	return false;
}

void names_unwind_copy(struct names *n, struct perfdata *p, struct perfdata_record *r)
{
	struct stack_copy copy = { r->sample.stack, 0, r->sample.stack_len };
	struct names_stacks *count = &n->from->stacks;
	struct cfi_regs g = { .known = 0 };
	struct stack_words *to;
	const uint8_t *words;
	enum cfi_step end;
	uint32_t first;

	if (!r->sample.regs || !copy.bytes || r->owner != PERFDATA_RECORDED)
		return;
	/*
	 * A chain joined from two records (read_chain.h) may be longer than one record; it has user
	 * frames already.
	 */
	if (r->sample.nr > PERFDATA_MAX_FRAMES || has_user_frames(r))
		return;
	read_regs(&g, r);
	if (!cfi_knows(&g, CFI_RIP) || !cfi_knows(&g, CFI_RSP))
		return;
	if (!n->from->rows)
		n->from->rows = cfi_cache_create();
	if (!n->from->words)
		n->from->words = malloc(sizeof(*n->from->words));
	to = n->from->words;
	if (!to || !n->from->rows)
		return;
	copy.va = g.r[CFI_RSP];
	if (r->sample.nr)
		memcpy(to->word, r->sample.chain, 8 * (size_t)r->sample.nr);
	to->nr = r->sample.nr;
	to->word[to->nr++] = PERFDATA_CONTEXT_USER;
	first = to->nr;
	end = add_callers(n, spaces_of(&n->spaces, r->pid), &g, &copy, to);
	count->copied++;
	count->whole += end == CFI_STEP_ROOT;
	count->alone += end != CFI_STEP_ROOT && to->nr == first + 1;
	words = perfdata_keep_chain(p, to->word, to->nr);
	if (words) {
		r->sample.chain = words;
		r->sample.nr = to->nr;
	}
}

void names_note(const struct names *n, char out[NAMES_NOTE_MAX])
{
	const struct names_stacks *s = n->from ? &n->from->stacks : NULL;

	out[0] = '\0';
	if (!s || s->copied == s->whole)
		return;
	snprintf(out, NAMES_NOTE_MAX,
		 "user stacks were recorded as copies of the stack: %" PRIu64 " of %" PRIu64
		 " could be followed to their end, and %" PRIu64
		 " show their innermost function alone (the copy is too short, or the file is not "
		 "on this host or has no "
		 "call frame information)",
		 s->whole, s->copied, s->alone);
}
