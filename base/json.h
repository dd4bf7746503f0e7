/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json: writes JSON (RFC 8259) value by value into a buffer. (jansson parses it.)
 *
 * The writer adds commas, quotes keys and escapes strings. A value within an object needs a key; a
 * value within an array, or a top-level value, has the key NULL. Violations of this rule and
 * unmatched ends are bugs of the caller and are asserted. Running out of memory, or nesting deeper
 * than JSON_DEPTH_MAX, sets the buffer's `failed`, which the caller checks once at the end. Not
 * thread-safe: the caller serialises calls on one writer.
 *
 * 	json_open(&w);
 * 	json_put(&w, "samples", n, "partial", is_partial, "percent", json_fixed(2, percent));
 * 	json_array_begin(&w, "names");
 * 	json_str(&w, NULL, name);
 * 	json_array_end(&w);
 * 	return json_close(&w, stdout);
 *
 * A string may hold any bytes. Valid UTF-8 is copied; each byte that is not part of a valid
 * character becomes U+FFFD. Quotes, backslashes and control characters (U+0000 to U+001F, U+007F to
 * U+009F) are escaped, so that the text is safe to show on a terminal.
 */
#ifndef KVMPROF_BASE_JSON_H
#define KVMPROF_BASE_JSON_H

#include "base/buf.h"

#include <stdio.h>

#define JSON_DEPTH_MAX 4096u /* objects and arrays within each other */

struct json_writer {
	struct buf *b;	    /* borrowed, or &own */
	struct buf own;	    /* used after json_open() */
	unsigned int depth; /* number of open objects and arrays */
	bool comma;	    /* the next value needs a comma before it */
	bool line;	    /* the next value begins a line */
	/* One bit for each depth: 1 is an object, 0 an array. */
	uint8_t object[JSON_DEPTH_MAX / 8 + 1];
};

/*
 * Begins a top-level value in b, which must outlive the writer. Bytes that b has already are kept.
 */
void json_begin(struct json_writer *w, struct buf *b);
/*
 * Continues an object that the caller began in b and will end itself: writes further members after
 * those that it has.
 */
void json_begin_members(struct json_writer *w, struct buf *b);
/*
 * Begins an object in a buffer that the writer owns. json_close() frees the buffer; on other paths
 * buf_deinit(&w->own) does.
 */
void json_open(struct json_writer *w);
/*
 * Ends the object of json_open() or json_begin_members(), writes the buffer and a newline to f, and
 * frees the buffer. If f is NULL, it only frees. Returns 0, or -ENOMEM with nothing written. The
 * caller checks ferror(f) for write errors.
 */
int json_close(struct json_writer *w, FILE *f);

/* Begins an object. */
void json_object_begin(struct json_writer *w, const char *key);
/* Ends the innermost object. */
void json_object_end(struct json_writer *w);
/* Begins an array. */
void json_array_begin(struct json_writer *w, const char *key);
/* Ends the innermost array. */
void json_array_end(struct json_writer *w);

