/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * row: functions that all views of `kvmprof report` share: the share of a row, its confidence
 * interval, whether the row is shown, and the texts of its columns. The views include this file;
 * the command includes the views. Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_ROW_H
#define KVMPROF_PROFILE_CMD_REPORT_ROW_H

#include "profile/analyse/stacks/selection.h"
#include "profile/analyse/tables/agg.h"
#include "profile/compare/stats/share.h"
#include "profile/format/files/debuginfo.h"
#include "profile/format/names/reader.h"

#define REPORT_CELL_SIZE 64

enum report_format { REPORT_TEXT, REPORT_JSON, REPORT_CSV };
enum report_graph { REPORT_NO_GRAPH, REPORT_CALLER, REPORT_CALLEE };
enum report_color { REPORT_COLOR_AUTO, REPORT_COLOR_ALWAYS, REPORT_COLOR_NEVER };

struct report_options {
	const char *input, *buildid_dir, *event;
	unsigned long top;
	uint32_t epoch; /* the guest's kernel, from 1 on; 0: all */
	bool by_self, no_children, no_demangle, ci, images, functions, header;
	bool color; /* the result of when_color and of where stdout goes */
	enum report_format format;
	enum report_graph graph;
	enum report_color when_color;
	double row_limit, graph_limit; /* percent */
	struct selection selection;
	bool sorted; /* --sort is given */
	bool named;  /* the profile is given, by -i or as a word */
	bool stdio;  /* --stdio of perf; has no effect */
	struct debuginfo_places places;
	struct agg_config config;
};

/* The arguments of all views; all pointers are borrowed. */
struct report {
	const struct report_options *opt;
	const struct perfdata *p;
	const struct agg *a;
	const struct names *n;
	const struct tasks *t;
};

/*
 * Returns the address of a row's function: at run time for the kernel, in its file for a program. For
 * code without a name it is the first address that was sampled.
 */
uint64_t report_address(const struct agg_row *row);

enum report_cell_form {
	REPORT_CELL_SHORT, /* a path by its last component */
	REPORT_CELL_WHOLE,
};

/* Returns `part` in percent of `whole`; 0 if `whole` is 0. */
double report_percent(uint64_t part, uint64_t whole);
/*
 * Returns the 95 % confidence interval of a weight's share, in percent; the share itself if the
 * profile contains exact counts.
 */
struct share_interval report_interval(const struct report *r, uint64_t weight);
/* Returns whether the options show this row: its share is not below the limit. */
bool report_shows(const struct report *r, const struct agg_row *row);
/*
 * Returns the text of a column. It is in buf, which has `size` bytes (REPORT_CELL_SIZE or more), or
 * belongs to the profile, and is valid as long as both.
 */
const char *report_cell(const struct report *r, const struct agg_key *key,
			const struct agg_row *row, enum report_cell_form form, char *buf,
			size_t size);
/*
 * Prints `percent` to stdout as "%*.2f%%", in colour if it is large and the options want colours.
 */
void report_put_percent(const struct report *r, int width, double percent);

#endif
