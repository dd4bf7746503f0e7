/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_exact: one run a side whose counts are exact (kvmprof run --engine exact): what changed?
 *
 * No statistics: a difference is a fact. Rules are those of the metrics instructions, and
 * function-, stack-, syscall-, task- and phase-instructions, of the run or of one phase of a boot; of a
 * family the report has what differs, largest first. What is compared is the profile's first event.
 * Sampled profiles have one number that is exact, the engine's own count of instructions: only rules on
 * that are judged, others are refused.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_EXACT_H
#define KVMPROF_PROFILE_COMPARE_GATE_EXACT_H

#include "profile/compare/gate/gate.h"

/* most findings of one rule; the smallest differences are left out */
#define GATE_EXACT_MAX_FINDINGS 5000u

/* A profile of `kvmprof run --engine exact`, loaded with keep_samples. Both are borrowed. */
struct gate_exact_input {
	const char *path; /* for messages */
	const struct stackset *set;
	/* the same profile's event of that name; NULL: there is none */
	const struct stackset *entries;
};

/*
 * Adds both runs, base first, to the gate, which has no runs yet, and judges them. Texts of the report are the gate's.
 * -EINVAL: not of the event instructions, a rule of another metric, or a rule on a part of a run that was sampled.
 */
int gate_evaluate_exact_sets(struct gate *g, const struct gate_exact_input in[GATE_SIDE_MAX],
			     struct gate_report **out, struct err *e);
/* Loads both files and calls gate_evaluate_exact_sets(). */
int gate_evaluate_exact(struct gate *g, const char *base, const char *head,
			struct gate_report **out, struct err *e);

#endif
