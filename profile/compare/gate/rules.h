/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_rules: what a gate looks at and how much worse it may get, out of TOML.
 *
 *   [gate]    error-rate, power, no-idle, kernel-only, count-samples
 *   [[rule]]  metric, and what belongs to the metric: from, until, phase, symbol, subtree,
 *             regex, subtree-regex, dso, measure, children, min-share, exclude, exit, counter,
 *             per-second; threshold, min-effect, worse, strict, quantile; level, alpha, power,
 *             optional; name
 *
 * docs/gate.md has the whole schema. A key that is not known, or does not go with the
 * metric, is an error with its line and column. Const once made.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_RULES_H
#define KVMPROF_PROFILE_COMPARE_GATE_RULES_H

#include "profile/compare/stats/verdict.h"
#include "profile/analyse/stacks/phases.h"

#include <regex.h>

#define GRULE_MAX 256u	       /* rules */
#define GRULE_MAX_NAME 256u    /* bytes of a name, marker or symbol */
#define GRULE_MAX_PATTERN 512u /* bytes of a regular expression */
#define GRULE_ERROR_RATE 0.01  /* defaults */
#define GRULE_POWER 0.9
#define GRULE_MIN_SHARE 0.005

enum grule_metric {
	GRULE_TIME,	     /* of the run, to a marker, between two, or of a boot's phase */
	GRULE_BOOT_TIME,     /* from the first instruction to /init */
	GRULE_SHARE,	     /* of functions */
	GRULE_FUNCTION_TIME, /* of functions */
	GRULE_SYMBOLS,	     /* each function, with control of the false discovery rate */
	GRULE_NEW_SYMBOLS,   /* share of each function that the base does not have */
	GRULE_EXITS,	     /* VM exits per second */
	GRULE_IO_BYTES,	     /* read and written by devices */
	GRULE_COUNTER,	     /* a number in the run's totals */
	/* Of one run a side (exact.h): instructions, of all or of functions; and of each of a kind. */
	GRULE_INSNS,
	GRULE_INSN_FUNCTIONS,
	GRULE_INSN_STACKS,
	GRULE_INSN_SYSCALLS,
	GRULE_INSN_TASKS,
	GRULE_INSN_PHASES,
	GRULE_METRICS
};

/* What the values are. */
enum grule_dimension {
	GRULE_NS,
	GRULE_PART, /* 0 to 1 */
	GRULE_RATE, /* a second */
	GRULE_BYTES,
	GRULE_COUNT
};

/* Absolute: ns, a second, bytes or a count; relative: 0.02 is 2 %; points: 0.2 is 0.002. */
struct grule_amount {
	enum gate_unit unit;
	double value; /* 0: not given */
};

struct grule {
	char *name; /* unique among the rules */
	char *key;  /* what is measured, as text: names the series in a history */
	enum grule_metric metric;
	bool fail;     /* level: else warn */
	bool optional; /* with nothing to measure it is skipped, else it is inconclusive */
	bool strict;
	enum gate_worse worse;
	double alpha;	 /* 0: a part of the gate's error rate */
	double power;	 /* 1 - miss */
	double quantile; /* < 0: means are compared */
	struct grule_amount threshold, min_effect;
	unsigned int line; /* of the rule in the file */
	/* By metric; NULL where there is none. */
	char *from, *until; /* markers */
	bool has_phase;
	enum phase phase;
	char *symbol, *pattern, *dso, *exclude;
	regex_t regex, except; /* of pattern and exclude */
	bool children;	       /* functions with all that they call */
	bool time;	       /* GRULE_SYMBOLS: ns, else shares */
	double min_share;      /* 0 to 1: functions below on the average are left out */
	char *exit, *counter;
	bool per_second;
};

struct grules {
	char *path;    /* for messages and annotations */
	bool built_in; /* path is no file's */
	struct grule *rule;
	size_t n;
	double error_rate; /* of all rules of level fail without an alpha, together */
	bool no_idle;	   /* shares are of the time in which a vCPU ran */
	bool kernel_only;  /* only samples in the kernel count */
	/*
	 * Each sample counts the same. By default it counts the time since the one before, in
	 * which a busy host may have run something else: noise that is not the guest's.
	 */
	bool count_samples;
};

/* -EINVAL: "PATH:LINE:COLUMN: what is wrong". -E2BIG, -ENOMEM. */
int grules_parse(struct grules **out, const char *path, const char *text, size_t len,
		 struct err *e);
/* From a file; NULL: the default rules (configs/gate-default.toml, within the program). */
int grules_load(struct grules **out, const char *path, struct err *e);
/* Of one run a side; NULL: those of configs/gate-exact.toml. */
int grules_load_exact(struct grules **out, const char *path, struct err *e);
void grules_destroy(struct grules *r);

enum grule_dimension grule_dimension(const struct grule *r);
/* "share", "time"... */
const char *grule_metric_name(enum grule_metric m);
/* Is it for one run a side? */
bool grule_is_exact(const struct grule *r);
/* "functions", or what else a family's members are */
const char *grule_members(const struct grule *r);
/* Is a result one for each function? */
bool grule_is_family(const struct grule *r);

/* Is it one of the functions that the rule is about? */
bool grule_matches(const struct grule *r, const char *name, const char *dso);

/* The rule for gate_compare(): the larger of threshold and min-effect at a mean of the base. */
struct gate_rule grule_stats(const struct grule *r, double base, double alpha);

#endif
