/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/report/row.h"

#include <stdio.h>
#include <string.h>

/* perf's colours, and when it uses them. */
#define RED "\033[31m"
#define GREEN "\033[32m"
#define NORMAL "\033[m"
#define RED_PERCENT 5.0
#define GREEN_PERCENT 0.5

double report_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

struct share_interval report_interval(const struct report *r, uint64_t weight)
{
	double whole = (double)r->a->weight, n = share_effective(whole, r->a->weight_squares);
	double percent = report_percent(weight, r->a->weight);
	struct share_interval i = share_wilson95(whole > 0 ? (double)weight / whole : 0, n);

	if (r->p->counted) /* no sampling, no noise */
		return (struct share_interval){ percent, percent };
	return (struct share_interval){ 100 * i.low, 100 * i.high };
}

bool report_shows(const struct report *r, const struct agg_row *row)
{
	uint64_t weight = r->opt->no_children ? row->self : row->children;

	return (!r->opt->no_children || row->self) &&
	       report_percent(weight, r->a->weight) >= r->opt->row_limit;
}

void report_put_percent(const struct report *r, int width, double percent)
{
	const char *color = percent >= RED_PERCENT ? RED : percent > GREEN_PERCENT ? GREEN : NULL;

	if (!r->opt->color)
		color = NULL;
	printf("%s%*.2f%%%s", color ? color : "", width, percent, color ? NORMAL : "");
}

uint64_t report_address(const struct agg_row *row)
{
	return row->frame.symbol ? row->frame.symbol->addr : row->frame.addr;
}

const char *report_cell(const struct report *r, const struct agg_key *key,
			const struct agg_row *row, enum report_cell_form form, char *buf,
			size_t size)
{
	const char *text = key->format(r->t, &row->frame, buf, size), *slash;

	if (form == REPORT_CELL_WHOLE || (strcmp(key->name, "srcline") != 0 &&
					  (strcmp(key->name, "dso") != 0 || text[0] != '/')))
		return text;
	slash = strrchr(text, '/');
	return slash && slash[1] ? slash + 1 : text;
}
