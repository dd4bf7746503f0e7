/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/names/function.h"

#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list in a message is cut at this length, because struct err is short. */
#define LIST_LEN 200u
#define SHORT_FILE 40u

/* -- a text ---------------------------------------------------------------------------------- */

/* Returns the length of text without a #NUMBER or #all at its end, which it stores in *out. */
static size_t parse_choice(struct function_name *out, const char *text)
{
	const char *hash = strrchr(text, '#');
	unsigned long number;
	char *end;

	if (!hash || hash == text)
		return strlen(text);
	if (!strcmp(hash, "#all")) {
		out->all = true;
		return (size_t)(hash - text);
	}
	if (hash[1] < '1' || hash[1] > '9')
		return strlen(text);
	number = strtoul(hash + 1, &end, 10);
	if (*end)
		return strlen(text);
	out->number = number < UINT32_MAX ? (unsigned int)number : UINT32_MAX;
	return (size_t)(hash - text);
}

void function_name_parse(struct function_name *out, const char *text)
{
	const char *at = strchr(text, '@');
	size_t len;

	*out = (struct function_name){ .number = 0 };
	len = parse_choice(out, text);
	if (!at || at == text || at + 1 >= text + len)
		at = text + len;
	else
		snprintf(out->file, sizeof(out->file), "%.*s", (int)(text + len - at - 1), at + 1);
	snprintf(out->name, sizeof(out->name), "%.*s", (int)(at - text), text);
}

/* -- symbols of a name ----------------------------------------------------------------------- */

static bool symbol_is_code(const struct symbol *s)
{
	return strchr("tTwW", s->type) != NULL;
}

/*
 * Returns the next symbol of the name after `after`; code selects symbols that are code or those
 * that are not.
 */
static const struct symbol *next_of_name(const struct symtab *t, const char *name, bool code,
					 const struct symbol *after)
{
	const struct symbol *s = after;

	do
		s = symtab_find_next(t, name, s);
	while (s && symbol_is_code(s) != code);
	return s;
}

static int functions_named(const struct symtab *t, const char *name, struct functions *out,
			   struct err *e)
{
	const struct symbol *s;
	bool code = true;
	size_t cap = 0;

	if (!next_of_name(t, name, code, NULL))
		code = false;
	for (s = next_of_name(t, name, code, NULL); s; s = next_of_name(t, name, code, s)) {
		if (ARRAY_ROOM(out->at, out->n, cap))
			return err_nomem(e);
		out->at[out->n] =
			(struct function){ .symbol = s, .number = (unsigned int)out->n + 1 };
		out->n++;
	}
	return 0;
}

void function_base_name(char out[SYMTAB_MAX_NAME + 1], const struct symbol *s)
{
	snprintf(out, SYMTAB_MAX_NAME + 1, "%.*s",
		 s->promoted ? (int)s->promoted : (int)strlen(s->name), s->name);
}

unsigned int function_number(const struct symtab *t, const struct symbol *s, unsigned int *of)
{
	char name[SYMTAB_MAX_NAME + 1];
	bool code = symbol_is_code(s);
	unsigned int number = 0;
	const struct symbol *x;

	function_base_name(name, s);
	*of = 0;
	for (x = next_of_name(t, name, code, NULL); x; x = next_of_name(t, name, code, x)) {
		++*of;
		if (x->addr == s->addr)
			number = *of;
	}
	return number;
}

/* -- files ----------------------------------------------------------------------------------- */

void function_locate(const struct function_table *t, enum function_search how, struct function *f)
{
	struct line_frame frame[LINES_MAX_FRAMES];
	uint64_t addr = f->symbol->addr;
	struct lines *l = t->lines ? t->lines(t->ctx, how, &addr) : NULL;
	int n = l ? lines_lookup(l, addr, frame, LINES_MAX_FRAMES, NULL) : 0;

	f->source = n > 0 ? frame[n - 1].file : NULL;
	f->file = l ? lines_unit_name(l, addr) : NULL;
	if (!f->file)
		f->file = f->symbol->file;
}

static bool ends_with_path(const char *path, const char *file)
{
	size_t n = path ? strlen(path) : 0, len = strlen(file);

	if (!n || n < len || strcmp(path + n - len, file) != 0)
		return false;
	return n == len || path[n - len - 1] == '/';
}

const char *function_short_file(const char *path)
{
	while (strlen(path) > SHORT_FILE && strchr(path, '/'))
		path = strchr(path, '/') + 1;
	return path;
}

/*
 * Keeps the functions whose compilation unit is the file; without any, those whose first line is in
 * it, because it may be a header.
 */
