/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes the tables. kallsyms_find finds the names. This file tries each encoding of the
 * addresses at each place where a version puts them. A wrong one gives addresses that do not rise
 * or are outside the kernel, so only the right one is left, which must agree with the image in a
 * symbol whose address is known.
 */
#include "symbolizer/kernel/kallsyms.h"

#include "base/cursor.h"
#include "symbolizer/kernel/kallsyms_find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Maximum number of candidates. A kernel has one; a second one makes the answer doubtful. */
#define MAX_FOUND 4u
/* Offsets into per-CPU data and other absolute values are below this. */
#define LOW_END (1ull << 31)
#define KERNEL_HALF (1ull << 63)
static const char banner[] = "Linux version ";

struct hypothesis {
	const struct kallsyms_tables *t;
	enum kallsyms_encoding encoding;
	bool first;   /* order up to 6.3 */
	uint64_t off; /* offset of the addresses in t->mem */
	uint64_t base;
};

struct kallsyms_extent {
	uint64_t text, start, end; /* text: 0 if unknown */
	const struct kallsyms_range *range;
	unsigned int nrange;
	const struct kallsyms_source *source;
};

static const char *encoding_name(enum kallsyms_encoding c)
{
	switch (c) {
	case KALLSYMS_ABSOLUTE:
		return "absolute addresses";
	case KALLSYMS_RELATIVE:
		return "base-relative";
	case KALLSYMS_PERCPU:
		return "base-relative, absolute per-CPU";
	case KALLSYMS_PLACE:
		return "place-relative";
	}
	return "?";
}

static uint64_t kallsyms_address(const struct hypothesis *h, uint32_t i)
{
	uint64_t off = h->off + 4ull * i;
	uint32_t v;

	if (h->encoding == KALLSYMS_ABSOLUTE)
		return kallsyms_u64(&h->t->mem, h->off + 8ull * i);
	v = kallsyms_u32(&h->t->mem, off);
	switch (h->encoding) {
	case KALLSYMS_RELATIVE:
		return h->base + v;
	case KALLSYMS_PERCPU:
		return (int32_t)v >= 0 ? v : h->base - 1 - (uint64_t)(int64_t)(int32_t)v;
	default:
		return h->t->va + off + (uint64_t)(int64_t)(int32_t)v;
	}
}

/* Sets the place of the table. Returns false if there is no room for it. */
static bool kallsyms_place(struct hypothesis *h)
{
	const struct kallsyms_tables *t = h->t;
	bool wide = h->encoding == KALLSYMS_ABSOLUTE;
	bool has_base = h->encoding == KALLSYMS_RELATIVE || h->encoding == KALLSYMS_PERCPU;
	uint64_t len = kallsyms_align((uint64_t)t->count * (wide ? 8 : 4), has_base ? 8 : 4);

	if (has_base)
		len += 8;
	if (h->first) {
		/* Before num_syms, which takes eight bytes in all versions of this order. */
		if (t->names < 8 || t->names - 8 < len)
			return false;
		h->off = t->names - 8 - len;
	} else {
		h->off = t->token_index + 2 * KALLSYMS_TOKENS;
	}
	if (cursor_window(&t->mem, h->off, len).bad)
		return false;
	if (has_base)
		h->base = kallsyms_u64(&t->mem, h->off + len - 8);
	return true;
}

/* Returns whether these are a kernel's addresses; if not, `why` has the reason. */
static bool plausible(const struct hypothesis *h, const struct kallsyms_extent *x, char *why,
		      size_t size)
{
	uint64_t off = h->t->names, prev = 0;
	uint32_t inside = 0, code = 0, code_inside = 0;

	for (uint32_t i = 0; i < h->t->count; i++) {
		uint64_t a = kallsyms_address(h, i);
		bool in = a >= x->start && a <= x->end;
		char type = 0;

		if (a < prev) {
			snprintf(why, size, "address %u of %u is lower than the one before", i,
				 h->t->count);
			return false;
		}
		prev = a;
		if (!kallsyms_next_name(h->t, &off, &type, NULL)) {
			snprintf(why, size, "name %u of %u is invalid", i, h->t->count);
			return false;
		}
		if (type == 'T' || type == 't') {
			code++;
			code_inside += in;
		}
		/* Low values prove nothing: zeros give them in any encoding. */
		inside += in;
		if (!in && !(a & KERNEL_HALF) && a >= LOW_END) {
			snprintf(why, size, "address %u of %u is 0x%llx", i, h->t->count,
				 (unsigned long long)a);
			return false;
		}
	}
	/* Some symbols are linked elsewhere, such as trampolines, and per-CPU data is at 0. */
	if (code == 0 || code_inside < code - code / 50 || inside < h->t->count - h->t->count / 5) {
		snprintf(why, size,
			 "%u of %u functions and %u of all %u symbols lie inside the kernel",
			 code_inside, code, inside, h->t->count);
		return false;
	}
	return true;
}

