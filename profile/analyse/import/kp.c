/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/import/kp.h"

#include "base/cleanup.h"
#include "profile/analyse/stacks/coded.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kp_input {
	import_fn fn;
	void *ctx;
	struct import_stats *stats;
	bool begun; /* the first '!' was read */
	bool coded; /* the first line has the mark of coded.h */
	bool counted;
	struct import_sample sample;
	struct import_frame *frame; /* array of IMPORT_MAX_FRAMES */
};

/* Cuts "0x12" off the front. Returns false for another beginning or more than 16 digits. */
static bool take_hex(struct import_text *t, uint64_t *out)
{
	size_t n = 2;

	if (!import_begins(*t, "0x"))
		return false;
	while (n < t->len && isxdigit((unsigned char)t->s[n]))
		n++;
	if (!import_hexadecimal((struct import_text){ t->s + 2, n - 2 }, out))
		return false;
	*t = (struct import_text){ t->s + n, t->len - n };
	return true;
}

/* Cuts " [module]" off the end. */
static struct import_text take_module(struct import_text *t)
{
	struct import_text none = { 0 };

	if (!t->len || t->s[t->len - 1] != ']')
		return none;
	for (size_t i = t->len - 1; i > 0; i--)
		if (t->s[i] == '[' && import_is_blank(t->s[i - 1])) {
			struct import_text m = { t->s + i + 1, t->len - i - 2 };

			*t = import_trim((struct import_text){ t->s, i });
			return m;
		}
	return none;
}

/* Cuts "+0x12/0x34" or "+0x12" off the end. */
static void take_offset(struct import_text *t, uint64_t *off, uint64_t *size)
{
	for (size_t i = t->len; i-- > 0;) {
		struct import_text rest = { t->s + i + 1, t->len - i - 1 };
		uint64_t told[2] = { 0 };

		if (t->s[i] != '+')
			continue;
		if (!take_hex(&rest, &told[0]))
			return;
		if (rest.len && rest.s[0] == '/') {
			rest = (struct import_text){ rest.s + 1, rest.len - 1 };
			if (!take_hex(&rest, &told[1]))
				return;
		}
		if (rest.len)
			return;
		t->len = i;
		*off = told[0];
		*size = told[1];
		return;
	}
}

/*
 * Returns true if the name is the address that `kvmprof export` writes for a frame without a name.
 */
static bool is_address(struct import_text t, const struct import_frame *f)
{
	uint64_t v;

	return !f->off && !f->size && t.len == 18 && take_hex(&t, &v) && !t.len && v == f->addr;
}

static bool parse_frame(const struct kp_input *p, struct import_text t, struct import_frame *f)
{
	struct import_text rest = t;
	const char *tick;

	*f = (struct import_frame){ .name_coded = p->coded, .dso_coded = p->coded };
	if (take_hex(&rest, &f->addr)) {
		rest = import_trim(rest);
		if (rest.len && rest.s[0] == ':')
			rest = import_trim((struct import_text){ rest.s + 1, rest.len - 1 });
		else if (rest.len && rest.s[0] != '[')
			return false;
		t = rest;
	}
	f->dso = take_module(&t);
	take_offset(&t, &f->off, &f->size);
	tick = memchr(t.s, '`', t.len);
	if (tick) {
		f->dso = (struct import_text){ t.s, (size_t)(tick - t.s) };
		t = (struct import_text){ tick + 1, t.len - f->dso.len - 1 };
		f->kernel = import_equals(f->dso, "unix") || import_equals(f->dso, "genunix");
	}
	f->kernel |= import_equals(f->dso, "kernel") || f->addr >> 63;
	if (import_equals(f->dso, "kernel") && !tick)
		f->dso = (struct import_text){ f->dso.s - 1, f->dso.len + 2 };
	else if (import_equals(f->dso, "kernel") || import_equals(f->dso, "unknown"))
		f->dso = (struct import_text){ 0 };
	f->name = p->coded && is_address(t, f) ? (struct import_text){ 0 } : t;
	return t.len || f->addr;
}

/* Parses a count. Returns false for any other line. */
static bool take_count(struct kp_input *p, struct import_text t)
{
	p->counted = import_decimal(t, IMPORT_MAX_WEIGHT, &p->sample.weight);
	return p->counted;
}

static int finish_stack(struct kp_input *p)
{
	struct import_sample s = p->sample;
	bool counted = p->counted;

	p->sample = (struct import_sample){ .frame = p->frame, .weight = 1 };
	p->counted = false;
	if (!s.n || !s.weight) {
		p->stats->bare += counted;
		return 0;
	}
	p->stats->samples++;
	return p->fn(p->ctx, &s);
}

static int take_line(struct kp_input *p, struct import_text line, bool *understood)
{
	struct import_text t = import_trim(line);
	struct import_frame f;

	*understood = true;
	if (memchr(t.s, '!', t.len)) {
		p->begun = true;
		return finish_stack(p);
	}
	if (!p->begun || !t.len)
		return 0;
	if (p->counted || (!take_count(p, t) && !parse_frame(p, t, &f)))
		*understood = false;
	else if (!p->counted && p->sample.n == IMPORT_MAX_FRAMES)
		p->stats->dropped++;
	else if (!p->counted)
		p->frame[p->sample.n++] = f;
	return 0;
}

int import_kp(struct import_text text, import_fn fn, void *ctx, struct import_stats *stats,
	      struct err *e)
{
	cleanup_free struct import_frame *frame = calloc(IMPORT_MAX_FRAMES, sizeof(*frame));
	struct kp_input p = { .fn = fn,
			      .ctx = ctx,
			      .stats = stats,
			      .sample = { .frame = frame, .weight = 1 },
			      .frame = frame };
	uint64_t number = 0;
	int ret = 0;

	*stats = (struct import_stats){ 0 };
	if (!frame)
		return err_nomem(e);
	while (text.len && !ret) {
		const char *nl = memchr(text.s, '\n', text.len);
		size_t n = nl ? (size_t)(nl - text.s) : text.len;
		bool understood = true;

		if (!number++)
			p.coded = memmem(text.s, n, CODED_KP_MARK, strlen(CODED_KP_MARK)) != NULL;
		ret = take_line(&p, (struct import_text){ text.s, n }, &understood);
		if (!understood)
			import_ignore(stats, number);
		n += nl != NULL;
		text = (struct import_text){ text.s + n, text.len - n };
	}
	ret = ret ? ret : finish_stack(&p);
	if (!ret && !stats->samples)
		ret = err_set(e, ENODATA, "no stacks found between lines of '!'");
	return ret;
}
