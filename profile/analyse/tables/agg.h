/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agg: sums of weight by symbol, DSO, task and other keys.
 *
 * Equal stacks are counted together as they arrive (one hash of the raw chain for each sample);
 * names are looked up once for each distinct stack, at the end or when very many are stored. A row
 * is one combination of the keys' values. self: the row's frame was innermost. children: it was
 * anywhere in the stack, counted once even if it occurs several times (recursion).
 *
 * Functions with e return 0 or -errno. Not thread-safe: the caller serialises calls on one object.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_AGG_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_AGG_H

#include "profile/analyse/stacks/selection.h"
#include "profile/analyse/tables/agg_key.h"
#include "profile/format/names/names.h"
#include "profile/format/names/srcline.h"
#include "profile/format/perfdata/read.h"
#include "symbolizer/core/demangle.h"

#define AGG_MAX_KEYS 8u

struct agg_config {
	bool exact; /* chain addresses are looked up unchanged (otherwise callers at ip - 1) */
	const struct agg_key *key[AGG_MAX_KEYS];
	unsigned int nkeys;
	struct display_names *display; /* borrowed; NULL: names are not demangled */
	/* borrowed; NULL: no source lines, even if a key needs them */
	struct srcline *lines;
	/*
	 * Samples that it refuses are not counted; functions that it does not choose make no row.
	 * The caller applies its time and phase, by selection_set_window(). Borrowed; NULL: all.
	 */
	const struct selection *selection;
	uint32_t max_stack; /* number of innermost frames that count; 0: all */
	bool keep_stacks;   /* needed for trees (agg_tree.h) */
};

struct agg_row {
	struct agg_value value[AGG_MAX_KEYS];
	struct agg_frame frame;	 /* the first frame of the group */
	uint64_t self, children; /* weight */
	uint64_t self_samples, children_samples;
	uint64_t stamp; /* for internal use */
	uint32_t id;	/* the number in agg.row_of; it does not change when rows are sorted */
};

/* A node's function in trees, or an address without a name. */
struct agg_func {
	const struct symbol *symbol; /* NULL: none */
	const char *name;	     /* for display; NULL: none */
	const char *dso;
	uint64_t addr; /* the first address looked up */
};

/* A distinct stack: n functions, innermost first. */
struct agg_stack {
	uint64_t weight;
	size_t first; /* index of its first frame in func_of and row_of */
	uint32_t n;
};

#define AGG_NO_ROW UINT32_MAX

struct agg {
	uint64_t samples, weight;
	uint64_t mode_weight[AGG_MODES]; /* by mode of the innermost frame */
	/* sum over samples of the squared weight; set by agg_finish() */
	double weight_squares;
	/* number of distinct stacks among those stored at one time */
	size_t nstacks;
	struct agg_row *row;
	size_t nrows;
	/* Set by agg_finish() with keep_stacks: */
	const struct agg_stack *stack; /* nkept stacks */
	size_t nkept;
	const uint32_t *func_of; /* for each frame: index into func */
	const uint32_t *row_of;	 /* for each frame: agg_row.id, or AGG_NO_ROW */
	const struct agg_func *func;
	struct agg_private *priv;
};

/*
 * Creates an empty object; the caller frees it with agg_destroy(). The config is copied, its
 * pointers are borrowed, as are n and tasks, to which the caller passes the records. Returns 0 or
 * -ENOMEM.
 */
int agg_create(struct agg **out, const struct agg_config *config, struct names *n,
	       struct tasks *tasks, struct err *e);
/* Frees a and its rows; does nothing for NULL. */
void agg_destroy(struct agg *a);

/*
 * Adds the sample r, after names and tasks have received all records before it. Its chain must stay
 * valid until agg_finish() returns. Returns 0 or -ENOMEM.
 */
int agg_add(struct agg *a, const struct perfdata_record *r, struct err *e);

/* Sort order of rows, largest first. */
enum agg_order { AGG_BY_CHILDREN, AGG_BY_SELF };

/*
 * Names the stacks, sums up and sorts the rows, after the last sample. Symbols belong to names.
 * Returns 0, -ENOMEM, or an error of names_read_error() or selection_missed().
 */
int agg_finish(struct agg *a, enum agg_order order, struct err *e);

#endif
