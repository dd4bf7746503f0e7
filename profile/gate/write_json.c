/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports as JSON: everything, and SARIF.
 *
 * SARIF is OASIS' Static Analysis Results Interchange Format, version 2.1.0; sections are
 * of its specification. What can't be told is a result of kind "open" (3.27.9), whose level
 * must be "none" (3.27.10).
 */
#include "profile/gate/write.h"

#include "profile/gate/say.h"

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
static int put(struct buf *out, json_t *j, struct err *e)
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
static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static void set(json_t *o, const char *key, json_t *v)
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
		json_array_append_new(list, number(v[i]));
	return list;
}

static json_t *json_finding(const struct gate_report *r, const struct gate_outcome *o,
			    const struct gate_finding *f)
{
	const struct gate_result *x = &f->result;
	json_t *j = json_object();

	if (f->name) {
		set(j, "function", string(f->name));
		set(j, "dso", string(f->dso));
		set(j, "mode", string(f->mode));
	}
	if (o) {
		set(j, "verdict", string(gate_finding_word(o, f)));
		set(j, "reason", string(gate_reason_text(x->reason)));
		set(j, "unit", string(unit_name[f->stats.unit]));
		set(j, "threshold", number(f->stats.min_effect));
		set(j, "effect", number(x->effect));
		set(j, "interval", json_pack("[o, o]", number(x->lo), number(x->hi)));
		set(j, "p_fail", number(x->p_fail));
		set(j, "p_pass", number(x->p_pass));
		set(j, "seen", f->seen < 0 ? json_null() : number(f->seen));
	}
	set(j, "base", number(x->base));
	set(j, "head", number(x->head));
	set(j, "diff", number(x->diff));
	set(j, "relative", number(x->relative));
	set(j, "hodges_lehmann", number(x->hodges_lehmann));
	set(j, "cliff_delta", number(x->cliff));
	set(j, "p_two_sided", number(x->p_two));
	set(j, "p_least", number(x->p_least));
	set(j, "q", number(x->q));
	set(j, "notes", json_flags(x->flags));
	set(j, "base_runs", json_runs(f->value, r->nbase));
	set(j, "head_runs", json_runs(f->value + r->nbase, r->nhead));
	return j;
}

static json_t *json_outcome(const struct gate_report *r, const struct gate_outcome *o)
{
	static const char *const dimension[] = { "ns", "share", "per second", "bytes", "count" };
	const struct grule *rule = o->rule;
	json_t *j = json_object(), *list;
	char text[SENTENCE];

	set(j, "rule", string(rule->name));
	set(j, "metric", string(grule_metric_name(rule->metric)));
	set(j, "measures", string(rule->key));
	set(j, "values", string(dimension[grule_dimension(rule)]));
	set(j, "level", string(rule->fail ? "fail" : "warn"));
	set(j, "line", json_integer(rule->line));
	set(j, "verdict", string(gate_status_name(o->status)));
	set(j, "why", string(o->why));
	gate_say_outcome(text, sizeof(text), o);
	set(j, "text", string(text));
	gate_say_power(text, sizeof(text), r, o);
	set(j, "power_text", string(text));
	set(j, "power", number(rule->power));
	set(j, "alpha_each", number(o->alpha));
	if (o->total.value)
		set(j, "result", json_finding(r, o, &o->total));
	if (!grule_is_family(rule))
		return j;
	list = json_array();
	for (size_t i = 0; i < o->nfindings; i++)
		json_array_append_new(list, json_finding(r, o, &o->finding[i]));
	set(j, "functions", list);
	set(j, "functions_left_out", json_integer((json_int_t)o->left_out));
	return j;
}

static json_t *json_side(const struct gate *g, enum gate_side side)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < gate_runs(g, side); i++) {
		const struct gate_run *run = gate_run_at(g, side, i);
		json_t *j = json_object();

		set(j, "input", string(run->path));
		set(j, "samples", json_integer((json_int_t)run->samples));
		set(j, "weight", number(run->weight));
		set(j, "began_ns", json_integer((json_int_t)run->began_ns));
		set(j, "event", string(run->event));
		set(j, "osrelease", string(run->osrelease));
		json_array_append_new(list, j);
	}
	return list;
}

int gate_write_json(struct buf *out, const struct gate_report *r,
		    const struct gate_write_options *opt, struct err *e)
{
	json_t *j = json_object(), *list;
	char text[SENTENCE];

	set(j, "version", json_integer(1));
	set(j, "verdict", string(gate_status_name(r->status)));
	set(j, "exit_status", json_integer(gate_exit_status(r)));
	gate_say_verdict(text, sizeof(text), r);
	set(j, "text", string(text));
	gate_say_design(text, sizeof(text), r);
	set(j, "design", string(text));
	set(j, "paired", json_boolean(r->paired));
	set(j, "ordered", json_boolean(r->ordered));
	set(j, "confounded", json_boolean(r->confounded));
	set(j, "error_rate", number(r->error_rate));
	set(j, "rules_file", string(gate_rules_of(r->gate)->path));
	set(j, "base", json_side(r->gate, GATE_BASE));
	set(j, "head", json_side(r->gate, GATE_HEAD));
	list = json_array();
	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(list, json_outcome(r, &r->outcome[i]));
	set(j, "rules", list);
	list = json_array();
	for (size_t i = 0; i < r->nmoved; i++)
		json_array_append_new(list, json_finding(r, NULL, &r->moved[i]));
	set(j, "moved", list);
	set(j, "flamegraph", string(opt->flamegraph));
	return put(out, j, e);
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

	set(where, "physicalLocation",
	    json_pack("{s:{s:o}, s:{s:i}}", "artifactLocation", "uri",
		      sarif_uri(rules->built_in ? "gate-default.toml" : rules->path), "region",
		      "startLine", (int)o->rule->line));
	for (size_t i = 0; i < o->nworse && i < GATE_SHOWN_WORSE; i++)
		json_array_append_new(names,
				      json_pack("{s:o, s:s}", "fullyQualifiedName",
						string(o->finding[i].name), "kind", "function"));
	if (json_array_size(names))
		set(where, "logicalLocations", names);
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
	set(j, "ruleId", string(o->rule->name));
	set(j, "ruleIndex", json_integer((json_int_t)i));
	set(j, "kind", string(end.kind));
	set(j, "level", string(end.level));
	set(j, "message", json_pack("{s:o}", "text", string(text)));
	set(j, "locations", json_pack("[o]", sarif_location(r, o)));
	/* The same finding in the next commit is recognised by what is measured. */
	set(j, "partialFingerprints",
	    json_pack("{s:o}", "kvmprofMeasures/v1", string(o->rule->key)));
	set(j, "properties",
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
	return put(out,
		   json_pack("{s:s, s:s, s:[o]}", "$schema", URI, "version", "2.1.0", "runs", run),
		   e);
}
