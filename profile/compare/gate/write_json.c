/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports as JSON: everything, and SARIF.
 *
 * SARIF is OASIS' Static Analysis Results Interchange Format, version 2.1.0; sections are
 * of its specification. What can't be told is a result of kind "open" (3.27.9), whose level
 * must be "none" (3.27.10).
 */
#include "profile/compare/gate/write_json.h"

#include "base/json.h"
#include "profile/compare/gate/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define URI                                                                   \
	"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/" \
	"sarif-schema-2.1.0.json"

/* The precision of every real. What is no number, or infinite, is null. */
static struct json_value real(double v)
{
	return json_short(10, v);
}

static int write_json_end(struct json_writer *w, struct err *e)
{
	json_object_end(w);
	buf_u8(w->b, '\n');
	return w->b->failed ? err_set(e, ENOMEM, "out of memory for the report") : 0;
}

/* -- everything ----------------------------------------------------------------------------- */

static void json_flags(struct json_writer *w, unsigned int flags)
{
	static const char *const name[] = { "improved", "changed", "confounded", "outliers" };

	json_array_begin(w, "notes");
	for (unsigned int i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (flags & 1u << i)
			json_str(w, NULL, name[i]);
	json_array_end(w);
}

static void json_reals(struct json_writer *w, const char *key, const double *v, unsigned int n)
{
	json_array_begin(w, key);
	for (unsigned int i = 0; i < n; i++)
		json_number(w, NULL, "%.10g", v[i]);
	json_array_end(w);
}

/* o: NULL for a function that moved, which no rule is about. */
static void json_finding(struct json_writer *w, const char *key, const struct gate_report *r,
			 const struct gate_outcome *o, const struct gate_finding *f)
{
	static const char *const unit_name[] = {
		[STATS_ABSOLUTE] = "absolute",
		[STATS_RELATIVE] = "relative",
		[STATS_POINTS] = "points",
	};
	const struct stats_result *x = &f->result;

	json_line(w);
	json_object_begin(w, key);
	if (f->name)
		json_put(w, "function", f->name, "dso", f->dso, "mode", f->mode, "note", f->note,
			 "explained", json_of_bool(f->explained));
	if (o) {
		json_put(w, "verdict", gate_finding_word(o, f), "reason",
			 stats_reason_text(x->reason), "unit", unit_name[f->stats.unit],
			 "threshold", real(f->stats.min_effect), "effect", real(x->effect));
		json_reals(w, "interval", (double[]){ x->lo, x->hi }, 2);
		json_put(w, "p_fail", real(x->p_fail), "p_pass", real(x->p_pass), "seen",
			 real(f->seen < 0 ? NAN : f->seen));
	}
	json_put(w, "base", real(x->base), "head", real(x->head), "diff", real(x->diff), "relative",
		 real(x->relative), "hodges_lehmann", real(x->hodges_lehmann), "cliff_delta",
		 real(x->cliff), "p_two_sided", real(x->p_two), "p_least", real(x->p_least), "q",
		 real(x->q));
	json_flags(w, x->flags);
	json_reals(w, "base_runs", f->value, r->nbase);
	json_reals(w, "head_runs", f->value + r->nbase, r->nhead);
	json_object_end(w);
}

static void json_outcome(struct json_writer *w, const struct gate_report *r,
			 const struct gate_outcome *o)
{
	static const char *const dimension[] = { "ns", "share", "per second", "bytes", "count" };
	const struct gate_rule *rule = o->rule;
	char said[GATE_SENTENCE], power[GATE_SENTENCE];

	gate_text_outcome(said, sizeof(said), o);
	gate_text_power(power, sizeof(power), r, o);
	json_line(w);
	json_object_begin(w, NULL);
	json_put(w, "rule", rule->name, "metric", gate_rule_metric_name(rule->metric), "measures",
		 rule->key, "values", dimension[gate_rule_dimension(rule)], "level",
		 rule->fail ? "fail" : "warn", "line", rule->line, "verdict",
		 gate_status_name(o->status), "why", o->why, "text", said, "power_text", power,
		 "power", real(rule->power), "alpha_each", real(o->alpha));
	if (rule->accepted)
		json_str(w, "accepted", rule->accepted);
	if (o->total.value)
		json_finding(w, "result", r, o, &o->total);
	if (gate_rule_is_family(rule)) {
		json_array_begin(w, "functions");
		for (size_t i = 0; i < o->nfindings; i++)
			json_finding(w, NULL, r, o, &o->finding[i]);
		json_array_end(w);
		if (o->ncompared)
			json_put(w, "functions_compared", o->ncompared);
		json_put(w, "functions_left_out", o->left_out);
	}
	json_object_end(w);
}

static void json_side(struct json_writer *w, const struct gate *g, enum gate_side side)
{
	json_array_begin(w, side == GATE_BASE ? "base" : "head");
	for (unsigned int i = 0; i < gate_runs(g, side); i++) {
		const struct gate_run *run = gate_run_at(g, side, i);

		json_line(w);
		json_put_object(w, NULL, "input", run->path, "samples", run->samples, "weight",
				real(run->weight), "began_ns", run->began_ns, "event", run->event,
				"osrelease", run->osrelease, "guest", run->guest);
	}
	json_array_end(w);
}

static void json_relations(struct json_writer *w, const struct gate_report *r)
{
	json_array_begin(w, "relations");
	for (size_t i = 0; i < r->nrelations; i++) {
		const struct gate_relation *x = &r->relation[i];

		json_put_object(w, NULL, "kind", lineage_kind_name(x->kind), "function",
				x->function, "other", x->other, "base", real(x->base), "head",
				real(x->head));
	}
	json_array_end(w);
}

int gate_write_json(struct buf *out, const struct gate_report *r,
		    const struct gate_write_options *opt, struct err *e)
{
	char verdict[GATE_SENTENCE], design[GATE_SENTENCE];
	struct json_writer w;

	gate_text_verdict(verdict, sizeof(verdict), r);
	gate_text_design(design, sizeof(design), r);
	json_begin(&w, out);
	json_object_begin(&w, NULL);
	json_put(&w, "version", 1u, "verdict", gate_status_name(r->status), "exit_status",
		 (unsigned int)gate_exit_status(r), "text", verdict, "design", design, "exact",
		 r->exact, "paired", r->paired, "ordered", r->ordered, "confounded", r->confounded,
		 "error_rate", real(r->error_rate), "rules_file", gate_rules_of(r->gate)->path);
	gate_text_work(verdict, sizeof(verdict), r);
	json_put(&w, "work", verdict);
	gate_text_noise(verdict, sizeof(verdict), r);
	json_put(&w, "noise", verdict, "runs_would_suffice", r->noise.runs);
	json_put(&w, "means_differ", r->means, "same_run", r->same);
	json_side(&w, r->gate, GATE_BASE);
	json_side(&w, r->gate, GATE_HEAD);
	json_array_begin(&w, "rules");
	for (size_t i = 0; i < r->n; i++)
		json_outcome(&w, r, &r->outcome[i]);
	json_array_end(&w);
	json_array_begin(&w, "moved");
	for (size_t i = 0; i < r->nmoved; i++)
		json_finding(&w, NULL, r, NULL, &r->moved[i]);
	json_array_end(&w);
	json_relations(&w, r);
	json_str(&w, "changed", r->changed);
	json_put(&w, "flamegraph", opt->flamegraph, "view", opt->page);
	return write_json_end(&w, e);
}

/* -- SARIF ------------------------------------------------------------------------------------ */

/* A relative reference (RFC 3986, section 4.2): what may not stand in one is encoded. */
static void sarif_uri(struct json_writer *w, const char *path)
{
	struct buf b;

	buf_init(&b);
	for (; *path; path++)
		if (strchr("%#?:[]@!$&'()*+,;=\"<>\\^`{|}", *path) ||
		    (unsigned char)*path <= 0x20 || (unsigned char)*path >= 0x7f)
			buf_printf(&b, "%%%02X", (unsigned char)*path);
		else
			buf_u8(&b, (uint8_t)*path);
	buf_u8(&b, 0);
	json_str(w, "uri", b.failed ? NULL : (const char *)b.data);
	buf_deinit(&b);
}

static void sarif_location(struct json_writer *w, const struct gate_report *r,
			   const struct gate_outcome *o)
{
	const struct gate_rules *rules = gate_rules_of(r->gate);

	json_object_begin(w, NULL);
	json_object_begin(w, "physicalLocation");
	json_object_begin(w, "artifactLocation");
	sarif_uri(w, rules->built_in ? rules->built_in : rules->path);
	json_object_end(w);
	json_put_object(w, "region", "startLine", o->rule->line);
	json_object_end(w);
	if (o->nworse) {
		json_array_begin(w, "logicalLocations");
		for (size_t i = 0; i < o->nworse && i < GATE_SHOWN_WORSE; i++)
			json_put_object(w, NULL, "fullyQualifiedName", o->finding[i].name, "kind",
					"function");
		json_array_end(w);
	}
	json_object_end(w);
}

static void sarif_result(struct json_writer *w, const struct gate_report *r, size_t i)
{
	static const struct {
		const char *kind, *level;
	} end[] = {
		[GATE_OK] = { "pass", "none" },	     [GATE_SKIPPED] = { "notApplicable", "none" },
		[GATE_UNSURE] = { "open", "none" },  [GATE_WARNED] = { "fail", "warning" },
		[GATE_FAILED] = { "fail", "error" },
	};
	const struct gate_outcome *o = &r->outcome[i];
	char said[GATE_SENTENCE], power[GATE_SENTENCE];

	gate_text_outcome(said, sizeof(said), o);
	gate_text_power(power, sizeof(power), r, o);
	json_line(w);
	json_object_begin(w, NULL);
	json_put(w, "ruleId", o->rule->name, "ruleIndex", i, "kind", end[o->status].kind, "level",
		 end[o->status].level);
	json_put_object(w, "message", "text", said);
	json_array_begin(w, "locations");
	sarif_location(w, r, o);
	json_array_end(w);
	/* The same finding in the next commit is recognised by what is measured. */
	json_put_object(w, "partialFingerprints", "kvmprofMeasures/v1", o->rule->key);
	json_put_object(w, "properties", "power", power, "verdict", gate_status_name(o->status));
	json_object_end(w);
}

static void sarif_rule(struct json_writer *w, const struct gate_rule *rule)
{
	char threshold[160], text[GATE_SENTENCE];

	gate_text_threshold(threshold, sizeof(threshold), rule);
	snprintf(text, sizeof(text), "%.600s: %s", rule->key, threshold);
	json_line(w);
	json_object_begin(w, NULL);
	json_str(w, "id", rule->name);
	json_put_object(w, "shortDescription", "text", text);
	json_put_object(w, "defaultConfiguration", "level", rule->fail ? "error" : "warning");
	json_object_end(w);
}

int gate_write_sarif(struct buf *out, const struct gate_report *r,
		     const struct gate_write_options *opt, struct err *e)
{
	struct json_writer w;

	(void)opt;
	json_begin(&w, out);
	json_object_begin(&w, NULL);
	json_put(&w, "$schema", URI, "version", "2.1.0");
	json_array_begin(&w, "runs");
	json_object_begin(&w, NULL);
	json_object_begin(&w, "tool");
	json_object_begin(&w, "driver");
	json_put(&w, "name", "kvmprof", "semanticVersion", KVMPROF_VERSION);
	json_array_begin(&w, "rules");
	for (size_t i = 0; i < r->n; i++)
		sarif_rule(&w, r->outcome[i].rule);
	json_array_end(&w);
	json_object_end(&w);
	json_object_end(&w);
	json_array_begin(&w, "results");
	for (size_t i = 0; i < r->n; i++)
		sarif_result(&w, r, i);
	json_array_end(&w);
	json_array_begin(&w, "invocations");
	json_put_object(&w, NULL, "executionSuccessful", json_of_bool(true), "exitCode",
			(unsigned int)gate_exit_status(r));
	json_array_end(&w);
	json_object_end(&w);
	json_array_end(&w);
	return write_json_end(&w, e);
}
