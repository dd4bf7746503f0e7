/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text forms, one symbol per line:
 *
 *	line   = address SP [ size SP ] type SP name [ TAB "[" module "]" ]
 *	       | SP... type SP name			; nm, undefined: skipped
 *	address, size = 1 to 16 hexadecimal digits; type = one letter
 *
 * CR before the newline is dropped; empty lines are skipped.
 */
#include "symbolizer/symfile.h"

#include "base/cursor.h"
#include "symbolizer/symident.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define MAX_LINE (SYMTAB_MAX_NAME + 256u)

struct line {
	uint64_t addr, size;
	char type;
	char name[SYMTAB_MAX_NAME + 1];
};

struct text_parser {
	const char *path;
	struct cursor c;
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

/* A word up to a blank: its length, 0 at the end of the line. */
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

/* 1: *l is a symbol; 0: nothing on this line; -EINVAL: not a line of a symbol list. */
static int parse_line(struct cursor c, struct line *l)
{
	const uint8_t *w, *name;
	bool indented = cursor_left(&c) && is_blank(c.base[c.pos]);
	size_t n = take_word(&c, &w), len;

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
	skip_blanks(&c);
	name = c.base + c.pos;
	len = cursor_left(&c);
	/* Demangled names have spaces in them; a module follows a tab. */
	for (size_t i = 0; i < len; i++) {
		if (name[i] == '\t')
			len = i;
		else if (name[i] < 0x20 || name[i] == 0x7f)
			return -EINVAL;
	}
	while (len && is_blank(name[len - 1]))
		len--;
	if (len == 0 || len > SYMTAB_MAX_NAME)
		return -EINVAL;
	memcpy(l->name, name, len);
	l->name[len] = 0;
	return 1;
}

/* The next line without its end, or false at the end of the file. */
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

/* For a message: the start of a line with nothing unprintable in it. */
static const char *excerpt(const struct cursor *line, char *buf, size_t size)
{
	size_t n = line->len < size - 1 ? line->len : size - 1;

	for (size_t i = 0; i < n; i++)
		buf[i] = line->base[i] >= 0x20 && line->base[i] < 0x7f ? (char)line->base[i] : '.';
	buf[n] = 0;
	return buf;
}

/*
 * Debian's image packages install a System.map that holds one line, in the form
 * of a symbol, which names the package with the real one.
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

static int parse_text(struct text_parser *p, struct symtab *t, struct err *e)
{
	struct cursor line;
	struct line l;
	char text[64];
	int ret;

	while (next_line(p, &line)) {
		if (line.len > MAX_LINE)
			return err_set(e, EINVAL,
				       "%s:%lu: line of %zu bytes; expected \"address type "
				       "name\"",
				       p->path, p->lineno, line.len);
		ret = p->lineno <= 8 ? refuse_placeholder(p->path, &line, e) : 0;
		if (ret < 0)
			return ret;
		ret = parse_line(line, &l);
		if (ret < 0)
			return err_set(e, EINVAL,
				       "%s:%lu: expected \"address type name\" (System.map, nm "
				       "or kallsyms), found \"%s\"",
				       p->path, p->lineno, excerpt(&line, text, sizeof(text)));
		if (ret == 0)
			continue;
		ret = symtab_add(t, l.addr, l.size, l.type, l.name);
		if (ret < 0)
			return err_set(e, -ret, "%s:%lu: cannot keep more symbols: %s", p->path,
				       p->lineno, strerror(-ret));
		p->nonzero += l.addr != 0;
		p->code += l.type == 't' || l.type == 'T' || l.type == 'w' || l.type == 'W';
	}
	if (symtab_count(t) == 0)
		return err_set(e, EINVAL, "%s: no symbols in it", p->path);
	if (p->nonzero == 0)
		return err_set(e, EPERM,
			       "%s: all addresses are zero: the kernel hid them; read it as root "
			       "after `sysctl kernel.kptr_restrict=0`",
			       p->path);
	if (p->code == 0)
		return err_set(e, EINVAL, "%s: %zu symbols, but none of code (types t, T, w, W)",
			       p->path, symtab_count(t));
	return 0;
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
	f->text_len = symident_text_hash(&k, SYMIDENT_MAX_HASHED, &f->text_hash);
	return 0;
}

int symfile_parse(struct symfile *f, const char *name, const uint8_t *data, size_t len,
		  struct err *e)
{
	struct symfile x = { .kind = SYMFILE_TEXT };
	struct text_parser p = { .path = name };
	int ret;

	if (len >= 4 && !memcmp(data, "\177ELF", 4)) {
		ret = parse_elf(&x, name, data, len, e);
		if (ret == 0)
			*f = x;
		return ret;
	}
	cursor_init(&p.c, data, len);
	x.symbols = symtab_create();
	if (!x.symbols)
		return err_set(e, ENOMEM, "%s: no memory for symbols", name);
	ret = parse_text(&p, x.symbols, e);
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
