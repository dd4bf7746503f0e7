/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_metric: a rule's number for one profile.
 *
 * Times come from the samples and from the totals that a run leaves in its profile (JSON):
 *   run_seconds
 *   exits       { "2_IO": count, ... }
 *   markers     [ { "name": text, "time_ns": since the first instruction }, ... ] (markers.h)
 *   attach      { "start": { "vmm_ns", "kvm_ns", "held_ns", "elapsed_ns": numbers } }
 *   io          { "read_bytes": number, "written_bytes": number }, or io_bytes: number
 * Any number in them is a counter: "host.syscalls_assisted" is that member of "host".
 *
 * Pure. Totals are untrusted: what has not the form above is not there.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_METRIC_H
#define KVMPROF_PROFILE_COMPARE_GATE_METRIC_H

#include "profile/compare/gate/rules.h"
#include "profile/analyse/stacks/stackset.h"
#include "profile/analyse/stacks/work.h"

#define GATE_WHY 200 /* bytes of a reason */

struct json_t;

/* Which stacks count, and how much. */
struct gate_counting {
	bool no_idle, kernel_only;
	double per_sample; /* 0: their weights count */
};

struct gate_counting gate_counting_of(const struct gate_rules *rules, const struct stackset *s);
/* 0: it does not count. */
double gate_amount(const struct gate_counting *c, const struct stackset_stack *st);

struct gate_source {
	const struct stackset *set;
	const struct json_t *totals; /* NULL: none */
	struct phases phases;
	const uint8_t *work; /* for each stack, see work_find() */
	double weight;	     /* that shares are of */
	struct gate_counting counting;
};

/* Whole documents of at most that; NULL: not there, too long or no JSON. json_decref() it. */
#define GATE_MAX_TOTALS (16u << 20)
struct json_t *gate_totals(const char *text);

/*
 * Returns the instructions that the engine `exact` counted while it collected, sampled or not; NaN
 * if the run was not made by it.
 */
double gate_engine_instructions(const struct json_t *totals);

/* Returns whether a sample is of the phase and of the work that a rule on instructions is about. of_stack: of work_find(). */
bool gate_counts_sample(const struct gate_rule *r, const struct phases *p, const uint8_t *of_stack,
			const struct stackset_sample *m);

/* NaN where there is none, and why then has the reason. -ENOMEM. Not for families. */
int gate_measure(const struct gate_source *src, const struct gate_rule *r, double *out,
		 char why[GATE_WHY], struct err *e);

#endif
