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
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_AGG_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_AGG_H

#include "profile/analyse/tables/agg_key.h"
#include "profile/format/names/names.h"
#include "profile/format/names/srcline.h"
#include "profile/format/perfdata/read.h"
#include "symbolizer/core/demangle.h"

#include <regex.h>

#define AGG_MAX_KEYS 8u
#define AGG_MAX_RANGES 256u
#define AGG_MAX_TEXTS 256u

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

/*
 * After the last sample: returns 0, or -ENODATA and the names that samples have if agg_config.comm names none of them.
 */
int agg_need_comm(const struct agg *a, struct err *e);

/* Name and sum up. Symbols belong to names. */
int agg_finish(struct agg *a, enum agg_order order, struct err *e);

#endif
