/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lineage: matches functions of the head with functions of the base that have other names.
 *
 * A function that only the base has may have been renamed, or inlined into its callers; one that
 * only the head has may have been split off from its caller. By names alone each of these is a
 * function that grew and one that disappeared. The calls show which it is:
 *
 *   renamed  a new function has the same callers and callees, with about the same weight
 *   moved    a new function has the same name, in a file of the same name in another directory
 *   inlined  a caller's own weight grew by about the weight that the function had below that
 *            caller, which does not call it any more
 *   split    a caller's own weight shrank by about the weight of the new function below it
 *
 * Use: lineage_function() numbers the functions; lineage_add() and lineage_add_call() add weights
 * and calls of both sides, as shares of the runs; lineage_find() matches. After that, weights of
 * dissolved functions and calls belong to the callers.
 *
 * No I/O. One thread uses a lineage at a time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_DIFF_LINEAGE_H
#define KVMPROF_PROFILE_COMPARE_DIFF_LINEAGE_H

#include "base/err.h"
#include "base/table.h"
#include "base/texts.h"
#include "profile/analyse/stacks/identity.h"

#define LINEAGE_NONE UINT32_MAX
#define LINEAGE_DEPTH 8u /* maximum depth of functions inlined into each other */

enum lineage_side { LINEAGE_BASE, LINEAGE_HEAD, LINEAGE_SIDES };

enum lineage_kind { LINEAGE_RENAMED, LINEAGE_MOVED, LINEAGE_INLINED, LINEAGE_SPLIT };

struct lineage_function {
	struct identity id;				     /* texts belong to the lineage */
	double self[LINEAGE_SIDES], children[LINEAGE_SIDES]; /* shares */
	uint32_t
		same; /* its number on the other side if it was renamed or moved; or LINEAGE_NONE */
	bool dissolved; /* exists on one side only, and its weight belongs to its callers */
};

/* The fate of a function. */
struct lineage_event {
	enum lineage_kind kind;
	uint32_t function; /* index of a function of the base; split: of the head */
	uint32_t other;	   /* renamed, moved: of the head; else the caller */
	/*
	 * Own shares of the two functions together. Moved: of all functions of the two files.
	 * Inlined and split: of the caller with all functions that were inlined into it or split
	 * off.
	 */
	double base, head;
};

struct lineage {
	struct lineage_function *function; /* the items of `functions` */
	size_t nfunctions;
	struct lineage_event *event; /* largest first */
	size_t nevents, event_cap;
	bool changes; /* some function has `same` or is dissolved, also without an event */
	struct table functions, edges;
	struct texts texts;
};

/* Initialises an empty lineage; the caller frees its contents with lineage_deinit(). */
void lineage_init(struct lineage *l);
void lineage_deinit(struct lineage *l);

/*
 * Stores the number of a function, which is added if new; texts are copied. Returns 0 or -ENOMEM.
 */
int lineage_function(struct lineage *l, const struct identity *id, uint32_t *out);

/*
 * Adds to a function's own share, and to its share with callees. A function with no share on a side
 * does not exist there.
 */
void lineage_add(struct lineage *l, enum lineage_side side, uint32_t function, double self,
		 double children);

/* The share that a function has directly below a caller. */
struct lineage_call {
	uint32_t caller, callee;
	double self, children;
};

/* Adds a call. Returns 0 or -ENOMEM. */
int lineage_add_call(struct lineage *l, enum lineage_side side, const struct lineage_call *call);

/*
 * Adds all stacks of a set: their weights times `scale`. Stores the number of each of the set's
 * functions in id[names->set->nfuncs], LINEAGE_NONE for those in no stack. The mode of a function
 * is that of the first stack with it. Returns 0 or -ENOMEM.
 */
int lineage_add_set(struct lineage *l, enum lineage_side side, const struct identity_names *names,
		    double scale, uint32_t *id);

#define LINEAGE_TEXT 400 /* bytes of a sentence about an event */

/*
 * Returns the text for e->function or e->other in a report: its name, or its DSO if it moved. The
 * text belongs to the lineage.
 */
const char *lineage_name(const struct lineage *l, const struct lineage_event *e, uint32_t function);
/*
 * Writes the beginning of a sentence, which values follow, e.g. "foo went, foo_renamed came with
 * its callers and callees (renamed): ". Returns out.
 */
const char *lineage_text(char out[LINEAGE_TEXT], enum lineage_kind kind, const char *function,
			 const char *other);
/* Returns "renamed", "moved", "inlined" or "split", a constant. */
const char *lineage_kind_name(enum lineage_kind kind);

/*
 * Finds the events. Ignores functions and calls whose share is below min_share on both sides,
 * because chance may hide them. Returns 0 or -ENOMEM.
 */
int lineage_find(struct lineage *l, double min_share);

/*
 * Returns whether the callee's weight below this caller counts as the caller's own. Valid after
 * lineage_find().
 */
bool lineage_is_dissolved(const struct lineage *l, enum lineage_side side, uint32_t caller,
			  uint32_t callee);

#endif
