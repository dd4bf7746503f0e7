/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * option: describes the options of a command in one table, from which it parses the command line
 * and prints --help.
 *
 * 	#define OPTION_STRUCT struct options
 * 	static const struct option_row rows[] = {
 * 		{ "output", 'o', "FILE", "where to", OPTION_TEXT(output) },
 * 		{ "top", 'n', "N", "rows to show", OPTION_WHOLE(top, 0, ULONG_MAX, "a number") },
 * 		{ "json", 0, NULL, "one JSON object", OPTION_PUT(json, true) },
 * 		OPTION_HELP,
 * 		{ 0 }
 * 	};
 *
 * Stored strings point into argv, which must outlive the options. Only the main thread may call
 * these functions, because they use the variables of getopt(3).
 */
#ifndef KVMPROF_BASE_OPTION_H
#define KVMPROF_BASE_OPTION_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
	OPTION_IS_END, /* end of the table */
	OPTION_IS_HEADING,
	OPTION_IS_HELP,
	OPTION_IS_PUT,	/* stores a constant in a bool or an enum */
	OPTION_IS_TEXT, /* const char * */
	OPTION_IS_REAL, /* double */
	/* Double, in seconds; a unit may follow the number, see number_seconds(). */
	OPTION_IS_SECONDS,
	OPTION_IS_HZ,	 /* double, a frequency: see number_hz() */
	OPTION_IS_WHOLE, /* an unsigned integer of 4 or 8 bytes, or int64_t */
	OPTION_IS_SIZE,	 /* uint64_t, bytes */
	OPTION_IS_WORD,	 /* the index of one of several words, stored in a bool or an enum */
	/* Calls a function. */
	OPTION_IS_CALL,
	OPTION_IS_ROWS, /* includes all rows of another table */
	OPTION_IS_AS,	/* refers to the row of the same name in another table */
};

/*
 * Handles an option or a word. `at` is the structure that the rows describe, or the member that the
 * row names. `arg` is NULL if there is no value; the function may change it. Returns 0; -errno with
 * *e recorded, or without if the row's `expected` is a sufficient message; or a value above 1 to
 * stop parsing, which option_parse() then returns.
 */
typedef int option_call(void *at, char *arg, struct err *e);

struct option_row {
	const char *name;  /* without dashes */
	char letter;	   /* 0: no short form */
	const char *value; /* as --help shows it; NULL: takes none; "[=X]": may be omitted */
	const char *help;  /* may have several lines; NULL: --help does not show the option */
	enum option_kind kind;
	bool next; /* the value may be omitted before another option and at the end */
	/* Place and size of the member in bytes. */
	size_t offset, size;
	/* Range of a whole number or a size; `from` is also the constant of PUT. */
	uint64_t from, to;
	/* The range of a REAL, SECONDS or HZ value. */
	double min, max;
	const char *const *words; /* terminated by NULL */
	/* Completes the error message "expected ..."; for TEXT: the value must not be empty. */
	const char *expected;
	/* OPTION_IS_CALL: the function. */
	option_call *call;
	/* OPTION_IS_ROWS, OPTION_IS_AS: the other table. */
	const struct option_row *rows;
};

#define OPTION_OFFSET(m) \
	.offset = offsetof(OPTION_STRUCT, m), .size = sizeof(((OPTION_STRUCT *)0)->m)
/* Like OPTION_OFFSET(), and compiles only if the member has this type. */
#define OPTION_MEMBER(m, type)                                                               \
	.offset = offsetof(OPTION_STRUCT, m),                                                \
	.size = sizeof(                                                                      \
		type[__builtin_types_compatible_p(__typeof__(((OPTION_STRUCT *)0)->m), type) \
			     ? 1                                                             \
			     : -1])

#define OPTION_PUT(m, constant) .kind = OPTION_IS_PUT, OPTION_OFFSET(m), .from = (constant)
#define OPTION_TEXT(m) .kind = OPTION_IS_TEXT, OPTION_MEMBER(m, const char *)
#define OPTION_TEXT_OF(m, what) OPTION_TEXT(m), .expected = (what)
#define OPTION_REAL(m, least, most, what)                                            \
	.kind = OPTION_IS_REAL, OPTION_MEMBER(m, double), .min = least, .max = most, \
	.expected = (what)