/* Writes an integer in decimal. */
void json_u64(struct json_writer *w, const char *key, uint64_t v);
/* Writes an integer in decimal. */
void json_i64(struct json_writer *w, const char *key, int64_t v);
/* Writes true or false. */
void json_bool(struct json_writer *w, const char *key, bool v);
/* Writes the string, or null if s is NULL. */
void json_str(struct json_writer *w, const char *key, const char *s);
/* Writes the string "0x..." in lower case. */
void json_hex(struct json_writer *w, const char *key, uint64_t v);
/* Writes a number formatted by fmt. Infinite values and NaN become null. */
void json_number(struct json_writer *w, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Writes a string formatted by fmt. */
void json_strf(struct json_writer *w, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Writes a value whose text is JSON already. If text is NULL, it sets `failed`: the caller ran out
 * of memory.
 */
void json_raw(struct json_writer *w, const char *key, const char *text);
/* Makes the next value (with its key) or the next end begin on a new line. */
void json_line(struct json_writer *w);

/*
 * A value of one of the kinds above, as an argument of json_put(). Only the union's member for its
 * kind is set.
 */
struct json_value {
	enum {
		JSON_KIND_END, /* terminates an array of members */
		JSON_KIND_U64,
		JSON_KIND_I64,
		JSON_KIND_BOOL,
		JSON_KIND_STR,
		JSON_KIND_HEX,
		JSON_KIND_FIXED,
		JSON_KIND_SHORT
	} kind;
	/* The number of digits of JSON_KIND_FIXED and JSON_KIND_SHORT. */
	int digits;
	union {
		uint64_t u;
		int64_t i;
		double d;
		const char *s;
	};
};

struct json_member {
	const char *key;
	struct json_value value;
};

/* Writes members up to one of JSON_KIND_END. Used by json_put(). */
void json_members(struct json_writer *w, const struct json_member *m);
/* Writes an object of such members. Used by json_put_object(). */
void json_members_object(struct json_writer *w, const char *key, const struct json_member *m);

static inline struct json_value json_of_u64(uint64_t v)
{
	return (struct json_value){ JSON_KIND_U64, .u = v };
}

static inline struct json_value json_of_i64(int64_t v)
{
	return (struct json_value){ JSON_KIND_I64, .i = v };
}

static inline struct json_value json_of_bool(bool v)
{
	return (struct json_value){ JSON_KIND_BOOL, .u = v };
}

static inline struct json_value json_of_str(const char *s)
{
	return (struct json_value){ JSON_KIND_STR, .s = s };
}

static inline struct json_value json_of_value(struct json_value v)
{
	return v;
}

/* Returns the address as a string value "0x...". */
static inline struct json_value json_address(uint64_t v)
{
	return (struct json_value){ JSON_KIND_HEX, .u = v };
}

/* Returns the number with `digits` digits after the point (%.*f). */
static inline struct json_value json_fixed(int digits, double v)
{
	return (struct json_value){ JSON_KIND_FIXED, digits, { .d = v } };
}

/* Returns the number with `digits` significant digits (%.*g). */
static inline struct json_value json_short(int digits, double v)
{
	return (struct json_value){ JSON_KIND_SHORT, digits, { .d = v } };
}

/*
 * json_put(w, key, value, ...) writes 1 to 12 members; json_put_object(w, key, key, value, ...)
 * writes an object of them. A value is an integer, a bool, a string (NULL writes null) or a struct
 * json_value. A plain int does not compile, because comparisons have that type, too: use
 * json_of_i64() or json_of_bool().
 */
#define json_put(w, ...) json_members(w, JSON_MEMBERS(__VA_ARGS__))
#define json_put_object(w, key, ...) json_members_object(w, key, JSON_MEMBERS(__VA_ARGS__))

/* clang-format off */
#define JSON_VALUE(v)                                                                             \
	_Generic((v), bool: json_of_bool, char *: json_of_str, const char *: json_of_str,         \
		 long: json_of_i64, long long: json_of_i64, struct json_value: json_of_value,     \
		 unsigned char: json_of_u64, unsigned short: json_of_u64,                         \
		 unsigned int: json_of_u64, unsigned long: json_of_u64,                           \
		 unsigned long long: json_of_u64)(v)
#define JSON_M1(k, v) { k, JSON_VALUE(v) }
#define JSON_M2(k, v, ...) JSON_M1(k, v), JSON_M1(__VA_ARGS__)
#define JSON_M3(k, v, ...) JSON_M1(k, v), JSON_M2(__VA_ARGS__)
#define JSON_M4(k, v, ...) JSON_M1(k, v), JSON_M3(__VA_ARGS__)
#define JSON_M5(k, v, ...) JSON_M1(k, v), JSON_M4(__VA_ARGS__)
#define JSON_M6(k, v, ...) JSON_M1(k, v), JSON_M5(__VA_ARGS__)
#define JSON_M7(k, v, ...) JSON_M1(k, v), JSON_M6(__VA_ARGS__)
#define JSON_M8(k, v, ...) JSON_M1(k, v), JSON_M7(__VA_ARGS__)
#define JSON_M9(k, v, ...) JSON_M1(k, v), JSON_M8(__VA_ARGS__)
#define JSON_M10(k, v, ...) JSON_M1(k, v), JSON_M9(__VA_ARGS__)
#define JSON_M11(k, v, ...) JSON_M1(k, v), JSON_M10(__VA_ARGS__)
#define JSON_M12(k, v, ...) JSON_M1(k, v), JSON_M11(__VA_ARGS__)
#define JSON_25TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, ...) y
#define JSON_MEMBERS(...)                                                                         \
	(const struct json_member[])                                                              \
	{                                                                                         \
		JSON_25TH(__VA_ARGS__, JSON_M12, x, JSON_M11, x, JSON_M10, x, JSON_M9, x,         \
			  JSON_M8, x, JSON_M7, x, JSON_M6, x, JSON_M5, x, JSON_M4, x, JSON_M3, x, \
			  JSON_M2, x, JSON_M1, x, x)(__VA_ARGS__), { 0 }                          \
	}
/* clang-format on */

#endif
