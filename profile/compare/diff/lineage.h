/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lineage: which function of the head is which of the base, where names do not say so.
 *
 * A function that only the base has may have been renamed, or inlined into its callers; one that only the head has may have been
 * split off from its caller. By names alone each of these is a function that grew and one that vanished. The calls tell:
 *
 *   renamed  another function came that has the same callers and calls the same functions, with about the same weight
 *   moved    a function of the same name came in a file of the same name in another directory
 *   inlined  a caller's own weight grew by about what the function had below that caller, which calls it no longer
 *   split    a caller's own weight shrank by about what the function that came has below it
 *
 * Use: lineage_function() numbers the functions, lineage_add() and lineage_add_call() add up weights and calls of both sides, as shares
 * of the runs; lineage_find() decides. Then weights of dissolved functions and calls belong to the callers.
 *
 * Pure. One thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_DIFF_LINEAGE_H
#define KVMPROF_PROFILE_COMPARE_DIFF_LINEAGE_H

#include "base/err.h"
#include "base/table.h"
#include "base/texts.h"
#include "profile/analyse/stacks/identity.h"

#define LINEAGE_NONE UINT32_MAX
#define LINEAGE_DEPTH 8u /* functions that were inlined into each other, at most */

enum lineage_side { LINEAGE_BASE, LINEAGE_HEAD, LINEAGE_SIDES };

enum lineage_kind { LINEAGE_RENAMED, LINEAGE_MOVED, LINEAGE_INLINED, LINEAGE_SPLIT };

struct lineage_function {
	struct identity id; /* texts are the lineage's */
	double self[LINEAGE_SIDES], children[LINEAGE_SIDES];
	uint32_t same;	/* the function under its name on the other side, or LINEAGE_NONE */
	bool dissolved; /* it is on one side only, and its weight is its callers' */
};

/* The fate of a function. */
struct lineage_event {
	enum lineage_kind kind;
	uint32_t function; /* renamed, moved, inlined: that went; split: that came */
	uint32_t other;	   /* renamed, moved: that came; else the caller */
	/* Shares of both by themselves; moved: of all functions of the two files. Of inlined and split functions: the caller with all that was inlined into it or split off. */
	double base, head;
};

struct lineage {
	struct lineage_function *function; /* the items of `functions` */
	size_t nfunctions;
	struct lineage_event *event; /* largest first */
	size_t nevents, event_cap;
	bool changes; /* some functions are the same, or dissolved, also where no event says so */
	struct table functions, edges;
	struct texts texts;
};

void lineage_init(struct lineage *l);
void lineage_deinit(struct lineage *l);

/* Returns 0 and the number of a function, or -ENOMEM. */
int lineage_function(struct lineage *l, const struct identity *id, uint32_t *out);

/* Adds to a function's own weight, and to that with what it calls. Functions without any weight on a side are not there. */
void lineage_add(struct lineage *l, enum lineage_side side, uint32_t function, double self,
		 double children);

/* The weight that a function has directly below a caller. */
struct lineage_call {
	uint32_t caller, callee;
	double self, children;
};

/* Adds a call. Returns 0 or -ENOMEM. */
int lineage_add_call(struct lineage *l, enum lineage_side side, const struct lineage_call *call);

/*
 * Adds all stacks of a set: their weights times `scale`. id: room for a number of each of the set's functions; the mode of a
 * function is that of the first stack that it is in. Returns 0 or -ENOMEM.
 */
int lineage_add_set(struct lineage *l, enum lineage_side side, const struct identity_names *names,
		    double scale, uint32_t *id);

#define LINEAGE_TEXT 400 /* bytes of a sentence about an event */

/* Returns what an event calls its function, or the other one: a name, or the DSO of functions that moved. */
const char *lineage_name(const struct lineage *l, const struct lineage_event *e, uint32_t function);
/* "foo went, foo_renamed came with its callers and callees (renamed): ", for values to follow. Returns out, which it terminates. */
const char *lineage_say(char out[LINEAGE_TEXT], enum lineage_kind kind, const char *function,
			const char *other);
/* Returns "renamed", "moved", "inlined" or "split". */
const char *lineage_kind_name(enum lineage_kind kind);

/* min_share: functions and calls with less on both sides are left alone, as chance may hide them. Returns 0 or -ENOMEM. */
int lineage_find(struct lineage *l, double min_share);

/* Returns whether what the callee does below this caller is the caller's own weight. */
bool lineage_is_dissolved(const struct lineage *l, enum lineage_side side, uint32_t caller,
			  uint32_t callee);

#endif
