/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_rules: parses the rules of a gate from TOML: which metrics it compares, and their
 * thresholds.
 *
 *   [gate]    error-rate, power, no-idle, kernel-only, count-samples
 *   [[rule]]  metric, and what belongs to the metric: from, until, phase, symbol, subtree,
 *             regex, subtree-regex, dso, measure, children, min-share, exclude, exit, counter,
 *             per-second, work; threshold, min-effect, worse, strict, quantile; level, alpha,
 *             power, optional; name
 *
 * docs/gate.md has the whole schema. A key that is not known, or not allowed for the metric, is an
 * error with its line and column. Rules are constant after parsing and gate_rules_accept(); then
 * any thread may read them. Texts that functions return belong to the rules or are constants.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_RULES_H
#define KVMPROF_PROFILE_COMPARE_GATE_RULES_H

#include "profile/compare/stats/verdict.h"
#include "profile/analyse/stacks/phases.h"
#include "profile/analyse/stacks/stackset.h"

#include <regex.h>

#define GATE_RULE_MAX 256u	   /* rules */
#define GATE_RULE_MAX_NAME 256u	   /* bytes of a name, marker or symbol */
#define GATE_RULE_MAX_PATTERN 512u /* bytes of a regular expression */
#define GATE_RULE_ERROR_RATE 0.01  /* defaults */
#define GATE_RULE_POWER 0.9
#define GATE_RULE_MIN_SHARE 0.005

enum gate_rule_metric {
	GATE_RULE_TIME,		 /* time of the run, to a marker or between two, or of a phase */
	GATE_RULE_BOOT_TIME,	 /* from the first instruction to /init */
	GATE_RULE_VMM_TIME,	 /* from the VMM's execve(2) to the end of the run */
	GATE_RULE_SHARE,	 /* share of functions */
	GATE_RULE_FUNCTION_TIME, /* time in functions */
	GATE_RULE_SYMBOLS,	 /* each function, with control of the false discovery rate */
	GATE_RULE_NEW_SYMBOLS,	 /* share of each function that the base does not have */
	GATE_RULE_EXITS,	 /* VM exits per second */
	GATE_RULE_IO_BYTES,	 /* read and written by devices */
	GATE_RULE_COUNTER,	 /* a number in the run's totals */
	/*
	 * For one run of each side (exact.h): instructions of all or of functions, then of each
	 * member of a family.
	 */
	GATE_RULE_INSNS,
	GATE_RULE_INSN_FUNCTIONS,
	GATE_RULE_INSN_STACKS,
	GATE_RULE_INSN_SYSCALLS,
	GATE_RULE_INSN_TASKS,
	GATE_RULE_INSN_PHASES,
	GATE_RULE_METRIC_MAX
};

/* The unit of the values. */
enum gate_rule_dimension {
	GATE_RULE_NS,
	GATE_RULE_PART, /* 0 to 1 */
	GATE_RULE_RATE, /* per second */
	GATE_RULE_BYTES,
	GATE_RULE_COUNT
};

/* The work whose instructions count (profile/analyse/stacks/work.h). */
enum gate_rule_work { GATE_RULE_ALL_WORK, GATE_RULE_WORKLOAD, GATE_RULE_MEANWHILE };

/*
 * The parts of the time between a VMM's execve(2) and its first KVM_RUN; keys of "attach.start" in
 * a run's totals.
 */
enum gate_rule_start {
	GATE_RULE_NO_START,
	GATE_RULE_START_VMM, /* to the first virtual machine */
	GATE_RULE_START_KVM, /* from there to the first KVM_RUN */
	GATE_RULE_STARTS
};

/* A value in the unit of the metric (absolute); 0.02 is 2 % (relative); 0.2 is 0.002 (points). */
struct gate_rule_amount {
	enum stats_unit unit;
	double value; /* 0: not given */
};

#define GATE_ACCEPT_MAX 256u /* bytes of `by`, and of `why` */

/* A rule whose finding a person accepts, with the person and the reason. */
struct gate_acceptance {
	const char *rule, *by, *why;
};

/*
 * Returns 0, or -EINVAL unless `by` and `why` have 1 to GATE_ACCEPT_MAX bytes without control
 * characters.
 */
int gate_acceptance_check(const struct gate_acceptance *a, struct err *e);

