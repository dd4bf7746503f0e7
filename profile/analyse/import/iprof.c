/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/import/iprof.h"

#include "base/array.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct iprof_symbol {
	struct import_text name, image;
	uint64_t start, size;
};

struct iprof_symbols {
	struct iprof_symbol *at;
	size_t n, cap;
};

struct import_iprof {
	struct iprof_symbols kernel; /* sorted by image, then start */
	struct iprof_symbols own;    /* those of the present file, sorted by start */
	struct import_text image;    /* the image in that file's name */
	bool in_kernel;
	struct import_sample sample;
	struct import_frame frame;
};

/* -- words --------------------------------------------------------------------------------- */

/* Removes and returns the first line of the text. */
static struct import_text take_line(struct import_text *text)
{
	const char *nl = memchr(text->s, '\n', text->len);
	size_t n = nl ? (size_t)(nl - text->s) : text->len, rest = text->len - n - (nl != NULL);
	struct import_text line = { text->s, n };

	*text = (struct import_text){ text->s + text->len - rest, rest };
	if (n && line.s[n - 1] == '\r')
		line.len--;
	return line;
}

/* Cuts "0x12 " off the front, or "0x12" if that is all. */
static bool take_hex(struct import_text *t, uint64_t *out)
{
	const char *blank = memchr(t->s, ' ', t->len);
	size_t n = blank ? (size_t)(blank - t->s) : t->len;

	if (n < 3 || !import_begins(*t, "0x") ||
	    !import_hexadecimal((struct import_text){ t->s + 2, n - 2 }, out))
		return false;
	n += blank != NULL;
	*t = (struct import_text){ t->s + n, t->len - n };
	return true;
}

/* -- functions ----------------------------------------------------------------------------- */

static int compare_texts(struct import_text a, struct import_text b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int ret = n ? memcmp(a.s, b.s, n) : 0;

	return ret ? ret : a.len < b.len ? -1 : a.len > b.len;
}

/* qsort order: by image, then start. */
static int compare_symbols(const void *a, const void *b)
{
	const struct iprof_symbol *x = a, *y = b;
	int image = compare_texts(x->image, y->image);

	return image ? image : x->start < y->start ? -1 : x->start > y->start;
}

/* qsort order: by image and start, then by position in the text. */
static int compare_lines(const void *a, const void *b)
{
	const struct iprof_symbol *x = a, *y = b;
	int ret = compare_symbols(a, b);

	return ret ? ret : x->name.s < y->name.s ? -1 : x->name.s > y->name.s;
}

static int add_symbol(struct iprof_symbols *s, const struct iprof_symbol *symbol)
{
	if (ARRAY_ROOM(s->at, s->n, s->cap))
		return -ENOMEM;
	s->at[s->n++] = *symbol;
	return 0;
}

static void sort_symbols(struct iprof_symbols *s)
{
	if (s->n)
		qsort(s->at, s->n, sizeof(*s->at), compare_lines);
}

