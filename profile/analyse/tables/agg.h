/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agg: weight by symbol, DSO, task and whatever else a key names.
 *
 * Equal stacks are counted together as they come (one hash of the raw chain for
 * each sample); names are looked up once for each distinct stack, at the end or when very
 * many are held.
 * A row is one combination of the keys' values. self: it was innermost.
 * children: it was anywhere in the stack, counted once however often it occurs
 * (recursion).
 *
 * A key to come needs an entry in the table of agg_key.c and nothing else.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_AGG_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_AGG_H

#include "symbolizer/core/display_name.h"
#include "profile/format/names/names.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/sink/where.h"
#include "profile/format/names/srcline.h"
#include "profile/format/names/tasks.h"

#include <regex.h>

#define AGG_MAX_KEYS 8u
#define AGG_MAX_RANGES 256u
#define AGG_MAX_TEXTS 256u

enum agg_mode {
	AGG_KERNEL,
	AGG_USER,
	AGG_IDLE, /* any frame of a halted vCPU */
	AGG_MODES
};

const char *agg_mode_name(enum agg_mode mode);

/* One frame with what its sample knows: all that a key may group by. */
struct agg_frame {
	const struct symbol *symbol; /* NULL: unnamed, then addr tells them apart */
	const char *name;	     /* of the symbol, as it is shown; NULL: unnamed */
	const char *line;	     /* "path:line", one pointer for one text; NULL: not known */
	uint64_t addr;		     /* looked up; of an unnamed one in a file: its offset there */
	const char *dso;
	enum agg_mode mode;
	enum sample_where where; /* its whole stack: of the vCPU's thread */
	uint32_t comm;		 /* of tasks */
	uint32_t pid, tid, cpu;
	uint64_t code_page, data_page; /* bytes; 0 not known */
};

/* Two frames are of one group when their values are equal. */
struct agg_value {
	uint64_t a, b;
};

/* What a sample must keep for a key: stacks that differ only in others are one. */
enum agg_need {
	AGG_NEED_COMM = 1,
	AGG_NEED_PID = 2,
	AGG_NEED_TID = 4,
	AGG_NEED_CPU = 8,
	AGG_NEED_LINE = 16, /* of the sample, nothing: it follows from the addresses */
	AGG_NEED_CODE_PAGE = 32,
	AGG_NEED_DATA_PAGE = 64,
};

struct agg_key {
	const char *name, *header, *json; /* in --sort, above the column, as a field */
	int width;			  /* least of the column */
	unsigned int need;		  /* enum agg_need */
	bool number;			  /* in JSON without quotes; to the right in its column */
	struct agg_value (*value)(const struct agg_frame *f);
	/* Order of rows that weigh the same. */
	int (*compare)(const struct tasks *t, const struct agg_frame *x, const struct agg_frame *y);
	/* May return a text of the frame; else writes into buf. */
	const char *(*format)(const struct tasks *t, const struct agg_frame *f, char *buf,
			      size_t size);
};

/* NULL when there is none of that name. */
const struct agg_key *agg_key_find(const char *name);
/* "comm, pid, ..." */
void agg_key_list(char *out, size_t size);

struct agg_range {
	uint32_t from, to;
};

/* Lists of what to count; empty ones let all through. */
struct agg_numbers {
	struct agg_range range[AGG_MAX_RANGES];
	unsigned int n;
};
struct agg_texts {
	const char *text[AGG_MAX_TEXTS]; /* borrowed */
	unsigned int n;
};

struct agg_config {
	bool exact; /* chain addresses are to be looked up as they are (else callers at ip - 1) */
	const struct agg_key *key[AGG_MAX_KEYS];
	unsigned int nkeys;
	struct display_names *display; /* borrowed; NULL: names as they are */
	struct srcline *lines;	       /* borrowed; NULL: no lines, also where a key needs them */
	/* Samples that do not pass are not counted at all. */
	struct agg_numbers pid, tid, cpu;
	struct agg_texts comm;
	uint64_t from_ns, to_ns; /* times of samples, both included; to_ns 0: all */
	const regex_t *parent;	 /* borrowed; NULL: all. Stacks with such a function in them */
	/* Frames that do not pass make no row; paths or their last parts. */
	struct agg_texts dso;
	const regex_t *symbol; /* borrowed; NULL: all */
	bool kernel_only;      /* samples with kernel frames, and those frames alone */
	uint32_t max_stack;    /* innermost frames that count; 0: all */
	bool keep_stacks;      /* for trees */
};

struct agg_row {
	struct agg_value value[AGG_MAX_KEYS];
	struct agg_frame frame;	 /* the first one of the group */
	uint64_t self, children; /* weight */
	uint64_t self_samples, children_samples;
	uint64_t stamp; /* agg's own */
	uint32_t id;	/* of row_of below; rows are sorted, it stays */
};

/* What trees are made of: a function, or an address without a name. */
struct agg_func {
	const struct symbol *symbol; /* NULL: none */
	const char *name;	     /* as shown; NULL: none */
	const char *dso;
	uint64_t addr;		   /* the first that was looked up */
	bool is_symbol, is_parent; /* agg_config's expressions match */
};

/* A distinct stack: n functions, innermost first. */
struct agg_stack {
	uint64_t weight;
	size_t first; /* in func_of and row_of */
	uint32_t n;
};

#define AGG_NO_ROW UINT32_MAX

struct agg {
	uint64_t samples, weight;
	uint64_t mode_weight[AGG_MODES]; /* by the innermost frame */
	double weight_squares;		 /* sum over samples; after agg_finish() */
	size_t nstacks;			 /* distinct among those held at one time */
	struct agg_row *row;
	size_t nrows;
	/* With keep_stacks, after agg_finish(): */
	const struct agg_stack *stack; /* nkept */
	size_t nkept;
	const uint32_t *func_of; /* of each frame: index into func */
	const uint32_t *row_of;	 /* agg_row.id, or AGG_NO_ROW */
	const struct agg_func *func;
	struct agg_private *priv;
};

/* The config is copied; names and tasks are borrowed, and fed by the caller. */
int agg_create(struct agg **out, const struct agg_config *config, struct names *n,
	       struct tasks *tasks, struct err *e);
void agg_destroy(struct agg *a);

/*
 * r is a sample, seen when names and tasks have all records before it. Its chain
 * must stay where it is until agg_finish() is done.
 */
int agg_add(struct agg *a, const struct perfdata_record *r, struct err *e);

/* Rows are sorted by this, largest first. */
enum agg_order { AGG_BY_CHILDREN, AGG_BY_SELF };

/* Name and sum up. Symbols belong to names. */
int agg_finish(struct agg *a, enum agg_order order, struct err *e);

#endif
