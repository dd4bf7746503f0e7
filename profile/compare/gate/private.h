/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_private: what gate.c, family.c, kin.c, cause.c and exact.c share.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_PRIVATE_H
#define KVMPROF_PROFILE_COMPARE_GATE_PRIVATE_H

#include "profile/compare/gate/gate.h"

struct gate {
	const struct gate_rules *rules;
	struct gate_run *run[GATE_SIDE_MAX][STATS_MAX_RUNS];
	unsigned int n[GATE_SIDE_MAX];
};

/* The symbols of the runs after functions that were renamed, inlined or split became one (kin.c). */
struct gate_kin {
	struct lineage lineage;
	struct gate_symbol **symbol; /* for each run, base first; NULL: those of the run count */
	size_t *nsymbols;
};

struct gate_eval {
	const struct gate *gate;
	struct gate_report *report;
	double error_rate;
	unsigned int units;	    /* hypotheses of Holm's procedure */
	struct stats_layout layout; /* alpha and resamples are set for each design */
	struct stats_design plain;  /* for comparisons that are one of `units` */
	uint64_t at[GATE_SIDE_MAX][STATS_MAX_RUNS];
	struct gate_kin kin;
};

/* Finds which functions are the same, and what the runs have then. Returns 0 or -ENOMEM. gate_kin_deinit() in either case. */
int gate_kin_find(struct gate_eval *v);
void gate_kin_deinit(struct gate_kin *k, unsigned int runs);
/*
 * Finds shares that changed only because those of other functions did: these are explained, with a note, and fail nothing (cause.c).
 * f: shares of functions by themselves. Returns 0 or -ENOMEM.
 */
int gate_cause_explain(const struct gate_eval *v, struct gate_finding *f, size_t n);
/* Fills r->relation. Texts are kept by the run. Returns 0 or -ENOMEM. */
int gate_kin_report(struct gate_report *r, const struct lineage *l, struct gate_run *run);
/* Returns what to know of a function's name and weight: "which was foo"; NULL: nothing, or no memory. */
const char *gate_kin_note(const struct lineage *l, struct gate_run *run, uint32_t function);

/* A design for comparisons of which `members` belong together. */
int gate_design_for(const struct gate_eval *v, double alpha, size_t members,
		    struct stats_design *out, struct err *e);

/* The comparison itself, and what would have been seen. f->value is set: of all runs, base first. */
int gate_compare_values(struct gate_eval *v, struct stats_design *d, const struct gate_rule *r,
			double alpha, struct gate_finding *f, struct err *e);
/* alpha: the strictest that may be asked of it. */
void gate_find_seen(struct gate_eval *v, struct stats_design *d, const struct gate_rule *r,
		    struct gate_finding *f, double alpha);

/* All functions of a rule, and those that moved. */
int gate_evaluate_family(struct gate_eval *v, struct gate_outcome *o, double alpha, struct err *e);
int gate_find_moved(struct gate_eval *v, struct err *e);

/* The family as one result for Holm's procedure, and what that said of it. */
struct stats_result gate_family_result(const struct gate_outcome *o);
void gate_family_refuse(struct gate_outcome *o);
/* Order and count findings, after all verdicts are final. */
void gate_family_settle(struct gate_outcome *o);

#endif