static void keep_in_file(struct functions *f, const char *file)
{
	bool by_unit = false;
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		by_unit |= ends_with_path(f->at[i].file, file);
	for (size_t i = 0; i < f->n; i++)
		if (ends_with_path(by_unit ? f->at[i].file : f->at[i].source, file))
			f->at[n++] = f->at[i];
	f->n = n;
}

/* -- messages -------------------------------------------------------------------------------- */

struct function_list {
	char text[LIST_LEN + 200];
	bool files, directories; /* files: a file is known; directories: a file has one */
};

/* "NAME#1 (0xADDRESS, FILE), NAME#2 (...)", cut between two of them. */
static void list_functions(const struct functions *f, const char *name, struct function_list *l)
{
	size_t at = 0;

	*l = (struct function_list){ .files = false };
	for (size_t i = 0; i < f->n; i++) {
		const char *file = f->at[i].file ? function_short_file(f->at[i].file) : NULL;

		l->files |= file || f->at[i].source;
		l->directories |= f->at[i].source || (file && strchr(f->at[i].file, '/'));
		if (at > LIST_LEN)
			continue;
		at += (size_t)snprintf(l->text + at, sizeof(l->text) - at,
				       "%s%.60s#%u (0x%" PRIx64 "%s%.60s)", i ? ", " : "", name,
				       f->at[i].number, f->at[i].symbol->addr, file ? ", " : "",
				       file ? file : "");
		if (at > LIST_LEN && i + 1 < f->n)
			snprintf(l->text + at, sizeof(l->text) - at, " and %zu more", f->n - i - 1);
	}
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static int refuse_file(const struct function_table *t, const struct function_name *want,
		       const struct function_list *l, struct err *e)
{
	if (!l->files)
		return err_set(e, ENOENT,
			       "'%.60s@%.60s': neither debug information nor symbols name the "
			       "files of %s; choose by number or address: %s",
			       want->name, want->file, t->name, l->text);
	return err_set(e, ENOENT, "no '%.60s' is in %.60s%s: %s", want->name, want->file,
		       !l->directories && strchr(want->file, '/')
			       ? " (symbols name files without their directories)"
			       : "",
		       l->text);
}

/* -- all of it ------------------------------------------------------------------------------- */

static int functions_choose(const struct function_table *t, const struct function_name *want,
			    enum function_many many, struct functions *f, struct err *e)
{
	struct function_list l;

	for (size_t i = 0; i < f->n && (f->n > 1 || want->file[0]); i++)
		function_locate(t, want->file[0] ? FUNCTION_WANTED : FUNCTION_AT_HAND, &f->at[i]);
	list_functions(f, want->name, &l);
	if (want->number > f->n)
		return err_set(e, ENOENT, "'%.60s' is %zu function%s, there is no #%u: %s",
			       want->name, f->n, plural(f->n), want->number, l.text);
	if (want->number) {
		f->at[0] = f->at[want->number - 1];
		f->n = 1;
	}
	if (want->file[0]) {
		keep_in_file(f, want->file);
		if (!f->n)
			return refuse_file(t, want, &l, e);
		list_functions(f, want->name, &l);
	}
	if (f->n == 1 || want->all || many == FUNCTION_EACH)
		return 0;
	return err_set(e, EINVAL,
		       "'%.60s%s%.60s' is %zu functions; choose by number%s or address: %s",
		       want->name, want->file[0] ? "@" : "", want->file, f->n,
		       l.files && !want->file[0] ? ", NAME@FILE" : "", l.text);
}

int function_resolve(const struct function_table *t, const char *text, enum function_many many,
		     struct functions *out, struct err *e)
{
	struct function_name want = { .number = 0 };

	/* A symbol's name may contain such characters ("memcpy@@GLIBC_2.14"). */
	if (symtab_find_next(t->symbols, text, NULL))
		snprintf(want.name, sizeof(want.name), "%s", text);
	else
		function_name_parse(&want, text);
	return function_select(t, &want, many, out, e);
}

int function_select(const struct function_table *t, const struct function_name *want,
		    enum function_many many, struct functions *out, struct err *e)
{
	struct functions f = { .n = 0 };
	int ret = functions_named(t->symbols, want->name, &f, e);

	if (!ret && !f.n)
		ret = err_set(e, ENOENT, "%s has no symbol '%.200s'; see `kvmprof symbols`",
			      t->name, want->name);
	ret = ret ? ret : functions_choose(t, want, many, &f, e);
	if (ret) {
		function_deinit(&f);
		return ret;
	}
	*out = f;
	return 0;
}

void function_deinit(struct functions *f)
{
	free(f->at);
	*f = (struct functions){ .n = 0 };
}
