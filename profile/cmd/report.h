/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_report: inside of `kvmprof report`, for the files it is made of.
 *
 *   cmd_report          reads the profile
 *   cmd_report_options  the command line
 *   cmd_report_text     the table that people read
 *   cmd_report_header   the run's own counters, above it
 *   cmd_report_tree     callers and callees below a row
 *   cmd_report_images   the tables by image
 *   cmd_report_data     JSON and CSV
 *   cmd_report_phases   the table of slices
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_H
#define KVMPROF_PROFILE_CMD_REPORT_H

#include "profile/analyse/tables/agg.h"
#include "profile/format/files/debuginfo.h"
#include "profile/format/names/reader.h"
#include "profile/compare/stats/wilson.h"

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

/* Returns -1 to go on, else the exit status. */
int report_options_parse(struct report_options *opt, int argc, char **argv);
void report_options_deinit(struct report_options *opt);

double report_percent(uint64_t part, uint64_t whole);
/* Of a weight, in percent. */
struct share_interval report_interval(const struct report *r, uint64_t weight);
/* Do the options let this row through? */
bool report_shows(const struct report *r, const struct agg_row *row);

/* -- cmd_report_text ------------------------------------------------------------------- */

void report_header(const struct report *r);
int report_text(const struct report *r); /* -ENOMEM */
/* Names come out of files: nothing that a terminal would obey. */
void report_put_clean(const char *s);
/* "%*.2f%%", in colour when it weighs something. */
void report_put_percent(const struct report *r, int width, double percent);
enum report_cell_form {
	REPORT_CELL_SHORT, /* a file by its last part */
	REPORT_CELL_WHOLE,
};
/* What stands in a column. buf may be used. */
const char *report_cell(const struct report *r, const struct agg_key *key,
			const struct agg_row *row, enum report_cell_form form, char *buf,
			size_t size);
#define REPORT_CELL_SIZE 64

/* -- cmd_report_header ----------------------------------------------------------------- */

/* A line on the engine that has counted instructions, and how; nothing of other profiles. */
void report_engine(const struct report *r);
/* A warning in the header where most periods were missed. */
void report_missed(const struct report *r);
/* A line, when addresses have no names because there were too many mappings. */
void report_left_out(const struct report *r);
void report_run_header(const struct report *r);
/* -- cmd_report_phases ------------------------------------------------------------------ */

/* The table of slices, in place of all others. */
int report_phases(const struct report_options *opt, struct err *e);

/* -- the others ------------------------------------------------------------------------ */

int report_images(const struct report *r); /* -ENOMEM */
/* -ENOMEM */
int report_tree(const struct report *r, const struct agg_row *row);
int report_json(const struct report *r);
void report_csv(const struct report *r);
/* The tree as a list of {"functions":[...],"weight":n,"children":[...]}. -ENOMEM */
int report_tree_json(const struct report *r, const struct agg_row *row);

#endif
