/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/grubcfg_words.h"

#include "vmm/bootdisk/grubcfg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool grubcfg_words_at_end(const struct grub_reader *r)
{
	return r->s == r->end;
}

static bool is_name_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

static struct grub_var *find_var(const struct grub_vars *v, const char *name, size_t len)
{
	for (unsigned int i = 0; i < v->n; i++)
		if (strlen(v->at[i].name) == len && !memcmp(v->at[i].name, name, len))
			return &v->at[i];
	return NULL;
}

int grubcfg_vars_set(struct grub_vars *v, const char *name, size_t name_len, const char *value,
		     size_t len, struct err *e)
{
	struct grub_var *var = find_var(v, name, name_len), *p;
	char *copy;

	for (size_t i = 0; i < name_len; i++)
		if (!is_name_char(name[i], i == 0))
			return 0;
	if (!name_len || memchr(value, 0, len))
		return 0;
	if (len > GRUBCFG_MAX_WORD || name_len > GRUBCFG_MAX_WORD)
		return err_set(e, EINVAL, "variable %.40s: more than %u bytes", name,
			       GRUBCFG_MAX_WORD);
	copy = strndup(value, len);
	if (!copy)
		return err_nomem(e);
	if (var) {
		free(var->value);
		var->value = copy;
		return 0;
	}
	if (v->n == GRUBCFG_MAX_VARIABLES) {
		free(copy);
		return err_set(e, EINVAL, "more than %u variables", GRUBCFG_MAX_VARIABLES);
	}
	p = reallocarray(v->at, v->n + 1, sizeof(*p));
	if (p) {
		v->at = p;
		p[v->n].name = strndup(name, name_len);
		p[v->n].value = copy;
		if (p[v->n].name) {
			v->n++;
			return 0;
		}
	}
	free(copy);
	return err_nomem(e);
}

const char *grubcfg_vars_get(const struct grub_vars *v, const char *name, size_t len)
{
	const struct grub_var *var = find_var(v, name, len);

	return var ? var->value : NULL;
}

void grubcfg_vars_deinit(struct grub_vars *v)
{
	for (unsigned int i = 0; i < v->n; i++) {
		free(v->at[i].name);
		free(v->at[i].value);
	}
	free(v->at);
	v->at = NULL;
	v->n = 0;
}

void grubcfg_words_deinit(struct grub_words *w)
{
	for (unsigned int i = 0; i < w->n; i++)
		free(w->at[i].text);
	free(w->at);
	memset(w, 0, sizeof(*w));
}

/* The word that is being read. */
struct grubcfg_words_word {
	struct buf text;
	bool any; /* a word exists, perhaps as "" */
	bool quoted;
};

static int limit(const struct grub_reader *r, const char *what, unsigned int max, struct err *e)
{
	return err_set(e, EINVAL, "%s:%u: more than %u %s", r->name, r->line, max, what);
}

static int end_word(const struct grub_reader *r, struct grub_words *w,
		    struct grubcfg_words_word *word, struct err *e)
{
	struct grub_word *p;

	if (!word->any)
		return 0;
	if (w->n == GRUBCFG_MAX_WORDS)
		return limit(r, "words in a command", GRUBCFG_MAX_WORDS, e);
	buf_u8(&word->text, 0);
	p = word->text.failed ? NULL : reallocarray(w->at, w->n + 1, sizeof(*p));
	if (!p)
		return err_nomem(e);
	w->at = p;
	p[w->n].text = (char *)word->text.data;
	p[w->n++].quoted = word->quoted;
	buf_init(&word->text);
	word->any = word->quoted = false;
	return 0;
}

static int grub_word_add(const struct grub_reader *r, struct grubcfg_words_word *word, char c,
			 struct err *e)
{
	if (word->text.len >= GRUBCFG_MAX_WORD)
		return limit(r, "bytes in a word", GRUBCFG_MAX_WORD, e);
	word->any = true;
	buf_u8(&word->text, (uint8_t)c);
	return 0;
}

/*
 * Expands $NAME or ${NAME}; r->s is at the "$". Blanks in the value separate words, unless quoted.
 */
static int expand(struct grub_reader *r, const struct grub_vars *vars, struct grub_words *w,
		  struct grubcfg_words_word *word, bool quoted, struct err *e)
{
	const char *s = r->s + 1, *name, *value;
	bool brace = s < r->end && *s == '{';
	size_t len = 0;
	int ret = 0;

	name = s += brace;
	while (s < r->end && is_name_char(*s, len == 0)) {
		s++;
		len++;
	}
	/* $1, $?, $@ and such belong to functions, which are not executed. */
	if (!len && s < r->end && ((*s >= '0' && *s <= '9') || strchr("?@*#", *s)))
		s++;
	if (brace && s < r->end && *s == '}')
		s++;
	else if (brace || s == r->s + 1) {
		r->s++;
		return grub_word_add(r, word, '$', e);
	}
	r->s = s;
	value = grubcfg_vars_get(vars, name, len);
	for (; value && *value && !ret; value++)
		ret = !quoted && (*value == ' ' || *value == '\t')
			      ? end_word(r, w, word, e)
			      : grub_word_add(r, word, *value, e);
	return ret;
}

static int read_quoted(struct grub_reader *r, const struct grub_vars *vars, struct grub_words *w,
		       struct grubcfg_words_word *word, struct err *e)
{
	char quote = *r->s++;
	int ret = 0;

