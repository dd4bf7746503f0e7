/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/report/text.h"

#include "base/utf8.h"
#include "profile/cmd/report/header.h"
#include "profile/cmd/report/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_WIDTH 48 /* widest column; a longer text moves the rest of its line */

/* The widest text of each column among the first `shown` rows. */
static void column_widths(const struct report *r, size_t shown, int width[AGG_MAX_KEYS])
{
	const struct agg_config *c = &r->opt->config;
	const struct agg *a = r->a;
	char buf[REPORT_CELL_SIZE];

	for (unsigned int k = 0; k < c->nkeys; k++) {
		int header = (int)strlen(c->key[k]->header);

		width[k] = header > c->key[k]->width ? header : c->key[k]->width;
	}
	for (size_t i = 0; i < a->nrows && shown; i++) {
		if (!report_shows(r, &a->row[i]))
			continue;
		shown--;
		for (unsigned int k = 0; k < c->nkeys; k++) {
			size_t len = strlen(report_cell(r, c->key[k], &a->row[i], REPORT_CELL_SHORT,
							buf, sizeof(buf)));

			if ((int)len > width[k])
				width[k] = len < MAX_WIDTH ? (int)len : MAX_WIDTH;
		}
	}
}

static void put_column(const struct agg_key *key, const char *text, int width, bool last)
{
	int pad = width - (int)strlen(text);

	fputs("  ", stdout);
	if (key->number)
		printf("%*s", pad > 0 ? pad : 0, "");
	utf8_put(stdout, text);
	if (!key->number && !last)
		printf("%*s", pad > 0 ? pad : 0, "");
}

static bool shows_intervals(const struct report *r)
{
	return r->opt->ci && !r->p->counted;
}

static void print_heading(const struct report *r, const int width[AGG_MAX_KEYS])
{
	const struct agg_config *c = &r->opt->config;
	const char *interval = shows_intervals(r) ? "    95 % interval" : "";

	if (r->opt->ci && r->p->counted)
		fputs("#\n# counts are exact: there are no intervals\n", stdout);
	fputs("#\n#", stdout);
	if (!r->opt->no_children)
		printf("Children%s    ", interval);
	else
		fputs("   ", stdout);
	printf("Self%s", interval);
	if (!r->p->counted)
		fputs("    Samples", stdout);
	else if (r->opt->no_children)
		printf("  %14s", "Count: Self");
	else
		printf("  %16s %14s", "Count: Children", "Self");
	for (unsigned int k = 0; k < c->nkeys; k++)
		put_column(c->key[k], c->key[k]->header, width[k], k + 1 == c->nkeys);
	putchar('\n');
}

static void print_share(const struct report *r, int width, uint64_t weight)
{
	report_put_percent(r, width, report_percent(weight, r->a->weight));
	if (shows_intervals(r)) {
		struct share_interval i = report_interval(r, weight);
		char text[32];

		snprintf(text, sizeof(text), "%.2f-%.2f%%", i.low, i.high);
		printf("  %15s", text);
	}
}

static int print_row(const struct report *r, const struct agg_row *row,
		     const int width[AGG_MAX_KEYS])
{
	const struct agg_config *c = &r->opt->config;
	char buf[REPORT_CELL_SIZE];

	if (!r->opt->no_children)
		print_share(r, 8, row->children);
	print_share(r, 7, row->self);
	if (!r->p->counted)
		printf(" %10" PRIu64, row->self_samples);
	else if (r->opt->no_children)
		printf("  %14" PRIu64, row->self);
	else
		printf("  %16" PRIu64 " %14" PRIu64, row->children, row->self);
	for (unsigned int k = 0; k < c->nkeys; k++)
		put_column(c->key[k],
			   report_cell(r, c->key[k], row, REPORT_CELL_SHORT, buf, sizeof(buf)),
			   width[k], k + 1 == c->nkeys);
	putchar('\n');
	return r->opt->graph ? report_tree(r, row) : 0;
}

/* A row with at least this share of the time but fewer than this number of samples gets a warning. */
#define FEW_SAMPLES 5u
#define FEW_PERCENT 5.0
#define FEW_SHOWN 5u

/* Returns the key that names a row in a sentence: the symbol, if that is a column. */
static const struct agg_key *name_key(const struct report *r)
{
	const struct agg_config *c = &r->opt->config;

	for (unsigned int k = 0; k < c->nkeys; k++)
		if (!strcmp(c->key[k]->name, "sym"))
			return c->key[k];
	return c->key[0];
}

/* Which of the rows that were shown say more than their samples can bear. */
static void print_few(const struct report *r, size_t shown)
{
	char buf[REPORT_CELL_SIZE];
	size_t n = 0;

	for (size_t i = 0; i < r->a->nrows && shown; i++) {
		const struct agg_row *row = &r->a->row[i];
		double percent = report_percent(row->self, r->a->weight);

		if (!report_shows(r, row))
			continue;
		shown--;
		if (row->self_samples >= FEW_SAMPLES || percent < FEW_PERCENT || n++ >= FEW_SHOWN)
			continue;
		fputs(n == 1 ? "# few samples: " : ", ", stdout);
		utf8_put(stdout,
			 report_cell(r, name_key(r), row, REPORT_CELL_SHORT, buf, sizeof(buf)));
		printf(" (%.2f %% by %" PRIu64 ")", percent, row->self_samples);
	}
	if (n > FEW_SHOWN)
		printf(" and %zu more", n - FEW_SHOWN);
	if (n)
		puts("; --ci shows how far such a share is sure");
}

int report_text(const struct report *r)
{
	const struct report_options *opt = r->opt;
	size_t rows = 0, shown;
	int width[AGG_MAX_KEYS], ret = 0;

	report_header(r);
	for (size_t i = 0; i < r->a->nrows; i++)
		rows += report_shows(r, &r->a->row[i]);
	shown = opt->top && opt->top < rows ? opt->top : rows;
	column_widths(r, shown, width);
	print_heading(r, width);
	for (size_t i = 0, left = shown; i < r->a->nrows && left && !ret; i++) {
		if (!report_shows(r, &r->a->row[i]))
			continue;
		left--;
		ret = print_row(r, &r->a->row[i], width);
	}
	if (shown < rows)
		printf("# and %zu more (-n 0 shows all)\n", rows - shown);
	if (!r->p->counted)
		print_few(r, shown);
	return ret;
}
