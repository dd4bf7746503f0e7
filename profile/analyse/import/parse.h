/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * import_parse: shared by the parsers of stacks in text form.
 *
 * A parser import_X(text, fn, ctx, stats, e) calls fn(ctx, sample) for each stack that it
 * recognises; the sample and its strings are valid during that call only. Other lines are skipped
 * and counted in *stats, which the parser zeroes first (import_iprof() adds to it instead). The
 * result is 0; the error of fn, which ends the parse; -ENODATA if there is no stack; or -ENOMEM.
 * The reason is in e. The parsers do no I/O and keep no state; any thread may call them.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_IMPORT_PARSE_H
#define KVMPROF_PROFILE_ANALYSE_IMPORT_PARSE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define IMPORT_MAX_BYTES (4ull << 30)
#define IMPORT_MAX_FRAMES 1024u /* maximum frames of one stack; further outer frames are dropped */
#define IMPORT_MAX_WEIGHT (1ull << 53) /* maximum count of a stack; larger numbers are not counts */
/* maximum period of a sample of perf: no counter counts further */
#define IMPORT_MAX_PERIOD ((1ull << 63) - 1)
/* characters of a task's name; the kernel's TASK_COMM_LEN without the NUL */
#define IMPORT_MAX_COMM 15u
#define IMPORT_MAX_TIME_S (1ull << 33) /* 272 years */
#define IMPORT_MAX_TOKENS 64u	       /* maximum number of words examined in a line */

/* A part of the text, not terminated. */
struct import_text {
	const char *s;
	size_t len;
};

static inline bool import_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Returns t without the blanks at both ends. */
static inline struct import_text import_trim(struct import_text t)
{
	while (t.len && import_is_blank(t.s[0]))
		t = (struct import_text){ t.s + 1, t.len - 1 };
	while (t.len && import_is_blank(t.s[t.len - 1]))
		t.len--;
	return t;
}

static inline bool import_begins(struct import_text t, const char *s)
{
	return t.len >= strlen(s) && !memcmp(t.s, s, strlen(s));
}

static inline bool import_equals(struct import_text t, const char *s)
{
	return t.len == strlen(s) && import_begins(t, s);
}

/* Stores a number of 1 to 16 hexadecimal digits in *out. Returns false for any other text. */
static inline bool import_hexadecimal(struct import_text t, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < t.len; i++) {
		char c = t.s[i], low = (char)(c | 0x20);

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (low >= 'a' && low <= 'f')
			v = v << 4 | (uint64_t)(low - 'a' + 10);
		else
			return false;
	}
	*out = v;
	return t.len > 0 && t.len <= 16;
}

/* Stores a decimal number of at most `most` in *out. Returns false for any other text. */
static inline bool import_decimal(struct import_text t, uint64_t most, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < t.len; i++) {
		if (t.s[i] < '0' || t.s[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(t.s[i] - '0'), &v) || v > most)
			return false;
	}
	*out = v;
	return t.len > 0;
}

#define IMPORT_JIT_DSO "[jit]" /* the DSO of generated code, which has no file */

struct import_frame {
	struct import_text name; /* len 0: no name */
	struct import_text dso;	 /* len 0: not in the text */
	uint64_t addr, off;	 /* address, and offset in the function; 0: not in the text */
	uint64_t size;		 /* bytes of the function; 0: not in the text */
	bool kernel;
	bool name_coded, dso_coded; /* encoded as in coded.h */
	/* addr is the place in the DSO, from the start of the file or of the kernel's map */
	bool placed;
};

struct import_sample {
	struct import_text comm, event; /* len 0: not in the text */
	uint32_t pid, tid, cpu;
	bool has_task, has_time;
	uint64_t time_ns;
	uint64_t weight;		  /* 0 for a sample of perf whose counter did not advance */
	const struct import_frame *frame; /* n frames, innermost first */
	uint32_t n;			  /* at least 1 */
};

struct import_stats {
	uint64_t samples;
	uint64_t ignored, first_ignored; /* lines without meaning; number of the first one */
	uint64_t dropped;		 /* frames beyond IMPORT_MAX_FRAMES */
	uint64_t bare;			 /* samples without a stack, which are omitted */
	/* samples with a period above IMPORT_MAX_PERIOD, whose weight is set to 1 */
	uint64_t broken;
};

/* Counts a line without meaning. */
static inline void import_ignore(struct import_stats *stats, uint64_t number)
{
	stats->ignored++;
	stats->first_ignored = stats->first_ignored ? stats->first_ignored : number;
}

/* Receives a sample. Returns 0, or an error that ends the parse. */
typedef int (*import_fn)(void *ctx, const struct import_sample *s);

#endif
