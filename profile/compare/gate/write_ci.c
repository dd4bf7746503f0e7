/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports for programs that show test results: JUnit's XML and GitHub's workflow commands.
 *
 * JUnit never had a schema of its own; what is written here is what the schemas of Jenkins'
 * xUnit plug-in and GitLab's reader have in common:
 *   <testsuites> <testsuite name tests failures errors skipped time>
 *     <testcase classname name time> [<failure|error|skipped message type>] [<system-out>]
 */
#include "profile/compare/gate/write.h"

#include "base/cleanup.h"
#include "base/xml.h"
#include "profile/compare/gate/say.h"

#include <errno.h>
#include <string.h>

#define SENTENCE 1024

static int done(const struct buf *out, struct err *e)
{
	return out->failed ? err_set(e, ENOMEM, "out of memory for the report") : 0;
}

/* -- JUnit ---------------------------------------------------------------------------------- */

enum ending { PASSED, FAILURE, ERROR, SKIP };

static enum ending ending_of(const struct gate_outcome *o)
{
	switch (o->status) {
	case GATE_FAILED:
		return FAILURE;
	case GATE_UNSURE:
		return o->rule->fail ? ERROR : SKIP;
	case GATE_SKIPPED:
		return SKIP;
	default: /* warnings pass */
		return PASSED;
	}
}

static unsigned int write_ci_count(const struct gate_report *r, enum ending x)
{
	unsigned int n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += ending_of(&r->outcome[i]) == x;
	return n;
}

static void counts(struct buf *out, const struct gate_report *r)
{
	buf_printf(out, " tests=\"%zu\" failures=\"%u\" errors=\"%u\" skipped=\"%u\" time=\"0\"",
		   r->n, write_ci_count(r, FAILURE), write_ci_count(r, ERROR),
		   write_ci_count(r, SKIP));
}

static void testcase(struct buf *out, const struct gate_report *r, const struct gate_outcome *o)
{
	static const char *const tag[] = {
		[FAILURE] = "failure", [ERROR] = "error", [SKIP] = "skipped"
	};
	enum ending x = ending_of(o);
	char said[SENTENCE], power[SENTENCE];

	gate_say_outcome(said, sizeof(said), o);
	gate_say_power(power, sizeof(power), r, o);
	buf_printf(out, "    <testcase classname=\"kvmprof.gate.%s\" name=\"",
		   grule_metric_name(o->rule->metric));
	xml_quote(out, o->rule->name, SENTENCE);
	buf_printf(out, "\" time=\"0\">\n");
	if (x != PASSED) {
		buf_printf(out, "      <%s message=\"", tag[x]);
		xml_quote(out, said, SENTENCE);
		if (x == SKIP)
			buf_printf(out, "\"/>\n");
		else
			buf_printf(out, "\" type=\"%s\">", gate_status_name(o->status));
	}
	if (x == FAILURE || x == ERROR) {
		xml_quote(out, said, SENTENCE);
		buf_printf(out, "\n");
		xml_quote(out, power, SENTENCE);
		buf_printf(out, "</%s>\n", tag[x]);
	}
	buf_printf(out, "      <system-out>%s: ", gate_status_name(o->status));
	xml_quote(out, said, SENTENCE);
	if (power[0])
		buf_printf(out, "\n");
	xml_quote(out, power, SENTENCE);
	buf_printf(out, "</system-out>\n    </testcase>\n");
}

int gate_write_junit(struct buf *out, const struct gate_report *r,
		     const struct gate_write_options *opt, struct err *e)
{
	char text[SENTENCE];

	buf_printf(out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kvmprof gate\"");
	counts(out, r);
	buf_printf(out, ">\n  <testsuite name=\"kvmprof gate\"");
	counts(out, r);
	buf_printf(out, ">\n");
	for (size_t i = 0; i < r->n; i++)
		testcase(out, r, &r->outcome[i]);
	gate_say_verdict(text, sizeof(text), r);
	buf_printf(out, "    <system-out>");
	xml_quote(out, text, SENTENCE);
	gate_say_design(text, sizeof(text), r);
	buf_printf(out, "\n");
	xml_quote(out, text, SENTENCE);
	if (opt->flamegraph) {
		buf_printf(out, "\nflame graph of the difference: ");
		xml_quote(out, opt->flamegraph, SENTENCE);
	}
	buf_printf(out, "</system-out>\n  </testsuite>\n</testsuites>\n");
	return done(out, e);
}

/* -- GitHub ----------------------------------------------------------------------------------- */

/* As the runner's own toolkit escapes them: messages, and in addition properties. */
static void github_text(struct buf *out, const char *s, bool property)
{
	for (; *s; s++)
		if (*s == '%' || *s == '\r' || *s == '\n' || (property && (*s == ':' || *s == ',')))
			buf_printf(out, "%%%02X", (unsigned char)*s);
		else
			buf_u8(out, (uint8_t)*s);
}

static const char *github_level(const struct gate_outcome *o)
{
	switch (o->status) {
	case GATE_FAILED:
		return "error";
	case GATE_UNSURE:
		return o->rule->fail ? "error" : "warning";
	case GATE_WARNED:
		return "warning";
	default:
		return NULL;
	}
}

int gate_write_github(struct buf *out, const struct gate_report *r,
		      const struct gate_write_options *opt, struct err *e)
{
	const struct grules *rules = gate_rules_of(r->gate);
	char text[SENTENCE];

	for (size_t i = 0; i < r->n; i++) {
		const struct gate_outcome *o = &r->outcome[i];
		const char *level = github_level(o);

		if (!level)
			continue;
		gate_say_outcome(text, sizeof(text), o);
		buf_printf(out, "::%s ", level);
		if (!rules->built_in) {
			buf_printf(out, "file=");
			github_text(out, rules->path, true);
			buf_printf(out, ",line=%u,", o->rule->line);
		}
		buf_printf(out, "title=kvmprof gate%%3A ");
		github_text(out, o->rule->name, true);
		buf_printf(out, " (%s)::", gate_status_name(o->status));
		github_text(out, text, false);
		buf_printf(out, "\n");
	}
	gate_say_verdict(text, sizeof(text), r);
	buf_printf(out, "::notice title=kvmprof gate::");
	github_text(out, text, false);
	if (opt->flamegraph) {
		buf_printf(out, "; flame graph of the difference: ");
		github_text(out, opt->flamegraph, false);
	}
	buf_printf(out, "\n");
	return done(out, e);
}
