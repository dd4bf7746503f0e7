/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports as JSON: everything, and SARIF.
 *
 * SARIF is OASIS' Static Analysis Results Interchange Format, version 2.1.0; sections are
 * of its specification. What can't be told is a result of kind "open" (3.27.9), whose level
 * must be "none" (3.27.10).
 */
#include "profile/compare/gate/write.h"

#include "profile/compare/gate/say.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE 1024
#define URI                                                                   \
	"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/" \
	"sarif-schema-2.1.0.json"

/* Appends and drops it. */
static int write_json_put(struct buf *out, json_t *j, struct err *e)
{
	char *text = j ? json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(10)) : NULL;

	if (text)
		buf_printf(out, "%s\n", text);
	free(text);
	json_decref(j);
	return text && !out->failed ? 0 : err_set(e, ENOMEM, "out of memory for the report");
}

/* Names are valid UTF-8 already; paths and rules may be anything: null then. */
static json_t *string(const char *s)
{
	json_t *j = s ? json_string(s) : NULL;

	return j ? j : json_null();
}

/* What is no number, or infinite, is null. */
static json_t *write_json_number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static void write_json_set(json_t *o, const char *key, json_t *v)
{
	/* A failure leaves the key out: as good as any answer without memory. */
	json_object_set_new(o, key, v);
}

/* -- everything ----------------------------------------------------------------------------- */

static const char *const unit_name[] = {
	[GATE_ABSOLUTE] = "absolute",
	[GATE_RELATIVE] = "relative",
	[GATE_POINTS] = "points",
};

static json_t *json_flags(unsigned int flags)
{
	static const char *const name[] = { "improved",	  "changed",	"drift",   "autocorrelated",
					    "confounded", "multimodal", "outliers" };
	json_t *list = json_array();

	for (unsigned int i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (flags & 1u << i)
			json_array_append_new(list, json_string(name[i]));
	return list;
}

static json_t *json_runs(const double *v, unsigned int n)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(list, write_json_number(v[i]));
	return list;
}

static json_t *json_finding(const struct gate_report *r, const struct gate_outcome *o,
			    const struct gate_finding *f)
{
	const struct gate_result *x = &f->result;
	json_t *j = json_object();

	if (f->name) {
		write_json_set(j, "function", string(f->name));
		write_json_set(j, "dso", string(f->dso));
		write_json_set(j, "mode", string(f->mode));
	}
	if (o) {
		write_json_set(j, "verdict", string(gate_finding_word(o, f)));
		write_json_set(j, "reason", string(gate_reason_text(x->reason)));
		write_json_set(j, "unit", string(unit_name[f->stats.unit]));
		write_json_set(j, "threshold", write_json_number(f->stats.min_effect));
		write_json_set(j, "effect", write_json_number(x->effect));
		write_json_set(j, "interval",
			       json_pack("[o, o]", write_json_number(x->lo),
					 write_json_number(x->hi)));
		write_json_set(j, "p_fail", write_json_number(x->p_fail));
		write_json_set(j, "p_pass", write_json_number(x->p_pass));
		write_json_set(j, "seen", f->seen < 0 ? json_null() : write_json_number(f->seen));
	}
	write_json_set(j, "base", write_json_number(x->base));
	write_json_set(j, "head", write_json_number(x->head));
	write_json_set(j, "diff", write_json_number(x->diff));
	write_json_set(j, "relative", write_json_number(x->relative));
	write_json_set(j, "hodges_lehmann", write_json_number(x->hodges_lehmann));
	write_json_set(j, "cliff_delta", write_json_number(x->cliff));
	write_json_set(j, "p_two_sided", write_json_number(x->p_two));
	write_json_set(j, "p_least", write_json_number(x->p_least));
	write_json_set(j, "q", write_json_number(x->q));
	write_json_set(j, "notes", json_flags(x->flags));
	write_json_set(j, "base_runs", json_runs(f->value, r->nbase));
	write_json_set(j, "head_runs", json_runs(f->value + r->nbase, r->nhead));
	return j;
}

