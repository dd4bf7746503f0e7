/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/import/folded.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct folded_input {
	bool comm;
	import_fn fn;
	void *ctx;
	struct import_stats *stats;
	struct import_frame *frame; /* array of IMPORT_MAX_FRAMES */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Cuts " 12" or " 12.5" off the end of a line. Returns false if it has no such end. */
static bool take_count(const char *s, size_t *len, uint64_t *out)
{
	size_t end = *len, start, i;
	uint64_t v = 0;

	while (end && import_is_blank(s[end - 1]))
		end--;
	start = end;
	while (start && (is_digit(s[start - 1]) || s[start - 1] == '.'))
		start--;
	if (start == end || !start || (s[start - 1] != ' ' && s[start - 1] != '\t'))
		return false;
	for (i = start; i < end && is_digit(s[i]); i++) {
		v = v * 10 + (uint64_t)(s[i] - '0');
		if (v > IMPORT_MAX_WEIGHT)
			return false;
	}
	if (i == start || (i < end && memchr(s + i + 1, '.', end - i - 1)))
		return false;
	v += i + 1 < end && s[i + 1] >= '5';
	/* A name may end in a blank. */
	*len = start - 1;
	*out = v;
	return start > 1;
}

/* Removes the mark of "name_[k]" and applies it. */
static void take_mark(struct import_frame *f)
{
	const char *end = f->name.s + f->name.len;

	if (f->name.len < 5 || end[-4] != '_' || end[-3] != '[' || end[-1] != ']' ||
	    !strchr("kijw", end[-2]))
		return;
	f->kernel = end[-2] == 'k';
	if (end[-2] == 'j')
		f->dso = (struct import_text){ IMPORT_JIT_DSO, strlen(IMPORT_JIT_DSO) };
	f->name.len -= 4;
}

/* Parses "comm-12/34". */
static void take_task(struct import_sample *s)
{
	const struct import_text *t = &s->comm;
	uint64_t number[2] = { 0 };
	size_t i = t->len, unit = 1;
	unsigned int which = 1;

	for (; i; i--) {
		char c = t->s[i - 1];

		if (is_digit(c) && unit <= 1000000000u) {
			number[which] += (uint64_t)(c - '0') * unit;
			unit *= 10;
		} else if (c == '/' && which == 1 && unit > 1) {
			which = 0;
			unit = 1;
		} else {
			break;
		}
	}
	if (which || unit == 1 || i < 2 || t->s[i - 1] != '-' || number[0] > UINT32_MAX ||
	    number[1] > UINT32_MAX)
		return;
	s->pid = (uint32_t)number[0];
	s->tid = (uint32_t)number[1];
	s->has_task = true;
	s->comm.len = i - 1;
}

/* Splits the line from its end, so that a stack that is too deep loses its outer frames. */
static uint32_t take_frames(const struct folded_input *p, const char *s, size_t len)
{
	uint32_t n = 0;

	for (;;) {
		const char *sep = memrchr(s, ';', len);
		size_t start = sep ? (size_t)(sep - s) + 1 : 0;

		if (n == IMPORT_MAX_FRAMES) {
			p->stats->dropped++;
		} else if (start < len) {
			p->frame[n] = (struct import_frame){ .name = { s + start, len - start } };
			take_mark(&p->frame[n++]);
		}
		if (!sep)
			return n;
		len = start - 1;
	}
}

/* Removes the blank in front of a name that would otherwise begin a comment. */
static struct import_text take_blank(struct import_text comm)
{
	size_t n = 0;

	while (n < comm.len && comm.s[n] == ' ')
		n++;
	return n && n < comm.len && comm.s[n] == '#'
		       ? (struct import_text){ comm.s + 1, comm.len - 1 }
		       : comm;
}

/* Returns 1 if the line is not a stack, otherwise 0 or -errno. */
static int take_line(const struct folded_input *p, const char *s, size_t len)
{
	struct import_sample out = { .frame = p->frame };

	if (!take_count(s, &len, &out.weight))
		return 1;
	if (p->comm) {
		const char *sep = memchr(s, ';', len);

		out.comm = take_blank((struct import_text){ s, sep ? (size_t)(sep - s) : len });
		take_task(&out);
		if (!sep || !out.comm.len) {
			p->stats->bare++;
			return 0;
		}
		len -= (size_t)(sep + 1 - s);
		s = sep + 1;
	}
	out.n = take_frames(p, s, len);
	if (!out.n) {
		p->stats->bare++;
		return 0;
	}
	p->stats->samples++;
	return p->fn(p->ctx, &out);
}

int import_folded(struct import_text text, enum import_first first, import_fn fn, void *ctx,
		  struct import_stats *stats, struct err *e)
{
	cleanup_free struct import_frame *frame = calloc(IMPORT_MAX_FRAMES, sizeof(*frame));
	struct folded_input p = { .comm = first == IMPORT_FIRST_IS_COMM,
				  .fn = fn,
				  .ctx = ctx,
				  .stats = stats,
				  .frame = frame };
	const char *data = text.s;
	size_t len = text.len;
	uint64_t number = 0;

	*stats = (struct import_stats){ 0 };
	if (!frame)
		return err_nomem(e);
	while (len) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl ? (size_t)(nl - data) : len;
		int ret = 0;

		number++;
		if (n && data[0] != '#')
			ret = take_line(&p, data, n);
		if (ret < 0)
			return ret;
		if (ret)
			import_ignore(stats, number);
		len -= n + (nl != NULL);
		data += n + (nl != NULL);
	}
	if (!stats->samples)
		return err_set(e, ENODATA,
			       "no folded stacks found (lines like \"task;main;work 12\")");
	return 0;
}
