/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/series_write.h"

#include "base/json.h"
#include "base/xml.h"
#include "profile/compare/gate/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void say_name(char *out, size_t size, const struct gate_step *x)
{
	const struct gate_finding f = { .name = x->name, .dso = x->dso, .mode = x->mode };

	if (x->name)
		gate_text_function(out, size, &f);
	else
		snprintf(out, size, "%s", x->rule->name);
}

struct step_cells {
	char name[256], before[GATE_CELL], after[GATE_CELL], change[GATE_CELL];
};

static void say_step(struct step_cells *c, const struct gate_step *x)
{
	enum gate_rule_dimension d = x->name ? GATE_RULE_PART : gate_rule_dimension(x->rule);
	const struct stats_rule stats = gate_rule_stats(x->rule, x->before, 0);

	say_name(c->name, sizeof(c->name), x);
	gate_text_value(c->before, sizeof(c->before), d, x->before);
	gate_text_value(c->after, sizeof(c->after), d, x->after);
	gate_text_effect(c->change, sizeof(c->change), &stats, d,
			 stats_effect(&stats, x->before, x->after), GATE_EFFECT_IS_CHANGE);
}

static void text_step(struct buf *out, const struct gate_series *s, const struct gate_step *x)
{
	const struct gate_history_entry *at = s->history->entry[x->entry];
	struct step_cells c;

	say_step(&c, x);
	buf_printf(out, "%-9s  %-28s %12s %12s %15s  %-8.2g %s (%s)%s\n", gate_step_word(s, x),
		   c.name, c.before, c.after, c.change, x->p, at->label, at->time,
		   x->entry + 1 == s->history->n ? ", the newest" : "");
	if (x->crept)
		buf_printf(out,
			   "%9s  by several changes, each below the threshold, since %s (%s)\n", "",
			   s->history->entry[x->from]->label, s->history->entry[x->from]->time);
	if (x->gradual)
		buf_printf(out, "%9s  gradually: a drift has no entry of its own\n", "");
	if (x->because)
		buf_printf(out, "%9s  because %s %s\n", "", x->because,
			   x->after < x->before ? "grew" : "shrank");
	if (x->accepted)
		buf_printf(out, "%9s  accepted by %s: %s\n", "", x->accepted->by, x->accepted->why);
}

int gate_series_write_text(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e)
{
	const struct gate_history *h = s->history;

	buf_printf(out, "# history %s: %zu entr%s", dir, h->n, h->n == 1 ? "y" : "ies");
	if (h->n)
		buf_printf(out, ", %s (%s) to %s (%s)", h->entry[0]->label, h->entry[0]->time,
			   h->entry[h->n - 1]->label, h->entry[h->n - 1]->time);
	buf_printf(out, "\n");
	if (s->nblind)
		buf_printf(
			out,
			"# %s%zu of %zu series are too short for a change of any size to be found "
			"(that takes %u values or more)\n",
			s->unsure || s->nblind == s->nseries ? "INCONCLUSIVE: " : "", s->nblind,
			s->nseries, GATE_SERIES_LEAST);
	if (s->nsteps)
		buf_printf(out, "#\n%-9s  %-28s %12s %12s %15s  %-8s %s\n", "# Verdict", "Metric",
			   "Before", "After", "Change", "p", "Since");
	for (size_t i = 0; i < s->nsteps; i++)
		text_step(out, s, &s->step[i]);
	if (!h->n)
		buf_printf(out, "# INCONCLUSIVE: the history has no entries; --record adds them\n");
	else if (!s->nsteps)
		buf_printf(out, "# no change of level in %zu series\n", s->nseries - s->nblind);
	return out->failed ? err_set(e, ENOMEM, "out of memory for the report") : 0;
}

