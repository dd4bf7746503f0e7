/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_report_data: the report for programs: JSON, and CSV (RFC 4180).
 */
#include "base/json.h"
#include "profile/cmd/report.h"

#include <inttypes.h>
#include <stdio.h>

static void put_json_interval(const char *name, struct share_interval i)
{
	printf(",\"%s\":[%.4f,%.4f]", name, i.low, i.high);
}

static int put_json_row(const struct report *r, const struct agg_row *row)
{
	const struct agg_config *c = &r->opt->config;
	char buf[REPORT_CELL_SIZE];
	int ret = 0;

	putchar('{');
	for (unsigned int k = 0; k < c->nkeys; k++) {
		const struct agg_key *key = c->key[k];
		const char *text = report_cell(r, key, row, REPORT_CELL_WHOLE, buf, sizeof(buf));

		printf("\"%s\":", key->json);
		if (key->number)
			fputs(text, stdout);
		else
			json_quote_file(stdout, text);
		if (!strcmp(key->name, "sym"))
			printf(",\"named\":%s", row->frame.symbol ? "true" : "false");
		putchar(',');
	}
	printf("\"self\":%" PRIu64 ",\"children\":%" PRIu64 ",\"self_samples\":%" PRIu64
	       ",\"children_samples\":%" PRIu64,
	       row->self, row->children, row->self_samples, row->children_samples);
	put_json_interval("self_ci", report_interval(r, row->self));
	put_json_interval("children_ci", report_interval(r, row->children));
	if (r->opt->graph) {
		printf(",\"%s\":", r->opt->graph == REPORT_CALLER ? "callees" : "callers");
		ret = report_tree_json(r, row);
	}
	putchar('}');
	return ret;
}

static void put_json_events(const struct perfdata *p)
{
	printf(",\"events\":[");
	for (uint32_t i = 0; i < p->nevents; i++) {
		fputs(i ? ",{\"name\":" : "{\"name\":", stdout);
		json_quote_file(stdout, p->events[i].name);
		printf(",\"samples\":%" PRIu64 "}", p->events[i].samples);
	}
	putchar(']');
}

int report_json(const struct report *r)
{
	const struct perfdata *p = r->p;
	const struct agg *a = r->a;
	unsigned long shown = 0;
	int ret = 0;

	printf("{\"event\":");
	json_quote_file(stdout, p->event);
	put_json_events(p);
	printf(",\"osrelease\":");
	json_quote_file(stdout, p->osrelease);
	printf(",\"vcpus\":%u,\"samples\":%" PRIu64 ",\"weight\":%" PRIu64 ",\"lost\":%" PRIu64
	       ",\"mappings_left_out\":%" PRIu64 ",\"first_ns\":%" PRIu64 ",\"last_ns\":%" PRIu64
	       ",\"partial\":%s,\"message\":",
	       p->ncpus, a->samples, a->weight, p->nlost, names_left_out(r->n), p->first_ns,
	       p->last_ns, p->partial ? "true" : "false");
	json_quote_file(stdout, p->message);
	printf(",\"mode_weight\":{\"idle\":%" PRIu64 ",\"kernel\":%" PRIu64 ",\"user\":%" PRIu64
	       "},\"effective_samples\":%.1f,\n\"symbols\":[",
	       a->mode_weight[AGG_IDLE], a->mode_weight[AGG_KERNEL], a->mode_weight[AGG_USER],
	       share_effective((double)a->weight, a->weight_squares));
	for (size_t i = 0; i < a->nrows && (!r->opt->top || shown < r->opt->top) && !ret; i++) {
		if (!report_shows(r, &a->row[i]))
			continue;
		fputs(shown++ ? ",\n" : "\n", stdout);
		ret = put_json_row(r, &a->row[i]);
	}
	printf("\n]}\n");
	return ret;
}

/* -- CSV ---------------------------------------------------------------------------- */

static void put_csv_text(const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		fputs(s, stdout);
		return;
	}
	putchar('"');
	for (; *s; s++) {
		if (*s == '"')
			putchar('"');
		putchar(*s);
	}
	putchar('"');
}

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
			put_csv_text(report_cell(r, c->key[k], row, REPORT_CELL_WHOLE, buf,
						 sizeof(buf)));
		}
		fputs("\r\n", stdout);
	}
}
