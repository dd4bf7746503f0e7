/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/unwind/orc.h"

#include "base/cursor.h"
#include "symbolizer/core/elf64.h"
#include "symbolizer/unwind/orc_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_BYTES 6u
/*
 * Bytes of code in one block of the index. The kernel's own .orc_lookup has blocks of the same
 * size; an index made here does not depend on the guest's.
 */
#define BLOCK_SHIFT 8

struct orc {
	uint64_t base, end; /* range of the code */
	uint64_t slide;	    /* base and end minus their link addresses */
	size_t n;
	uint32_t nblocks;
	struct orc_format format;
	uint32_t *off;	 /* offset of each entry from base; ascending */
	uint32_t *block; /* first entry that starts at or after the block; nblocks + 1 elements */
	struct orc_entry *entry;
};

/* -- normalising the forms ------------------------------------------------------------- */

static struct orc_entry normalise(const struct orc_format *form, int16_t sp_offset,
				  int16_t bp_offset, uint16_t flags)
{
	struct orc_entry x = {
		.sp_offset = sp_offset,
		.bp_offset = bp_offset,
		.sp_reg = form->reg[flags & 15] & 15,
		.bp_reg = form->reg[flags >> 4 & 15] & 15,
	};
	unsigned int type = flags >> 8 & 3;

	switch (form->layout) {
	case ORC_LAYOUT_6_4:
		x.type = flags >> 8 & 7;
		x.signal = flags >> 11 & 1;
		break;
	case ORC_LAYOUT_6_3:
		x.type = x.sp_reg	 ? type + ORC_CALL
			 : flags & 0x800 ? ORC_END_OF_STACK
					 : ORC_UNDEFINED;
		x.signal = flags >> 10 & 1;
		break;
	case ORC_LAYOUT_4_18:
		x.type = x.sp_reg	 ? type + ORC_CALL
			 : flags & 0x400 ? ORC_END_OF_STACK
					 : ORC_UNDEFINED;
		x.signal = x.sp_reg && type;
		break;
	default:
		/* These kernels treat every such entry as the end. */
		x.type = x.sp_reg ? type + ORC_CALL : ORC_END_OF_STACK;
		x.signal = x.sp_reg && type;
		break;
	}
	/* A few odd entries have invalid contents, which are ignored. */
	if (flags >> 12 || x.type > ORC_REGS_PARTIAL || !orc_format_good_regs(x.sp_reg, x.bp_reg) ||
	    (x.type >= ORC_CALL && !x.sp_reg))
		return (struct orc_entry){ .type = ORC_UNDEFINED };
	return x;
}

/* -- building ------------------------------------------------------------------ */

struct orc_row {
	uint64_t va;
	struct orc_entry entry;
};

/*
 * Orders by address. Of two entries at one address, the one with information comes last, where the
 * lookup finds it: the end of one piece of code is the start of another (scripts/sorttable.c does
 * the same).
 */
static int cmp_row(const void *a, const void *b)
{
	const struct orc_row *x = a, *y = b;

	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return (x->entry.type != ORC_UNDEFINED) - (y->entry.type != ORC_UNDEFINED);
}

/* Returns the number of rows whose address is in the text, sorted. */
static size_t read_rows(const struct orc_tables *t, const struct orc_format *form,
			struct orc_row *row)
{
	struct cursor ips, entries;
	bool sorted = true;
	size_t n = 0;

	cursor_init(&ips, t->ips, t->n * 4);
	cursor_init(&entries, t->entries, t->n * ENTRY_BYTES);
	for (size_t i = 0; i < t->n; i++) {
		uint64_t va = t->ips_va + 4 * i + (uint64_t)(int64_t)(int32_t)cursor_u32(&ips);
		int16_t sp = (int16_t)cursor_u16(&entries), bp = (int16_t)cursor_u16(&entries);
		uint16_t flags = cursor_u16(&entries);

		if (va < t->text_start || va > t->text_end)
			continue;
		row[n] = (struct orc_row){ va, normalise(form, sp, bp, flags) };
		sorted &= n == 0 || cmp_row(&row[n - 1], &row[n]) <= 0;
		n++;
	}
	/*
	 * Sorted at build time since "x86/unwind/orc: Remove boot-time ORC unwind tables sorting"
	 * (5.6).
	 */
	if (!sorted)
		qsort(row, n, sizeof(*row), cmp_row);
	return n;
}

