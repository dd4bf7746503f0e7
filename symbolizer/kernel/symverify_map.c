/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/symverify_map.h"

#include "symbolizer/core/elf64.h"
#include "symbolizer/kernel/symident.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of what is counted, this many per cent must fit. */
#define MIN_SHARE 95u
/* With fewer than this a share says nothing. */
#define MIN_COUNT 8u
#define MIN_HELD 3u

struct verdict {
	unsigned int held, failed;
	char text[320]; /* what failed or was not there, in words */
};

static void symverify_map_note(struct verdict *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void symverify_map_note(struct verdict *v, const char *fmt, ...)
{
	size_t at = strlen(v->text);
	va_list ap;

	at += (size_t)snprintf(v->text + at, sizeof(v->text) - at, "%s", at ? "; " : "");
	if (at >= sizeof(v->text))
		return;
	va_start(ap, fmt);
	vsnprintf(v->text + at, sizeof(v->text) - at, fmt, ap);
	va_end(ap);
}

static bool is_code(const struct symbol *s)
{
	return s->type == 't' || s->type == 'T' || s->type == 'w' || s->type == 'W';
}

/* Does a symbol begin here that lookup, which takes the preferred alias, would name? */
static bool symverify_map_begins(const struct symtab *t, uint64_t va)
{
	uint64_t off;
	const struct symbol *s = symtab_lookup(t, va, &off);

	return s && off == 0;
}

/* -- entry ----------------------------------------------------------------------------- */

/* Kernels that start without paging have a physical entry point. */
static void check_entry(struct verdict *v, const struct symtab *t, const struct kimage *k)
{
	struct elf64 elf;
	bool known = false;

	if (elf64_open(&elf, "kernel image", k->elf, k->elf_len, NULL) < 0 || !elf.entry) {
		symverify_map_note(v, "the image has no entry point");
		return;
	}
	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];

		if (elf.entry >= s->va && elf.entry - s->va < s->mem_len)
			known |= symverify_map_begins(t, elf.entry);
		if (elf.entry >= s->pa && elf.entry - s->pa < s->mem_len)
			known |= symverify_map_begins(t, elf.entry - s->pa + s->va);
	}
	if (known) {
		v->held++;
		return;
	}
	v->failed++;
	symverify_map_note(v, "no symbol begins at the entry point 0x%llx",
			   (unsigned long long)elf.entry);
}

/* -- calls ----------------------------------------------------------------------------- */

static void check_calls(struct verdict *v, const struct symtab *t, const struct kimage *k)
{
	struct symident_calls n = symident_count_calls(k, t);

	if (n.calls < MIN_COUNT) {
		symverify_map_note(v, "only %u direct calls in the image", n.calls);
	} else if (n.hits * 100ull >= n.calls * (unsigned long long)MIN_SHARE) {
		v->held++;
	} else {
		v->failed++;
		symverify_map_note(v, "of %u calls in the image only %u lead to its symbols",
				   n.calls, n.hits);
	}
}

/* -- bounds ---------------------------------------------------------------------------- */

static bool near(uint64_t addr, uint64_t bound)
{
	/* Linker scripts put a page's, or a cache line's, padding on either side of a symbol. */
	return addr == bound || addr == ((bound + 63) & ~63ull) ||
	       addr == ((bound + 4095) & ~4095ull);
}

static bool is_bound(uint64_t addr, const struct kimage *k, const struct elf64 *elf)
{
	if (near(addr, k->text) || near(addr, k->etext) || near(addr, k->end))
		return true;
	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];

		if (near(addr, s->va) || near(addr, s->va + s->file_len) ||
		    near(addr, s->va + s->mem_len))
			return true;
	}
	for (uint32_t i = 0; i < elf->shnum; i++) {
		Elf64_Shdr s = elf64_shdr(elf, i);

		if ((s.sh_flags & SHF_ALLOC) &&
		    (near(addr, s.sh_addr) || near(addr, s.sh_addr + s.sh_size)))
			return true;
	}
	return false;
}

static void check_bounds(struct verdict *v, const struct symtab *t, const struct kimage *k)
{
	static const char *const name[] = { "_text",	   "_stext", "__text_start", "_etext",
					    "etext",	   "_sdata", "_edata",	     "edata",
					    "__bss_start", "_sbss",  "_ebss",	     "_end",
					    "end",	   "__end" };
	struct elf64 elf = { 0 };
	unsigned int seen = 0, fits = 0;
	const char *off = "";

	(void)elf64_open(&elf, "kernel image", k->elf, k->elf_len, NULL);
	for (unsigned int i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		const struct symbol *s = symtab_find(t, name[i]);

		if (!s)
			continue;
		seen++;
		if (is_bound(s->addr, k, &elf))
			fits++;
		else
			off = name[i];
	}
	if (seen == 0) {
		symverify_map_note(v, "it names no bounds (_text, _etext, _end)");
	} else if (fits == seen || (seen > 2 && fits == seen - 1)) {
		v->held++;
	} else {
		v->failed++;
		symverify_map_note(v,
				   "%u of its %u bounds (%s) are not where a segment of the image "
				   "begins or ends",
				   seen - fits, seen, off);
	}
}

/* -- places ---------------------------------------------------------------------------- */

enum where { OUTSIDE, IN_CODE, IN_DATA };

static enum where place_of(const struct kimage *k, uint64_t va)
{
	enum where w = OUTSIDE;

	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];

		/* A symbol may mark the end. */
		if (va < s->va || va - s->va > s->mem_len)
			continue;
		if (s->flags & PF_X)
			return IN_CODE;
		w = IN_DATA;
	}
	return w;
}

static void count_places(struct verdict *v, const struct symfile *f, const struct kimage *k)
{
	unsigned int code = 0, code_ok = 0, data = 0, data_ok = 0;

	for (size_t i = 0; i < symtab_count(f->symbols); i++) {
		const struct symbol *s = symtab_at(f->symbols, i);
		enum where w = place_of(k, s->addr);

		if (is_code(s)) {
			code++;
			code_ok += w == IN_CODE;
		} else if (strchr("dDbB", s->type)) {
			data++;
			data_ok += w == IN_DATA;
		}
	}
	if (f->untyped) {
		symverify_map_note(v, "it has no types");
		return;
	}
	if (code < MIN_COUNT) {
		symverify_map_note(v, "it has only %u code symbols", code);
	} else if (code_ok * 100ull >= code * (unsigned long long)MIN_SHARE) {
		v->held++;
	} else {
		v->failed++;
		symverify_map_note(v, "of its %u code symbols only %u are in the image's code",
				   code, code_ok);
	}
	/* Where an image is one segment for all this says nothing; nor do per-CPU templates. */
	if (data >= MIN_COUNT && data_ok * 100ull >= data * (unsigned long long)MIN_SHARE)
		v->held++;
}

int symverify_map(const struct symfile *f, const char *name, const struct kimage *k,
		  const char *kname, struct err *e)
{
	struct verdict v = { 0 };

	check_calls(&v, f->symbols, k);
	check_entry(&v, f->symbols, k);
	check_bounds(&v, f->symbols, k);
	count_places(&v, f, k);
	if (v.failed)
		return err_set(e, ESTALE, "%s is not the symbol file of %s: %s", name, kname,
			       v.text);
	if (v.held < MIN_HELD)
		return err_set(e, ESTALE,
			       "%s: too little shows that it belongs to %s (%u of %u checks): %s; "
			       "give its ELF file with symbols, or nm's output",
			       name, kname, v.held, MIN_HELD, v.text);
	return 0;
}
