/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * facts: tables of facts of a run, which are written as lines of text or as members of a JSON object.
 *
 *	FACTS(o, NUM("files", n), NUM("files_beyond", beyond, "{files_beyond} of {files} files have no names"));
 *
 * A fact has a key, a value and perhaps a text. As JSON it is a member of the object that is open. As text, its text
 * is a line of the summary if the value is not zero, or the string not empty. A line with another condition is a
 * LINE, and a value that only texts need is a VAR. Within a text, {key} stands for the value of the fact with this
 * key in the same table:
 *
 *	{key}        the value as it is
 *	{key:3/1e9}  divided by 1e9, with 3 decimals; {key:1} with 1 decimal; {key:g/1e6} in the form %g
 *	{key.p50}    of a histogram: p50, p99, max
 *
 * So one walk of all tables serves both; facts_out says which of the two is written.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_FACTS_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_FACTS_H

#include "base/cleanup.h"
#include "base/hist.h"
#include "base/json.h"

#include <stdio.h>

enum fact_kind { FACT_NUM, FACT_FLAG, FACT_STR, FACT_HEX, FACT_REAL, FACT_TIMES };

struct fact {
	const char *key; /* NULL: a line with its condition */
	enum fact_kind kind;
	bool unless; /* no member of JSON */
	uint64_t u;
	double d;
	int decimals;  /* FACT_REAL: in JSON */
	const char *s; /* NULL: null */
	const struct hist *h;
	const char *text; /* "": none */
};

#define FACT_SHORTEST (-1) /* decimals: as %g */

#define FACT_OF(type, member, when, k, v, ...)                                \
	{                                                                     \
		.key = (k), .kind = (type), .member = (v), .unless = !(when), \
		.text = "" __VA_ARGS__                                        \
	}

/* NUM(key, value, "text"): the text is a literal and may be missing. _IF: a member of JSON under a condition. */
#define NUM_IF(...) FACT_OF(FACT_NUM, u, __VA_ARGS__)
#define FLAG_IF(...) FACT_OF(FACT_FLAG, u, __VA_ARGS__)
#define STR_IF(...) FACT_OF(FACT_STR, s, __VA_ARGS__)
#define NUM(...) NUM_IF(true, __VA_ARGS__)
#define FLAG(...) FLAG_IF(true, __VA_ARGS__)
#define STR(...) STR_IF(true, __VA_ARGS__)
#define HEX(...) FACT_OF(FACT_HEX, u, true, __VA_ARGS__)
#define TIMES(...) FACT_OF(FACT_TIMES, h, true, __VA_ARGS__)
/* A fraction with n decimals, perhaps under a condition; a number or null. */
#define REAL_IF(when, k, n, v)                                                               \
	{                                                                                    \
		.key = (k), .kind = FACT_REAL, .d = (v), .decimals = (n), .unless = !(when), \
		.text = ""                                                                   \
	}
#define REAL(...) REAL_IF(true, __VA_ARGS__)
#define MAYBE(k, have, v) FACT_OF((have) ? FACT_NUM : FACT_STR, u, true, k, v)
/* Values that only texts need, with a type each; a condition with its line. */
#define VAR(...) NUM_IF(false, __VA_ARGS__)
#define VARS(...) STR_IF(false, __VA_ARGS__)
#define VARD(k, v) REAL_IF(false, k, 0, v)
#define VART(...) FACT_OF(FACT_TIMES, h, false, __VA_ARGS__)
#define LINE(when, line) FACT_OF(FACT_FLAG, u, true, NULL, when, line)

/* Where the facts go: one of the two is NULL, or both. */
struct facts_out {
	FILE *text;
	struct json_writer *json;
};

/* Writes a table of n facts. Asserts that its texts name no other keys. */
void facts_write(const struct facts_out *o, const struct fact *f, size_t n);
#define FACTS(o, ...)                                        \
	facts_write(o, (const struct fact[]){ __VA_ARGS__ }, \
		    sizeof((const struct fact[]){ __VA_ARGS__ }) / sizeof(struct fact))
/* Writes a table as an object of its own; key NULL within an array. */
#define FACTS_OBJECT(o, key, ...) (facts_object(o, key), FACTS(o, __VA_ARGS__), facts_object_end(o))

/* Begins and ends an object or an array, where JSON is written; key NULL within an array. */
void facts_object(const struct facts_out *o, const char *key);
void facts_object_end(const struct facts_out *o);
void facts_array(const struct facts_out *o, const char *key);
void facts_array_end(const struct facts_out *o);

/* Ends the string in b and returns it, for a fact; "" if memory lacked. Valid as long as b. */
const char *facts_string(struct buf *b);

#endif