static json_t *json_outcome(const struct gate_report *r, const struct gate_outcome *o)
{
	static const char *const dimension[] = { "ns", "share", "per second", "bytes", "count" };
	const struct grule *rule = o->rule;
	json_t *j = json_object(), *list;
	char text[SENTENCE];

	write_json_set(j, "rule", string(rule->name));
	write_json_set(j, "metric", string(grule_metric_name(rule->metric)));
	write_json_set(j, "measures", string(rule->key));
	write_json_set(j, "values", string(dimension[grule_dimension(rule)]));
	write_json_set(j, "level", string(rule->fail ? "fail" : "warn"));
	write_json_set(j, "line", json_integer(rule->line));
	write_json_set(j, "verdict", string(gate_status_name(o->status)));
	write_json_set(j, "why", string(o->why));
	gate_say_outcome(text, sizeof(text), o);
	write_json_set(j, "text", string(text));
	gate_say_power(text, sizeof(text), r, o);
	write_json_set(j, "power_text", string(text));
	write_json_set(j, "power", write_json_number(rule->power));
	write_json_set(j, "alpha_each", write_json_number(o->alpha));
	if (o->total.value)
		write_json_set(j, "result", json_finding(r, o, &o->total));
	if (!grule_is_family(rule))
		return j;
	list = json_array();
	for (size_t i = 0; i < o->nfindings; i++)
		json_array_append_new(list, json_finding(r, o, &o->finding[i]));
	write_json_set(j, "functions", list);
	if (o->ncompared)
		write_json_set(j, "functions_compared", json_integer((json_int_t)o->ncompared));
	write_json_set(j, "functions_left_out", json_integer((json_int_t)o->left_out));
	return j;
}

static json_t *json_side(const struct gate *g, enum gate_side side)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < gate_runs(g, side); i++) {
		const struct gate_run *run = gate_run_at(g, side, i);
		json_t *j = json_object();

		write_json_set(j, "input", string(run->path));
		write_json_set(j, "samples", json_integer((json_int_t)run->samples));
		write_json_set(j, "weight", write_json_number(run->weight));
		write_json_set(j, "began_ns", json_integer((json_int_t)run->began_ns));
		write_json_set(j, "event", string(run->event));
		write_json_set(j, "osrelease", string(run->osrelease));
		json_array_append_new(list, j);
	}
	return list;
}

int gate_write_json(struct buf *out, const struct gate_report *r,
		    const struct gate_write_options *opt, struct err *e)
{
	json_t *j = json_object(), *list;
	char text[SENTENCE];

	write_json_set(j, "version", json_integer(1));
	write_json_set(j, "verdict", string(gate_status_name(r->status)));
	write_json_set(j, "exit_status", json_integer(gate_exit_status(r)));
	gate_say_verdict(text, sizeof(text), r);
	write_json_set(j, "text", string(text));
	gate_say_design(text, sizeof(text), r);
	write_json_set(j, "design", string(text));
	write_json_set(j, "exact", json_boolean(r->exact));
	write_json_set(j, "paired", json_boolean(r->paired));
	write_json_set(j, "ordered", json_boolean(r->ordered));
	write_json_set(j, "confounded", json_boolean(r->confounded));
	write_json_set(j, "error_rate", write_json_number(r->error_rate));
	write_json_set(j, "rules_file", string(gate_rules_of(r->gate)->path));
	write_json_set(j, "base", json_side(r->gate, GATE_BASE));
	write_json_set(j, "head", json_side(r->gate, GATE_HEAD));
	list = json_array();
	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(list, json_outcome(r, &r->outcome[i]));
	write_json_set(j, "rules", list);
	list = json_array();
	for (size_t i = 0; i < r->nmoved; i++)
		json_array_append_new(list, json_finding(r, NULL, &r->moved[i]));
	write_json_set(j, "moved", list);
	write_json_set(j, "flamegraph", string(opt->flamegraph));
	return write_json_put(out, j, e);
}

/* -- SARIF ------------------------------------------------------------------------------------ */

struct sarif_end {
	const char *kind, *level;
};

static struct sarif_end sarif_end(const struct gate_outcome *o)
{
	static const struct sarif_end end[] = {
		[GATE_OK] = { "pass", "none" },	     [GATE_SKIPPED] = { "notApplicable", "none" },
		[GATE_UNSURE] = { "open", "none" },  [GATE_WARNED] = { "fail", "warning" },
		[GATE_FAILED] = { "fail", "error" },
	};

