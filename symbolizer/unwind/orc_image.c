/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a kernel image has its ORC tables, and what they tell about its code. */
#include "symbolizer/unwind/orc.h"

#include "symbolizer/core/elf64.h"

#include <errno.h>
#include <string.h>

#define ENTRY_BYTES 6u
/* Fewer in a row are no table but chance. */
#define MIN_RUN 1024u
/* Words after the addresses may look like some more of them: this many are tried away. */
#define MAX_SURPLUS 16u
/* Entries looked at in all before giving up: a hostile image may be full of false runs. */
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
 * Tables whose addresses begin `off` bytes into a segment: `run` of them, or a few less where
 * the first entries look like addresses, too. budget: entries that may still be looked at.
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
 * No section headers: the addresses are the longest ascending row of relative
 * pointers into the text in the image, and the entries follow them at once
 * (ORC_UNWIND_TABLE in include/asm-generic/vmlinux.lds.h; both are 2-aligned). Init
 * code may lie among data (since 6.16), where nothing but the table tells of it.
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
		/* One turn more than there are words, to end a run that reaches the end. */
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

/* How far before the switch the stack's address is loaded. */
#define MAX_BACK 48u
/* Places looked at: each irq entry has one or two. */
#define MAX_PLACES 256u

struct place {
	uint64_t value;
	bool percpu;
};

/*
 * p[0..n) ends with the switch (call_on_stack, arch/x86/include/asm/irq_stack.h):
 *
 *	mov	[%gs:]variable, %tos
 *	mov	%rsp, (%tos)
 *	mov	%tos, %rsp
 */
static bool read_switch(const uint8_t *p, size_t n, uint64_t va, struct place *out)
{
	unsigned int reg, rex, modrm;

	/* mov %tos,%rsp: REX.W [REX.R] 89 /r with rm = rsp */
	if (n < 12 || (p[n - 3] & 0xfb) != 0x48 || p[n - 2] != 0x89 || (p[n - 1] & 0xc7) != 0xc4)
		return false;
	rex = p[n - 3] & 4;
	reg = p[n - 1] >> 3 & 7;
	/* mov %rsp,(%tos): REX.W [REX.B] 89 with reg = rsp; rsp, rbp, r12, r13 are encoded otherwise */
	if (reg == 4 || reg == 5 || p[n - 6] != (rex ? 0x49 : 0x48) || p[n - 5] != 0x89 ||
	    p[n - 4] != (0x20 | reg))
		return false;
	modrm = reg << 3;
	for (size_t at = n - 6 - 7; at < n; at--) { /* wraps past 0 to end */
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
 * Nearly all places load one variable. A few switch to another stack in the same way, and
 * bytes may only look like a load, so that most of them decide.
 */
uint64_t orc_irq_stack_ptr(const struct orc *o, const struct kimage *k, bool *percpu)
{
	struct place found[MAX_PLACES];
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
