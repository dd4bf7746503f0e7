/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_metric: computes a rule's number for one profile.
 *
 * Times come from the samples and from the totals that a run leaves in its profile (JSON):
 *   run_seconds
 *   exits       { "2_IO": count, ... }
 *   markers     [ { "name": text, "time_ns": since the first instruction }, ... ] (markers.h)
 *   attach      { "start": { "vmm_ns", "kvm_ns", "held_ns", "elapsed_ns": numbers } }
 *   io          { "read_bytes": number, "written_bytes": number }, or io_bytes: number
 * Any number in them is a counter: "host.syscalls_assisted" is that member of "host".
 *
 * No I/O; any thread. Totals are untrusted: members that do not have the form above are ignored.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_METRIC_H
#define KVMPROF_PROFILE_COMPARE_GATE_METRIC_H

#include "profile/compare/gate/rules.h"
#include "profile/analyse/stacks/stackset.h"
#include "profile/analyse/stacks/work.h"

#define GATE_WHY 200 /* bytes of a reason */

struct json_t;

/* Selects the stacks that count, and their weights. */
struct gate_counting {
	bool no_idle, kernel_only;
	double per_sample; /* weight of each sample; 0: that of the stack counts */
};

/* Returns the selection that the rules make in this set. */
struct gate_counting gate_counting_of(const struct gate_rules *rules, const struct stackset *s);
/* Returns the weight of a stack; 0 if it does not count. */
double gate_amount(const struct gate_counting *c, const struct stackset_stack *st);

/* The data of one profile; all borrowed. */
struct gate_source {
	const struct stackset *set;
	const struct json_t *totals; /* NULL: none */
	struct phases phases;
	const uint8_t *work; /* for each stack, see work_find() */
	double weight;	     /* total, of which shares are parts */
	struct gate_counting counting;
};

#define GATE_MAX_TOTALS (16u << 20) /* bytes */
/*
 * Parses a profile's totals. Returns the object, which the caller frees with json_decref(); NULL if
 * text is NULL, longer than GATE_MAX_TOTALS or not a JSON object.
 */
struct json_t *gate_totals(const char *text);

/*
 * Returns the instructions that the engine `exact` counted while it collected, sampled or not; NaN
 * if the run was not made by it.
 */
double gate_engine_instructions(const struct json_t *totals);

/*
 * Returns whether a sample is in the phase and belongs to the work to which a rule on instructions
 * is restricted. of_stack is the result of work_find().
 */
bool gate_counts_sample(const struct gate_rule *r, const struct phases *p, const uint8_t *of_stack,
			const struct stackset_sample *m);

/*
 * Stores the rule's number in *out, or NaN with the reason in `why`; for families always NaN.
 * Returns 0 or -ENOMEM.
 */
int gate_measure(const struct gate_source *src, const struct gate_rule *r, double *out,
		 char why[GATE_WHY], struct err *e);

#endif
