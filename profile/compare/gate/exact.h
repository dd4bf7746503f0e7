/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_exact: compares one run of each side whose counts are exact (kvmprof run --engine exact).
 *
 * Statistics are not needed: a difference is a fact. Rules have the metrics instructions, and
 * function-, stack-, syscall-, task- and phase-instructions, of the run or of one phase of a boot.
 * The report of a family has the members that differ, largest first. The profile's first event is
 * compared. Sampled profiles have one exact number, the engine's own count of instructions: only
 * rules on that are accepted for them. Thread and ownership: see gate.h.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_EXACT_H
#define KVMPROF_PROFILE_COMPARE_GATE_EXACT_H

#include "profile/compare/gate/gate.h"

/* maximum number of findings of one rule; the smallest differences are omitted */
#define GATE_EXACT_MAX_FINDINGS 5000u

/* A profile of `kvmprof run --engine exact`, loaded with keep_samples; borrowed during the call. */
struct gate_exact_input {
	const char *path; /* for messages */
	const struct stackset *set;
	/* the event `entries` of the same profile; NULL: none */
	const struct stackset *entries;
};

/*
 * Adds both runs to the gate, which has no runs yet, and evaluates the rules. The caller frees *out
 * with gate_report_destroy(), before the gate, which owns texts of it. Returns 0; -EINVAL if a
 * profile's event is not instructions, a rule has another metric, or a rule needs a part of a run
 * that was sampled; or another -errno.
 */
int gate_evaluate_exact_sets(struct gate *g, const struct gate_exact_input in[GATE_SIDE_MAX],
			     struct gate_report **out, struct err *e);
/*
 * Loads both files and calls gate_evaluate_exact_sets(). Returns its errors, or those of loading
 * (-ENOENT and others).
 */
int gate_evaluate_exact(struct gate *g, const char *base, const char *head,
			struct gate_report **out, struct err *e);

#endif
