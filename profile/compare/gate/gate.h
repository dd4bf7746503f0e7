/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate: runs of a base and of a head, and what the rules say of them.
 *
 *	gate_create(&g, rules, &e);
 *	gate_add(g, GATE_BASE, path, &run, &e);  gate_add(g, GATE_HEAD, path, &run, &e); ...
 *	gate_evaluate(g, &opt, &report, &e);
 *	status = gate_exit_status(report);
 *
 * Runs may be added after an evaluation and evaluated again, as a bench does; a report lasts
 * until then. Identical code fails in at most rules->error_rate of all gates: among the rules of
 * level fail without an alpha of their own by Holm's procedure, where functions of one rule
 * come as one, by control of their false discovery rate (profile/compare/stats/verdict.h). Rules of level warn
 * and those with an alpha have their error rate each for itself.
 *
 * One thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_GATE_H
#define KVMPROF_PROFILE_COMPARE_GATE_GATE_H

#include "profile/compare/diff/lineage.h"
#include "profile/compare/gate/rules.h"
#include "profile/compare/gate/run.h"
#include "profile/compare/stats/power.h"

#define GATE_MAX_MEMBERS 500u /* functions compared for a rule: those with the largest shares */
#define GATE_MAX_MOVED 20u
#define GATE_MOVED_Q 0.05
#define GATE_CHANGED 600 /* bytes of gate_report.changed */
#define GATE_MOVED_MIN_SHARE 0.001
#define GATE_MEANS 1024u /* bytes of words about how runs were made */

enum gate_side { GATE_BASE, GATE_HEAD, GATE_SIDE_MAX };

struct gate;

/*
 * Creates a gate without runs; rules are borrowed until gate_destroy(), with which the caller frees
 * *out. Returns 0 or -ENOMEM.
 */
int gate_create(struct gate **out, const struct gate_rules *rules, struct err *e);
void gate_destroy(struct gate *g);

/*
 * Load a profile as the next run of a side. Messages begin with the path. -EINVAL: also what gate_check_fresh() refuses. *out (may be NULL) is the
 * run, until the gate is destroyed.
 */
int gate_add(struct gate *g, enum gate_side side, const char *path, const struct gate_run **out,
	     struct err *e);
/* Adds a run that was made already, which may be a copy. The gate owns it from now on, also on an error. */
int gate_add_run(struct gate *g, enum gate_side side, struct gate_run *run, struct err *e);
/*
 * Returns -EINVAL if the side has this run already, in whatever file: evidence is another run, not a copy of one.
 */
int gate_check_fresh(const struct gate *g, enum gate_side side, const struct gate_run *run,
		     struct err *e);
unsigned int gate_runs(const struct gate *g, enum gate_side side);
const struct gate_run *gate_run_at(const struct gate *g, enum gate_side side, unsigned int i);
const struct gate_rules *gate_rules_of(const struct gate *g);

/* Status of a rule, and of the gate, in ascending order of gravity. */
enum gate_status { GATE_OK, GATE_SKIPPED, GATE_UNSURE, GATE_WARNED, GATE_FAILED };

/* One comparison: of a rule's number, or of a function. */
struct gate_finding {
	const char *name, *dso, *mode; /* identity of a function; else NULL */
	const char *note;	       /* what to know of it: "10 -> 11 calls"; NULL: nothing */
	bool explained;	   /* a share that changed because others did: `note` says which */
	unsigned int rank; /* findings of one verdict are in descending order of rank */
	struct stats_result result;
	struct stats_rule stats; /* what it was compared with */
	/*
	 * The change, in its unit, that is seen with the rule's power; INFINITY: none is;
	 * negative: it was not asked.
	 */
	double seen;
	struct stats_spread spread; /* between runs of a side; base 0 and sd 0: not known */
	double *value;		    /* for each run, base first; NULL: not compared */
};