	return end[o->status];
}

/* A relative reference (RFC 3986, section 4.2): what may not stand in one is encoded. */
static json_t *sarif_uri(const char *path)
{
	struct buf b;
	json_t *j;

	buf_init(&b);
	for (; *path; path++)
		if (strchr("%#?:[]@!$&'()*+,;=\"<>\\^`{|}", *path) ||
		    (unsigned char)*path <= 0x20 || (unsigned char)*path >= 0x7f)
			buf_printf(&b, "%%%02X", (unsigned char)*path);
		else
			buf_u8(&b, (uint8_t)*path);
	buf_u8(&b, 0);
	j = b.failed ? json_null() : string((const char *)b.data);
	buf_deinit(&b);
	return j;
}

static json_t *sarif_location(const struct gate_report *r, const struct gate_outcome *o)
{
	const struct grules *rules = gate_rules_of(r->gate);
	json_t *where = json_object(), *names = json_array();

	write_json_set(where, "physicalLocation",
		       json_pack("{s:{s:o}, s:{s:i}}", "artifactLocation", "uri",
				 sarif_uri(rules->built_in ? "gate-default.toml" : rules->path),
				 "region", "startLine", (int)o->rule->line));
	for (size_t i = 0; i < o->nworse && i < GATE_SHOWN_WORSE; i++)
		json_array_append_new(names,
				      json_pack("{s:o, s:s}", "fullyQualifiedName",
						string(o->finding[i].name), "kind", "function"));
	if (json_array_size(names))
		write_json_set(where, "logicalLocations", names);
	else
		json_decref(names);
	return where;
}

static json_t *sarif_result(const struct gate_report *r, size_t i)
{
	const struct gate_outcome *o = &r->outcome[i];
	struct sarif_end end = sarif_end(o);
	char text[SENTENCE], power[SENTENCE];
	json_t *j = json_object();

	gate_say_outcome(text, sizeof(text), o);
	gate_say_power(power, sizeof(power), r, o);
	write_json_set(j, "ruleId", string(o->rule->name));
	write_json_set(j, "ruleIndex", json_integer((json_int_t)i));
	write_json_set(j, "kind", string(end.kind));
	write_json_set(j, "level", string(end.level));
	write_json_set(j, "message", json_pack("{s:o}", "text", string(text)));
	write_json_set(j, "locations", json_pack("[o]", sarif_location(r, o)));
	/* The same finding in the next commit is recognised by what is measured. */
	write_json_set(j, "partialFingerprints",
		       json_pack("{s:o}", "kvmprofMeasures/v1", string(o->rule->key)));
	write_json_set(j, "properties",
		       json_pack("{s:o, s:s}", "power", string(power), "verdict",
				 gate_status_name(o->status)));
	return j;
}

static json_t *sarif_rule(const struct gate_outcome *o)
{
	char threshold[160], text[SENTENCE];

	gate_say_threshold(threshold, sizeof(threshold), o->rule);
	snprintf(text, sizeof(text), "%.600s: %s", o->rule->key, threshold);
	return json_pack("{s:o, s:{s:o}, s:{s:s}}", "id", string(o->rule->name), "shortDescription",
			 "text", string(text), "defaultConfiguration", "level",
			 o->rule->fail ? "error" : "warning");
}

int gate_write_sarif(struct buf *out, const struct gate_report *r,
		     const struct gate_write_options *opt, struct err *e)
{
	json_t *rules = json_array(), *results = json_array(), *run;

	(void)opt;
	for (size_t i = 0; i < r->n; i++) {
		json_array_append_new(rules, sarif_rule(&r->outcome[i]));
		json_array_append_new(results, sarif_result(r, i));
	}
	run = json_pack("{s:{s:{s:s, s:s, s:o}}, s:o, s:[{s:b, s:i}]}", "tool", "driver", "name",
			"kvmprof", "semanticVersion", KVMPROF_VERSION, "rules", rules, "results",
			results, "invocations", "executionSuccessful", 1, "exitCode",
			gate_exit_status(r));
	return write_json_put(
		out,
		json_pack("{s:s, s:s, s:[o]}", "$schema", URI, "version", "2.1.0", "runs", run), e);
}
