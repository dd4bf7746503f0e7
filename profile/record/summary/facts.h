/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * facts: tables of facts about a run, which are written as lines of text or as members of a JSON
 * object.
 *
 *   FACTS(o, NUM("files", n),
 *         NUM("files_beyond", beyond, "{files_beyond} of {files} files have no names"));
 *
 * A fact has a key, a value and optionally a text. As JSON it is a member of the object that is
 * open. As text, its text is a line of the summary if the value is not zero, or the string not
 * empty. A line with another condition is a LINE, and a value that only texts need is a VAR. Within
 * a text, {key} stands for the value of the fact with this key in the same table:
 *
 *   {key}        the value as it is
 *   {key:3/1e9}  divided by 1e9, with 3 decimals; {key:1} with 1 decimal; {key:g/1e6} as %g
 *   {key.p50}    of a histogram: p50, p99, max
 *
 * One walk of all tables serves both formats; facts_out determines which one is written. Not
 * thread-safe: one thread uses a facts_out.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_FACTS_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_FACTS_H

#include "base/cleanup.h"
#include "base/hist.h"
#include "base/json.h"

#include <stdio.h>

enum fact_kind { FACT_NUM, FACT_FLAG, FACT_STR, FACT_HEX, FACT_REAL, FACT_TIMES };

struct fact {
	const char *key; /* NULL: a LINE with its condition */
	enum fact_kind kind;
	bool unless; /* not a member of the JSON object */
	uint64_t u;
	double d;
	int decimals;  /* FACT_REAL: number of decimals in JSON */
	const char *s; /* NULL: null in JSON */
	const struct hist *h;
	const char *text; /* "": no line */
};

#define FACT_SHORTEST (-1) /* a value of `decimals`: the form %g */

#define FACT_OF(type, member, when, k, v, ...)                                \
	{                                                                     \
		.key = (k), .kind = (type), .member = (v), .unless = !(when), \
		.text = "" __VA_ARGS__                                        \
	}

/*
 * NUM(key, value, "text"): the text is a literal and may be missing. _IF: a member of JSON only
 * under a condition.
 */
#define NUM_IF(...) FACT_OF(FACT_NUM, u, __VA_ARGS__)
#define FLAG_IF(...) FACT_OF(FACT_FLAG, u, __VA_ARGS__)
#define STR_IF(...) FACT_OF(FACT_STR, s, __VA_ARGS__)
#define NUM(...) NUM_IF(true, __VA_ARGS__)
#define FLAG(...) FLAG_IF(true, __VA_ARGS__)
#define STR(...) STR_IF(true, __VA_ARGS__)
#define HEX(...) FACT_OF(FACT_HEX, u, true, __VA_ARGS__)
#define TIMES(...) FACT_OF(FACT_TIMES, h, true, __VA_ARGS__)
/* REAL: a fraction with n decimals. MAYBE: a number, or null if `have` is false. */
#define REAL_IF(when, k, n, v)                                                               \
	{                                                                                    \
		.key = (k), .kind = FACT_REAL, .d = (v), .decimals = (n), .unless = !(when), \
		.text = ""                                                                   \
	}
#define REAL(...) REAL_IF(true, __VA_ARGS__)
#define MAYBE(k, have, v) FACT_OF((have) ? FACT_NUM : FACT_STR, u, true, k, v)
/* VAR, VARS, VARD, VART: values that only texts need, by type. LINE: a line with its condition. */
#define VAR(...) NUM_IF(false, __VA_ARGS__)
#define VARS(...) STR_IF(false, __VA_ARGS__)
#define VARD(k, v) REAL_IF(false, k, 0, v)
#define VART(...) FACT_OF(FACT_TIMES, h, false, __VA_ARGS__)
#define LINE(when, line) FACT_OF(FACT_FLAG, u, true, NULL, when, line)

/* Where the facts are written. One member or both are NULL. */
struct facts_out {
	FILE *text;
	struct json_writer *json;
};

/* Writes a table of n facts. Asserts that its texts contain only keys of the table. */
void facts_write(const struct facts_out *o, const struct fact *f, size_t n);
#define FACTS(o, ...)                                        \
	facts_write(o, (const struct fact[]){ __VA_ARGS__ }, \
		    sizeof((const struct fact[]){ __VA_ARGS__ }) / sizeof(struct fact))
/* Writes a table as a JSON object of its own; key is NULL within an array. */
#define FACTS_OBJECT(o, key, ...) (facts_object(o, key), FACTS(o, __VA_ARGS__), facts_object_end(o))

/* Begin and end an object or an array if JSON is written; key is NULL within an array. */
void facts_object(const struct facts_out *o, const char *key);
void facts_object_end(const struct facts_out *o);
void facts_array(const struct facts_out *o, const char *key);
void facts_array_end(const struct facts_out *o);

/*
 * Terminates the string in b and returns it, for a fact; "" if memory was exhausted. Valid as long
 * as b.
 */
const char *facts_string(struct buf *b);

#endif
