/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/import/script.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct script_script {
	import_fn fn;
	void *ctx;
	struct import_stats *stats;
	bool open;   /* a head was read */
	bool broken; /* its period is more than IMPORT_MAX_PERIOD */
	struct import_sample sample;
	struct import_frame *frame; /* IMPORT_MAX_FRAMES */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* All of it, or false. */
static bool decimal(struct import_text t, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < t.len; i++) {
		if (!is_digit(t.s[i]))
			return false;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(t.s[i] - '0'), &v) || v > max)
			return false;
	}
	*out = v;
	return t.len > 0;
}

/* -- frames ------------------------------------------------------------------------------ */

/* Cut " (dso)" off the end; "(/x/y (deleted))" is one. */
static struct import_text take_dso(struct import_text *t)
{
	static const char deleted[] = " (deleted)";
	struct import_text dso = { 0 };
	size_t end = t->len, i;

	if (!end || t->s[end - 1] != ')')
		return dso;
	i = end - 1;
	if (i >= strlen(deleted) && !memcmp(t->s + i - strlen(deleted), deleted, strlen(deleted)))
		i -= strlen(deleted);
	for (; i > 1; i--) {
		if (t->s[i - 1] != '(' || !import_is_blank(t->s[i - 2]))
			continue;
		dso = (struct import_text){ t->s + i, end - 1 - i };
		t->len = i - 1;
		*t = import_trim(*t);
		break;
	}
	return dso;
}

/* Cut "+0x12" off the end. */
static uint64_t take_offset(struct import_text *t)
{
	uint64_t off;

	for (size_t i = t->len; i >= 3 && t->len - i <= 16; i--)
		if (!memcmp(t->s + i - 3, "+0x", 3)) {
			struct import_text digits = { t->s + i, t->len - i };

			if (!import_hexadecimal(digits, &off))
				return 0;
			t->len = i - 3;
			return off;
		}
	return 0;
}

static bool is_kernel(struct import_text dso, uint64_t addr)
{
	return import_begins(dso, "[kernel") || import_begins(dso, "[guest.kernel") || addr >> 63;
}

static bool parse_frame(struct import_text t, struct import_frame *f)
{
	size_t n = 0;

	t = import_trim(t);
	while (n < t.len && !import_is_blank(t.s[n]))
		n++;
	*f = (struct import_frame){ 0 };
	if (!import_hexadecimal((struct import_text){ t.s, n }, &f->addr))
		return false;
	t = import_trim((struct import_text){ t.s + n, t.len - n });
	f->dso = take_dso(&t);
	f->off = take_offset(&t);
	if (!import_equals(t, "[unknown]"))
		f->name = t;
	f->kernel = is_kernel(f->dso, f->addr);
	return true;
}

static void add_frame(struct script_script *p, const struct import_frame *f)
{
	if (p->sample.n == IMPORT_MAX_FRAMES)
		p->stats->dropped++;
	else
		p->frame[p->sample.n++] = *f;
}

/* -- heads ------------------------------------------------------------------------------- */

static unsigned int script_split(struct import_text t, struct import_text word[IMPORT_MAX_TOKENS])
{
	unsigned int n = 0;
	size_t i = 0;

	while (n < IMPORT_MAX_TOKENS) {
		size_t start;

		while (i < t.len && import_is_blank(t.s[i]))
			i++;
		start = i;
		while (i < t.len && !import_is_blank(t.s[i]))
			i++;
		if (start == i)
			break;
		word[n++] = (struct import_text){ t.s + start, i - start };
	}
	return n;
}

/* "12.345678:" */
static bool parse_time(struct import_text t, uint64_t *out)
{
	const char *dot = memchr(t.s, '.', t.len);
	uint64_t s, ns = 0;
	size_t digits;

	if (!dot || t.s[t.len - 1] != ':' ||
	    !decimal((struct import_text){ t.s, (size_t)(dot - t.s) }, IMPORT_MAX_TIME_S, &s))
		return false;
	digits = t.len - (size_t)(dot - t.s) - 2;
	if (digits > 9 || !decimal((struct import_text){ dot + 1, digits }, UINT32_MAX, &ns))
		return false;
	for (; digits < 9; digits++)
		ns *= 10;
	*out = s * 1000000000u + ns;
	return true;
}

/* A number, or -1: perf's name for a task that it does not know. */
static bool task_number(struct import_text t, uint64_t *out)
{
	if (t.len == 2 && !memcmp(t.s, "-1", 2)) {
		*out = UINT32_MAX;
		return true;
	}
	return decimal(t, UINT32_MAX, out);
}

/* "12" or "12/34" */
static bool parse_task(struct import_text t, struct import_sample *s)
{
	const char *slash = memchr(t.s, '/', t.len);
	size_t n = slash ? (size_t)(slash - t.s) : t.len;
	uint64_t pid, tid;

	if (!task_number((struct import_text){ t.s, n }, &pid))
		return false;
	tid = pid;
	if (slash && !task_number((struct import_text){ slash + 1, t.len - n - 1 }, &tid))
		return false;
	s->pid = (uint32_t)pid;
	s->tid = (uint32_t)tid;
	return true;
}