struct gate_rule {
	char *name; /* unique among the rules */
	char *key;  /* the metric with its parameters: the name of its series in a history */
	enum gate_rule_metric metric;
	bool fail; /* level: else warn */
	/*
	 * "by WHO: WHY": who accepted the finding, so that the rule only warns; NULL: not accepted.
	 */
	char *accepted;
	bool optional; /* skipped if there is nothing to measure; else inconclusive */
	bool strict;
	enum stats_worse worse;
	double alpha;	 /* 0: a part of the gate's error rate */
	double power;	 /* 1 - miss */
	double quantile; /* < 0: means are compared */
	struct gate_rule_amount threshold, min_effect;
	unsigned int line; /* line of the rule in the file */
	/* The parameters of the metric; NULL: not given. */
	char *from, *until; /* markers */
	bool has_phase;
	enum phase phase;
	enum gate_rule_start start;
	enum gate_rule_work work;
	char *symbol, *pattern, *dso, *exclude;
	regex_t regex, except; /* compiled forms of pattern and exclude */
	bool children;	       /* functions including their callees */
	bool time;	       /* GATE_RULE_SYMBOLS: values are ns, else shares */
	double min_share;      /* 0 to 1: functions whose mean share is below are omitted */
	char *exit, *counter;
	bool per_second;
};

struct gate_rules {
	char *path;	      /* for messages and annotations */
	const char *built_in; /* name of the file in configs/ if built in; NULL: path is a file */
	struct gate_rule *rule;
	size_t n;
	double error_rate; /* total error rate of the rules of level fail that have no alpha */
	bool no_idle;	   /* shares are of the time in which a vCPU ran */
	bool kernel_only;  /* only samples in the kernel count */
	/*
	 * All samples have the same weight. By default a sample counts the time since the previous
	 * one, in which a busy host may have run another program, which adds noise.
	 */
	bool count_samples;
};

/*
 * Parses rules; the caller frees *out with gate_rules_destroy(). Messages begin with
 * "PATH:LINE:COLUMN: ". Returns 0, -EINVAL, -E2BIG or -ENOMEM.
 */
int gate_rules_parse(struct gate_rules **out, const char *path, const char *text, size_t len,
		     struct err *e);
/*
 * Loads rules from a file; path NULL: the default rules (configs/gate-default.toml, built in). The
 * caller frees *out with gate_rules_destroy(). Returns 0, the errors of gate_rules_parse(), or
 * -errno of reading.
 */
int gate_rules_load(struct gate_rules **out, const char *path, struct err *e);
/*
 * Does the same for one run of each side; path NULL: configs/gate-exact.toml, built in.
 */
int gate_rules_load_exact(struct gate_rules **out, const char *path, struct err *e);
/*
 * Loads rules for runs that start their VMM; path NULL: those of configs/gate-vmm.toml. Ownership
 * and errors are those of gate_rules_load_exact().
 */
int gate_rules_load_vmm(struct gate_rules **out, const char *path, struct err *e);
/*
 * Changes the level of the rule a->rule from fail to warn and records who accepts its finding, and
 * why. Texts are copied. Returns 0; -EINVAL if there is no such rule, or as
 * gate_acceptance_check(); or -ENOMEM.
 */
int gate_rules_accept(struct gate_rules *r, const struct gate_acceptance *a, struct err *e);
void gate_rules_destroy(struct gate_rules *r);

/* Returns "vmm" or "kvm". */
const char *gate_rule_start_name(enum gate_rule_start s);

/* Returns the unit of the rule's values. */
enum gate_rule_dimension gate_rule_dimension(const struct gate_rule *r);
/* Returns the metric's name in a file of rules: "share", "time" and so on, a constant. */
const char *gate_rule_metric_name(enum gate_rule_metric m);
/* Returns whether the rule is for one run of each side (exact.h). */
bool gate_rule_is_exact(const struct gate_rule *r);
/*
 * Returns what the members of the rule's family are: "functions", "stacks" and so on, a constant.
 */
const char *gate_rule_members(const struct gate_rule *r);
/* Returns whether the rule is a family: it has a result for each function, stack and so on. */
bool gate_rule_is_family(const struct gate_rule *r);

/*
 * Returns whether the rule selects this function. Symbols and regular expressions are compared with
 * names without suffixes of compiler clones (profile/analyse/stacks/identity.h).
 */
bool gate_rule_matches(const struct gate_rule *r, const char *name, const char *dso);
/* Returns whether the rule selects this function by its name or one of its aliases. */
bool gate_rule_matches_function(const struct gate_rule *r, const struct stackset_func *f);

/*
 * Returns the rule for stats_compare(), with the larger of threshold and min-effect where the
 * base's mean is `base`.
 */
struct stats_rule gate_rule_stats(const struct gate_rule *r, double base, double alpha);

#endif