static int kallsyms_fill(const struct hypothesis *h, struct symtab *t, struct err *e)
{
	char name[KALLSYMS_MAX_NAME + 1], type;
	uint64_t off = h->t->names;

	for (uint32_t i = 0; i < h->t->count; i++) {
		int ret;

		if (!kallsyms_next_name(h->t, &off, &type, name))
			return err_set(e, EBADMSG,
				       "name %u of %u in the kernel's kallsyms is empty or longer "
				       "than %u characters",
				       i, h->t->count, KALLSYMS_MAX_NAME);
		ret = symtab_add(t, kallsyms_address(h, i), 0, type, name);
		if (ret)
			return ret;
	}
	return symtab_freeze(t, e);
}

static int kallsyms_build(const struct hypothesis *h, struct symtab **out, struct err *e)
{
	struct symtab *t = symtab_create();
	int ret = t ? kallsyms_fill(h, t, e) : -ENOMEM;

	if (ret < 0) {
		symtab_destroy(t);
		return err_set(e, -ret, "cannot keep the %u symbols of the kernel's kallsyms: %s",
			       h->t->count, strerror(-ret));
	}
	*out = t;
	return 0;
}

static bool banner_at(const struct kallsyms_extent *x, uint64_t va)
{
	char there[sizeof(banner)];

	for (unsigned int i = 0; i < x->nrange; i++) {
		const struct kallsyms_range *r = &x->range[i];

		if (va >= r->va && va - r->va < r->len &&
		    r->len - (size_t)(va - r->va) >= sizeof(banner) - 1)
			return !memcmp(r->bytes + (va - r->va), banner, sizeof(banner) - 1);
	}
	return x->source->read && x->source->read(x->source->ctx, va, there, sizeof(banner) - 1) &&
	       !memcmp(there, banner, sizeof(banner) - 1);
}

/*
 * Checks symbols whose address is known without kallsyms. At least one must agree, and none may
 * disagree. (Without CONFIG_KALLSYMS_ALL there is no linux_banner, but _text.)
 */
static int check_anchors(const struct symtab *t, const struct kallsyms_extent *x, const char *name,
			 struct err *e)
{
	const struct symbol *b = symtab_find(t, "linux_banner"), *text = symtab_find(t, "_text");
	const struct symbol *stext = symtab_find(t, "_stext"),
			    *start = symtab_find(t, "startup_64");
	bool agrees = false;

	if (b) {
		if (!banner_at(x, b->addr))
			return err_set(
				e, EBADMSG,
				"%s: kallsyms puts linux_banner at 0x%llx, where no banner is",
				name, (unsigned long long)b->addr);
		agrees = true;
	}
	if (x->text) {
		if (text && text->addr != x->text)
			return err_set(e, EBADMSG,
				       "%s: kallsyms puts _text at 0x%llx, but the image's text "
				       "begins at 0x%llx",
				       name, (unsigned long long)text->addr,
				       (unsigned long long)x->text);
		agrees |= text || (stext && stext->addr == x->text) ||
			  (start && start->addr == x->text);
	}
	return agrees ? 0
		      : err_set(e, EBADMSG,
				"%s: kallsyms has %zu symbols, but none that proves them "
				"(_text, _stext, startup_64 or linux_banner where they must be)",
				name, symtab_count(t));
}

static void kallsyms_describe(const struct hypothesis *h, struct kallsyms_info *info)
{
	const struct kallsyms_tables *t = h->t;

	*info = (struct kallsyms_info){
		.encoding = h->encoding,
		.addresses_first = h->first,
		.long_names = t->long_names,
		.count = t->count,
		.names_va = t->va + t->names,
		.token_va = t->va + t->token_table,
		.addresses_va = t->va + h->off,
	};
	snprintf(info->layout, sizeof(info->layout),
		 "%s; addresses %s names%s; %u-bit markers; %u long names",
		 encoding_name(h->encoding), h->first ? "before" : "after",
		 t->seqs_before_tokens ? ", seqs before tokens" : "", t->marker_size * 8,
		 t->long_names);
}

/*
 * Finds the only plausible reading of the addresses that agrees with the image. Two may be
 * plausible: distances from a base and from the entries' own addresses look alike if the image is
 * large.
 */
