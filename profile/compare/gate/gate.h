/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate: compares runs of a base and of a head by rules.
 *
 *	gate_create(&g, rules, &e);
 *	gate_add(g, GATE_BASE, path, &run, &e);  gate_add(g, GATE_HEAD, path, &run, &e); ...
 *	gate_evaluate(g, &opt, &report, &e);
 *	status = gate_exit_status(report);
 *
 * More runs may be added after an evaluation, and all evaluated again, as a bench does; a report is
 * valid until a run is added. Identical code fails in at most rules->error_rate of all gates:
 * Holm's procedure ensures that among the rules of level fail without an alpha of their own; the
 * functions of one rule are one hypothesis there, by control of their false discovery rate
 * (profile/compare/stats/verdict.h). Each rule of level warn and each with an alpha has its own
 * error rate.
 *
 * One thread uses a gate and its reports at a time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_GATE_H
#define KVMPROF_PROFILE_COMPARE_GATE_GATE_H

#include "profile/compare/diff/lineage.h"
#include "profile/compare/gate/rules.h"
#include "profile/compare/gate/run.h"
#include "profile/compare/stats/power.h"

#define GATE_MAX_MEMBERS 500u /* functions compared for a rule: those with the largest shares */
#define GATE_MAX_MOVED 20u    /* items of gate_report.moved */
#define GATE_MOVED_Q 0.05     /* largest q of a function in `moved` */
#define GATE_CHANGED 600      /* bytes of gate_report.changed */
#define GATE_MOVED_MIN_SHARE 0.001 /* smallest mean share of a function in `moved` */
#define GATE_MEANS 1024u	   /* bytes of gate_report.means */

enum gate_side { GATE_BASE, GATE_HEAD, GATE_SIDE_MAX };

struct gate;

/*
 * Creates a gate without runs; rules are borrowed until gate_destroy(), with which the caller frees
 * *out. Returns 0 or -ENOMEM.
 */
int gate_create(struct gate **out, const struct gate_rules *rules, struct err *e);
void gate_destroy(struct gate *g);

/*
 * Loads a profile as the next run of a side. Sets *out (may be NULL) to the run, which the gate
 * owns. Messages begin with the path. Returns 0, or the errors of gate_run_load(),
 * gate_check_fresh() and gate_add_run().
 */
int gate_add(struct gate *g, enum gate_side side, const char *path, const struct gate_run **out,
	     struct err *e);
/*
 * Adds a run without gate_check_fresh(). The gate owns it from now on; on an error the run is
 * destroyed. Returns 0, or -EINVAL if its event is another one than that of earlier runs or the
 * side has STATS_MAX_RUNS runs.
 */
int gate_add_run(struct gate *g, enum gate_side side, struct gate_run *run, struct err *e);
/*
 * Returns 0, or -EINVAL if the side already has this run, also from another file: a copy of a run
 * is not evidence.
 */
int gate_check_fresh(const struct gate *g, enum gate_side side, const struct gate_run *run,
		     struct err *e);
/* Returns the number of runs of a side. */
unsigned int gate_runs(const struct gate *g, enum gate_side side);
/* Returns run i (below gate_runs()) of a side. */
const struct gate_run *gate_run_at(const struct gate *g, enum gate_side side, unsigned int i);
/* Returns the rules of gate_create(). */
const struct gate_rules *gate_rules_of(const struct gate *g);

/* Status of a rule, and of the gate, in ascending order of severity. */
enum gate_status { GATE_OK, GATE_SKIPPED, GATE_UNSURE, GATE_WARNED, GATE_FAILED };

/* One comparison: of a rule's number, or of a function. Texts belong to the gate. */
struct gate_finding {
	const char *name, *dso, *mode; /* identity of a function; else NULL */
	const char *note;	       /* a remark: "10 -> 11 calls"; NULL: none */
	bool explained;	   /* a share that changed only because others did, see `note` */
	unsigned int rank; /* findings of one verdict are in descending order of rank */
	struct stats_result result;
	struct stats_rule stats; /* the thresholds of the comparison */
	/*
	 * The smallest change, in its unit, that is detected with the rule's power; INFINITY: none;
	 * negative: not computed.
	 */
	double seen;
	struct stats_spread spread; /* between runs of a side; base and sd are 0: not known */
	double *value;		    /* value of each run, base first; NULL: not compared */
};