static int freeze(struct orc *o, const struct orc_row *row)
{
	size_t at = 0;

	o->nblocks = (uint32_t)((o->end - o->base) >> BLOCK_SHIFT) + 1;
	o->off = malloc(o->n * sizeof(*o->off));
	o->entry = malloc(o->n * sizeof(*o->entry));
	o->block = malloc((o->nblocks + 1ul) * sizeof(*o->block));
	if (!o->off || !o->entry || !o->block)
		return -ENOMEM;
	for (size_t i = 0; i < o->n; i++) {
		o->off[i] = (uint32_t)(row[i].va - o->base);
		o->entry[i] = row[i].entry;
	}
	for (uint32_t b = 0; b <= o->nblocks; b++) {
		while (at < o->n && (o->off[at] >> BLOCK_SHIFT) < b)
			at++;
		o->block[b] = (uint32_t)at;
	}
	return 0;
}

int orc_build(struct orc **out, const struct orc_tables *t, struct err *e)
{
	struct orc_format form;
	struct orc_row *row;
	struct orc *o;
	size_t n;
	int ret;

	if (t->n == 0 || t->text_end <= t->text_start)
		return err_set(e, EINVAL, "the ORC table is empty");
	if (t->n > ORC_MAX_ENTRIES || t->text_end - t->text_start > ORC_MAX_SPAN)
		return err_set(e, E2BIG,
			       "%zu ORC entries over %llu bytes of code: more than the limit", t->n,
			       (unsigned long long)(t->text_end - t->text_start));
	if (t->format)
		form = *t->format;
	else if (!orc_format_find(&form, t))
		return err_set(e, EINVAL,
			       "the %zu ORC entries make no sense in any known layout: they may be "
			       "in one of a newer kernel",
			       t->n);
	row = malloc(t->n * sizeof(*row));
	if (!row)
		return err_set(e, ENOMEM, "no memory for %zu ORC entries", t->n);
	n = read_rows(t, &form, row);
	if (n < t->n - n) {
		free(row);
		return err_set(e, EINVAL,
			       "%zu of %zu ORC entries are for addresses outside of the "
			       "kernel's text",
			       t->n - n, t->n);
	}
	o = calloc(1, sizeof(*o));
	if (!o) {
		free(row);
		return err_set(e, ENOMEM, "no memory for the ORC table");
	}
	o->n = n;
	o->base = row[0].va;
	o->end = t->text_end;
	o->format = form;
	ret = freeze(o, row);
	free(row);
	if (ret) {
		orc_destroy(o);
		return err_set(e, -ret, "no memory for the ORC table");
	}
	*out = o;
	return 0;
}

void orc_destroy(struct orc *o)
{
	if (!o)
		return;
	free(o->off);
	free(o->block);
	free(o->entry);
	free(o);
}

int orc_slide(struct orc *o, uint64_t slide, struct err *e)
{
	if (o->slide || slide > UINT64_MAX - o->end)
		return err_set(e, EINVAL,
			       "ORC entries for 0x%" PRIx64 " to 0x%" PRIx64
			       " cannot be moved by 0x%" PRIx64,
			       o->base, o->end, slide);
	o->base += slide;
	o->end += slide;
	o->slide = slide;
	return 0;
}

uint64_t orc_slide_of(const struct orc *o)
{
	return o->slide;
}

/* -- lookup -------------------------------------------------------------------- */

