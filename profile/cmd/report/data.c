/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CSV: RFC 4180. */
#include "profile/cmd/report/data.h"

#include "base/json.h"
#include "base/utf8.h"
#include "profile/cmd/report/header.h"
#include "profile/cmd/report/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static void put_json_interval(struct json_writer *w, const char *name, struct share_interval i)
{
	json_array_begin(w, name);
	json_put(w, NULL, json_fixed(4, i.low), NULL, json_fixed(4, i.high));
	json_array_end(w);
}

static int put_json_row(struct json_writer *w, const struct report *r, const struct agg_row *row)
{
	const struct agg_config *c = &r->opt->config;
	char buf[REPORT_CELL_SIZE];
	int ret = 0;

	json_line(w);
	json_object_begin(w, NULL);
	for (unsigned int k = 0; k < c->nkeys; k++) {
		const struct agg_key *key = c->key[k];
		const char *text = report_cell(r, key, row, REPORT_CELL_WHOLE, buf, sizeof(buf));

		(key->number ? json_raw : json_str)(w, key->json, text);
		if (!strcmp(key->name, "sym"))
			json_put(w, "named", json_of_bool(row->frame.symbol), "address",
				 json_address(report_address(row)));
	}
	json_put(w, "self", row->self, "children", row->children, "self_samples", row->self_samples,
		 "children_samples", row->children_samples);
	put_json_interval(w, "self_ci", report_interval(r, row->self));
	put_json_interval(w, "children_ci", report_interval(r, row->children));
	if (r->opt->graph)
		ret = report_tree_json(w, r->opt->graph == REPORT_CALLER ? "callees" : "callers", r,
				       row);
	json_object_end(w);
	return ret;
}

static void put_json_events(struct json_writer *w, const struct perfdata *p)
{
	json_array_begin(w, "events");
	for (uint32_t i = 0; i < p->nevents; i++)
		json_put_object(w, NULL, "name", p->events[i].name, "samples",
				p->events[i].samples);
	json_array_end(w);
}

int report_json(const struct report *r)
{
	const struct perfdata *p = r->p;
	const struct agg *a = r->a;
	const struct report_outside outside = report_outside(p);
	double effective = share_effective((double)a->weight, a->weight_squares);
	unsigned long shown = 0;
	struct json_writer w;
	char note[NAMES_NOTE_MAX];
	int ret = 0;

	names_note(r->n, note);
	json_open(&w);
	json_str(&w, "event", p->event);
	put_json_events(&w, p);
	json_put(&w, "osrelease", p->osrelease, "guest", p->guest, "vcpus", p->ncpus, "samples",
		 a->samples, "weight", a->weight, "lost", p->nlost);
	json_put(&w, "mappings_left_out", names_left_out(r->n), "first_ns", p->first_ns, "last_ns",
		 p->last_ns, "partial", p->partial, "message", p->message, "note", note);
	json_put_object(&w, "mode_weight", "idle", a->mode_weight[AGG_IDLE], "kernel",
			a->mode_weight[AGG_KERNEL], "user", a->mode_weight[AGG_USER],
			"guest_kernel", a->mode_weight[AGG_GUEST_KERNEL], "guest_user",
			a->mode_weight[AGG_GUEST_USER], "hypervisor",
			a->mode_weight[AGG_HYPERVISOR], "unknown", a->mode_weight[AGG_NO_MODE]);
	if (outside.away_ns || outside.unstarted_ns)
		json_put_object(&w, "outside_of_shares", "paused_or_in_vmm_ns", outside.away_ns,
				"never_started_ns", outside.unstarted_ns);
	json_put(&w, "effective_samples", json_fixed(1, effective));
	json_array_begin(&w, "symbols");
	for (size_t i = 0; i < a->nrows && (!r->opt->top || shown < r->opt->top) && !ret; i++) {
		if (!report_shows(r, &a->row[i]))
			continue;
		shown++;
		ret = put_json_row(&w, r, &a->row[i]);
	}
	json_array_end(&w);
	return json_close(&w, ret ? NULL : stdout) ? -ENOMEM : ret;
}

/* -- CSV ---------------------------------------------------------------------------- */

static void put_csv_share(const struct report *r, uint64_t weight)
{
	struct share_interval i = report_interval(r, weight);

	printf("%.4f,", report_percent(weight, r->a->weight));
	if (r->opt->ci)
		printf("%.4f,%.4f,", i.low, i.high);
}

/* Lines end in CR LF, as the standard wants it; percentages are numbers without a sign. */
void report_csv(const struct report *r)
{
	const struct report_options *opt = r->opt;
	const struct agg_config *c = &opt->config;
	char buf[REPORT_CELL_SIZE];
	unsigned long shown = 0;

	if (!opt->no_children)
		fputs(opt->ci ? "children_percent,children_low,children_high,"
			      : "children_percent,",
		      stdout);
	fputs(opt->ci ? "self_percent,self_low,self_high," : "self_percent,", stdout);
	fputs("children_weight,self_weight,children_samples,self_samples", stdout);
	for (unsigned int k = 0; k < c->nkeys; k++)
		printf(",%s", c->key[k]->json);
	fputs("\r\n", stdout);
	for (size_t i = 0; i < r->a->nrows && (!opt->top || shown < opt->top); i++) {
		const struct agg_row *row = &r->a->row[i];

		if (!report_shows(r, row))
			continue;
		shown++;
		if (!opt->no_children)
			put_csv_share(r, row->children);
		put_csv_share(r, row->self);
		printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, row->children, row->self,
		       row->children_samples, row->self_samples);
		for (unsigned int k = 0; k < c->nkeys; k++) {
			putchar(',');
			utf8_put_csv(stdout, report_cell(r, c->key[k], row, REPORT_CELL_WHOLE, buf,
							 sizeof(buf)));
		}
		fputs("\r\n", stdout);
	}
}
