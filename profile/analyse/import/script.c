/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/import/script.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct script_script {
	import_fn fn;
	void *ctx;
	struct import_stats *stats;
	bool open;   /* a head was read */
	bool broken; /* its period exceeds IMPORT_MAX_PERIOD */
	struct import_sample sample;
	struct import_frame *frame; /* array of IMPORT_MAX_FRAMES */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* -- frames ------------------------------------------------------------------------------ */

/* Returns true if the bytes before `end` are "+0x12". */
static bool ends_in_offset(struct import_text t, size_t end)
{
	size_t i = end;

	while (i && isxdigit((unsigned char)t.s[i - 1]))
		i--;
	return i < end && i >= 3 && !memcmp(t.s + i - 3, "+0x", 3);
}

/*
 * Returns the position of the DSO's '(', or 0. It is the last one after an offset or after
 * "[unknown]"; otherwise the one that matches the ')' at the end; otherwise the last one. A path
 * may contain brackets, as in "(/x/y (deleted))".
 */
static size_t find_dso(struct import_text t)
{
	static const char unknown[] = "[unknown] (";
	size_t depth = 0, closing = 0, last = 0;

	if (import_begins(t, unknown))
		return strlen(unknown) - 1;
	for (size_t i = t.len; i-- > 1;) {
		bool blank = import_is_blank(t.s[i - 1]);

		depth += t.s[i] == ')';
		if (t.s[i] != '(')
			continue;
		depth -= depth > 0;
		if (blank && ends_in_offset(t, i - 1))
			return i;
		closing = !closing && !depth && blank ? i : closing;
		last = !last && blank ? i : last;
	}
	return closing ? closing : last;
}

/* Cuts " (dso)" off the end. */
static struct import_text take_dso(struct import_text *t)
{
	struct import_text dso = { 0 };
	size_t at = t->len && t->s[t->len - 1] == ')' ? find_dso(*t) : 0;

	if (!at)
		return dso;
	dso = (struct import_text){ t->s + at + 1, t->len - at - 2 };
	t->len = at - 1;
	return dso;
}

/* Cuts "+0x12" off the end. */
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
	/* Skip one blank only: a name may begin with another one. */
	n += n < t.len;
	t = (struct import_text){ t.s + n, t.len - n };
	f->dso = take_dso(&t);
	n = t.len;
	f->off = take_offset(&t);
	/* A function may have this name, too, and then has an offset. */
	if (t.len < n || !import_equals(t, "[unknown]"))
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

/* Parses "12.345678:". */
static bool parse_time(struct import_text t, uint64_t *out)
{
	const char *dot = memchr(t.s, '.', t.len);
	uint64_t s, ns = 0;
	size_t digits;

	if (!dot || t.s[t.len - 1] != ':' ||
	    !import_decimal((struct import_text){ t.s, (size_t)(dot - t.s) }, IMPORT_MAX_TIME_S,
			    &s))
		return false;
	digits = t.len - (size_t)(dot - t.s) - 2;
	if (digits > 9 || !import_decimal((struct import_text){ dot + 1, digits }, UINT32_MAX, &ns))
		return false;
	for (; digits < 9; digits++)
		ns *= 10;
	*out = s * 1000000000u + ns;
	return true;
}

/* Parses a number, or -1, which perf prints for an unknown task. */
static bool task_number(struct import_text t, uint64_t *out)
{
	if (t.len == 2 && !memcmp(t.s, "-1", 2)) {
		*out = UINT32_MAX;
		return true;
	}
	return import_decimal(t, UINT32_MAX, out);
}

/* Parses "12" or "12/34". */
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
	    !import_decimal((struct import_text){ t.s + 1, t.len - 2 }, UINT32_MAX, &cpu))
		return false;
	s->cpu = (uint32_t)cpu;
	return true;
}

/* Returns true if the word is a period. Broken counters have given numbers of 20 digits. */
static bool take_period(struct script_script *p, struct import_text t)
{
	size_t digits = 0;

	while (digits < t.len && is_digit(t.s[digits]))
		digits++;
	if (!digits || digits < t.len)
		return false;
	if (!import_decimal(t, IMPORT_MAX_PERIOD, &p->sample.weight)) {
		p->sample.weight = 1;
		p->broken = true;
	}
	return true;
}

/*
 * Returns the number of words of the event's name: one with a ':', or all if the last of them has
 * it.
 */