const struct orc_entry *orc_lookup(const struct orc *o, uint64_t va)
{
	uint32_t off, lo, hi;

	if (va < o->base || va >= o->end)
		return NULL;
	off = (uint32_t)(va - o->base);
	/*
	 * The result is before the first entry of the next block, and there is an entry at offset
	 * 0.
	 */
	lo = o->block[off >> BLOCK_SHIFT];
	hi = o->block[(off >> BLOCK_SHIFT) + 1];
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (o->off[mid] <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &o->entry[lo - 1] : NULL;
}

size_t orc_count(const struct orc *o)
{
	return o->n;
}

const struct orc_entry *orc_at(const struct orc *o, size_t i, uint64_t *va)
{
	*va = o->base + o->off[i];
	return &o->entry[i];
}

uint64_t orc_last(const struct orc *o)
{
	return o->base + o->off[o->n - 1];
}

enum orc_layout orc_layout(const struct orc *o)
{
	return o->format.layout;
}

const struct orc_format *orc_format_of(const struct orc *o)
{
	return &o->format;
}

const char *orc_layout_name(enum orc_layout l)
{
	static const char *const name[] = { "none", "4.14", "4.18", "6.3", "6.4" };

	return (unsigned int)l <= ORC_LAYOUT_6_4 ? name[l] : "none";
}

/* -- cache of return addresses ------------------------------------------------------------ */

_Static_assert(ORC_MEMO_SLOTS == 1u << 16, "orc_memo_at() takes so many bits");

struct orc_memo *orc_memo_create(void)
{
	return calloc(1, sizeof(struct orc_memo));
}

void orc_memo_destroy(struct orc_memo *m)
{
	free(m);
}

void orc_memo_clear(struct orc_memo *m)
{
	for (unsigned int i = 0; m && i < ORC_MEMO_SLOTS; i++)
		if (m->slot[i].ret)
			m->slot[i].ret = 0;
}

/* -- the tables of a kernel image, and what they show about its code --------------- */

/* Minimum length of a run: a shorter one is chance. */
#define MIN_RUN 1024u
/* Words after the addresses may look like more addresses: up to this many are removed. */
#define MAX_SURPLUS 16u
/* Limit for all entries that are examined: a hostile image may be full of false runs. */
#define MAX_LOOKED (32u << 20)

static int from_sections(struct orc **out, const struct kimage *k, const struct elf64 *f,
			 struct err *e)
{
	struct cursor ips = { 0 }, entries = { 0 };
	struct orc_tables t = { .text_start = k->text, .text_end = k->etext, .code = k };

	for (uint32_t i = 0; i < f->shnum; i++) {
		Elf64_Shdr s = elf64_shdr(f, i);
		const char *name = elf64_section_name(f, &s);

		if (s.sh_type != SHT_PROGBITS)
			continue;
		if (!strcmp(name, ".orc_unwind_ip")) {
			ips = cursor_window(&f->file, s.sh_offset, s.sh_size);
			t.ips_va = s.sh_addr;
		} else if (!strcmp(name, ".orc_unwind")) {
			entries = cursor_window(&f->file, s.sh_offset, s.sh_size);
		}
	}
	if (!ips.len && !ips.bad && !entries.len && !entries.bad)
		return -ENOENT;
	if (ips.bad || entries.bad || ips.len % 4 || ips.len / 4 * ENTRY_BYTES != entries.len)
		return err_set(e, EINVAL,
			       "the ORC sections do not belong together: %zu bytes of "
			       "addresses, %zu of entries",
			       ips.len, entries.len);
	t.ips = ips.base;
	t.entries = entries.base;
	t.n = ips.len / 4;
	return orc_build(out, &t, e);
}

/*
 * Tries tables whose addresses begin `off` bytes into a segment: `run` of them, or a few less
 * because the first entries may look like addresses. budget: entries that may still be examined.
 */
static bool take_run(struct orc **out, const struct kimage *k, const struct kimage_segment *s,
		     uint64_t off, size_t run, size_t *budget)
{
	const uint8_t *p = k->elf + s->file_off + off;

	for (size_t n = run; n >= MIN_RUN && run - n < MAX_SURPLUS && n <= *budget; n--) {
		struct orc_tables t = {
			.ips = p,
			.ips_va = s->va + off,
			.entries = p + 4 * n,
			.n = n,
			.text_start = k->text,
			.text_end = k->end,
			.code = k,
		};

		if ((s->file_len - off) / (4 + ENTRY_BYTES) < n)
			continue;
		*budget -= n;
		if (orc_build(out, &t, NULL) == 0)
			return true;
	}
	return false;
}

/*
 * Finds the tables without section headers: the addresses are the longest ascending sequence of
 * relative pointers into the text in the image, and the entries follow them directly
 * (ORC_UNWIND_TABLE in include/asm-generic/vmlinux.lds.h; both are 2-aligned). Init code may be
 * among data (since 6.16), where only the table shows that it exists.
 */
static int from_content(struct orc **out, const struct kimage *k)
{
	size_t budget = MAX_LOOKED;

	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];
		uint64_t last = 0;
		struct cursor c;
		size_t run = 0;

		cursor_init(&c, k->elf + s->file_off, s->file_len);
		/* One more iteration than there are words ends a run that reaches the end. */
		for (uint64_t at = -s->va & 3; at <= s->file_len; at += 4) {
			uint64_t to;
			bool goes_on;

			cursor_seek(&c, at);
			to = s->va + at + (uint64_t)(int64_t)(int32_t)cursor_u32(&c);
			goes_on = !c.bad && to >= k->text && to <= k->end;
			if (goes_on && (run == 0 || to >= last)) {
				run++;
			} else {
				if (run >= MIN_RUN &&
				    take_run(out, k, s, at - 4 * run, run, &budget))
					return 0;
				run = goes_on;
			}
			last = to;
		}
	}
	return -ENOENT;
}

