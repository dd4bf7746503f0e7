/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/symfile_text.h"

#include "base/cursor.h"

#include <errno.h>
#include <string.h>

#define MAX_LINE (256u << 10) /* C++ names of 100,000 bytes have been seen */
/* Number of lines that determine the form. */
#define SAMPLE_LINES 64u

struct symfile_text_line {
	uint64_t addr, size;
	char type;
	char name[SYMTAB_MAX_NAME + 2];
};

/*
 * Parses one line. Returns 1 if *l is a symbol, 0 if the line has none, or -EINVAL if it is not a
 * line of this form.
 */
typedef int (*line_parser)(struct cursor c, struct symfile_text_line *l);

struct text_parser {
	const char *path;
	struct cursor c;
	line_parser parse;
	unsigned long lineno;
	size_t code, nonzero;
};

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static void skip_blanks(struct cursor *c)
{
	while (cursor_left(c) && is_blank(c->base[c->pos]))
		c->pos++;
}

/* Reads a word up to a blank. Returns its length, 0 at the end of the line. */
static size_t take_word(struct cursor *c, const uint8_t **word)
{
	size_t start;

	skip_blanks(c);
	start = c->pos;
	while (cursor_left(c) && !is_blank(c->base[c->pos]))
		c->pos++;
	*word = c->base + start;
	return c->pos - start;
}

static bool parse_hex(const uint8_t *p, size_t n, uint64_t *v)
{
	uint64_t x = 0;

	if (n > 2 && p[0] == '0' && (p[1] | 32) == 'x') {
		p += 2;
		n -= 2;
	}
	if (n == 0 || n > 16)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = p[i];
		unsigned int d;

		if (c >= '0' && c <= '9')
			d = c - '0';
		else if (c >= 'a' && c <= 'f')
			d = c - 'a' + 10u;
		else if (c >= 'A' && c <= 'F')
			d = c - 'A' + 10u;
		else
			return false;
		x = x << 4 | d;
	}
	*v = x;
	return true;
}

static bool is_type(const uint8_t *p, size_t n)
{
	return n == 1 && ((p[0] >= 'a' && p[0] <= 'z') || (p[0] >= 'A' && p[0] <= 'Z') ||
			  p[0] == '?' || p[0] == '-');
}

/* Sets the name. Demangled names contain spaces; a module follows a tab. */
static int set_name(struct symfile_text_line *l, const uint8_t *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (name[i] == '\t')
			len = i;
		else if (name[i] < 0x20 || name[i] == 0x7f)
			return -EINVAL;
	}
	while (len && is_blank(name[len - 1]))
		len--;
	if (len == 0)
		return -EINVAL;
	/* symtab_add() truncates it visibly. */
	if (len > SYMTAB_MAX_NAME + 1)
		len = SYMTAB_MAX_NAME + 1;
	memcpy(l->name, name, len);
	l->name[len] = 0;
	return 1;
}

static int set_rest_as_name(struct symfile_text_line *l, struct cursor *c)
{
	skip_blanks(c);
	return set_name(l, c->base + c->pos, cursor_left(c));
}

static int parse_bsd(struct cursor c, struct symfile_text_line *l)
{
	const uint8_t *w;
	bool indented = cursor_left(&c) && is_blank(c.base[c.pos]);
	size_t n = take_word(&c, &w);

	if (n == 0)
		return 0;
	if (indented && is_type(w, n))
		return 0; /* undefined */
	if (!parse_hex(w, n, &l->addr))
		return -EINVAL;
	n = take_word(&c, &w);
	l->size = 0;
	if (!is_type(w, n)) {
		if (!parse_hex(w, n, &l->size))
			return -EINVAL;
		n = take_word(&c, &w);
		if (!is_type(w, n))
			return -EINVAL;
	}
	l->type = (char)w[0];
	return set_rest_as_name(l, &c);
}

/*
 * Reads the last word before *end, and moves *end to its start. Returns its length, 0 if there is
 * none.
 */
static size_t take_last_word(const struct cursor *c, size_t *end, const uint8_t **word)
{
	size_t to = *end, from;

	while (to && is_blank(c->base[to - 1]))
		to--;
	for (from = to; from && !is_blank(c->base[from - 1]);)
		from--;
	*end = from;
	*word = c->base + from;
	return to - from;
}

/* Returns whether a word is an address. As a name, it indicates a damaged line of another form. */
static bool is_address(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((p[i] >= '0' && p[i] <= '9') || ((p[i] | 32) >= 'a' && (p[i] | 32) <= 'f')))
			return false;
	return n >= 8;
}

/* Parses from the right, because a demangled name may look like anything. */
static int parse_posix(struct cursor c, struct symfile_text_line *l)
{
	const uint8_t *w[3], *first;
	size_t n[3], before[3], end = c.len, len;

	for (unsigned int i = 0; i < 3; i++) {
		n[i] = take_last_word(&c, &end, &w[i]);
		before[i] = end;
	}
	if (n[0] == 0)
		return 0;
	len = take_word(&c, &first);
	if (is_address(first, len))
		return -EINVAL;
	l->size = 0;
	if (before[2] && is_type(w[2], n[2]) && parse_hex(w[1], n[1], &l->addr) &&
	    parse_hex(w[0], n[0], &l->size)) {
		l->type = (char)w[2][0];
		return set_name(l, c.base, before[2]);
	}
	if (before[1] && is_type(w[1], n[1]) && parse_hex(w[0], n[0], &l->addr)) {
		l->type = (char)w[1][0];
		return set_name(l, c.base, before[1]);
	}
	return before[0] && is_type(w[0], n[0]) ? 0 : -EINVAL; /* undefined */
}