int gate_series_write_json(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e)
{
	const struct gate_history *h = s->history;
	struct json_writer w;

	json_begin(&w, out);
	json_object_begin(&w, NULL);
	json_put(&w, "version", 1u, "history", dir, "exit_status",
		 (unsigned int)gate_series_exit_status(s), "series", s->nseries, "too_short",
		 s->nblind);
	json_array_begin(&w, "entries");
	for (size_t i = 0; i < h->n; i++) {
		json_line(&w);
		json_put_object(&w, NULL, "file", h->entry[i]->file, "time", h->entry[i]->time,
				"label", h->entry[i]->label, "runs", h->entry[i]->runs);
	}
	json_array_end(&w);
	json_array_begin(&w, "changes");
	for (size_t i = 0; i < s->nsteps; i++) {
		const struct gate_step *x = &s->step[i];

		json_line(&w);
		json_object_begin(&w, NULL);
		json_put(&w, "verdict", gate_step_word(s, x), "rule", x->rule->name, "measures",
			 x->rule->key, "function", x->name, "dso", x->dso, "mode", x->mode, "label",
			 h->entry[x->entry]->label, "file", h->entry[x->entry]->file);
		json_put(&w, "entry", x->entry, "before", json_short(10, x->before), "after",
			 json_short(10, x->after), "p", json_short(10, x->p));
		json_put(&w, "crept", x->crept, "crept_since",
			 x->crept ? h->entry[x->from]->label : NULL, "gradual", x->gradual);
		if (x->because)
			json_str(&w, "because", x->because);
		if (x->accepted)
			json_put(&w, "accepted_by", x->accepted->by, "accepted_why",
				 x->accepted->why);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
	buf_u8(out, '\n');
	return out->failed ? err_set(e, ENOMEM, "out of memory for the report") : 0;
}

/* -- the page ---------------------------------------------------------------------------------- */

/* The sizes of a graph, in pixels. */
#define WIDTH 960.0
#define HEIGHT 240.0
#define LEFT 96.0
#define RIGHT 24.0
#define TOP 44.0
#define BOTTOM 26.0
#define TICKS 4u
#define NAME_MAX 512u /* bytes of a name or label */
#define MARK_ROWS 2u  /* rows of labels of steps, so that neighbours do not overlap */

static const char page_style[] =
	":root{color-scheme:light dark}"
	"body{font:14px/1.45 system-ui,sans-serif;margin:24px auto;max-width:1000px;padding:0 16px;"
	"background:#fff;color:#1c2733}"
	"h1{font-size:20px;margin:0 0 4px}h2{font-size:15px;margin:28px 0 4px}"
	"p{margin:4px 0}table{border-collapse:collapse;margin:12px 0;width:100%}"
	"th,td{text-align:left;padding:4px 8px;border-bottom:1px solid #d5dbe1;vertical-align:top}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
	"svg{width:100%;height:auto;display:block}svg text{font-size:11px;fill:#51606f}"
	".grid{stroke:#e3e8ed}.line{fill:none;stroke:#a9b6c3}.dot{fill:#5c7185}"
	".level{stroke:#1c2733;stroke-width:2}.mark{stroke-dasharray:4 3}"
	".fail{color:#c0392b}.warn{color:#a06a00}.older{color:#8a3d34}.better{color:#2e7d32}"
	".follows{color:#51606f}.accepted{color:#2b6cb0}.v{font-weight:600}svg "
	".m{fill:currentColor}svg "
	".mark{stroke:currentColor}"
	"@media(prefers-color-scheme:dark){body{background:#12181f;color:#dbe3ea}"
	"th,td{border-color:#2b3742}.grid{stroke:#232d37}.line{stroke:#4b5a69}.dot{fill:#8fa3b6}"
	".level{stroke:#dbe3ea}svg text{fill:#9fb0c0}.fail{color:#ff7b6b}.warn{color:#e0a83a}"
	".older{color:#d68e84}.better{color:#6cc172}.follows{color:#9fb0c0}.accepted{color:#7ab4f0}"
	"}";

struct graph {
	struct buf *out;
	const struct gate_series *s;
	const struct gate_line *l;
	enum gate_rule_dimension dimension;
	double low, high; /* bounds of the values that are drawn */
};

static double graph_x(const struct graph *g, double entry)
{
	const size_t n = g->s->history->n;

	return n < 2 ? (LEFT + WIDTH - RIGHT) / 2
		     : LEFT + entry / (double)(n - 1) * (WIDTH - LEFT - RIGHT);
}

static double graph_y(const struct graph *g, double v)
{
	return TOP + (g->high - v) / (g->high - g->low) * (HEIGHT - TOP - BOTTOM);
}

static void find_bounds(struct graph *g)
{
	double room;

	g->low = g->high = g->l->value[0];
	for (size_t i = 0; i < g->l->n; i++) {
		g->low = fmin(g->low, g->l->value[i]);
		g->high = fmax(g->high, g->l->value[i]);
	}
	room = 0.06 * (g->high - g->low);
	/* A series without any difference is a line in the middle. */
	if (!(room > 0))
		room = fmax(fabs(g->high) * 0.05, 1e-9);
	g->low -= room;
	g->high += room;
}

static void draw_grid(const struct graph *g)
{
	const struct gate_history *h = g->s->history;
	char text[GATE_CELL];

	for (unsigned int i = 0; i <= TICKS; i++) {
		double v = g->low + (g->high - g->low) * i / TICKS, y = graph_y(g, v);

		gate_text_value(text, sizeof(text), g->dimension, v);
		buf_printf(g->out,
			   "<line class=\"grid\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>"
			   "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">",
			   LEFT, WIDTH - RIGHT, y, y, LEFT - 8, y + 4);
		xml_quote(g->out, text, sizeof(text));
		buf_printf(g->out, "</text>\n");
	}
	buf_printf(g->out, "<text x=\"%.0f\" y=\"%.0f\">", LEFT, HEIGHT - 6);
	xml_quote(g->out, h->entry[0]->label, 60);
	buf_printf(g->out, "</text><text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">", WIDTH - RIGHT,
		   HEIGHT - 6);
	xml_quote(g->out, h->entry[h->n - 1]->label, 60);
	buf_printf(g->out, "</text>\n");
}

/* Writes "LABEL (TIME)". Both come out of files. */
static void write_entry(struct buf *out, const struct gate_history_entry *x)
{
	xml_quote(out, x->label, NAME_MAX);
	buf_printf(out, " (");
	xml_quote(out, x->time, sizeof(x->time));
	buf_printf(out, ")");
}

static void draw_values(const struct graph *g)
{
	char text[GATE_CELL];

	buf_printf(g->out, "<polyline class=\"line\" points=\"");
	for (size_t i = 0; i < g->l->n; i++)
		buf_printf(g->out, "%.1f,%.1f ", graph_x(g, (double)g->l->entry[i]),
			   graph_y(g, g->l->value[i]));
	buf_printf(g->out, "\"/>\n");
	for (size_t i = 0; i < g->l->n; i++) {
		gate_text_value(text, sizeof(text), g->dimension, g->l->value[i]);
		buf_printf(g->out,
			   "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"><title>",
			   graph_x(g, (double)g->l->entry[i]), graph_y(g, g->l->value[i]));
		write_entry(g->out, g->s->history->entry[g->l->entry[i]]);
		buf_printf(g->out, ": ");
		xml_quote(g->out, text, sizeof(text));
		buf_printf(g->out, "</title></circle>\n");
	}
}

/* Draws the means between changes of level. */
static void draw_levels(const struct graph *g)
{
	const struct gate_line *l = g->l;

	for (size_t k = 0; k <= l->nchanges && !l->blind; k++) {
		size_t from = k ? l->change[k - 1].at : 0;
		size_t to = k < l->nchanges ? l->change[k].at : l->n;
		double y = graph_y(g, stats_mean(l->value + from, to - from));

		buf_printf(
			g->out,
			"<line class=\"level\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
			graph_x(g, (double)l->entry[from]), graph_x(g, (double)l->entry[to - 1]), y,
			y);
	}
}

static bool step_is_of(const struct gate_step *x, const struct gate_line *l)
{
	return x->rule == l->rule && x->name == l->name && x->dso == l->dso && x->mode == l->mode;
}

static void draw_steps(const struct graph *g)
{
	unsigned int drawn = 0;

	/* Newest first, so that labels alternate among neighbours. */
	for (size_t i = 0; i < g->s->nsteps; i++) {
		const struct gate_step *x = &g->s->step[i];
		double at, y = 14 + 14.0 * (drawn % MARK_ROWS);
		struct step_cells c;

		if (!step_is_of(x, g->l))
			continue;
		say_step(&c, x);
		/* Between the last entry of the old level and the first of the new one. */
		at = graph_x(g, (double)x->entry - (x->entry ? 0.5 : 0));
		buf_printf(
			g->out,
			"<g class=\"%s\"><line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" "
			"y2=\"%.0f\"/><text class=\"m\" x=\"%.1f\" y=\"%.0f\" "
			"text-anchor=\"%s\">",
			gate_step_word(g->s, x), at, at, y + 3, HEIGHT - BOTTOM,
			at < WIDTH / 2 ? at + 4 : at - 4, y, at < WIDTH / 2 ? "start" : "end");
		xml_quote(g->out, g->s->history->entry[x->entry]->label, 60);
		buf_printf(g->out, " ");
		xml_quote(g->out, c.change, sizeof(c.change));
		buf_printf(g->out, "</text></g>\n");
		drawn++;
	}
}

static void line_name(char *out, size_t size, const struct gate_line *l)
{
	const struct gate_step like = {
		.rule = l->rule, .name = l->name, .dso = l->dso, .mode = l->mode
	};

	say_name(out, size, &like);
}

static void write_graph(struct buf *out, const struct gate_series *s, size_t i)
{
	struct graph g = { .out = out, .s = s, .l = &s->line[i] };
	char name[256];

	line_name(name, sizeof(name), g.l);
	buf_printf(out, "<h2 id=\"g%zu\">", i);
	xml_quote(out, name, sizeof(name));
	if (g.l->name) {
		buf_printf(out, " <small>in ");
		xml_quote(out, g.l->rule->name, NAME_MAX);
		buf_printf(out, "</small>");
	}
	buf_printf(out, "</h2>\n");
	if (g.l->blind)
		buf_printf(out,
			   "<p class=\"warn\">%zu values: too few for a change of any size to be "
			   "found</p>\n",
			   g.l->n);
	if (!g.l->n)
		return;
	g.dimension = g.l->name ? GATE_RULE_PART : gate_rule_dimension(g.l->rule);
	find_bounds(&g);
	buf_printf(out, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
	xml_quote(out, name, sizeof(name));
	buf_printf(out, "\">\n");
	draw_grid(&g);
	draw_values(&g);
	draw_levels(&g);
	draw_steps(&g);
	buf_printf(out, "</svg>\n");
}

/* Returns the number of the graph that the row of a step leads to. */
static size_t graph_of(const struct gate_series *s, const struct gate_step *x)
{
	size_t i = 0;

	while (i + 1 < s->nseries && !step_is_of(x, &s->line[i]))
		i++;
	return i;
}

static void write_row(struct buf *out, const struct gate_series *s, const struct gate_step *x)
{
	const struct gate_history_entry *at = s->history->entry[x->entry];
	const char *word = gate_step_word(s, x);
	struct step_cells c;

	say_step(&c, x);
	buf_printf(out, "<tr><td class=\"%s v\">%s</td><td><a href=\"#g%zu\">", word, word,
		   graph_of(s, x));
	xml_quote(out, c.name, sizeof(c.name));
	buf_printf(out, "</a></td><td class=\"n\">");
	xml_quote(out, c.before, sizeof(c.before));
	buf_printf(out, "</td><td class=\"n\">");
	xml_quote(out, c.after, sizeof(c.after));
	buf_printf(out, "</td><td class=\"n\">");
	xml_quote(out, c.change, sizeof(c.change));
	buf_printf(out, "</td><td class=\"n\">%.2g</td><td>", x->p);
	xml_quote(out, at->label, NAME_MAX);
	buf_printf(out, " <small>");
	xml_quote(out, at->time, sizeof(at->time));
	buf_printf(out, "</small>");
	if (x->crept) {
		buf_printf(out, "<br><small>by several changes, each below the threshold, since ");
		xml_quote(out, s->history->entry[x->from]->label, NAME_MAX);
		buf_printf(out, "</small>");
	}
	if (x->gradual)
		buf_printf(out, "<br><small>gradually: a drift has no entry of its own</small>");
	if (x->because) {
		buf_printf(out, "<br><small>because ");
		xml_quote(out, x->because, NAME_MAX);
		buf_printf(out, x->after < x->before ? " grew</small>" : " shrank</small>");
	}
	if (x->accepted) {
		buf_printf(out, "<br><small>accepted by ");
		xml_quote(out, x->accepted->by, NAME_MAX);
		buf_printf(out, ": ");
		xml_quote(out, x->accepted->why, NAME_MAX);
		buf_printf(out, "</small>");
	}
	buf_printf(out, "</td></tr>\n");
}

static void write_head(struct buf *out, const struct gate_series *s, const char *dir)
{
	static const char *const verdict[] = { "pass", "fail", "", "inconclusive" };
	const struct gate_history *h = s->history;
	const char *word = verdict[gate_series_exit_status(s)];

	buf_printf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
			"name=\"viewport\" content=\"width=device-width\"><title>History ");
	xml_quote(out, dir, NAME_MAX);
	buf_printf(out, "</title><style>%s</style></head><body>\n<h1>Performance history ",
		   page_style);
	xml_quote(out, dir, NAME_MAX);
	buf_printf(out, "</h1>\n<p><span class=\"v %s\">%s</span>: %zu entries",
		   !strcmp(word, "fail")   ? "fail"
		   : !strcmp(word, "pass") ? "better"
					   : "warn",
		   word, h->n);
	if (h->n) {
		buf_printf(out, ", ");
		write_entry(out, h->entry[0]);
		buf_printf(out, " to ");
		write_entry(out, h->entry[h->n - 1]);
	}
	buf_printf(out, "; %zu series", s->nseries);
	if (s->nblind)
		buf_printf(out, ", %zu of them too short for a change of any size to be found",
			   s->nblind);
	buf_printf(out, ".</p>\n");
}

int gate_series_write_html(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e)
{
	write_head(out, s, dir);
	if (s->nsteps)
		buf_printf(
			out,
			"<table><tr><th>Verdict</th><th>Metric</th><th class=\"n\">Before</th><th "
			"class=\"n\">After</th><th class=\"n\">Change</th><th class=\"n\">p</th>"
			"<th>Since</th></tr>\n");
	for (size_t i = 0; i < s->nsteps; i++)
		write_row(out, s, &s->step[i]);
	buf_printf(out, s->nsteps ? "</table>\n" : "<p>No step that reaches a threshold.</p>\n");
	for (size_t i = 0; i < s->nseries && s->history->n; i++)
		write_graph(out, s, i);
	buf_printf(out, "</body></html>\n");
	return out->failed ? err_set(e, ENOMEM, "out of memory for the page") : 0;
}