int orc_open(struct orc **out, const struct kimage *k, struct err *e)
{
	struct elf64 f;
	int ret = elf64_open(&f, "kernel image", k->elf, k->elf_len, e);

	if (ret)
		return ret;
	ret = f.shnum ? from_sections(out, k, &f, e) : from_content(out, k);
	return ret == -ENOENT ? err_set(e, ENOENT, "the kernel image has no ORC tables") : ret;
}

/* -- the interrupt stack -------------------------------------------------------- */

/* Maximum distance in bytes between loading the stack's address and the switch. */
#define MAX_BACK 48u
/* Maximum number of places that are examined: each irq entry has one or two. */
#define MAX_PLACES 256u

struct orc_image_place {
	uint64_t value;
	bool percpu;
};

/*
 * Returns whether p[0..n) ends with the switch (call_on_stack, arch/x86/include/asm/irq_stack.h):
 *
 *	mov	[%gs:]variable, %tos
 *	mov	%rsp, (%tos)
 *	mov	%tos, %rsp
 */
static bool read_switch(const uint8_t *p, size_t n, uint64_t va, struct orc_image_place *out)
{
	unsigned int reg, rex, modrm;

	/* mov %tos,%rsp: REX.W [REX.R] 89 /r with rm = rsp */
	if (n < 12 || (p[n - 3] & 0xfb) != 0x48 || p[n - 2] != 0x89 || (p[n - 1] & 0xc7) != 0xc4)
		return false;
	rex = p[n - 3] & 4;
	reg = p[n - 1] >> 3 & 7;
	/*
	 * mov %rsp,(%tos): REX.W [REX.B] 89, reg = rsp; rsp, rbp, r12, r13 are encoded differently
	 */
	if (reg == 4 || reg == 5 || p[n - 6] != (rex ? 0x49 : 0x48) || p[n - 5] != 0x89 ||
	    p[n - 4] != (0x20 | reg))
		return false;
	modrm = reg << 3;
	for (size_t at = n - 6 - 7; at < n; at--) { /* wraps past 0 to end the loop */
		int32_t disp;
		size_t len;

		if (p[at] != (rex ? 0x4c : 0x48) || p[at + 1] != 0x8b)
			continue;
		if (p[at + 2] == (modrm | 4) && p[at + 3] == 0x25)
			len = 8; /* absolute */
		else if (p[at + 2] == (modrm | 5))
			len = 7; /* relative to rip */
		else
			continue;
		if (at + len > n - 6)
			continue;
		memcpy(&disp, p + at + len - 4, 4);
		out->value = (uint64_t)(int64_t)disp + (len == 7 ? va + at + len : 0);
		out->percpu = at > 0 && p[at - 1] == 0x65;
		return true;
	}
	return false;
}

/*
 * The majority decides: nearly all places load one variable, but a few switch to another stack in
 * the same way, and some bytes only look like a load.
 */
uint64_t orc_irq_stack_ptr(const struct orc *o, const struct kimage *k, bool *percpu)
{
	struct orc_image_place found[MAX_PLACES];
	unsigned int seen = 0, best = 0, most = 0;

	for (size_t i = 1; i < orc_count(o) && seen < MAX_PLACES; i++) {
		uint64_t va, before;
		const struct orc_entry *x = orc_at(o, i, &va);
		uint8_t bytes[MAX_BACK];

		va -= orc_slide_of(o);
		if (x->sp_reg == ORC_SP_INDIRECT && x->type == ORC_CALL &&
		    orc_at(o, i - 1, &before)->sp_reg != ORC_SP_INDIRECT &&
		    kimage_read(k, va - MAX_BACK, bytes, MAX_BACK) == 0 &&
		    read_switch(bytes, MAX_BACK, va - MAX_BACK, &found[seen]))
			seen++;
	}
	for (unsigned int i = 0; i < seen; i++) {
		unsigned int agree = 0;

		for (unsigned int j = 0; j < seen; j++)
			agree += found[j].value == found[i].value &&
				 found[j].percpu == found[i].percpu;
		if (agree > most) {
			most = agree;
			best = i;
		}
	}
	if (!seen || most < seen - seen / 4)
		return 0;
	*percpu = found[best].percpu;
	return kimage_run_address(k->text, k->end, orc_slide_of(o), found[best].value);
}
