/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * row: what all views of `kvmprof report` ask about a row: its share, how certain that is, whether it is shown,
 * and what stands in its columns. The views include this file; the command includes the views.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_ROW_H
#define KVMPROF_PROFILE_CMD_REPORT_ROW_H

#include "profile/analyse/tables/agg.h"
#include "profile/compare/stats/share.h"
#include "profile/format/files/debuginfo.h"
#include "profile/format/names/reader.h"

#define REPORT_CELL_SIZE 64

enum report_format { REPORT_TEXT, REPORT_JSON, REPORT_CSV };
enum report_graph { REPORT_NO_GRAPH, REPORT_CALLER, REPORT_CALLEE };
enum report_color { REPORT_COLOR_AUTO, REPORT_COLOR_ALWAYS, REPORT_COLOR_NEVER };

/* One end of --time. */
struct report_time {
	bool given, percent;
	double value; /* seconds since the first sample, or percent of the whole time */
};

struct report_options {
	const char *input, *buildid_dir, *event;
	unsigned long top;
	uint32_t epoch; /* the guest's kernel, from 1 on; 0: all */
	bool by_self, no_children, no_demangle, ci, images, functions, header;
	bool color; /* once it is known where to */
	enum report_format format;
	enum report_graph graph;
	enum report_color when_color;
	double row_limit, graph_limit; /* percent */
	struct report_time from, to;
	bool phases;	   /* the table of slices */
	const char *phase; /* only this one; NULL: all */
	bool sorted;	   /* --sort is given */
	bool named;	   /* the profile is given, by -i or as a word */
	bool stdio;	   /* perf's word for what it is anyway */
	struct debuginfo_places places;
	struct agg_config config;
	regex_t symbol, parent; /* config points at them when given */
};

/* Everything that printing needs. */
struct report {
	const struct report_options *opt;
	const struct perfdata *p;
	const struct agg *a;
	const struct names *n;
	const struct tasks *t;
};

enum report_cell_form {
	REPORT_CELL_SHORT, /* a file by its last part */
	REPORT_CELL_WHOLE,
};

/* Returns `part` in percent of `whole`; 0 if there is nothing. */
double report_percent(uint64_t part, uint64_t whole);
/* Returns the interval of 95 % confidence around a weight's share, in percent. */
struct share_interval report_interval(const struct report *r, uint64_t weight);
/* Returns whether the options let this row through. */
bool report_shows(const struct report *r, const struct agg_row *row);
/* Returns the text of a column. It may use buf, of REPORT_CELL_SIZE bytes or more. */
const char *report_cell(const struct report *r, const struct agg_key *key,
			const struct agg_row *row, enum report_cell_form form, char *buf,
			size_t size);
/* Prints "%*.2f%%", in colour when it weighs something. */
void report_put_percent(const struct report *r, int width, double percent);

#endif
