/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/option.h"

#include "base/json.h"
#include "base/nearest.h"
#include "base/number.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

#define LONG_BASE 256 /* getopt's value of the long option of index 0 */
#define DASHED_MIN 3  /* characters of the shortest word that is no bundle of letters */

/* A row together with its place in the command's structure. */
struct item {
	const struct option_row *row;
	const char *help;
	size_t offset; /* offset of the structure that the row describes */
};

/* A table with all rows that it includes. */
struct items {
	struct item at[OPTION_MAX];
	unsigned int n;
};

static const struct option_row *row_find(const struct option_row *rows, const char *name,
					 size_t *offset)
{
	const struct option_row *found = NULL;

	for (; !found && rows->kind != OPTION_IS_END; rows++) {
		if (rows->kind == OPTION_IS_ROWS) {
			found = row_find(rows->rows, name, offset);
			*offset += found ? rows->offset : 0;
		} else if (rows->name && !strcmp(rows->name, name)) {
			found = rows;
		}
	}
	return found;
}

static void items_add(struct items *l, const struct option_row *rows, size_t offset)
{
	for (const struct option_row *r = rows; r->kind != OPTION_IS_END; r++) {
		struct item item = { .row = r, .help = r->help, .offset = offset };

		if (r->kind == OPTION_IS_ROWS) {
			items_add(l, r->rows, offset + r->offset);
			continue;
		}
		if (r->kind == OPTION_IS_AS) {
			item.offset += r->offset;
			item.row = row_find(r->rows, r->name, &item.offset);
			assert(item.row);
			item.help = r->help ? r->help : item.row->help;
		}
		assert(l->n < OPTION_MAX);
		l->at[l->n++] = item;
	}
}

/* -- values --------------------------------------------------------------------------------- */

static void value_store(void *to, size_t size, uint64_t v)
{
	uint32_t v32 = (uint32_t)v;
	uint8_t v8 = (uint8_t)v;

	assert(size == 1 || size == 4 || size == 8);
	memcpy(to, size == 1 ? (void *)&v8 : size == 4 ? (void *)&v32 : (void *)&v, size);
}

/* Records the error message for a bad value. */
static int value_refuse(const struct option_row *r, const char *arg, const char *expected,
			struct err *e)
{
	return err_set(e, EINVAL, "--%s %.150s: expected %s", r->name, *arg ? arg : "''", expected);
}

/* Records an error that lists the words: "a, b or c". */
static int word_refuse(const struct option_row *r, const char *arg, struct err *e)
{
	char list[200];
	size_t n = 0;

	for (const char *const *w = r->words; *w && n < sizeof(list); w++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
				      w == r->words ? ""
				      : w[1]	    ? ", "
						    : " or ",
				      *w);
	return value_refuse(r, arg, list, e);
}

static int value_take(const struct option_row *r, void *to, char *arg, struct err *e)
{
	struct err why = { 0 };
	bool good = true;
	uint64_t v;
	int ret;

	switch (r->kind) {
	case OPTION_IS_PUT:
		value_store(to, r->size, r->from);
		break;
	case OPTION_IS_TEXT:
		good = *arg || !r->expected;
		*(const char **)to = arg;
		break;
	case OPTION_IS_REAL:
		good = number_real(arg, r->min, r->max, to);
		break;
	case OPTION_IS_SECONDS:
		good = number_seconds(arg, r->min, r->max, to);
		break;
	case OPTION_IS_HZ:
		good = number_hz(arg, r->min, r->max, to);
		break;
	case OPTION_IS_WHOLE:
		good = number_whole(arg, r->from, r->to, &v);
		if (good)
			value_store(to, r->size, v);
		break;
	case OPTION_IS_SIZE:
		good = number_size(arg, &v) && v >= r->from && v <= r->to;
		if (good)
			*(uint64_t *)to = v;
		break;
	case OPTION_IS_WORD:
		for (v = 0; r->words[v] && strcmp(r->words[v], arg) != 0;)
			v++;
		if (!r->words[v])
			return word_refuse(r, arg, e);
		value_store(to, r->size, v);
		break;
	default: /* OPTION_IS_CALL */
		ret = r->call(to, arg, &why);
		if (ret >= 0)
			return ret;
		if (why.code)
			return err_set(e, -ret, "--%s: %s", r->name, why.text);
		good = false;
	}
	return good ? 0 : value_refuse(r, arg, r->expected, e);
}

/* -- the command line ----------------------------------------------------------------------- */

static int has_arg(const struct option_row *r)
{
	if (!r->value)
		return no_argument;
	return r->next || !strncmp(r->value, "[=", 2) ? optional_argument : required_argument;
}

/*
 * Fills the arguments of getopt_long(): the long options, terminated by an empty row, and the
 * letters.
 */
