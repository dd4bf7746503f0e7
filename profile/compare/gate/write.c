/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which formats there are, where reports go, and the formats that are text: for a terminal, pull requests,
 * JUnit and GitHub.
 */
#include "profile/compare/gate/write.h"

#include "base/cleanup.h"
#include "base/outfile.h"
#include "base/xml.h"
#include "profile/analyse/flame/svg.h"
#include "profile/analyse/html/html.h"
#include "profile/compare/gate/text.h"
#include "profile/compare/gate/write_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PICTURE_WIDTH 1200u
#define PICTURE_MIN_WIDTH 0.1

const struct gate_format *gate_format_find(const char *name)
{
	static const struct gate_format formats[] = {
		{ "text", gate_write_text },	 { "markdown", gate_write_markdown },
		{ "junit", gate_write_junit },	 { "sarif", gate_write_sarif },
		{ "github", gate_write_github }, { "json", gate_write_json },
		{ "badge", gate_write_badge },
	};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(name, formats[i].name))
			return &formats[i];
	return NULL;
}

static int done(const struct buf *out, struct err *e)
{
	return out->failed ? err_set(e, ENOMEM, "out of memory for the report") : 0;
}

/* How many findings of a family a table shows: what is worse, and some that can't be told. */
static size_t shown_findings(const struct gate_outcome *o)
{
	size_t worse = o->nworse < GATE_SHOWN_WORSE ? o->nworse : GATE_SHOWN_WORSE;
	size_t unsure = o->nunsure < GATE_SHOWN_UNSURE ? o->nunsure : GATE_SHOWN_UNSURE;

	/* Those that can't be told stand behind all that are worse. */
	return worse < o->nworse ? worse : worse + unsure;
}

/* -- terminal ------------------------------------------------------------------------------- */

#define ROW "%-12s  %-28s %12s %12s %15s %20s  %-9s %s\n"
/* Nothing is uncertain, and a stack is a long name. */
#define EXACT_ROW "%-12s  %14s %14s %24s  %s\n"

static void text_row(struct buf *out, bool exact, const char *word, const char *name,
		     const struct gate_cells *c)
{
	size_t start = out->len;

	if (exact)
		buf_printf(out, EXACT_ROW, word, c->base, c->head, c->change, name);
	else
		buf_printf(out, ROW, word, name, c->base, c->head, c->change, c->interval, c->p,
			   c->seen);
	/* No blanks at the end. */
	while (!out->failed && out->len > start + 1 && out->data[out->len - 2] == ' ')
		out->data[--out->len - 1] = '\n';
}

static void text_outcome(struct buf *out, const struct gate_outcome *o)
{
	const bool exact = gate_rule_is_exact(o->rule);
	struct gate_cells c = { 0 };
	char name[260], text[256];

	if (o->total.value)
		gate_text_cells(&c, o->rule, &o->total);
	text_row(out, exact, gate_status_name(o->status), o->rule->name, &c);
	for (size_t i = 0; i < shown_findings(o); i++) {
		const struct gate_finding *f = &o->finding[i];

		gate_text_function(text, sizeof(text), f);
		snprintf(name, sizeof(name), "  %s", text);
		gate_text_cells(&c, o->rule, f);
		text_row(out, exact, gate_finding_word(o, f), name, &c);
	}
	if (shown_findings(o) < o->nworse)
		buf_printf(out, "%14s  and %zu more\n", "", o->nworse - shown_findings(o));
	if (gate_rule_is_family(o->rule) && !o->why[0] && !o->nworse)
		buf_printf(out, "%14s  none of %zu %s got worse by the threshold\n", "",
			   o->ncompared ? o->ncompared : o->nfindings, gate_rule_members(o->rule));
	if (o->why[0])
		buf_printf(out, "%14s  %s%s\n", "",
			   gate_rule_is_family(o->rule) && o->nfindings ? "inconclusive: " : "",
			   o->why);
	gate_text_notes(text, sizeof(text), &o->total);
	if (text[0])
		buf_printf(out, "%14s  note: %s\n", "", text);
	if (o->rule->accepted)
		buf_printf(out, "%14s  accepted %s\n", "", o->rule->accepted);
}

#define RELATIONS_SHOWN 10u