#define OPTION_SECONDS(m, least, most, what)                                            \
	.kind = OPTION_IS_SECONDS, OPTION_MEMBER(m, double), .min = least, .max = most, \
	.expected = (what)
#define OPTION_HZ(m, least, most, what)                                            \
	.kind = OPTION_IS_HZ, OPTION_MEMBER(m, double), .min = least, .max = most, \
	.expected = (what)
#define OPTION_WHOLE(m, least, most, what) \
	.kind = OPTION_IS_WHOLE, OPTION_OFFSET(m), .from = least, .to = most, .expected = (what)
#define OPTION_SIZE(m, least, most, what)                                              \
	.kind = OPTION_IS_SIZE, OPTION_MEMBER(m, uint64_t), .from = least, .to = most, \
	.expected = (what)
#define OPTION_WORD(m, list) .kind = OPTION_IS_WORD, OPTION_OFFSET(m), .words = (list)
#define OPTION_CALL(function, what) .kind = OPTION_IS_CALL, .call = (function), .expected = (what)
#define OPTION_CALL_AT(function, m, what) OPTION_CALL(function, what), OPTION_OFFSET(m)

/* Complete rows. A heading is printed as it is. */
#define OPTION_HEADING(text)                            \
	{                                               \
		.kind = OPTION_IS_HEADING, .help = text \
	}
#define OPTION_HELP                                                    \
	{                                                              \
		"help", 'h', NULL, "this text", .kind = OPTION_IS_HELP \
	}
#define OPTION_ROWS(table, m)                                             \
	{                                                                 \
		.kind = OPTION_IS_ROWS, .rows = (table), OPTION_OFFSET(m) \
	}
/* A row of another table, with its own help text; text NULL uses the text of that table. */
#define OPTION_AS(word, text, table, m)                                                       \
	{                                                                                     \
		word, .help = (text), .kind = OPTION_IS_AS, .rows = (table), OPTION_OFFSET(m) \
	}

/* An option that another program has, and the advice for users who type it. */
struct option_habit {
	const char *typed;   /* with its dashes, "-smp" or "--cpus"; NULL: end of the array */
	const char *instead; /* a clause that says what to write instead */
};

#define OPTION_MAX 128u	  /* maximum number of rows of a command */
#define OPTION_COLUMN 25u /* column of the texts in --help, unless the set has another */

enum option_order {
	OPTION_ANYWHERE, /* words and options may come in any order */
	OPTION_FIRST,	 /* the first word ends the options */
	OPTION_ALONE,	 /* no words are allowed */
};

struct option_set {
	const char *usage; /* text of --help before the options */
	const char *after; /* text of --help after the options; NULL: none */
	const struct option_row *rows;
	unsigned int column; /* column of the texts in --help; 0: OPTION_COLUMN */
	/* Advice about an unknown option, which is repeated after it; NULL: none. */
	const char *hint;
	const struct option_habit *habits; /* NULL: none */
	enum option_order order;
	/* Called before each option that is handled; NULL: nothing is called. */
	void (*seen)(void *at, const struct option_row *row);
	/* Handles each word that is not an option; NULL: the words stay in argv from optind on. */
	option_call *word;
};

/* option_parse() met --help, and the caller prints it with option_help(). */
#define OPTION_ASKED_HELP 1

/*
 * Parses all options into `at`, the structure that the set's rows describe. Returns 0; -errno with
 * *e recorded; OPTION_ASKED_HELP; or a value above 1 from a row's function. e must not be NULL; its
 * text has no control characters.
 */
int option_parse(const struct option_set *set, void *at, int argc, char **argv, struct err *e);

/* Prints the text of --help to `out`. The caller checks ferror(out). */
void option_help(const struct option_set *set, FILE *out);

struct json_writer;
/*
 * Makes option_help() write to w instead, which is borrowed: the members "usage", "notes" (the text
 * after the options, if there is any) and "options", an array of objects with "name", "letter",
 * "value" and "help". NULL: option_help() prints text again.
 */
void option_help_as_json(struct json_writer *w);

#endif