static bool parse_cpu(struct import_text t, struct import_sample *s)
{
	uint64_t cpu;

	if (t.len < 3 || t.s[0] != '[' || t.s[t.len - 1] != ']' ||
	    !decimal((struct import_text){ t.s + 1, t.len - 2 }, UINT32_MAX, &cpu))
		return false;
	s->cpu = (uint32_t)cpu;
	return true;
}

/* Returns whether the word is a period. Broken counters have given numbers of 20 digits. */
static bool take_period(struct script_script *p, struct import_text t)
{
	size_t digits = 0;

	while (digits < t.len && is_digit(t.s[digits]))
		digits++;
	if (!digits || digits < t.len)
		return false;
	if (!decimal(t, IMPORT_MAX_PERIOD, &p->sample.weight)) {
		p->sample.weight = 1;
		p->broken = true;
	}
	return true;
}

/* What stands behind the time: period, event, and of samples without a chain the ip. */
static void parse_rest(struct script_script *p, struct import_text line,
		       const struct import_text *word, unsigned int n)
{
	struct import_frame f;
	unsigned int i = 0;

	if (i + 1 < n && take_period(p, word[i]))
		i++;
	if (i < n && word[i].len > 1 && word[i].s[word[i].len - 1] == ':') {
		p->sample.event = (struct import_text){ word[i].s, word[i].len - 1 };
		i++;
	}
	if (i < n &&
	    parse_frame((struct import_text){ word[i].s, line.len - (size_t)(word[i].s - line.s) },
			&f))
		add_frame(p, &f);
}

/* The first word that is a time and has a task before it; without one it is no head. */
static bool parse_head(struct script_script *p, struct import_text line)
{
	struct import_text word[IMPORT_MAX_TOKENS];
	unsigned int n = script_split(line, word);

	for (unsigned int i = 2; i < n; i++) {
		struct import_sample s = { .frame = p->frame, .weight = 1, .has_task = true };
		unsigned int task = i - 1;

		if (!parse_time(word[i], &s.time_ns))
			continue;
		if (parse_cpu(word[task], &s))
			task--;
		if (!task || !parse_task(word[task], &s))
			continue;
		s.has_time = true;
		p->broken = false;
		s.comm = import_trim(
			(struct import_text){ line.s, (size_t)(word[task].s - line.s) });
		p->sample = s;
		parse_rest(p, line, word + i + 1, n - i - 1);
		return true;
	}
	return false;
}

/* -- samples ----------------------------------------------------------------------------- */

static int finish_sample(struct script_script *p)
{
	struct import_sample *s = &p->sample;

	if (!p->open)
		return 0;
	p->open = false;
	if (!s->n) {
		p->stats->bare++;
		return 0;
	}
	p->stats->broken += p->broken;
	for (uint32_t i = s->n; i-- > 0;)
		if (import_equals(p->frame[i].dso, "inlined")) {
			struct import_text none = { 0 };

			p->frame[i].dso = i + 1 < s->n ? p->frame[i + 1].dso : none;
			p->frame[i].kernel = i + 1 < s->n && p->frame[i + 1].kernel;
		}
	p->stats->samples++;
	return p->fn(p->ctx, s);
}

/* "  file.c:12", which `perf script -F +srcline` puts below a frame. */
static bool is_source_line(struct import_text t)
{
	size_t i = t.len;

	while (i && is_digit(t.s[i - 1]))
		i--;
	return i > 1 && i < t.len && t.s[i - 1] == ':';
}

static int take_line(struct script_script *p, struct import_text line, bool *understood)
{
	struct import_text t = import_trim(line);
	struct import_frame f;
	int ret;

	*understood = true;
	if (!t.len)
		return finish_sample(p);
	if (line.s[0] == '#')
		return 0;
	if (import_is_blank(line.s[0]) && p->open && parse_frame(t, &f)) {
		add_frame(p, &f);
		return 0;
	}
	if (import_is_blank(line.s[0]) && p->open && is_source_line(t))
		return 0;
	ret = finish_sample(p);
	if (!ret)
		p->open = *understood = parse_head(p, line);
	return ret;
}

int import_script(struct import_text text, import_fn fn, void *ctx, struct import_stats *stats,
		  struct err *e)
{
	const char *data = text.s;
	size_t len = text.len;
	cleanup_free struct import_frame *frame = calloc(IMPORT_MAX_FRAMES, sizeof(*frame));
	struct script_script p = { .fn = fn, .ctx = ctx, .stats = stats, .frame = frame };
	uint64_t number = 0;
	int ret = 0;

	*stats = (struct import_stats){ 0 };
	if (!frame)
		return err_nomem(e);
	while (len && !ret) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl ? (size_t)(nl - data) : len;
		bool understood = true;

		number++;
		ret = take_line(&p, (struct import_text){ data, n }, &understood);
		if (!understood) {
			stats->ignored++;
			stats->first_ignored = stats->first_ignored ? stats->first_ignored : number;
		}
		len -= n + (nl != NULL);
		data += n + (nl != NULL);
	}
	ret = ret ? ret : finish_sample(&p);
	if (!ret && !stats->samples)
		ret = err_set(e, ENODATA,
			      "there are no samples with stacks in it (what `perf script` prints)");
	return ret;
}