static void text_relations(struct buf *out, const struct gate_report *r)
{
	char text[GATE_SENTENCE];

	if (r->nrelations)
		buf_printf(out, "#\n# the same under another name, or in another place:\n");
	for (size_t i = 0; i < r->nrelations && i < RELATIONS_SHOWN; i++) {
		gate_text_relation(text, sizeof(text), r, &r->relation[i]);
		buf_printf(out, "# %s\n", text);
	}
	if (r->nrelations > RELATIONS_SHOWN)
		buf_printf(out, "# and %zu more\n", r->nrelations - RELATIONS_SHOWN);
}

static void text_moved(struct buf *out, const struct gate_report *r)
{
	char name[256];

	if (!r->nmoved)
		return;
	buf_printf(out,
		   "#\n# functions whose own share of the time moved (q <= %g), whatever the "
		   "rules ask:\n",
		   GATE_MOVED_Q);
	for (size_t i = 0; i < r->nmoved; i++) {
		const struct gate_finding *f = &r->moved[i];

		if (f->explained && (!i || !r->moved[i - 1].explained))
			buf_printf(out,
				   "# which follows from that, and is no change of its own:\n");
		gate_text_function(name, sizeof(name), f);
		buf_printf(out, "%+9.2f points  %6.2f %% -> %6.2f %%  q %-8.2g %s\n",
			   100 * f->result.diff, 100 * f->result.base, 100 * f->result.head,
			   f->result.q, name);
	}
	if (r->moved_beyond)
		buf_printf(out, "# and %zu more\n", r->moved_beyond);
}

int gate_write_text(struct buf *out, const struct gate_report *r,
		    const struct gate_write_options *opt, struct err *e)
{
	static const struct gate_cells head = { "Base",		 "Head", "Change",
						"95 % interval", "p, q", "Seen" };
	char text[GATE_SENTENCE];

	gate_text_work(text, sizeof(text), r);
	if (text[0])
		buf_printf(out, "# %s\n", text);
	if (r->changed[0])
		buf_printf(out, "# %s\n", r->changed);
	gate_text_verdict(text, sizeof(text), r);
	buf_printf(out, "# %s\n", text);
	gate_text_noise(text, sizeof(text), r);
	if (text[0])
		buf_printf(out, "# %s\n", text);
	gate_text_design(text, sizeof(text), r);
	buf_printf(out, "# %s\n#\n", text);
	text_row(out, r->exact, "# Verdict", "Rule", &head);
	for (size_t i = 0; i < r->n; i++)
		text_outcome(out, &r->outcome[i]);
	text_relations(out, r);
	text_moved(out, r);
	buf_printf(out, "#\n");
	for (size_t i = 0; i < r->n; i++) {
		gate_text_power(text, sizeof(text), r, &r->outcome[i]);
		if (text[0])
			buf_printf(out, "# %s: %s\n", r->outcome[i].rule->name, text);
	}
	if (opt->flamegraph)
		buf_printf(out, "# flame graph of the difference: %s\n", opt->flamegraph);
	if (opt->page)
		buf_printf(out, "# page that compares two runs: %s\n", opt->page);
	return done(out, e);
}

/* -- pull requests ---------------------------------------------------------------------------- */

/* Text in a cell of a table: nothing in it is markup. */
static void md_text(struct buf *out, const char *s)
{
	for (; *s; s++)
		if (*s == '<' || *s == '>' || *s == '&')
			buf_printf(out, "%s", *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : "&amp;");
		else if (strchr("\\`*_{}[]()#+!|~$@", *s))
			buf_printf(out, "\\%c", *s);
		else
			buf_u8(out, (uint8_t)*s);
}

/* In a code span, a bar would still end the cell, and a backtick the span. */
static void md_code(struct buf *out, const char *s)
{
	buf_printf(out, "<code>");
	for (; *s; s++)
		if (strchr("<>&|`*_[]\\~$@", *s))
			buf_printf(out, "&#%u;", (unsigned char)*s);
		else
			buf_u8(out, (uint8_t)*s);
	buf_printf(out, "</code>");
}