static unsigned int take_event(struct script_script *p, const struct import_text *word,
			       unsigned int n)
{
	const struct import_text *last = word;

	if (n && n < IMPORT_MAX_TOKENS / 2 && word[n - 1].s[word[n - 1].len - 1] == ':' &&
	    word[0].s[word[0].len - 1] != ':')
		last = &word[n - 1];
	if (!n || last->s + last->len - word->s < 2 || last->s[last->len - 1] != ':')
		return 0;
	p->sample.event =
		(struct import_text){ word->s, (size_t)(last->s + last->len - 1 - word->s) };
	return (unsigned int)(last - word) + 1;
}

/* Parses the words after the time: period, event, and for samples without a chain the ip. */
static void parse_rest(struct script_script *p, struct import_text line,
		       const struct import_text *word, unsigned int n)
{
	struct import_frame f;
	unsigned int i = 0;

	if (i + 1 < n && take_period(p, word[i]))
		i++;
	i += take_event(p, word + i, n - i);
	if (i < n &&
	    parse_frame((struct import_text){ word[i].s, line.len - (size_t)(word[i].s - line.s) },
			&f))
		add_frame(p, &f);
}

/*
 * Parses the time of a sample at words[i] and the words before it. Returns false if it is not one.
 * *task becomes the index of the task's word.
 */
static bool parse_place(const struct import_text *word, unsigned int i, struct import_sample *s,
			unsigned int *task)
{
	if (!parse_time(word[i], &s->time_ns))
		return false;
	*task = i - 1;
	if (parse_cpu(word[*task], s))
		--*task;
	return *task && parse_task(word[*task], s);
}

/* Returns true if the text fits a task's name, of at most 15 characters. */
static bool fits_comm(struct import_text t)
{
	size_t n = 0;

	for (size_t i = 0; i < t.len; i++)
		n += ((unsigned char)t.s[i] & 0xc0) != 0x80;
	return n <= IMPORT_MAX_COMM;
}

struct script_head {
	struct import_text word[IMPORT_MAX_TOKENS];
	unsigned int n, at; /* number of words; index of the time */
	struct import_sample sample;
};

/*
 * Finds the time of a sample: a word after that of a task. Returns false for a line without one,
 * which is not a head. A task's name may look like a time, too: the last such word is used that
 * leaves a possible name before it, otherwise the first.
 */
static bool find_head(struct script_head *head, struct import_text line)
{
	struct import_text *word = head->word;
	unsigned int n = script_split(line, word), at = 0, task = 0;

	for (unsigned int i = 2; i < n; i++) {
		struct import_sample s = { .weight = 1, .has_task = true };

		if (!parse_place(word, i, &s, &task))
			continue;
		s.has_time = true;
		s.comm = import_trim(
			(struct import_text){ line.s, (size_t)(word[task].s - line.s) });
		if (at && !fits_comm(s.comm))
			break;
		head->sample = s;
		at = i;
	}
	head->n = n;
	head->at = at;
	return at > 0;
}

/* Begins a sample; its frames follow. */
static void take_head(struct script_script *p, struct import_text line,
		      const struct script_head *head)
{
	p->open = true;
	p->broken = false;
	p->sample = head->sample;
	p->sample.frame = p->frame;
	parse_rest(p, line, head->word + head->at + 1, head->n - head->at - 1);
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

/* Returns true for " file.c:12", which `perf script -F +srcline` prints below a frame. */
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
	struct script_head head;
	struct import_frame f;
	int ret;

	*understood = true;
	if (!t.len)
		return finish_sample(p);
	/* Skip a comment, unless it is the name of a task that begins so. */
	if (line.s[0] == '#' && !find_head(&head, line))
		return 0;
	if (import_is_blank(line.s[0]) && p->open && parse_frame(t, &f)) {
		add_frame(p, &f);
		return 0;
	}
	if (import_is_blank(line.s[0]) && p->open && is_source_line(t))
		return 0;
	ret = finish_sample(p);
	*understood = find_head(&head, line);
	if (!ret && *understood)
		take_head(p, line, &head);
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
		if (!understood)
			import_ignore(stats, number);
		len -= n + (nl != NULL);
		data += n + (nl != NULL);
	}
	ret = ret ? ret : finish_sample(&p);
	if (!ret && !stats->samples)
		ret = err_set(e, ENODATA,
			      "no samples with stacks found (as `perf script` prints them)");
	return ret;
}
