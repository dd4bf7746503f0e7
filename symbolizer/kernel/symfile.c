/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/symfile.h"

#include "base/hash.h"
#include "symbolizer/core/elf64.h"
#include "symbolizer/core/insn.h"
#include "symbolizer/kernel/symfile_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Maximum text bytes that the hash covers. */
#define MAX_HASHED (1u << 20)

/*
 * Computes the FNV-1a (64 bit) of the first max text bytes of the image. Returns how many bytes
 * that were.
 */
static uint64_t symfile_text_hash(const struct kimage *k, uint64_t max, uint64_t *hash)
{
	uint64_t len;
	size_t avail;
	const uint8_t *p = kimage_ptr(k, k->text, &avail);

	len = k->etext - k->text;
	if (!p)
		len = 0;
	else if (len > avail)
		len = avail;
	if (len > max)
		len = max;
	*hash = hash_bytes(HASH_START, p, len);
	return len;
}

static int parse_elf(struct symfile *f, const char *name, const uint8_t *data, size_t len,
		     struct err *e)
{
	struct kimage k;
	int ret = kimage_parse(&k, name, data, len, e);

	if (ret < 0)
		return ret;
	if (!k.has_symtab)
		return err_set(e, EINVAL,
			       "%s: an ELF file without symbols (stripped); expected a "
			       "vmlinux with .symtab",
			       name);
	ret = kimage_symbols(&k, &f->symbols, e);
	if (ret < 0)
		return ret;
	f->kind = SYMFILE_ELF;
	memcpy(f->build_id, k.build_id, k.build_id_len);
	f->build_id_len = k.build_id_len;
	memcpy(f->banner, k.banner, sizeof(f->banner));
	f->text_va = k.text;
	f->text_len = symfile_text_hash(&k, MAX_HASHED, &f->text_hash);
	return 0;
}

int symfile_parse(struct symfile *f, const char *name, const uint8_t *data, size_t len,
		  struct err *e)
{
	struct symfile x = { .kind = SYMFILE_TEXT };
	int ret;

	if (len >= 4 && !memcmp(data, "\177ELF", 4)) {
		ret = parse_elf(&x, name, data, len, e);
		if (ret == 0)
			*f = x;
		return ret;
	}
	x.symbols = symtab_create();
	if (!x.symbols)
		return err_set(e, ENOMEM, "%s: no memory for symbols", name);
	ret = symfile_text_parse(x.symbols, name, data, len, &x.untyped, e);
	if (ret == 0)
		ret = symtab_freeze(x.symbols, e);
	if (ret < 0) {
		symtab_destroy(x.symbols);
		return ret;
	}
	*f = x;
	return 0;
}

void symfile_deinit(struct symfile *f)
{
	symtab_destroy(f->symbols);
	f->symbols = NULL;
}

/* -- direct calls in an image's text ------------------------------------------------------- */

/* Number and length of the windows of text that are decoded: a megabyte of a large kernel. */
#define WINDOWS 256u
#define WINDOW_BYTES 4096u
/* Decoding that begins inside an instruction synchronises within this many bytes. */
#define SETTLE_BYTES 64u

struct symfile_calls {
	unsigned int calls; /* direct calls inside the text that were examined */
	unsigned int hits;  /* those that lead to the address of a code symbol */
};

static bool starts_symbol(const struct symtab *t, uint64_t va)
{
	uint64_t off;
	const struct symbol *s = symtab_lookup(t, va, &off);

	return s && off == 0;
}

/* Counts the targets of direct calls, in windows spread over the text. */
static struct symfile_calls symfile_count_calls(const struct kimage *k, const struct symtab *t)
{
	struct symfile_calls n = { 0 };
	uint64_t len = k->etext - k->text, stride = len / WINDOWS;

	if (stride < WINDOW_BYTES)
		stride = WINDOW_BYTES;
	for (uint64_t off = 0, w = 0; off < len && w < WINDOWS; off += stride, w++) {
		size_t avail, at = 0;
		const uint8_t *p = kimage_ptr(k, k->text + off, &avail);

		if (!p)
			continue;
		if (avail > len - off)
			avail = (size_t)(len - off);
		if (avail > WINDOW_BYTES)
			avail = WINDOW_BYTES;
		while (at < avail) {
			struct insn i;

			if (!insn_decode(&i, k->text + off + at, p + at, avail - at)) {
				at++;
				continue;
			}
			if (i.kind == INSN_CALL && (at >= SETTLE_BYTES || off == 0) &&
			    (uint64_t)i.value >= k->text && (uint64_t)i.value < k->etext) {
				n.calls++;
				n.hits += starts_symbol(t, (uint64_t)i.value);
			}
			at += i.len;
		}
	}
	return n;
}