static const char *md_mark(const char *word)
{
	static const struct {
		const char *word, *mark;
	} marks[] = {
		{ "fail", ":x: **fail**" },
		{ "warn", ":warning: warn" },
		{ "inconclusive", ":grey_question: inconclusive" },
		{ "pass", ":white_check_mark: pass" },
		{ "better", ":white_check_mark: better" },
		{ "skipped", "skipped" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (!strcmp(marks[i].word, word))
			return marks[i].mark;
	return word;
}

static void md_cells(struct buf *out, bool exact, const struct gate_cells *c)
{
	const char *const cell[] = { c->base, c->head, c->change, c->interval, c->p };

	for (size_t i = 0; i < (exact ? 3 : ARRAY_SIZE(cell)); i++) {
		buf_printf(out, " | ");
		md_text(out, cell[i]);
	}
	buf_printf(out, " |\n");
}

static void md_outcome(struct buf *out, const struct gate_outcome *o)
{
	const bool exact = gate_rule_is_exact(o->rule);
	struct gate_cells c = { 0 };
	char name[256];

	if (o->total.value)
		gate_text_cells(&c, o->rule, &o->total);
	buf_printf(out, "| %s | ", md_mark(gate_status_name(o->status)));
	md_text(out, o->rule->name);
	md_cells(out, exact, &c);
	for (size_t i = 0; i < shown_findings(o); i++) {
		const struct gate_finding *f = &o->finding[i];

		gate_text_function(name, sizeof(name), f);
		gate_text_cells(&c, o->rule, f);
		buf_printf(out, "| %s | &nbsp;&nbsp;", md_mark(gate_finding_word(o, f)));
		md_code(out, name);
		md_cells(out, exact, &c);
	}
}

static void md_sentences(struct buf *out, const struct gate_report *r)
{
	char text[GATE_SENTENCE];

	for (size_t i = 0; i < r->n; i++) {
		const struct gate_outcome *o = &r->outcome[i];

		if (o->status == GATE_OK)
			continue;
		gate_text_outcome(text, sizeof(text), o);
		buf_printf(out, "* **");
		md_text(out, o->rule->name);
		buf_printf(out, "** %s: ", gate_status_name(o->status));
		md_text(out, text);
		gate_text_notes(text, sizeof(text), &o->total);
		if (text[0])
			buf_printf(out, " (%s)", text);
		if (o->rule->accepted) {
			buf_printf(out, " Accepted ");
			md_text(out, o->rule->accepted);
		}
		buf_printf(out, "\n");
	}
}

static void md_relations(struct buf *out, const struct gate_report *r)
{
	char text[GATE_SENTENCE];

	for (size_t i = 0; i < r->nrelations && i < RELATIONS_SHOWN; i++) {
		gate_text_relation(text, sizeof(text), r, &r->relation[i]);
		buf_printf(out, "* ");
		md_text(out, text);
		buf_printf(out, "\n");
	}
}

static void md_moved(struct buf *out, const struct gate_report *r)
{
	char name[256];

	if (!r->nmoved)
		return;
	buf_printf(out,
		   "\n<details><summary>Functions whose own share of the time moved "
		   "(%zu)</summary>\n\n"
		   "| Change | Base | Head | q | Function |\n| ---: | ---: | ---: | ---: | --- |\n",
		   r->nmoved + r->moved_beyond);
	for (size_t i = 0; i < r->nmoved; i++) {
		const struct gate_finding *f = &r->moved[i];

		gate_text_function(name, sizeof(name), f);
		buf_printf(out, "| %+.2f points | %.2f %% | %.2f %% | %.2g | ",
			   100 * f->result.diff, 100 * f->result.base, 100 * f->result.head,
			   f->result.q);
		md_code(out, name);
		buf_printf(out, " |\n");
	}
	buf_printf(out, "\n</details>\n");
}

static void md_power(struct buf *out, const struct gate_report *r)
{
	char text[GATE_SENTENCE];

	buf_printf(out, "\n<details><summary>What these runs could have seen</summary>\n\n");
	for (size_t i = 0; i < r->n; i++) {
		gate_text_power(text, sizeof(text), r, &r->outcome[i]);
		if (!text[0])
			continue;
		buf_printf(out, "* ");
		md_text(out, r->outcome[i].rule->name);
		buf_printf(out, ": ");
		md_text(out, text);
		buf_printf(out, "\n");
	}
	buf_printf(out, "\n</details>\n");
}

/* A link's target: what would end it, or the line, is encoded. */
static void md_link(struct buf *out, const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s <= 0x20 || strchr("()<>\"\\`|", *s) || *s == 0x7f)
			buf_printf(out, "%%%02X", (unsigned char)*s);
		else
			buf_u8(out, (uint8_t)*s);
}

int gate_write_markdown(struct buf *out, const struct gate_report *r,
			const struct gate_write_options *opt, struct err *e)
{
	char text[GATE_SENTENCE];

	gate_text_verdict(text, sizeof(text), r);
	buf_printf(out, "### kvmprof gate: ");
	md_text(out, text);
	buf_printf(out, "\n\n");
	gate_text_work(text, sizeof(text), r);
	if (text[0]) {
		md_text(out, text);
		buf_printf(out, ".\n\n");
	}
	gate_text_noise(text, sizeof(text), r);
	if (text[0]) {
		buf_printf(out, "Inconclusive: ");
		md_text(out, text);
		buf_printf(out, ".\n\n");
	}
	if (r->changed[0]) {
		md_text(out, r->changed);
		buf_printf(out, ".\n\n");
	}
	gate_text_design(text, sizeof(text), r);
	md_text(out, text);
	buf_printf(out,
		   ".\n\n| Verdict | Rule | Base | Head | Change |%s\n| --- | --- | ---: | ---: | "
		   "---: |%s\n",
		   r->exact ? "" : " 95 % interval | p, q |", r->exact ? "" : " ---: | ---: |");
	for (size_t i = 0; i < r->n; i++)
		md_outcome(out, &r->outcome[i]);
	buf_printf(out, "\n");
	md_sentences(out, r);
	md_relations(out, r);
	if (opt->flamegraph) {
		buf_printf(out, "\n[Flame graph of the difference](");
		md_link(out, opt->flamegraph);
		buf_printf(out, "): red grew, blue shrank.\n");
	}
	if (opt->page) {
		buf_printf(out, "\n[Page that compares a run of each side](");
		md_link(out, opt->page);
		buf_printf(out, ")\n");
	}
	md_moved(out, r);
	if (!r->exact)
		md_power(out, r);
	return done(out, e);
}

/* -- badge -------------------------------------------------------------------------------------- */

#define BADGE_LEFT 88u /* pixels of the word in front */
#define BADGE_LETTER 7u

int gate_write_badge(struct buf *out, const struct gate_report *r,
		     const struct gate_write_options *opt, struct err *e)
{
	static const char *const colour[] = {
		[GATE_OK] = "#3c9a3c",	   [GATE_SKIPPED] = "#777777", [GATE_UNSURE] = "#b08800",
		[GATE_WARNED] = "#b08800", [GATE_FAILED] = "#c0392b",
	};
	const char *word = gate_status_name(r->status);
	const unsigned int right = (unsigned int)strlen(word) * BADGE_LETTER + 14;

	(void)opt;
	buf_printf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"20\" role=\"img\" "
		"aria-label=\"performance: %s\">\n<title>performance: %s</title>\n"
		"<rect width=\"%u\" height=\"20\" rx=\"3\" fill=\"#444444\"/>\n"
		"<rect x=\"%u\" width=\"%u\" height=\"20\" rx=\"3\" fill=\"%s\"/>\n"
		"<g fill=\"#ffffff\" text-anchor=\"middle\" font-family=\"Verdana,DejaVu "
		"Sans,sans-serif\" "
		"font-size=\"11\">\n"
		"<text x=\"%u\" y=\"14\">performance</text>\n<text x=\"%u\" "
		"y=\"14\">%s</text>\n</g>\n</svg>\n",
		BADGE_LEFT + right, word, word, BADGE_LEFT + right, BADGE_LEFT, right,
		colour[r->status], BADGE_LEFT / 2, BADGE_LEFT + right / 2, word);
	return done(out, e);
}

