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
/* SARIF 2.1.0 (OASIS): a rule is a rule, what came out of it a result. */
gate_write_fn gate_write_sarif;
/* GitHub's workflow commands: ::error, ::warning and ::notice lines. */
gate_write_fn gate_write_github;
/* Everything. */
gate_write_fn gate_write_json;

struct gate_format {
	const char *name;
	gate_write_fn *write;
};

/* "text", "markdown", "junit", "sarif", "github", "json"; NULL: none of this name. */
const struct gate_format *gate_format_find(const char *name);

#endif
