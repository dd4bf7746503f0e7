/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_text: formats the numbers of a gate as text, the same in all of its reports.
 *
 * Each function writes one line to out, which has `size` bytes: truncated if it is too long, always
 * NUL-terminated. No errors; any thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_TEXT_H
#define KVMPROF_PROFILE_COMPARE_GATE_TEXT_H

#include "profile/compare/gate/gate.h"

#define GATE_CELL 64	   /* bytes of a cell of a table */
#define GATE_SENTENCE 2048 /* bytes of a text that one of these functions fills */

/* The cells of a table's row: a rule's number, or a function. */
struct gate_cells {
	char base[GATE_CELL], head[GATE_CELL];
	char change[GATE_CELL];	  /* "+1.17 points"; "" if nothing was compared */
	char interval[GATE_CELL]; /* "+1.05 .. +1.30"; "" with one run of each side */
	char p[GATE_CELL];	  /* "p 0.0001", for a function "q 0.002" */
	char seen[GATE_CELL];	  /* "0.4 points", or "none" */
};

/* Fills *out for a finding of a rule. */
void gate_text_cells(struct gate_cells *out, const struct gate_rule *r,
		     const struct gate_finding *f);

/* Writes a value with its unit: "12.34 %", "1.234 s", "1200 /s", "1.5 MiB", "42". */
void gate_text_value(char *out, size_t size, enum gate_rule_dimension d, double v);
/*
 * A change has a sign, e.g. "+5.20 %", "+0.40 points" or "+12.1 ms"; a size has none, e.g. "5.2 %".
 */
enum gate_effect_is { GATE_EFFECT_IS_CHANGE, GATE_EFFECT_IS_SIZE };
/* Writes an effect, which is in the rule's unit, for values of dimension d. */
void gate_text_effect(char *out, size_t size, const struct stats_rule *stats,
		      enum gate_rule_dimension d, double effect, enum gate_effect_is what);
/* Writes the rule's threshold: "2 % and at least 5 ms more". */
void gate_text_threshold(char *out, size_t size, const struct gate_rule *r);

/*
 * Writes "head does 51.3 % less work from /init on (1200 instructions, base 2464)" if r->work is
 * known, else "". Rules on functions do not show this if the commands have different functions.
 */
void gate_text_work(char *out, size_t size, const struct gate_report *r);
/* Writes the verdict: "FAIL: 1 of 4 rules failed, 1 warned, 1 inconclusive". */
void gate_text_verdict(char *out, size_t size, const struct gate_report *r);
/* Writes the design: "10 runs of the base, 10 of the head, compared in 10 pairs; ...". */
void gate_text_design(char *out, size_t size, const struct gate_report *r);
/*
 * Writes "runs of one side differ by 4.9 % (functions, left_leaf) and the threshold is 2 %: 62 runs
 * a side would suffice, and there are 10"; "" if noise is not the reason for an inconclusive gate.
 */
void gate_text_noise(char *out, size_t size, const struct gate_report *r);
/*
 * Writes the differences in how the runs were made, and whether a run is on both sides; "": none.
 */
void gate_text_means(char *out, size_t size, const struct gate_report *r);
/* Writes the result of a rule with its numbers; for a family, its first findings by name. */
void gate_text_outcome(char *out, size_t size, const struct gate_outcome *o);
/*
 * Writes "with these 10 runs a side a change of 0.4 points would be seen 90 % of the time", for a
 * family the largest such change of its functions; "" if nothing was compared.
 */
void gate_text_power(char *out, size_t size, const struct gate_report *r,
		     const struct gate_outcome *o);
/* Writes remarks on the result from its flags (outliers, an improvement); "": none. */
void gate_text_notes(char *out, size_t size, const struct gate_finding *f);

/*
 * Writes how a function was renamed, inlined or split: "foo went, foo_renamed came: 25.1 % -> 25.2
 * % by itself".
 */
void gate_text_relation(char *out, size_t size, const struct gate_report *r,
			const struct gate_relation *x);

/* Writes a function with its DSO, if that is not the kernel: "read (libc.so.6)". */
void gate_text_function(char *out, size_t size, const struct gate_finding *f);

/* Returns "fail", "warn", "inconclusive", "better" or "pass", a constant. */
const char *gate_finding_word(const struct gate_outcome *o, const struct gate_finding *f);

#endif
