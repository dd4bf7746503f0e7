/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * option: a command's options as one table, which gives the parser and the text of --help.
 *
 *	#define OPTION_STRUCT struct options
 *	static const struct option_row rows[] = {
 *		{ "output", 'o', "FILE", "where to", OPTION_TEXT(output) },
 *		{ "top", 'n', "N", "rows to show", OPTION_WHOLE(top, 0, ULONG_MAX, "a number") },
 *		{ "json", 0, NULL, "one JSON object", OPTION_PUT(json, true) },
 *		OPTION_HELP,
 *		{ 0 }
 *	};
 *
 * Strings are the command line's, which outlives the options. Main thread: getopt's variables
 * are used.
 */
#ifndef KVMPROF_BASE_OPTION_H
#define KVMPROF_BASE_OPTION_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
	OPTION_IS_END, /* of the table */
	OPTION_IS_HEADING,
	OPTION_IS_HELP,
	OPTION_IS_PUT,	   /* a constant, to a bool or an enum */
	OPTION_IS_TEXT,	   /* const char * */
	OPTION_IS_REAL,	   /* double */
	OPTION_IS_SECONDS, /* double; a unit may follow the number: number_seconds() */
	OPTION_IS_WHOLE,   /* an unsigned integer of 4 or 8 bytes, or int64_t */
	OPTION_IS_SIZE,	   /* uint64_t, bytes */
	OPTION_IS_WORD,	   /* index of one of some words, to a bool or an enum */
	OPTION_IS_CALL,
	OPTION_IS_ROWS, /* another table's rows stand here */
	OPTION_IS_AS,	/* the row of the same name of another table */
};

/*
 * at: the structure that the rows are about, or the member that the row names. arg: NULL when
 * there is none; may be changed. Returns 0; -errno with e recorded, or without when the row's
 * `expected` says it all; more than 1 to end at once, which option_parse() returns.
 */
typedef int option_call(void *at, char *arg, struct err *e);

struct option_row {
	const char *name;  /* without dashes */
	char letter;	   /* 0: none */
	const char *value; /* as --help shows it; NULL: takes none; "[=X]": may be left out */
	const char *help;  /* text may have several lines; NULL: not shown */
	enum option_kind kind;
	bool next; /* the value may be left out before an option and at the end */
	size_t offset, size;
	uint64_t from, to; /* of a whole number or a size; `from`: the constant */
	double min, max;
	const char *const *words; /* up to NULL */
	const char *expected;	  /* of a text: it must not be empty */
	option_call *call;
	const struct option_row *rows;
};

#define OPTION_OFFSET(m) \
	.offset = offsetof(OPTION_STRUCT, m), .size = sizeof(((OPTION_STRUCT *)0)->m)
/* The same; does not compile unless the member has this type. */
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
#define OPTION_WHOLE(m, least, most, what) \
	.kind = OPTION_IS_WHOLE, OPTION_OFFSET(m), .from = least, .to = most, .expected = (what)
#define OPTION_SIZE(m, least, most, what)                                              \
	.kind = OPTION_IS_SIZE, OPTION_MEMBER(m, uint64_t), .from = least, .to = most, \
	.expected = (what)
#define OPTION_WORD(m, list) .kind = OPTION_IS_WORD, OPTION_OFFSET(m), .words = (list)
#define OPTION_CALL(function, what) .kind = OPTION_IS_CALL, .call = (function), .expected = (what)
#define OPTION_CALL_AT(function, m, what) OPTION_CALL(function, what), OPTION_OFFSET(m)

/* Whole rows. A heading is printed as it is. */
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
/* With its own text, or with text NULL that of the other table. */
#define OPTION_AS(word, text, table, m)                                                       \
	{                                                                                     \
		word, .help = (text), .kind = OPTION_IS_AS, .rows = (table), OPTION_OFFSET(m) \
	}

/* An option of another program, and what to write here instead. */
struct option_habit {
	const char *typed;   /* with its dashes; NULL: the end */
	const char *instead; /* a clause */
};

#define OPTION_MAX 128u	  /* rows of a command */
#define OPTION_COLUMN 25u /* of the texts in --help, when a set does not say */

enum option_order {
	OPTION_ANYWHERE, /* words and options in any order */
	OPTION_FIRST,	 /* the first word ends the options */
	OPTION_ALONE,	 /* there are no words */
};

struct option_set {
	const char *usage; /* of --help: what stands above the options */
	const char *after; /* and below; NULL: nothing */
	const struct option_row *rows;
	unsigned int column; /* where the texts of --help begin; 0: OPTION_COLUMN */
	const char *hint;    /* where an unknown option may belong, and it is said again; or NULL */
	const struct option_habit *habits; /* NULL: none */
	enum option_order order;
	/* Called before each option that is taken; NULL: not. */
	void (*seen)(void *at, const struct option_row *row);
	/* Takes each word that is no option; NULL: they are left for the caller, from optind on. */
	option_call *word;
};

#define OPTION_ASKED_HELP 1

/*
 * All options into `at`, what the set's rows are about. Returns 0; -errno with e recorded;
 * OPTION_ASKED_HELP; or what a row's function has returned. e is not NULL; its text has no control
 * characters.
 */
int option_parse(const struct option_set *set, void *at, int argc, char **argv, struct err *e);

/* The text of --help. */
void option_help(const struct option_set *set, FILE *out);

#endif