static void items_for_getopt(const struct items *l, enum option_order order, bool words,
			     struct option *options, char *letters)
{
	/* ':' makes getopt_long() distinguish a missing value from an unknown option. */
	letters += sprintf(letters, "%s:", words ? "-" : order == OPTION_FIRST ? "+" : "");
	for (unsigned int i = 0; i < l->n; i++) {
		const struct option_row *r = l->at[i].row;

		if (!r->name)
			continue;
		*options++ = (struct option){ r->name, has_arg(r), NULL, LONG_BASE + (int)i };
		if (r->letter)
			letters += sprintf(letters, "%c%.*s", r->letter, has_arg(r), "::");
	}
	*options = (struct option){ 0 };
}

static const struct item *item_of(const struct items *l, int c)
{
	if (c >= LONG_BASE)
		return &l->at[c - LONG_BASE];
	for (unsigned int i = 0; i < l->n; i++)
		if (l->at[i].row->letter == c)
			return &l->at[i];
	return NULL;
}

/*
 * Returns the long option that was probably meant, or NULL. Options that --help does not show are
 * not suggested.
 */
static const char *option_nearest(const struct items *l, const char *typed)
{
	char word[NEAREST_MAX + 1];
	struct nearest n = { .typed = word };

	if (strncmp(typed, "--", 2) != 0)
		return NULL;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
	for (unsigned int i = 0; i < l->n; i++)
		if (l->at[i].row->name && l->at[i].help)
			nearest_add(&n, l->at[i].row->name);
	return nearest_word(&n);
}

static const struct option_habit *option_habit(const struct option_set *set, const char *what)
{
	size_t len = strcspn(what, "=");

	for (const struct option_habit *h = set->habits; h && h->typed; h++)
		if (strlen(h->typed) == len && !strncmp(h->typed, what, len))
			return h;
	return NULL;
}

/*
 * Returns the word from which getopt read a letter, if the letter is its first one and more follow
 * as a value or as further letters. Otherwise NULL.
 */
static const char *word_of_letter(int letter, int argc, char **argv)
{
	/* getopt moves optind past a word when it has read all of it. */
	for (int i = optind; i >= optind - 1 && i > 0; i--)
		if (i < argc && argv[i] != optarg && argv[i][0] == '-' && argv[i][1] == letter &&
		    argv[i][2])
			return argv[i];
	return NULL;
}

/*
 * Refuses a word such as "-kernel" or "-stdio", which getopt would read as letters: another program
 * has such an option, or it is a long option of this command with one dash too few. Returns 0 for
 * other words.
 */
static int option_refuse_dash(const struct option_set *set, const struct items *l, const char *word,
			      struct err *e)
{
	size_t len = word ? strcspn(word + 1, "=") : 0;
	const struct option_habit *habit = len < DASHED_MIN ? NULL : option_habit(set, word);

	if (habit)
		return err_set(e, EINVAL, "unknown option '%s': %s", habit->typed, habit->instead);
	for (unsigned int i = 0; len >= DASHED_MIN && i < l->n; i++) {
		const char *name = l->at[i].row->name;

		if (name && strlen(name) == len && !strncmp(name, word + 1, len))
			return err_set(e, EINVAL, "option '-%s' needs two dashes: --%s", name,
				       name);
	}
	return 0;
}

static int option_refuse(const struct option_set *set, const struct items *l, int c, char **argv,
			 struct err *e)
{
	/* For bundled letters getopt reports the letter; for long options only the position. */
	char letter[] = { '-', (char)optopt, '\0' };
	const char *what = optopt > 0 && optopt < LONG_BASE ? letter : argv[optind - 1];
	const struct option_habit *habit = option_habit(set, what);
	const char *meant = option_nearest(l, what);

	if (habit)
		return err_set(e, EINVAL, "unknown option '%s': %s", habit->typed, habit->instead);
	if (c == ':')
		return err_set(e, EINVAL, "option '%.200s' needs a value", what);
	if (meant && !strncmp(what + 2, meant, strlen(meant)) && what[2 + strlen(meant)] == '=')
		return err_set(e, EINVAL, "option '--%s' takes no value", meant);
	if (meant)
		return err_set(e, EINVAL, "unknown option '%.200s' (did you mean --%s?)", what,
			       meant);
	if (set->hint)
		return err_set(e, EINVAL, "unknown option '%.200s'; %s %.200s ...", what, set->hint,
			       what);
	return err_set(e, EINVAL, "unknown option '%.200s'", what);
}

static int option_take(const struct option_set *set, const struct item *item, void *at, char *arg,
		       struct err *e)
{
	const struct option_row *r = item->row;

	if (set->seen)
		set->seen(at, r);
	if (r->kind == OPTION_IS_HELP)
		return OPTION_ASKED_HELP;
	return value_take(r, (char *)at + item->offset + r->offset, arg, e);
}

