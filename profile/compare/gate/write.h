/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_write: a gate's report for people and for programs, appended to a buffer.
 *
 * Every format is a function of the report: the same one gives the same bytes. Names come out
 * of profiles; each format quotes them by its own rules.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_WRITE_H
#define KVMPROF_PROFILE_COMPARE_GATE_WRITE_H

#include "base/buf.h"
#include "profile/compare/gate/gate.h"

#define GATE_SHOWN_WORSE 20u /* functions of a rule in tables; JSON has all */
#define GATE_SHOWN_UNSURE 3u

struct gate_write_options {
	const char *flamegraph; /* link to the picture of the difference; NULL: none */
};

/* -ENOMEM. */
typedef int gate_write_fn(struct buf *out, const struct gate_report *r,
			  const struct gate_write_options *opt, struct err *e);

/* A table and what it means, for a terminal. */
gate_write_fn gate_write_text;
/* For a comment on a pull request: GitHub's and GitLab's dialect. */
gate_write_fn gate_write_markdown;
/*
 * <testsuites>, as Jenkins and GitLab read them: a rule is a test case; what is inconclusive is an
 * error of level fail, and skipped of level warn.
 */
gate_write_fn gate_write_junit;
/* A badge: a small picture with the verdict, as SVG. */
gate_write_fn gate_write_badge;
/* GitHub's workflow commands: ::error, ::warning and ::notice lines. */
gate_write_fn gate_write_github;

struct gate_format {
	const char *name;
	gate_write_fn *write;
};

/* "text", "markdown", "junit", "sarif", "github", "json", "badge"; NULL: none of this name. */
const struct gate_format *gate_format_find(const char *name);

/* -- where reports go ------------------------------------------------------------------------- */

#define GATE_MAX_OUTPUTS 16u

struct gate_outputs {
	struct {
		gate_write_fn *write;
		const char *path; /* borrowed; "-" is standard output */
	} to[GATE_MAX_OUTPUTS];
	unsigned int n;
	const char *flamegraph; /* file of the picture of the difference; NULL: none */
	const char *link;	/* what reports call it; NULL: the file's name */
};

/* -E2BIG: more than GATE_MAX_OUTPUTS. */
int gate_outputs_add(struct gate_outputs *o, gate_write_fn *write, const char *path, struct err *e);

/* The picture, if there is to be one, and all reports. Files appear when they are complete. */
int gate_outputs_write(const struct gate_outputs *o, const struct gate_report *r, struct err *e);

#endif