/* -- whether it belongs to a kernel: wrong names are worse than none -------------- */

#define BANNER_PREFIX "Linux version "
/* Per cent of the direct calls that must lead to symbols. */
#define MIN_HITS 95u
/* Minimum number of calls for the share to be significant. */
#define MIN_CALLS 8u

struct hex_id {
	char text[2 * KIMAGE_BUILD_ID_MAX + 1];
};

static struct hex_id hex_id(const uint8_t *id, unsigned int len)
{
	struct hex_id h = { { 0 } };

	for (unsigned int i = 0; i < len && i < KIMAGE_BUILD_ID_MAX; i++)
		snprintf(h.text + 2 * i, 3, "%02x", id[i]);
	return h;
}

/* Describes one side for messages: the version from a banner. */
static void version_of(const char *banner, char *buf, size_t size)
{
	const char *v = banner;
	size_t n;

	if (!strncmp(v, BANNER_PREFIX, strlen(BANNER_PREFIX)))
		v += strlen(BANNER_PREFIX);
	n = strcspn(v, " ");
	snprintf(buf, size, "%.*s", (int)(n < 64 ? n : 64), *v ? v : "?");
}

static int verify_elf(const struct symfile *f, const char *name, const struct kimage *k,
		      const char *kname, struct err *e)
{
	char fv[72], kv[72];
	uint64_t hash;

	version_of(f->banner, fv, sizeof(fv));
	version_of(k->banner, kv, sizeof(kv));
	if (f->build_id_len && k->build_id_len) {
		if (f->build_id_len == k->build_id_len &&
		    !memcmp(f->build_id, k->build_id, k->build_id_len))
			return 0;
		return err_set(e, ESTALE,
			       "%s (%s, build id %s) is not the symbol file of %s (%s, "
			       "build id %s)",
			       name, fv, hex_id(f->build_id, f->build_id_len).text, kname, kv,
			       hex_id(k->build_id, k->build_id_len).text);
	}
	if (f->text_va != k->text || f->text_len == 0 ||
	    symfile_text_hash(k, f->text_len, &hash) != f->text_len || hash != f->text_hash)
		return err_set(e, ESTALE,
			       "%s (%s, text at 0x%llx) is not the symbol file of %s (%s, text "
			       "at 0x%llx): there is no build id on both sides, and their text "
			       "bytes differ",
			       name, fv, (unsigned long long)f->text_va, kname, kv,
			       (unsigned long long)k->text);
	return 0;
}

/*
 * Returns whether this can be the address of _end in the image. More bytes may follow _end, or its
 * last page: .init.scratch of CONFIG_AMD_MEM_ENCRYPT (arch/x86/kernel/vmlinux.lds.S), which begins
 * at the next 2 MiB, or whatever a linker script adds. The code must have ended before it, and the
 * direct calls, which are counted as well, prove the rest.
 */
static bool may_end_at(const struct kimage *k, uint64_t end)
{
	return end >= k->etext && end <= k->end;
}

/* Checks _text, _etext and _end, if the file names them. */
static int verify_extent(const struct symtab *t, const char *name, const struct kimage *k,
			 const char *kname, struct err *e)
{
	const struct symbol *text = symtab_find(t, "_text"), *etext = symtab_find(t, "_etext"),
			    *end = symtab_find(t, "_end");
	uint64_t moved;

	if (text && text->addr != k->text) {
		moved = text->addr - k->text;
		/* KASLR moves by multiples of 2 MiB (the default of CONFIG_PHYSICAL_ALIGN). */
		if (moved % (2u << 20) == 0 && end && may_end_at(k, end->addr - moved))
			return err_set(
				e, ESTALE,
				"%s: its addresses are moved by 0x%llx against %s: it "
				"was read from a running kernel with KASLR; give the System.map of "
				"the build",
				name, (unsigned long long)moved, kname);
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s: _text is 0x%llx there, 0x%llx "
			       "in the image",
			       name, kname, (unsigned long long)text->addr,
			       (unsigned long long)k->text);
	}
	if (etext && (etext->addr <= k->text || etext->addr > k->etext))
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s: _etext is 0x%llx there, but the "
			       "image has code from 0x%llx to 0x%llx",
			       name, kname, (unsigned long long)etext->addr,
			       (unsigned long long)k->text, (unsigned long long)k->etext);
	if (end && !may_end_at(k, end->addr))
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s: _end is 0x%llx there, but the "
			       "image has code up to 0x%llx and ends at 0x%llx",
			       name, kname, (unsigned long long)end->addr,
			       (unsigned long long)k->etext, (unsigned long long)k->end);
	return 0;
}