/*
 * Takes a word as the profile, if the command takes no words, has -i, and the profile was not named
 * yet.
 */
static int take_input(const struct option_set *set, const struct items *l, bool named, void *at,
		      char **word, struct err *e)
{
	for (unsigned int i = 0; i < l->n && !named && !word[1]; i++)
		if (l->at[i].row->letter == 'i' && !strcmp(l->at[i].row->name, "input"))
			return option_take(set, &l->at[i], at, *word, e);
	return err_set(e, EINVAL, "unexpected argument '%.200s'", word[1] ? word[1] : *word);
}

int option_parse(const struct option_set *set, void *at, int argc, char **argv, struct err *e)
{
	struct option options[OPTION_MAX + 1];
	char letters[3 * OPTION_MAX + 3], *arg;
	struct items l = { .n = 0 };
	bool input = false;
	int c, ret = 0;

	items_add(&l, set->rows, 0);
	items_for_getopt(&l, set->order, set->word, options, letters);
	optind = 0; /* 0 restarts getopt, also within bundled letters */
	opterr = 0;
	while (!ret && (c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		const struct item *item = c == 1 ? NULL : item_of(&l, c);

		arg = optarg;
		if (c != 1 && c < LONG_BASE) {
			ret = option_refuse_dash(
				set, &l,
				word_of_letter(c == '?' || c == ':' ? optopt : c, argc, argv), e);
			if (ret)
				continue;
		}
		if (c == '?' || c == ':') {
			ret = option_refuse(set, &l, c, argv, e);
			continue;
		}
		if (item && item->row->next && !arg && optind < argc && *argv[optind] != '-')
			arg = argv[optind++];
		input |= item && item->row->letter == 'i';
		ret = item ? option_take(set, item, at, arg, e) : set->word(at, arg, e);
	}
	for (; !ret && set->word && optind < argc; optind++)
		ret = set->word(at, argv[optind], e);
	if (!ret && set->order == OPTION_ALONE && optind < argc)
		ret = take_input(set, &l, input, at, &argv[optind], e);
	/* The message quotes words of the command line. */
	for (char *s = e->text; ret < 0 && *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
	return ret;
}

/* -- help ----------------------------------------------------------------------------------- */

static void help_row(FILE *out, const struct item *item, unsigned int column)
{
	const struct option_row *r = item->row;
	const char *value = r->value ? r->value : "";
	const char *sign = r->value && strncmp(value, "[=", 2) != 0 ? " " : "";
	unsigned int used;

	if (r->letter)
		used = (unsigned int)fprintf(out, "  -%c, --%s%s%s", r->letter, r->name, sign,
					     value);
	else
		used = (unsigned int)fprintf(out, "      --%s%s%s", r->name, sign, value);
	if (*item->help != '\n')
		fprintf(out, "%*s", used < column ? (int)(column - used) : 2, "");
	for (const char *s = item->help; *s; s++) {
		putc(*s, out);
		if (*s == '\n')
			fprintf(out, "%*s", (int)column, "");
	}
	putc('\n', out);
}

static struct json_writer *help_json; /* NULL: help is printed as text */

void option_help_as_json(struct json_writer *w)
{
	help_json = w;
}

/* Writes a row. A letter and a value that do not exist have no member. */
static void json_row(struct json_writer *w, const struct item *item)
{
	const struct option_row *r = item->row;
	const char letter[] = { r->letter, '\0' };

	json_object_begin(w, NULL);
	json_str(w, "name", r->name);
	if (r->letter)
		json_str(w, "letter", letter);
	if (r->value)
		json_str(w, "value", r->value);
	json_str(w, "help", item->help);
	json_object_end(w);
}

static void json_help(struct json_writer *w, const struct option_set *set, const struct items *l)
{
	json_str(w, "usage", set->usage);
	if (set->after)
		json_str(w, "notes", set->after);
	json_array_begin(w, "options");
	for (unsigned int i = 0; i < l->n; i++)
		if (l->at[i].row->name && l->at[i].help)
			json_row(w, &l->at[i]);
	json_array_end(w);
}

void option_help(const struct option_set *set, FILE *out)
{
	struct items l = { .n = 0 };

	items_add(&l, set->rows, 0);
	if (help_json) {
		json_help(help_json, set, &l);
		return;
	}
	fputs(set->usage, out);
	for (unsigned int i = 0; i < l.n; i++) {
		if (l.at[i].row->kind == OPTION_IS_HEADING)
			fputs(l.at[i].help, out);
		else if (l.at[i].help)
			help_row(out, &l.at[i], set->column ? set->column : OPTION_COLUMN);
	}
	if (set->after)
		fputs(set->after, out);
}