/* Returns the last symbol of the image that begins at or before `offset`; NULL: none. */
static const struct iprof_symbol *find_symbol(const struct iprof_symbols *s,
					      struct import_text image, uint64_t offset)
{
	const struct iprof_symbol key = { .image = image, .start = offset };
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_symbols(&s->at[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && !compare_texts(s->at[low - 1].image, image) ? &s->at[low - 1] : NULL;
}

/* Parses a line of kernel.syms. Returns false for any other line. */
static bool parse_symbol(struct import_text line, struct iprof_symbol *s)
{
	const char *blank;

	if (!take_hex(&line, &s->start) || !take_hex(&line, &s->size))
		return false;
	blank = memchr(line.s, ' ', line.len);
	if (!blank)
		return false;
	s->name = (struct import_text){ line.s, (size_t)(blank - line.s) };
	s->image = (struct import_text){ blank + 1, line.len - s->name.len - 1 };
	return s->name.len && s->image.len;
}

int import_iprof_create(struct import_iprof **out, struct import_text symbols, uint64_t *ignored,
			struct err *e)
{
	struct import_iprof *p = calloc(1, sizeof(*p));

	*ignored = 0;
	while (p && symbols.len) {
		struct import_text line = take_line(&symbols);
		struct iprof_symbol s;

		if (!parse_symbol(line, &s)) {
			*ignored += line.len && line.s[0] != '#';
		} else if (add_symbol(&p->kernel, &s)) {
			import_iprof_destroy(p);
			p = NULL;
		}
	}
	if (!p)
		return err_nomem(e);
	sort_symbols(&p->kernel);
	*out = p;
	return 0;
}

void import_iprof_destroy(struct import_iprof *p)
{
	if (!p)
		return;
	free(p->kernel.at);
	free(p->own.at);
	free(p);
}

/* -- files --------------------------------------------------------------------------------- */

/*
 * Parses the file's name, e.g. "NAME-0123456789abcdef.prof": NAME becomes the image, the image's id
 * is ignored. The file of one process has "-PID" before the dot, which becomes the task.
 */
static void take_name(struct import_iprof *p, const char *file)
{
	struct import_text t = { file, strlen(file) };
	uint64_t id, pid;
	const char *dash;

	if (t.len > 5 && !memcmp(t.s + t.len - 5, ".prof", 5))
		t.len -= 5;
	p->image = t;
	dash = memrchr(t.s, '-', t.len);
	if (!dash)
		return;
	if (import_decimal((struct import_text){ dash + 1, t.len - (size_t)(dash + 1 - t.s) },
			   UINT32_MAX, &pid)) {
		const char *last = memrchr(t.s, '-', (size_t)(dash - t.s));

		if (last && dash - last == 17) {
			p->sample.pid = p->sample.tid = (uint32_t)pid;
			p->sample.has_task = true;
			t.len = (size_t)(dash - t.s);
			dash = last;
		}
	}
	if (t.len - (size_t)(dash - t.s) == 17 &&
	    import_hexadecimal((struct import_text){ dash + 1, 16 }, &id))
		p->image.len = (size_t)(dash - t.s);
}

/* Applies a line of the header. */
static int take_key(struct import_iprof *p, struct import_text line)
{
	const char *colon = memmem(line.s, line.len, ": ", 2);
	struct import_text key, value;
	struct iprof_symbol s = { 0 };
	uint64_t pid;

	if (!import_begins(line, "# ") || !colon)
		return 0;
	key = (struct import_text){ line.s + 2, (size_t)(colon - line.s) - 2 };
	value = (struct import_text){ colon + 2, line.len - key.len - 4 };
	if (import_equals(key, "image") && value.len) {
		p->image = value;
	} else if (import_equals(key, "mode")) {
		p->in_kernel = import_equals(value, "kernel");
	} else if (import_equals(key, "comm")) {
		p->sample.comm = value;
	} else if (import_equals(key, "pid") && import_decimal(value, UINT32_MAX, &pid)) {
		p->sample.pid = p->sample.tid = (uint32_t)pid;
		p->sample.has_task = true;
	} else if (import_equals(key, "function") && take_hex(&value, &s.start) &&
		   take_hex(&value, &s.size) && value.len) {
		s.name = value;
		return add_symbol(&p->own, &s);
	}
	return 0;
}

static int read_header(struct import_iprof *p, const char *file, struct import_text text)
{
	const struct iprof_symbol *last;
	int ret = 0;

	p->own.n = 0;
	p->in_kernel = false;
	p->sample = (struct import_sample){ 0 };
	take_name(p, file);
	if (import_equals(p->image, "kernel"))
		p->image = (struct import_text){ "[kernel.kallsyms]", 17 };
	while (text.len && !ret) {
		struct import_text line = take_line(&text);

		if (line.len && line.s[0] == '#')
			ret = take_key(p, line);
	}
	sort_symbols(&p->own);
	last = find_symbol(&p->kernel, p->image, UINT64_MAX);
	p->in_kernel |= last || import_begins(p->image, "[kernel");
	return ret;
}

static void set_frame(struct import_iprof *p, uint64_t offset)
{
	const struct import_text none = { 0 };
	const struct iprof_symbol *s = p->in_kernel ? find_symbol(&p->kernel, p->image, offset)
						    : find_symbol(&p->own, none, offset);
	struct import_frame *f = &p->frame;

	/* In code without a file an offset is an address. */
	*f = (struct import_frame){ .dso = p->image,
				    .addr = offset,
				    .placed = true,
				    .kernel = p->in_kernel || offset >> 63 };
	if (!s || (s->size && offset - s->start >= s->size))
		return;
	f->name = s->name;
	f->off = offset - s->start;
	f->size = s->size;
	f->name_coded = p->in_kernel;
}

int import_iprof(struct import_iprof *p, const char *file, struct import_text text, import_fn fn,
		 void *ctx, struct import_stats *stats)
{
	uint64_t number = 0, offset, count;
	int ret = read_header(p, file, text);

	while (text.len && !ret) {
		struct import_text line = take_line(&text);

		number++;
		if (!line.len || line.s[0] == '#')
			continue;
		if (!take_hex(&line, &offset) || !import_decimal(line, IMPORT_MAX_WEIGHT, &count)) {
			import_ignore(stats, number);
			continue;
		}
		if (!count)
			continue;
		set_frame(p, offset);
		p->sample.frame = &p->frame;
		p->sample.n = 1;
		p->sample.weight = count;
		stats->samples++;
		ret = fn(ctx, &p->sample);
	}
	return ret;
}