/*
 * -- JUnit ----------------------------------------------------------------------------------
 * It never had a schema of its own; this is what the schemas of Jenkins' xUnit plug-in and GitLab's
 * reader have in common:
 *   <testsuites> <testsuite name tests failures errors skipped time>
 *     <testcase classname name time> [<failure|error|skipped message type>] [<system-out>]
 */

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
	char said[GATE_SENTENCE], power[GATE_SENTENCE];

	gate_text_outcome(said, sizeof(said), o);
	gate_text_power(power, sizeof(power), r, o);
	buf_printf(out, "    <testcase classname=\"kvmprof.gate.%s\" name=\"",
		   gate_rule_metric_name(o->rule->metric));
	xml_quote(out, o->rule->name, GATE_SENTENCE);
	buf_printf(out, "\" time=\"0\">\n");
	if (x != PASSED) {
		buf_printf(out, "      <%s message=\"", tag[x]);
		xml_quote(out, said, GATE_SENTENCE);
		if (x == SKIP)
			buf_printf(out, "\"/>\n");
		else
			buf_printf(out, "\" type=\"%s\">", gate_status_name(o->status));
	}
	if (x == FAILURE || x == ERROR) {
		xml_quote(out, said, GATE_SENTENCE);
		buf_printf(out, "\n");
		xml_quote(out, power, GATE_SENTENCE);
		buf_printf(out, "</%s>\n", tag[x]);
	}
	buf_printf(out, "      <system-out>%s: ", gate_status_name(o->status));
	xml_quote(out, said, GATE_SENTENCE);
	if (power[0])
		buf_printf(out, "\n");
	xml_quote(out, power, GATE_SENTENCE);
	buf_printf(out, "</system-out>\n    </testcase>\n");
}

