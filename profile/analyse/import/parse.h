/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * import_parse: stacks as text, from other tools.
 *
 * Both parsers call fn for each stack that they understand; what it is given points
 * into the text, or lives for the call only. Lines that are no stack are skipped and
 * counted. No I/O, one thread. fn's failure ends the parse and is returned.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_IMPORT_PARSE_H
#define KVMPROF_PROFILE_ANALYSE_IMPORT_PARSE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMPORT_MAX_BYTES (4ull << 30)
#define IMPORT_MAX_FRAMES 1024u	       /* of one stack; the outer ones are dropped */
#define IMPORT_MAX_WEIGHT (1ull << 53) /* of one stack; more is no number of ours */
#define IMPORT_MAX_TIME_S (1ull << 33) /* 272 years */
#define IMPORT_MAX_TOKENS 64u	       /* words of a line that are looked at */

/* Not terminated. */
struct import_text {
	const char *s;
	size_t len;
};

struct import_frame {
	struct import_text name; /* len 0: it has none */
	struct import_text dso;	 /* len 0: not told */
	uint64_t addr, off;	 /* 0: not told */
	bool kernel;
};

struct import_sample {
	struct import_text comm, event; /* len 0: not told */
	uint32_t pid, tid, cpu;
	bool has_task, has_time;
	uint64_t time_ns;
	uint64_t weight;
	const struct import_frame *frame; /* innermost first */
	uint32_t n;			  /* at least 1 */
};

struct import_stats {
	uint64_t samples;
	uint64_t ignored, first_ignored; /* lines that say nothing; number of the first */
	uint64_t dropped;		 /* frames beyond IMPORT_MAX_FRAMES */
	uint64_t bare;			 /* samples without a stack, which are left out */
};

typedef int (*import_fn)(void *ctx, const struct import_sample *s);

/*
 * Folded stacks, as FlameGraph's stackcollapse scripts write them.
 *
 *	line  = frame *( ";" frame ) 1*SP count NL	outermost first
 *	count = digits [ "." digits ]			rounded
 *	frame = any text without ";" that may end in "_[k]" (kernel), "_[i]" (inlined),
 *		"_[j]" (JIT) or "_[w]" (waker), which are taken off
 *
 * IMPORT_FIRST_IS_COMM: the first frame is the task's name, as stackcollapse-perf.pl has it,
 * and may end in "-PID/TID".
 */
enum import_first { IMPORT_FIRST_IS_FRAME, IMPORT_FIRST_IS_COMM };
int import_folded(struct import_text text, enum import_first first, import_fn fn, void *ctx,
		  struct import_stats *stats, struct err *e);

/*
 * What `perf script` and `kvmprof script` print.
 *
 *	sample = head NL *( frame NL ) NL
 *	head   = comm [ pid "/" ] tid [ "[" cpu "]" ] seconds "." fraction ":"
 *		 [ period ] [ event ":" ] [ frame ]	comm may have spaces
 *	frame  = address SP ( symbol [ "+0x" offset ] | "[unknown]" ) [ SP "(" dso ")" ]
 *
 * Source: tools/perf/builtin-script.c and perf-script(1). Frames whose DSO is
 * "inlined" belong to that of the next one out.
 */
int import_script(struct import_text text, import_fn fn, void *ctx, struct import_stats *stats,
		  struct err *e);

#endif
