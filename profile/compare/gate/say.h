/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_say: the numbers of a gate as words, the same in all of its reports.
 *
 * Texts are cut at the end of their buffer, always terminated, and of one line.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_SAY_H
#define KVMPROF_PROFILE_COMPARE_GATE_SAY_H

#include "profile/compare/gate/gate.h"

#define GATE_CELL 64	   /* bytes of a cell of a table */
#define GATE_SENTENCE 2048 /* bytes of a text that one of these functions fills */

/* A row of a table: a rule's number, or a function. */
struct gate_cells {
	char base[GATE_CELL], head[GATE_CELL];
	char change[GATE_CELL];	  /* "+1.17 points"; "" when nothing was compared */
	char interval[GATE_CELL]; /* "+1.05 .. +1.30"; "" with one run a side */
	char p[GATE_CELL];	  /* "p 0.0001", of a function "q 0.002" */
	char seen[GATE_CELL];	  /* "0.4 points", or "none" */
};

void gate_say_cells(struct gate_cells *out, const struct gate_rule *r,
		    const struct gate_finding *f);

/* "12.34 %", "1.234 s", "1200 /s", "1.5 MiB", "42" */
void gate_say_value(char *out, size_t size, enum gate_rule_dimension d, double v);
/* A change is "+5.20 %", "+0.40 points" or "+12.1 ms", a size "5.2 %". */
enum gate_effect_is { GATE_EFFECT_IS_CHANGE, GATE_EFFECT_IS_SIZE };
void gate_say_effect(char *out, size_t size, const struct stats_rule *stats,
		     enum gate_rule_dimension d, double effect, enum gate_effect_is what);
/* "2 % and at least 5 ms more" */
void gate_say_threshold(char *out, size_t size, const struct gate_rule *r);

/*
 * "head does 51.3 % less work from /init on (1200 instructions, base 2464)": of two commands; "" else. It is what the
 * rules of functions do not say, where functions differ.
 */
void gate_say_work(char *out, size_t size, const struct gate_report *r);
/* "FAIL: 1 of 4 rules failed, 1 warned, 1 inconclusive" */
void gate_say_verdict(char *out, size_t size, const struct gate_report *r);
/* "10 runs of the base, 10 of the head, compared in 10 pairs; ..." */
void gate_say_design(char *out, size_t size, const struct gate_report *r);
/*
 * "runs of one side differ by 4.9 % (functions, left_leaf) and the threshold is 2 %: 62 runs a side would suffice, and
 * there are 10"; "" if noise is not why the gate is inconclusive.
 */
void gate_say_noise(char *out, size_t size, const struct gate_report *r);
/* Says what differs in how the runs were made, or that a run is on both sides; "": nothing. */
void gate_say_means(char *out, size_t size, const struct gate_report *r);
/* Writes the result of a rule with its numbers; for a family, its first findings by name. */
void gate_say_outcome(char *out, size_t size, const struct gate_outcome *o);
/*
 * "with these 10 runs a side a change of 0.4 points would be seen 90 % of the time"; of a family in
 * the function where it is largest. "" when nothing was compared.
 */
void gate_say_power(char *out, size_t size, const struct gate_report *r,
		    const struct gate_outcome *o);
/* Says what to know beside a verdict (outliers, an improvement), from the flags; "": nothing. */
void gate_say_notes(char *out, size_t size, const struct gate_finding *f);

/* "foo went, foo_renamed came: 25.1 % -> 25.2 % by itself": a function that was renamed, inlined or split. */
void gate_say_relation(char *out, size_t size, const struct gate_report *r,
		       const struct gate_relation *x);

/* A function with its DSO, if that is not the kernel: "read (libc.so.6)" */
void gate_say_function(char *out, size_t size, const struct gate_finding *f);

/* "pass", or "better" */
const char *gate_finding_word(const struct gate_outcome *o, const struct gate_finding *f);

#endif