struct gate_outcome {
	const struct gate_rule *rule;
	enum gate_status status;
	char why[256]; /* reason of skipped and unsure, a sentence without a full stop; else "" */
	struct gate_finding total; /* unless the rule is a family */
	/* For a family, all comparisons: failed, then inconclusive, then passed ones. */
	struct gate_finding *finding;
	size_t nfindings, nworse, nunsure, nbetter;
	size_t ncompared; /* exact counts that were compared; `finding` has those that differ */
	size_t left_out;  /* functions below min-share, or beyond GATE_MAX_MEMBERS */
	double alpha;	  /* strictest error rate of one comparison; `seen` is computed for it */
};

/* The amount of work that two commands do (run --exec), from /init on. */
struct gate_work {
	bool known;		  /* both sides run commands, and each run has an /init */
	bool exact;		  /* exact counts, without an interval in `shift` */
	struct stats_shift shift; /* ns, or instructions */
};

/*
 * The rule of level fail that needs most runs, if the gate is inconclusive because of too few runs.
 */
struct gate_noise {
	const struct gate_outcome *outcome; /* NULL: noise is not the reason */
	const struct gate_finding *finding; /* the finding of `outcome` that needs most runs */
	unsigned int runs; /* runs of each side that suffice; 0: more than STATS_MAX_RUNS */
};

/* A function that was renamed, inlined or split (profile/compare/diff/lineage.h). */
struct gate_relation {
	enum lineage_kind kind;
	const char *function, *other; /* as in struct lineage_event */
	double base, head;	      /* own instructions or shares of both together */
};

struct gate_report {
	const struct gate *gate;
	unsigned int nbase, nhead;
	/* the gate's: inconclusive is less than failed, more than warned */
	enum gate_status status;
	struct gate_outcome *outcome; /* one for each rule, in the order of the file */
	size_t n;
	/* Functions whose own share changed, largest change first, independent of the rules. */
	struct gate_finding *moved;
	size_t nmoved, moved_beyond; /* beyond: further ones that `moved` omits */
	bool exact;		     /* one run of each side, exact counts (exact.h) */
	bool sampled;		     /* exact: one side at least is a sampled profile */
	char means[GATE_MEANS];	     /* differences in how the runs were made; "": none */
	/* path of a run of the head that the base has, too; NULL: none */
	const char *same;
	struct gate_work work;
	struct gate_noise noise;
	struct gate_relation *relation; /* largest first */
	size_t nrelations;
	/* Exact counts: the largest changes, a sentence without a full stop; "": none. */
	char changed[GATE_CHANGED];
	bool paired, ordered, confounded; /* the design, see profile/compare/stats/verdict.h */
	double error_rate;
};

struct gate_eval_options {
	double error_rate; /* 0: that of the rules */
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

/* Fills r->means and r->same. If out of memory, r->means may be incomplete. */
void gate_find_means(struct gate_report *r);

/* Fills r->work by comparing the runs with *d; NULL: each side has one exact run. */
void gate_find_work(struct gate_report *r, const struct stats_design *d);

/* Returns the reason of the first panic of a guest of this side; NULL if none panicked. */
const char *gate_panic(const struct gate *g, enum gate_side side);
/* Returns the verdict on the first guest of this side that hung; NULL if none did. */
const char *gate_hang(const struct gate *g, enum gate_side side);
/*
 * Sets r->status to failed if a guest of the head panicked, and otherwise to inconclusive if one of
 * the base did, independent of the rules: such a run is too short for them.
 */
void gate_judge_guests(struct gate_report *r);

/*
 * Returns 0 for pass or warnings only, 1 for fail, 3 for inconclusive. An inconclusive rule of
 * level warn passes.
 */
int gate_exit_status(const struct gate_report *r);

/* Returns "pass", "skipped", "inconclusive", "warn" or "fail", a constant. */
const char *gate_status_name(enum gate_status s);

#endif
