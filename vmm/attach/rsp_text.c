/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/rsp_text.h"

#include <string.h>

#define PAGE_MASK UINT64_C(0xfff)

struct rsp_text_line {
	const char *at, *end;
};

static bool next_line(struct rsp_text_line *rest, struct rsp_text_line *out)
{
	const char *nl;

	if (rest->at >= rest->end)
		return false;
	nl = memchr(rest->at, '\n', (size_t)(rest->end - rest->at));
	*out = (struct rsp_text_line){ rest->at, nl ? nl : rest->end };
	rest->at = nl ? nl + 1 : rest->end;
	return true;
}

static void skip_blanks(struct rsp_text_line *l)
{
	while (l->at < l->end && (*l->at == ' ' || *l->at == '\t'))
		l->at++;
}

static bool rsp_text_skip(struct rsp_text_line *l, const char *what)
{
	size_t n = strlen(what);

	if ((size_t)(l->end - l->at) < n || memcmp(l->at, what, n))
		return false;
	l->at += n;
	return true;
}

static bool take_hex(struct rsp_text_line *l, uint64_t *out)
{
	unsigned int digits = 0;
	uint64_t v = 0;

	for (; l->at < l->end && digits < 17; l->at++, digits++) {
		char c = *l->at;
		int d = c >= '0' && c <= '9'   ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : -1;

		if (d < 0)
			break;
		v = v << 4 | (uint64_t)d;
	}
	*out = v;
	return digits && digits <= 16;
}

bool rsp_text_tables(const char *text, size_t len, uint64_t *idt, uint64_t *gdt)
{
	struct rsp_text_line rest = { text, text + len }, l;
	bool have_idt = false, have_gdt = false;

	while (next_line(&rest, &l)) {
		skip_blanks(&l);
		if (rsp_text_skip(&l, "IDT=")) {
			skip_blanks(&l);
			have_idt = take_hex(&l, idt);
		} else if (rsp_text_skip(&l, "GDT=")) {
			skip_blanks(&l);
			have_gdt = take_hex(&l, gdt);
		}
	}
	return have_idt && have_gdt;
}

/* Parses a line "START-END (prio N, KIND): NAME". Returns whether KIND is ram. */
static bool take_range(struct rsp_text_line l, struct rsp_range *out)
{
	uint64_t start, last, end;
	const char *kind;

	skip_blanks(&l);
	if (!take_hex(&l, &start) || !rsp_text_skip(&l, "-") || !take_hex(&l, &last) ||
	    !rsp_text_skip(&l, " (prio "))
		return false;
	kind = memchr(l.at, ',', (size_t)(l.end - l.at));
	if (!kind)
		return false;
	l.at = kind;
	if (!rsp_text_skip(&l, ", ram):") || last < start || last >> 52)
		return false;
	end = (last + 1) & ~PAGE_MASK;
	start = (start + PAGE_MASK) & ~PAGE_MASK;
	if (end <= start)
		return false;
	*out = (struct rsp_range){ start, end - start };
	return true;
}

unsigned int rsp_text_ram(const char *text, size_t len, struct rsp_range *out, unsigned int max)
{
	struct rsp_text_line rest = { text, text + len }, l;
	bool memory = false;
	unsigned int n = 0;

	while (next_line(&rest, &l)) {
		struct rsp_range r;

		skip_blanks(&l);
		if (rsp_text_skip(&l, "AS \"memory\"")) {
			memory = true;
		} else if (rsp_text_skip(&l, "FlatView")) {
			/* There is one view of the processors' memory. */
			if (memory)
				break;
		} else if (memory && take_range(l, &r)) {
			if (n && out[n - 1].start + out[n - 1].len == r.start)
				out[n - 1].len += r.len;
			else if (n < max && (!n || r.start > out[n - 1].start + out[n - 1].len))
				out[n++] = r;
		}
	}
	return n;
}