static int read_symbols(const struct kallsyms_tables *t, const struct kallsyms_extent *x,
			const char *name, struct hypothesis *h, struct symtab **out, struct err *e)
{
	static const struct {
		enum kallsyms_encoding encoding;
		bool first;
	} ways[] = {
		{ KALLSYMS_PERCPU, true },    { KALLSYMS_RELATIVE, true },
		{ KALLSYMS_ABSOLUTE, true },  { KALLSYMS_PERCPU, false },
		{ KALLSYMS_RELATIVE, false }, { KALLSYMS_ABSOLUTE, false },
		{ KALLSYMS_PLACE, false },
	};
	char why[120], reasons[360] = "";
	struct symtab *best = NULL;
	struct err doubt = { 0 };
	size_t n = 0;
	int ret;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct hypothesis way = { .t = t,
					  .encoding = ways[i].encoding,
					  .first = ways[i].first };
		struct symtab *s = NULL;

		if (!kallsyms_place(&way))
			continue;
		if (!plausible(&way, x, why, sizeof(why))) {
			if (n < sizeof(reasons))
				n += (size_t)snprintf(reasons + n, sizeof(reasons) - n,
						      "%s%s %s names: %s", n ? "; " : "",
						      encoding_name(way.encoding),
						      way.first ? "before" : "after", why);
			continue;
		}
		ret = kallsyms_build(&way, &s, e);
		if (ret < 0) {
			symtab_destroy(best);
			return ret;
		}
		if (check_anchors(s, x, name, &doubt) < 0) {
			symtab_destroy(s);
			continue;
		}
		if (best) {
			symtab_destroy(best);
			symtab_destroy(s);
			return err_set(e, EBADMSG, "%s: addresses in kallsyms could be %s or %s",
				       name, encoding_name(h->encoding),
				       encoding_name(way.encoding));
		}
		best = s;
		*h = way;
	}
	*out = best;
	if (best)
		return 0;
	if (doubt.code)
		return err_set(e, doubt.code, "%s", doubt.text);
	return err_set(e, EBADMSG, "%s: %u names in kallsyms, but no addresses for them (%s)", name,
		       t->count, reasons);
}

static struct kallsyms_extent extent_of(const struct kallsyms_source *source)
{
	const struct kallsyms_range *range = source->range;
	const unsigned int nrange = source->nrange;
	struct kallsyms_extent x = { .text = source->text,
				     .start = source->text,
				     .end = source->end,
				     .range = range,
				     .nrange = nrange,
				     .source = source };

	if (source->text || source->end)
		return x;
	if (source->image_end) {
		x.start = source->image_start;
		x.end = source->image_end;
		return x;
	}
	x.start = UINT64_MAX;
	for (unsigned int i = 0; i < nrange; i++) {
		uint64_t stop;

		if (!(range[i].va & KERNEL_HALF))
			continue;
		if (__builtin_add_overflow(range[i].va, range[i].len, &stop))
			stop = UINT64_MAX;
		if (range[i].va < x.start)
			x.start = range[i].va;
		if (stop > x.end)
			x.end = stop;
	}
	return x;
}

int kallsyms_decode(const struct kallsyms_source *source, struct symtab **out,
		    struct kallsyms_info *info, struct err *e)
{
	struct kallsyms_extent x = extent_of(source);
	const char *name = source->name;
	struct kallsyms_tables found[MAX_FOUND];
	struct kallsyms_search search;
	struct hypothesis h = { 0 };
	struct symtab *t = NULL;
	unsigned int n = 0;
	int ret;

	kallsyms_search_init(&search);
	for (unsigned int i = 0; i < source->nrange; i++) {
		ret = kallsyms_find(&source->range[i], &search, found + n, MAX_FOUND - n);
		if (ret < 0)
			return err_set(e, EBADMSG, "%s: too much in it looks like kallsyms tables",
				       name);
		n += (unsigned int)ret;
	}
	if (n == 0 && search.why[0])
		return err_set(e, EBADMSG, "%s: kallsyms: %s", name, search.why);
	if (n == 0)
		return err_set(
			e, ENOENT,
			"%s: no kallsyms tables in it (built without CONFIG_KALLSYMS, or not "
			"Linux)",
			name);
	if (n > 1)
		return err_set(
			e, EBADMSG,
			"%s: more than one set of kallsyms tables: names at 0x%llx and 0x%llx",
			name, (unsigned long long)(found[0].va + found[0].names),
			(unsigned long long)(found[1].va + found[1].names));
	ret = read_symbols(&found[0], &x, name, &h, &t, e);
	if (ret < 0)
		return ret;
	if (info)
		kallsyms_describe(&h, info);
	*out = t;
	return 0;
}

int kallsyms_from_image(const struct kimage *k, const char *name, struct symtab **out,
			struct kallsyms_info *info, struct err *e)
{
	struct kallsyms_range range[KIMAGE_MAX_SEGMENTS];
	unsigned int n = 0;

	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];
		/* A segment may begin anywhere; ranges begin where tables may. */
		/* A segment may begin anywhere; a range must begin at a multiple of 8. */
		uint64_t skip = -s->va & 7;

		if (s->file_len > skip)
			range[n++] = (struct kallsyms_range){
				.va = s->va + skip,
				.bytes = k->elf + s->file_off + skip,
				.len = (size_t)(s->file_len - skip),
			};
	}
	return kallsyms_decode(
		&(struct kallsyms_source){
			.range = range, .nrange = n, .text = k->text, .end = k->end, .name = name },
		out, info, e);
}