int gate_write_junit(struct buf *out, const struct gate_report *r,
		     const struct gate_write_options *opt, struct err *e)
{
	char text[GATE_SENTENCE];

	buf_printf(out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kvmprof gate\"");
	counts(out, r);
	buf_printf(out, ">\n  <testsuite name=\"kvmprof gate\"");
	counts(out, r);
	buf_printf(out, ">\n");
	for (size_t i = 0; i < r->n; i++)
		testcase(out, r, &r->outcome[i]);
	buf_printf(out, "    <system-out>");
	gate_text_work(text, sizeof(text), r);
	xml_quote(out, text, GATE_SENTENCE);
	buf_printf(out, "%s", text[0] ? "\n" : "");
	gate_text_verdict(text, sizeof(text), r);
	xml_quote(out, text, GATE_SENTENCE);
	gate_text_design(text, sizeof(text), r);
	buf_printf(out, "\n");
	xml_quote(out, text, GATE_SENTENCE);
	if (opt->flamegraph) {
		buf_printf(out, "\nflame graph of the difference: ");
		xml_quote(out, opt->flamegraph, GATE_SENTENCE);
	}
	if (opt->page) {
		buf_printf(out, "\npage that compares two runs: ");
		xml_quote(out, opt->page, GATE_SENTENCE);
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
	case GATE_WARNED:
		return "warning";
	default:
		return NULL;
	}
}

int gate_write_github(struct buf *out, const struct gate_report *r,
		      const struct gate_write_options *opt, struct err *e)
{
	const struct gate_rules *rules = gate_rules_of(r->gate);
	char text[GATE_SENTENCE];

	gate_text_work(text, sizeof(text), r);
	if (text[0]) {
		buf_printf(out, "::notice title=kvmprof gate::");
		github_text(out, text, false);
		buf_printf(out, "\n");
	}
	for (size_t i = 0; i < r->n; i++) {
		const struct gate_outcome *o = &r->outcome[i];
		const char *level = github_level(o);

		if (!level)
			continue;
		gate_text_outcome(text, sizeof(text), o);
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
	gate_text_noise(text, sizeof(text), r);
	if (text[0]) {
		buf_printf(out, "::warning title=kvmprof gate (inconclusive)::");
		github_text(out, text, false);
		buf_printf(out, "\n");
	}
	if (*r->means || r->same) {
		gate_text_means(text, sizeof(text), r);
		buf_printf(out, "::warning title=kvmprof gate::");
		github_text(out, text, false);
		buf_printf(out, "\n");
	}
	gate_text_verdict(text, sizeof(text), r);
	buf_printf(out, "::notice title=kvmprof gate::");
	github_text(out, text, false);
	if (opt->flamegraph) {
		buf_printf(out, "; flame graph of the difference: ");
		github_text(out, opt->flamegraph, false);
	}
	if (opt->page) {
		buf_printf(out, "; page that compares two runs: ");
		github_text(out, opt->page, false);
	}
	buf_printf(out, "\n");
	return done(out, e);
}

/* -- where they go ---------------------------------------------------------------------------- */

int gate_outputs_add(struct gate_outputs *o, gate_write_fn *write, const char *path, struct err *e)
{
	if (o->n == GATE_MAX_OUTPUTS)
		return err_set(e, E2BIG, "more than %u reports", GATE_MAX_OUTPUTS);
	o->to[o->n].write = write;
	o->to[o->n++].path = path;
	return 0;
}

static int write_out(const char *path, const struct buf *b, struct err *e)
{
	return b->failed ? err_set(e, ENOMEM, "%s: out of memory", path)
			 : outfile_write(path, b->data, b->len, e);
}

/* -- the picture ---------------------------------------------------------------------------- */

/* All runs of the gate; their texts are the tree's. */
struct sets {
	struct stackset *set[GATE_SIDE_MAX][STATS_MAX_RUNS];
};

static int fold(struct sets *x, struct frametree *t, const struct gate *g, struct err *e)
{
	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < gate_runs(g, s); i++) {
			struct stackset_options opt = { 0 };
			int ret;

			opt.input = gate_run_at(g, s, i)->path;
			ret = stackset_load(&x->set[s][i], &opt, e);
			if (ret)
				return ret;
			ret = frametree_add(t, x->set[s][i],
					    s == GATE_BASE ? FRAMETREE_BASE : FRAMETREE_SHOWN, e);
			if (ret)
				return ret;
		}
	return frametree_finish(t, e);
}

