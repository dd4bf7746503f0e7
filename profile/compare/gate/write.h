/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_write: appends a gate's report to a buffer, in formats for people and for programs.
 *
 * Equal reports give equal bytes in each format. Names come from profiles; each format quotes them
 * by its own rules. One thread uses a report at a time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_WRITE_H
#define KVMPROF_PROFILE_COMPARE_GATE_WRITE_H

#include "base/buf.h"
#include "profile/compare/gate/gate.h"

#define GATE_SHOWN_WORSE 20u /* functions of a rule in tables; JSON has all */
#define GATE_SHOWN_UNSURE 3u

struct gate_write_options {
	const char *flamegraph; /* link to the picture of the difference; NULL: none */
	const char *page;	/* link to the page that compares two runs; NULL: none */
};

/* Appends the report to *out in one format. Returns 0 or -ENOMEM. */
typedef int gate_write_fn(struct buf *out, const struct gate_report *r,
			  const struct gate_write_options *opt, struct err *e);

/* Text for a terminal: a table and its explanation. */
gate_write_fn gate_write_text;
/* Markdown for a comment on a pull request (GitHub's and GitLab's dialect). */
gate_write_fn gate_write_markdown;
/*
 * JUnit's <testsuites> for Jenkins and GitLab. A rule is a test case. An inconclusive rule is an
 * error if its level is fail, and skipped if it is warn.
 */
gate_write_fn gate_write_junit;
/* An SVG badge with the verdict. */
gate_write_fn gate_write_badge;
/* GitHub's workflow commands: ::error, ::warning and ::notice lines. */
gate_write_fn gate_write_github;

struct gate_format {
	const char *name;
	gate_write_fn *write;
};

/*
 * Returns the format of this name: "text", "markdown", "junit", "sarif", "github", "json" or
 * "badge", a constant. Returns NULL if there is no such format.
 */
const struct gate_format *gate_format_find(const char *name);

/* -- files of reports ------------------------------------------------------------------------- */

#define GATE_MAX_OUTPUTS 16u

struct gate_outputs {
	struct {
		gate_write_fn *write;
		const char *path; /* borrowed; "-" is standard output */
	} to[GATE_MAX_OUTPUTS];
	unsigned int n;
	const char *flamegraph; /* path for the picture of the difference; NULL: none */
	const char *link;	/* link to it in reports; NULL: the path */
	const char *page;	/* path for the page that compares two runs; NULL: none */
};

/* Adds a file; path is borrowed. Returns 0, or -E2BIG if there are more than GATE_MAX_OUTPUTS. */
int gate_outputs_add(struct gate_outputs *o, gate_write_fn *write, const char *path, struct err *e);

/*
 * Writes the picture, if o->flamegraph is set, the page, if o->page is, and all reports. A file is replaced when it is
 * complete. Returns 0 or -errno; files before the failed one have been written then.
 */
int gate_outputs_write(const struct gate_outputs *o, const struct gate_report *r, struct err *e);

#endif
