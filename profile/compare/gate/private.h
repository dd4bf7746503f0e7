/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_private: declarations that gate.c, family.c, kin.c, cause.c and exact.c share. Functions
 * with e return 0, -ENOMEM or an error of stats_design_init() or stats_compare(). Threads: see
 * gate.h.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_PRIVATE_H
#define KVMPROF_PROFILE_COMPARE_GATE_PRIVATE_H

#include "profile/compare/gate/gate.h"

struct gate {
	const struct gate_rules *rules;
	struct gate_run *run[GATE_SIDE_MAX][STATS_MAX_RUNS];
	unsigned int n[GATE_SIDE_MAX];
};

/*
 * The symbols of the runs after functions that were renamed, inlined or split became one (kin.c).
 */
struct gate_kin {
	struct lineage lineage;
	struct gate_symbol **symbol; /* for each run, base first; NULL: use those of the run */
	size_t *nsymbols;
};

struct gate_eval {
	const struct gate *gate;
	struct gate_report *report;
	double error_rate;
	unsigned int units;	    /* hypotheses of Holm's procedure */
	struct stats_layout layout; /* alpha and resamples are set for each design */
	struct stats_design plain;  /* for rules that are not families */
	uint64_t at[GATE_SIDE_MAX][STATS_MAX_RUNS]; /* start of each run, ns */
	struct gate_kin kin;
};

/*
 * Fills v->kin: matches functions and merges those that are the same. Returns 0 or -ENOMEM; the
 * caller calls gate_kin_deinit() in either case.
 */
int gate_kin_find(struct gate_eval *v);
/* Frees the contents of *k; `runs` is the number of runs of both sides. */
void gate_kin_deinit(struct gate_kin *k, unsigned int runs);
/*
 * Marks findings whose share changed only because the shares of other functions did as explained,
 * with a note; they do not fail a rule (cause.c). f: n findings on own shares of functions. Returns
 * 0 or -ENOMEM.
 */
int gate_cause_explain(const struct gate_eval *v, struct gate_finding *f, size_t n);
/* Fills r->relation from the events of l. `run` owns the texts. Returns 0 or -ENOMEM. */
int gate_kin_report(struct gate_report *r, const struct lineage *l, struct gate_run *run);
/*
 * Returns a remark on a function, e.g. "which was foo", which `run` owns; NULL: none, or out of
 * memory.
 */
const char *gate_kin_note(const struct lineage *l, struct gate_run *run, uint32_t function);

/*
 * Builds a design for `members` comparisons that belong together, with alpha for all of them. The
 * caller frees
 * *out with stats_design_deinit().
 */
int gate_design_for(const struct gate_eval *v, double alpha, size_t members,
		    struct stats_design *out, struct err *e);

/*
 * Compares f->value (all runs, base first) by the rule at this alpha; sets f->stats and f->result.
 */
int gate_compare_values(struct gate_eval *v, struct stats_design *d, const struct gate_rule *r,
			double alpha, struct gate_finding *f, struct err *e);
/* Sets f->seen and f->spread. alpha is the strictest error rate that the comparison may need. */
void gate_find_detectable(struct gate_eval *v, struct stats_design *d, const struct gate_rule *r,
			  struct gate_finding *f, double alpha);

/*
 * Compares all functions of a family's rule; fills o->finding, or o->status and o->why if none can
 * be compared.
 */
int gate_evaluate_family(struct gate_eval *v, struct gate_outcome *o, double alpha, struct err *e);
/* Fills the report's `moved`. */
int gate_find_moved(struct gate_eval *v, struct err *e);

/* Returns the family as one result for Holm's procedure. */
struct stats_result gate_family_result(const struct gate_outcome *o);
/* Makes the failed findings inconclusive, because Holm's procedure rejected the family's result. */
void gate_family_reject(struct gate_outcome *o);
/* Sorts and counts the findings, after all verdicts are final. */
void gate_family_settle(struct gate_outcome *o);

#endif