static int output_draw(struct buf *out, const char *path, const struct gate_report *r,
		       struct sets *x, struct frametree *t, struct err *e)
{
	const struct gate_run *first = gate_run_at(r->gate, GATE_HEAD, 0);
	char title[160], subtitle[160];
	struct flame_picture p = { .title = title,
				   .subtitle = subtitle,
				   .event = first->event,
				   .width = PICTURE_WIDTH,
				   .min_width = PICTURE_MIN_WIDTH,
				   .weight_is_ns = first->weight_is_ns };
	int ret = fold(x, t, r->gate, e);

	snprintf(title, sizeof(title), "kvmprof gate: what changed from base to head%s%.64s",
		 first->osrelease[0] ? ", Linux " : "", first->osrelease);
	snprintf(subtitle, sizeof(subtitle),
		 "%u runs of the base and %u of the head, all together; red grew, blue shrank",
		 r->nbase, r->nhead);
	ret = ret ? ret : flamegraph_build(&p, t, FLAME_DIFFERENCE, e);
	if (!ret)
		flame_write(out, &p, flame_format_of(path));
	flame_picture_deinit(&p);
	return ret;
}

static int write_picture(const char *path, const struct gate_report *r, struct err *e)
{
	const struct frametree_options opt = { .task = FRAMETREE_TASK_COMM,
					       .clones_are_one = true };
	cleanup_free struct sets *x = calloc(1, sizeof(*x));
	struct frametree *t = NULL;
	struct buf out;
	int ret;

	if (!x)
		return err_set(e, ENOMEM, "%s: out of memory", path);
	buf_init(&out);
	ret = frametree_create(&t, &opt, e);
	ret = ret ? ret : output_draw(&out, path, r, x, t, e);
	ret = ret ? ret : write_out(path, &out, e);
	buf_deinit(&out);
	frametree_destroy(t);
	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < STATS_MAX_RUNS; i++)
			stackset_destroy(x->set[s][i]);
	return ret;
}

/* Returns the run of a side whose total is the median, so that an odd run is not the one shown. */
static const struct gate_run *median_run(const struct gate *g, enum gate_side side)
{
	unsigned int n = gate_runs(g, side);

	for (unsigned int i = 0; i < n; i++) {
		double weight = gate_run_at(g, side, i)->weight;
		unsigned int below = 0, equal = 0;

		for (unsigned int k = 0; k < n; k++) {
			below += gate_run_at(g, side, k)->weight < weight;
			equal += gate_run_at(g, side, k)->weight == weight;
		}
		if (below <= (n - 1) / 2 && below + equal > (n - 1) / 2)
			return gate_run_at(g, side, i);
	}
	return gate_run_at(g, side, 0);
}

static int write_page(const char *path, const struct gate_report *r, struct err *e)
{
	struct html_options head = { .functions = HTML_FUNCTIONS }, base = head;
	struct html_profile p = { .n = 0 }, q = { .n = 0 };
	struct err why = { 0 };
	struct buf out;
	int ret;

	buf_init(&out);
	head.load.input = median_run(r->gate, GATE_HEAD)->path;
	base.load.input = median_run(r->gate, GATE_BASE)->path;
	ret = html_load(&p, &head, &why, e);
	ret = ret ? ret : html_load(&q, &base, &why, e);
	ret = ret ? ret : html_write(&out, &p, &q, NULL, e);
	ret = ret ? ret : write_out(path, &out, e);
	html_unload(&p);
	html_unload(&q);
	buf_deinit(&out);
	return ret;
}

int gate_outputs_write(const struct gate_outputs *o, const struct gate_report *r, struct err *e)
{
	const struct gate_write_options opt = {
		.flamegraph = o->flamegraph && o->link ? o->link : o->flamegraph,
		.page = o->page,
	};
	int ret = o->flamegraph ? write_picture(o->flamegraph, r, e) : 0;

	if (!ret && o->page)
		ret = write_page(o->page, r, e);

	for (unsigned int i = 0; i < o->n && !ret; i++) {
		struct buf b;

		buf_init(&b);
		ret = o->to[i].write(&b, r, &opt, e);
		ret = ret ? ret : write_out(o->to[i].path, &b, e);
		buf_deinit(&b);
	}
	return ret;
}