struct gate_outcome {
	const struct gate_rule *rule;
	enum gate_status status;
	char why[256]; /* on skipped and unsure: a sentence without a full stop; else "" */
	struct gate_finding total; /* unless the rule is a family */
	/* For a family, all comparisons: first those that are worse, then inconclusive ones. */
	struct gate_finding *finding;
	size_t nfindings, nworse, nunsure, nbetter;
	size_t ncompared; /* number of exact counts that were compared; `finding` has those that differ; else 0 */
	size_t left_out; /* functions below min-share, or beyond GATE_MAX_MEMBERS */
	double alpha;	 /* strictest error rate of one comparison; `seen` is computed for it */
};

/* How much work two commands do (run --exec), from /init on. */
struct gate_work {
	bool known;		  /* both sides run commands, and each run has an /init */
	bool exact;		  /* counts; else times, of which `shift` has the interval */
	struct stats_shift shift; /* ns, or instructions */
};

/* The rule of level fail that needs most runs to be settled, where the gate is inconclusive for want of runs. */
struct gate_noise {
	const struct gate_outcome *outcome; /* NULL: noise is not the reason */
	const struct gate_finding *finding; /* the one of its findings that needs most runs */
	unsigned int runs; /* a side, which would suffice; 0: more than STATS_MAX_RUNS */
};

/* A function that was renamed, inlined or split (profile/compare/diff/lineage.h). */
struct gate_relation {
	enum lineage_kind kind;
	const char *function, *other; /* as in struct lineage_event */
	double base, head;	      /* together by themselves: instructions, or shares */
};

struct gate_report {
	const struct gate *gate;
	unsigned int nbase, nhead;
	/* the gate's: inconclusive is less than failed, more than warned */
	enum gate_status status;
	struct gate_outcome *outcome; /* one for each rule, as they come */
	size_t n;
	/* Functions whose own share moved, largest first, whatever the rules ask; not families' q. */
	struct gate_finding *moved;
	size_t nmoved, moved_beyond;
	bool exact;		/* one run a side, counted: no statistics (exact.h) */
	bool sampled;		/* exact: by samples of one side at least */
	char means[GATE_MEANS]; /* what is not the same of how the runs were made; "": nothing */
	/* path of a run of the head that is one of the base, too; NULL: none is */
	const char *same;
	struct gate_work work;
	struct gate_noise noise;
	struct gate_relation *relation; /* largest first */
	size_t nrelations;
	/* Exact counts: what changed most, in a sentence without a full stop; "": nothing did. */
	char changed[GATE_CHANGED];
	bool paired, ordered, confounded; /* the design, see profile/compare/stats/verdict.h */
	double error_rate;
};

struct gate_eval_options {
	double error_rate; /* 0: the rules' */
	uint64_t seed;	   /* 0: STATS_SEED */
	enum stats_pairing pairing;
};

/*
 * Evaluates the rules; the caller frees *out with gate_report_destroy(), before the gate. Returns
 * 0, -EINVAL (a side without runs, or as stats_design_init()), or -ENOMEM.
 */
int gate_evaluate(const struct gate *g, const struct gate_eval_options *opt,
		  struct gate_report **out, struct err *e);
void gate_report_destroy(struct gate_report *r);

/* Fills r->means and r->same. */
void gate_find_means(struct gate_report *r);

/* Fills r->work. d: how runs are compared; NULL: one exact run a side. */
void gate_find_work(struct gate_report *r, const struct stats_design *d);

/* Returns why a guest of this side panicked, NULL if none did. */
const char *gate_panic(const struct gate *g, enum gate_side side);
/*
 * Fails a gate with a head that panicked, whatever its rules say of so short a run, and makes one with a base that
 * panicked inconclusive.
 */
void gate_judge_panics(struct gate_report *r);

/*
 * Returns 0 for pass or warnings only, 1 for fail, 3 for inconclusive. An inconclusive rule of
 * level warn passes.
 */
int gate_exit_status(const struct gate_report *r);

/* "pass", "skipped", "inconclusive", "warn", "fail" */
const char *gate_status_name(enum gate_status s);

#endif