	word->any = word->quoted = true;
	while (!ret && r->s < r->end && *r->s != quote) {
		char c = *r->s;

		if (c == '\n')
			r->line++;
		if (quote == '"' && c == '$') {
			ret = expand(r, vars, w, word, true, e);
			continue;
		}
		if (quote == '"' && c == '\\' && r->end - r->s > 1 && strchr("\"\\$\n", r->s[1])) {
			c = *++r->s;
			r->line += c == '\n';
			r->s++;
			ret = c == '\n' ? 0 : grub_word_add(r, word, c, e);
			continue;
		}
		ret = grub_word_add(r, word, c, e);
		r->s++;
	}
	if (!ret && r->s == r->end)
		return err_set(e, EINVAL, "%s:%u: a quote without its end", r->name, r->line);
	r->s++;
	return ret;
}

/* Returns whether the command may be followed by another one on the same line. */
static bool is_alone(const struct grub_words *w)
{
	static const char *const words[] = { "if", "then", "elif", "else", "do", "fi", "done" };

	for (size_t i = 0; w->n == 1 && !w->at[0].quoted && i < sizeof(words) / sizeof(words[0]);
	     i++)
		if (!strcmp(w->at[0].text, words[i]))
			return true;
	return false;
}

static bool is_one(const struct grubcfg_words_word *word, char c)
{
	return word->any && !word->quoted && word->text.len == 1 && word->text.data[0] == c;
}

int grubcfg_words_read(struct grub_reader *r, const struct grub_vars *vars, struct grub_words *w,
		       struct err *e)
{
	struct grubcfg_words_word word = { 0 };
	int ret = 0;

	grubcfg_words_deinit(w);
	buf_init(&word.text);
	while (!ret && r->s < r->end) {
		char c = *r->s;

		if (c == '\'' || c == '"') {
			ret = read_quoted(r, vars, w, &word, e);
		} else if (c == '$') {
			ret = expand(r, vars, w, &word, false, e);
		} else if (c == '\\' && r->end - r->s > 1) {
			c = r->s[1];
			r->s += 2;
			r->line += c == '\n';
			if (c != '\n') {
				word.quoted = true;
				ret = grub_word_add(r, &word, c, e);
			}
		} else if (c == '#' && !word.any) {
			while (r->s < r->end && *r->s != '\n')
				r->s++;
		} else if (strchr(" \t\r\n;", c)) {
			bool opens = is_one(&word, '{'), closes = is_one(&word, '}');

			if (closes && w->n) { /* it is a command of its own */
				r->s--;
				break;
			}
			if (opens && w->n) { /* "{" is not a word of its command */
				word.text.len = 0;
				word.any = false;
				w->block = true;
			}
			ret = end_word(r, w, &word, e);
			r->s++;
			r->line += c == '\n';
			if (ret || w->block || closes || c == '\n' || c == ';' || is_alone(w))
				break;
		} else {
			ret = grub_word_add(r, &word, c, e);
			r->s++;
		}
	}
	if (!ret && r->s == r->end && w->n && is_one(&word, '}'))
		r->s--;
	else if (!ret && r->s == r->end)
		ret = end_word(r, w, &word, e);
	buf_deinit(&word.text);
	return ret;
}

/* Evaluates -s FILE and such: only the environment block is known to exist. */
static bool test_file(const char *path, bool have_env)
{
	const char *slash = strrchr(path, '/');

	return have_env && !strcmp(slash ? slash + 1 : path, "grubenv");
}

/* Evaluates the term at *i, and moves *i behind it. */
static bool test_term(const struct grub_words *w, unsigned int *i, unsigned int end, bool have_env)
{
	const char *a = w->at[*i].text;

	if (end - *i >= 3) {
		const char *op = w->at[*i + 1].text, *b = w->at[*i + 2].text;
		bool same = !strcmp(a, b);

		if (!strcmp(op, "=") || !strcmp(op, "==") || !strcmp(op, "!=")) {
			*i += 3;
			return (*op == '!') != same;
		}
		if (!strcmp(op, "-eq") || !strcmp(op, "-ne") || !strcmp(op, "-lt") ||
		    !strcmp(op, "-gt") || !strcmp(op, "-le") || !strcmp(op, "-ge")) {
			long x = strtol(a, NULL, 10), y = strtol(b, NULL, 10);

			*i += 3;
			return !strcmp(op, "-eq")   ? x == y
			       : !strcmp(op, "-ne") ? x != y
			       : !strcmp(op, "-lt") ? x < y
			       : !strcmp(op, "-gt") ? x > y
			       : !strcmp(op, "-le") ? x <= y
						    : x >= y;
		}
	}
	if (end - *i >= 2 && a[0] == '-' && a[1] && !a[2]) {
		const char *b = w->at[*i + 1].text;

		*i += 2;
		if (a[1] == 'n')
			return *b;
		if (a[1] == 'z')
			return !*b;
		return strchr("defs", a[1]) && test_file(b, have_env);
	}
	(*i)++;
	return *a;
}

bool grubcfg_words_test(const struct grub_words *w, bool have_env)
{
	unsigned int i = 1, end = w->n;
	bool truth = false, any = false, term = true;

	if (end > 1 && !strcmp(w->at[0].text, "[") && !strcmp(w->at[end - 1].text, "]"))
		end--;
	/* -a binds more tightly than -o. */
	while (i < end) {
		bool not = false;

		while (end - i > 1 && !strcmp(w->at[i].text, "!")) {
			not = !not ;
			i++;
		}
		any = true;
		term = test_term(w, &i, end, have_env) != not &&term;
		if (i < end && !strcmp(w->at[i].text, "-o")) {
			truth = truth || term;
			term = true;
		}
		i += i < end;
	}
	return truth || (any && term);
}
