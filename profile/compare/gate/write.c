/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which formats there are, and those for people: a terminal and pull requests.
 */
#include "profile/compare/gate/write.h"

#include "base/cleanup.h"
#include "profile/compare/gate/say.h"

#include <errno.h>
#include <string.h>

#define SENTENCE 1024 /* bytes */

const struct gate_format *gate_format_find(const char *name)
{
	static const struct gate_format formats[] = {
		{ "text", gate_write_text },	 { "markdown", gate_write_markdown },
		{ "junit", gate_write_junit },	 { "sarif", gate_write_sarif },
		{ "github", gate_write_github }, { "json", gate_write_json },
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
	const bool exact = grule_is_exact(o->rule);
	struct gate_cells c = { 0 };
	char name[260], text[256];

	if (o->total.value)
		gate_say_cells(&c, o->rule, &o->total);
	text_row(out, exact, gate_status_name(o->status), o->rule->name, &c);
	for (size_t i = 0; i < shown_findings(o); i++) {
		const struct gate_finding *f = &o->finding[i];

		gate_say_function(text, sizeof(text), f);
		snprintf(name, sizeof(name), "  %s", text);
		gate_say_cells(&c, o->rule, f);
		text_row(out, exact, gate_finding_word(o, f), name, &c);
	}
	if (shown_findings(o) < o->nworse)
		buf_printf(out, "%14s  and %zu more\n", "", o->nworse - shown_findings(o));
	if (grule_is_family(o->rule) && !o->why[0] && !o->nworse)
		buf_printf(out, "%14s  none of %zu %s got worse by the threshold\n", "",
			   o->ncompared ? o->ncompared : o->nfindings, grule_members(o->rule));
	if (o->why[0])
		buf_printf(out, "%14s  %s%s\n", "",
			   grule_is_family(o->rule) && o->nfindings ? "inconclusive: " : "",
			   o->why);
	gate_say_notes(text, sizeof(text), &o->total);
	if (text[0])
		buf_printf(out, "%14s  note: %s\n", "", text);
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

		gate_say_function(name, sizeof(name), f);
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
	char text[SENTENCE];

	gate_say_verdict(text, sizeof(text), r);
	buf_printf(out, "# %s\n", text);
	gate_say_design(text, sizeof(text), r);
	buf_printf(out, "# %s\n#\n", text);
	text_row(out, r->exact, "# Verdict", "Rule", &head);
	for (size_t i = 0; i < r->n; i++)
		text_outcome(out, &r->outcome[i]);
	text_moved(out, r);
	buf_printf(out, "#\n");
	for (size_t i = 0; i < r->n; i++) {
		gate_say_power(text, sizeof(text), r, &r->outcome[i]);
		if (text[0])
			buf_printf(out, "# %s: %s\n", r->outcome[i].rule->name, text);
	}
	if (opt->flamegraph)
		buf_printf(out, "# flame graph of the difference: %s\n", opt->flamegraph);
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
	const bool exact = grule_is_exact(o->rule);
	struct gate_cells c = { 0 };
	char name[256];

	if (o->total.value)
		gate_say_cells(&c, o->rule, &o->total);
	buf_printf(out, "| %s | ", md_mark(gate_status_name(o->status)));
	md_text(out, o->rule->name);
	md_cells(out, exact, &c);
	for (size_t i = 0; i < shown_findings(o); i++) {
		const struct gate_finding *f = &o->finding[i];

		gate_say_function(name, sizeof(name), f);
		gate_say_cells(&c, o->rule, f);
		buf_printf(out, "| %s | &nbsp;&nbsp;", md_mark(gate_finding_word(o, f)));
		md_code(out, name);
		md_cells(out, exact, &c);
	}
}

static void md_sentences(struct buf *out, const struct gate_report *r)
{
	char text[SENTENCE];

	for (size_t i = 0; i < r->n; i++) {
		const struct gate_outcome *o = &r->outcome[i];

		if (o->status == GATE_OK)
			continue;
		gate_say_outcome(text, sizeof(text), o);
		buf_printf(out, "* **");
		md_text(out, o->rule->name);
		buf_printf(out, "** %s: ", gate_status_name(o->status));
		md_text(out, text);
		gate_say_notes(text, sizeof(text), &o->total);
		if (text[0])
			buf_printf(out, " (%s)", text);
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

		gate_say_function(name, sizeof(name), f);
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
	char text[SENTENCE];

	buf_printf(out, "\n<details><summary>What these runs could have seen</summary>\n\n");
	for (size_t i = 0; i < r->n; i++) {
		gate_say_power(text, sizeof(text), r, &r->outcome[i]);
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
	char text[SENTENCE];

	gate_say_verdict(text, sizeof(text), r);
	buf_printf(out, "### kvmprof gate: ");
	md_text(out, text);
	gate_say_design(text, sizeof(text), r);
	buf_printf(out, "\n\n");
	md_text(out, text);
	buf_printf(out,
		   ".\n\n| Verdict | Rule | Base | Head | Change |%s\n| --- | --- | ---: | ---: | "
		   "---: |%s\n",
		   r->exact ? "" : " 95 % interval | p, q |", r->exact ? "" : " ---: | ---: |");
	for (size_t i = 0; i < r->n; i++)
		md_outcome(out, &r->outcome[i]);
	buf_printf(out, "\n");
	md_sentences(out, r);
	if (opt->flamegraph) {
		buf_printf(out, "\n[Flame graph of the difference](");
		md_link(out, opt->flamegraph);
		buf_printf(out, "): red grew, blue shrank.\n");
	}
	md_moved(out, r);
	if (!r->exact)
		md_power(out, r);
	return done(out, e);
}
