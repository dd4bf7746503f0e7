/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hostile stack, registers, text and tables of a program. The input: 4 bytes of flags and counts,
 * registers, table rows, stack and text in the order below, by unwind_input.h. The text is cut into
 * places of PLACE bytes, which take the rows in turn; two places in a turn have none: one has no
 * table, of the other it is not known what is mapped there.
 *
 * Each stack is unwound twice, the second time with what the first has remembered of calls.
 */
#include "tests/fuzz/fuzz.h"

#include "base/linux_regs.h"
#include "symbolizer/unwind/unwind.h"
#include "tests/fuzz/unwind_input.h"
#include "tests/sample_check.h"
#include "tests/text_bytes.h"

#include <stdlib.h>
#include <string.h>

#define TEXT 0x7f0000400000ull
#define STACK 0x7ffc00001000ull
#define SPACE 0xc43000ull
#define MAX_ROWS 8u
#define MAX_EXPR 16u
#define PLACE 64u
#define PLACES (MAX_TEXT / PLACE)
#define CAP_ROWS 2u /* places without a row behind the rows, in each turn */

enum flag {
	NO_TABLES = 1,	 /* and no files */
	CHANGING = 2,	 /* bytes of text may change: nothing is remembered of calls */
	HALF_MAPPED = 4, /* the page tables lead to half of the text, the rest is in its file */
	FRAME_TEXT = 8,	 /* user_start, user_end, and no memory of a program */
	CUT = 16,	 /* slices with gaps */
};

/* Flags of a row, in the low bits of its word of flags. */
enum row_flag {
	IS_SIGNAL = 1,
	HAS_RIP = 2, /* at CFA - 8, else as `rip_how` says */
	SAVES_RBP = 4,
	CFA_IS_EXPR = 8,
};

struct program {
	struct text_bytes mapped, file;
	struct cfi_row row[MAX_ROWS];
	unsigned int rows;
	uint8_t flags;
	uint8_t call[PLACES];
};

static const struct unwind_input in = { TEXT, STACK };

static size_t read_mapped(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct program *p = ctx;

	return space == SPACE ? text_bytes_read(&p->mapped, va, dst, len) : 0;
}

static size_t read_file(void *ctx, uint64_t va, void *dst, size_t len)
{
	struct program *p = ctx;

	return text_bytes_read(&p->file, va, dst, len);
}

static bool find(void *ctx, uint64_t va, struct unwind_place *out)
{
	struct program *p = ctx;
	unsigned int place = (unsigned int)((va - TEXT) / PLACE),
		     turn = place % (p->rows + CAP_ROWS);

	if (va - TEXT >= MAX_TEXT || turn > p->rows)
		return false;
	out->row = turn < p->rows ? &p->row[turn] : NULL;
	out->call = p->flags & CHANGING ? NULL : &p->call[place];
	return true;
}

/*
 * Reads a row as a table could return it: expressions within the row, and existing kinds of rules
 * (fuzz_cfi).
 */
static void read_row(struct cursor *c, struct cfi_row *row)
{
	uint8_t flags = cursor_u8(c), rip_how = cursor_u8(c);
	uint8_t len = cursor_u8(c) % (MAX_EXPR + 1);

	memset(row, 0, sizeof(*row));
	row->cfa_reg = cursor_u8(c) % CFI_REGS;
	row->cfa = (int16_t)cursor_u16(c);
	row->is_signal = flags & IS_SIGNAL;
	row->expr_len = len;
	if (len)
		memcpy(row->expr, cursor_left(c) >= len ? cursor_bytes(c, len) : row->expr, len);
	if ((flags & CFA_IS_EXPR) && len) {
		row->cfa = 0;
		row->cfa_len = len;
	}
	row->rule[CFI_RIP] = (struct cfi_rule){ .how = CFI_SAVED, .value = -8 };
	if (!(flags & HAS_RIP)) {
		row->rule[CFI_RIP].how = rip_how % (CFI_EXPR + 1);
		row->rule[CFI_RIP].len = len;
		row->rule[CFI_RIP].value = (int8_t)cursor_u8(c);
		if (row->rule[CFI_RIP].how >= CFI_SAVED_EXPR)
			row->rule[CFI_RIP].value = 0;
		else if (row->rule[CFI_RIP].how == CFI_REGISTER)
			row->rule[CFI_RIP].value &= CFI_RIP - 1;
	}
	if (flags & SAVES_RBP)
		row->rule[CFI_RBP] =
			(struct cfi_rule){ .how = CFI_SAVED, .value = (int8_t)cursor_u8(c) };
	cfi_row_classify(row);
}