static int parse_generic(struct cursor c, struct symfile_text_line *l)
{
	const uint8_t *w;
	size_t n = take_word(&c, &w);

	if (n == 0)
		return 0;
	if (!parse_hex(w, n, &l->addr))
		return -EINVAL;
	l->size = 0;
	l->type = 't';
	return set_rest_as_name(l, &c);
}

/* Reads the next line without its end. Returns false at the end of the file. */
static bool next_line(struct text_parser *p, struct cursor *line)
{
	size_t left = cursor_left(&p->c), len;
	const uint8_t *s = p->c.base + p->c.pos, *nl;

	if (left == 0)
		return false;
	nl = memchr(s, '\n', left);
	len = nl ? (size_t)(nl - s) : left;
	p->c.pos += nl ? len + 1 : len;
	p->lineno++;
	if (len && s[len - 1] == '\r')
		len--;
	cursor_init(line, s, len);
	return true;
}

/* Returns the start of a line for a message, with unprintable characters replaced. */
static const char *excerpt(const struct cursor *line, char *buf, size_t size)
{
	size_t n = line->len < size - 1 ? line->len : size - 1;

	for (size_t i = 0; i < n; i++)
		buf[i] = line->base[i] >= 0x20 && line->base[i] < 0x7f ? (char)line->base[i] : '.';
	buf[n] = 0;
	return buf;
}

/*
 * Rejects the System.map of Debian's image packages, which has one line in the form of a symbol
 * that names the package with the real file.
 */
static int refuse_placeholder(const char *path, const struct cursor *line, struct err *e)
{
	char text[160];

	if (!memmem(line->base, line->len, "The real System.map is in", 25))
		return 0;
	return err_set(e, EINVAL,
		       "%s: a placeholder, not a symbol table; install the kernel's -dbg "
		       "package and give its System.map or vmlinux (it says: \"%s\")",
		       path, excerpt(line, text, sizeof(text)));
}

/*
 * The result of parsing the first lines in one form: how many are valid, and whether all of them
 * are.
 */
struct sample_lines {
	unsigned int good;
	bool all, first;
};

static struct sample_lines try_form(const struct text_parser *file, line_parser parse)
{
	struct text_parser p = *file;
	struct sample_lines s = { .all = true };
	struct cursor line;
	struct symfile_text_line l;

	for (unsigned int n = 0; n < SAMPLE_LINES && next_line(&p, &line);) {
		int ret = line.len > MAX_LINE ? -EINVAL : parse(line, &l);

		if (ret == 0)
			continue;
		s.good += ret > 0;
		s.all &= ret > 0;
		s.first |= ret > 0 && n == 0;
		n++;
	}
	s.all &= s.good != 0;
	return s;
}

/*
 * Chooses the form. A line can often be read in several ways: a truncated System.map as addresses
 * with names like "T main". So the loose form is used only if no other one fits.
 */
static void choose_form(struct text_parser *p, bool *untyped)
{
	struct sample_lines bsd = try_form(p, parse_bsd), posix = try_form(p, parse_posix),
			    generic = try_form(p, parse_generic);

	p->parse = parse_bsd;
	*untyped = false;
	if (bsd.all)
		return;
	if (posix.all || (posix.first && !bsd.first && !generic.first)) {
		p->parse = parse_posix;
	} else if (generic.first && !bsd.first) {
		p->parse = parse_generic;
		*untyped = true;
	}
}

static const char *form_name(line_parser parse)
{
	return parse == parse_bsd     ? "\"address type name\" (System.map, nm or kallsyms)"
	       : parse == parse_posix ? "\"name type address\" (nm -P, by the lines before)"
				      : "\"address name\" (by the lines before)";
}

static bool is_code(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static int parse_lines(struct text_parser *p, struct symtab *t, struct err *e)
{
	struct cursor line;
	struct symfile_text_line l;
	char text[64];
	int ret;

	while (next_line(p, &line)) {
		if (line.len > MAX_LINE)
			return err_set(e, EINVAL, "%s:%lu: line of %zu bytes; expected %s", p->path,
				       p->lineno, line.len, form_name(p->parse));
		ret = p->lineno <= 8 ? refuse_placeholder(p->path, &line, e) : 0;
		if (ret < 0)
			return ret;
		ret = p->parse(line, &l);
		if (ret < 0)
			return err_set(e, EINVAL, "%s:%lu: expected %s, found \"%s\"", p->path,
				       p->lineno, form_name(p->parse),
				       excerpt(&line, text, sizeof(text)));
		if (ret == 0)
			continue;
		if (l.type == 'i')
			l.type = 'T'; /* nm's letter for an IFUNC */
		ret = symtab_add(t, l.addr, l.size, l.type, l.name);
		if (ret < 0)
			return err_set(e, -ret, "%s:%lu: cannot keep more symbols: %s", p->path,
				       p->lineno, strerror(-ret));
		p->nonzero += l.addr != 0;
		p->code += is_code(l.type);
	}
	return 0;
}

int symfile_text_parse(struct symtab *t, const char *name, const uint8_t *data, size_t len,
		       bool *untyped, struct err *e)
{
	struct text_parser p = { .path = name };
	int ret;

	cursor_init(&p.c, data, len);
	choose_form(&p, untyped);
	ret = parse_lines(&p, t, e);
	if (ret < 0)
		return ret;
	if (symtab_count(t) == 0)
		return err_set(e, EINVAL, "%s: no symbols in it", name);
	if (p.nonzero == 0)
		return err_set(e, EPERM,
			       "%s: all addresses are zero: the kernel hid them; read it as root "
			       "after `sysctl kernel.kptr_restrict=0`",
			       name);
	if (p.code == 0)
		return err_set(e, EINVAL, "%s: %zu symbols, but none of code (types t, T, w, W)",
			       name, symtab_count(t));
	return 0;
}