static int verify_text(const struct symtab *t, const char *name, const struct kimage *k,
		       const char *kname, struct err *e)
{
	const struct symbol *banner = symtab_find(t, "linux_banner");
	char version[72], there[sizeof(BANNER_PREFIX) - 1];
	struct symfile_calls n;
	int ret = verify_extent(t, name, k, kname, e);

	if (ret < 0)
		return ret;
	version_of(k->banner, version, sizeof(version));
	if (banner && (kimage_read(k, banner->addr, there, sizeof(there)) < 0 ||
		       memcmp(there, BANNER_PREFIX, sizeof(there)) != 0))
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s (%s): it has linux_banner at "
			       "0x%llx, where the image has something else",
			       name, kname, version, (unsigned long long)banner->addr);
	n = symfile_count_calls(k, t);
	if (n.calls >= MIN_CALLS && n.hits * 100ull < n.calls * (unsigned long long)MIN_HITS)
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s (%s): of %u calls in the image "
			       "only %u lead to its symbols",
			       name, kname, version, n.calls, n.hits);
	if (n.calls < MIN_CALLS && !banner && !symtab_find(t, "_text"))
		return err_set(e, ESTALE,
			       "%s: nothing shows that it belongs to %s: no linux_banner, no "
			       "_text, and only %u direct calls in the image",
			       name, kname, n.calls);
	return 0;
}

/* -- kernels other than Linux -------------------------------------------------------- */

/*
 * How a text map is checked against a kernel other than Linux. Linux identifies itself in its
 * image; other kernels do not, so the map is compared with what the image shows. Each of these
 * criteria holds, fails, or is not applicable:
 *
 *	entry	a code symbol begins at the ELF entry point (virtual or physical)
 *	calls	95 % of the direct calls in the text lead to code symbols
 *	bounds	_text, _etext, _edata, __bss_start, _end ... are where a segment or a
 *		section begins or ends; of several at most one is not
 *	code	95 % of the code symbols are in executable segments
 *	data	95 % of the data symbols are in the image, but not in its code
 *
 * Three must hold and none may fail: one alone may be chance, because kernels are linked at the
 * same few addresses.
 */

/* Per cent of the counted items that must fit. */
#define MIN_SHARE 95u
/* Minimum number of items for a share to be significant. */
#define MIN_COUNT 8u
#define MIN_HELD 3u

struct symverify_verdict {
	unsigned int held, failed;
	char text[320]; /* the criteria that failed or were not applicable, in words */
};

static void symverify_map_note(struct symverify_verdict *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void symverify_map_note(struct symverify_verdict *v, const char *fmt, ...)
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

/*
 * Returns whether a symbol begins here that the lookup, which takes the preferred alias, would
 * return.
 */
static bool symverify_map_begins(const struct symtab *t, uint64_t va)
{
	uint64_t off;
	const struct symbol *s = symtab_lookup(t, va, &off);

	return s && off == 0;
}

/* -- entry ----------------------------------------------------------------------------- */

/* Checks the entry point, which is physical if the kernel starts without paging. */
static void check_entry(struct symverify_verdict *v, const struct symtab *t, const struct kimage *k)
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

static void check_calls(struct symverify_verdict *v, const struct symtab *t, const struct kimage *k)
{
	struct symfile_calls n = symfile_count_calls(k, t);

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
	/* Linker scripts put the padding of a page or a cache line on either side of a symbol. */
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

static void check_bounds(struct symverify_verdict *v, const struct symtab *t,
			 const struct kimage *k)
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

static void count_places(struct symverify_verdict *v, const struct symfile *f,
			 const struct kimage *k)
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
	/* In an image of one segment this proves nothing; nor do per-CPU templates. */
	if (data >= MIN_COUNT && data_ok * 100ull >= data * (unsigned long long)MIN_SHARE)
		v->held++;
}

static int symverify_map(const struct symfile *f, const char *name, const struct kimage *k,
			 const char *kname, struct err *e)
{
	struct symverify_verdict v = { 0 };

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

/* -- any kernel ---------------------------------------------------------------------- */

int symfile_verify(const struct symfile *f, const char *name, const struct kimage *k,
		   const char *kname, struct err *e)
{
	if (f->kind == SYMFILE_ELF)
		return verify_elf(f, name, k, kname, e);
	if (!k->banner[0])
		return symverify_map(f, name, k, kname, e);
	return verify_text(f->symbols, name, k, kname, e);
}