static void set_slices(struct sample *s, bool gaps)
{
	for (unsigned int i = 0; i < s->nslices; i++) {
		uint32_t each = s->stack_len / s->nslices & ~7u, off = each * i;

		s->slice[i] = (struct sample_slice){
			.va = STACK + off,
			.off = off,
			.len = gaps && each >= 16 ? each - 16 : each,
		};
	}
}

static void check(const struct sample *s, const struct stack *out, bool frame_text)
{
	if (!out->n || out->n > STACK_MAX_FRAMES || out->ip[0] != s->regs.rip || out->n_kernel)
		abort();
	if (out->user_end >= STACK_END_COUNT || out->end >= STACK_END_COUNT)
		abort();
	for (unsigned int i = 1; i < out->n; i++)
		/* An address that no program can have is no frame. */
		if (out->ip[i] >> LINUX_USER_BITS || !out->ip[i] || !out->quality[i])
			abort();
	/* Text that is known to keep frame pointers is gone by them alone. */
	for (unsigned int i = 2; i < out->n && !frame_text; i++)
		/*
		 * Only a signal's handler may have a stack above that of what it has interrupted,
		 * and the sampled function, which may be about to leave one.
		 */
		if (!out->exact[i] && out->sp[i] <= out->sp[i - 1])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t mem[sizeof(struct sample) + MAX_STACK] __attribute__((aligned(16)));
	static const uint8_t gpr[] = { GPR_RSP, GPR_RBP, GPR_R10, GPR_RBX, GPR_R13 };
	static struct stack out, again;
	static struct program p;
	struct sample *s = (struct sample *)mem;
	struct unwinder u = { .read_text = text_bytes_read, .ctx = &p.file };
	unsigned int words;
	struct cursor c;

	cursor_init(&c, data, size);
	memset(mem, 0, sizeof(mem));
	memset(&p, 0, sizeof(p));
	p.flags = cursor_u8(&c);
	words = cursor_u8(&c);
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_USER;
	s->nslices = cursor_u8(&c) % (SAMPLE_MAX_SLICES + 1);
	p.rows = cursor_u8(&c) % (MAX_ROWS + 1);
	s->regs.cs = 0x33;
	s->regs.cr3 = SPACE;
	s->regs.rip = input_address(&in, &c);
	for (unsigned int i = 0; i < sizeof(gpr); i++)
		s->regs.gpr[gpr[i]] = input_address(&in, &c);
	for (unsigned int i = 0; i < p.rows; i++)
		read_row(&c, &p.row[i]);
	input_stack(&in, &c, s, words, 0);
	set_slices(s, p.flags & CUT);
	p.file = (struct text_bytes){ TEXT, NULL,
				      cursor_left(&c) < MAX_TEXT ? cursor_left(&c) : MAX_TEXT };
	if (p.file.len)
		p.file.bytes = cursor_bytes(&c, p.file.len);
	p.mapped = p.file;
	if (p.flags & HALF_MAPPED)
		p.mapped.len /= 2;
	if (p.flags & FRAME_TEXT) {
		u.user_start = TEXT;
		u.user_end = TEXT + p.file.len / 2;
	} else {
		u.programs = (struct memory){ read_mapped, &p };
		if (!(p.flags & NO_TABLES))
			u.cfi = (struct unwind_cfi){ find, read_file, &p };
	}
	if (sample_check(s, sample_size(s)) < 0)
		abort();
	memset(&out, 0, sizeof(out));
	memset(&again, 0, sizeof(again));
	unwind(&u, s, &out);
	check(s, &out, p.flags & FRAME_TEXT);
	unwind(&u, s, &again);
	if (memcmp(&out, &again, sizeof(out)) != 0)
		abort();
	return 0;
}
