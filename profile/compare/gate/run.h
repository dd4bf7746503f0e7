/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_run: what a gate keeps of one profile: the value of each rule's metric, and how
 * much time each function took.
 *
 * Functions of several runs are the same when name, DSO and mode are (diff.h). Texts are
 * valid UTF-8 without control characters. Const once made.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_RUN_H
#define KVMPROF_PROFILE_COMPARE_GATE_RUN_H

#include "profile/compare/diff/lineage.h"
#include "profile/compare/gate/rules.h"
#include "base/texts.h"

struct gate_symbol {
	const char *name, *dso;
	uint8_t mode;	       /* for identity_mode_name() */
	double self, children; /* weight */
	const char *note;      /* what to know of it; NULL: nothing (kin.c) */
};

struct gate_run {
	const char *path;
	size_t nrules;
	double *value;	  /* value for each rule; NaN: there is none, as for each family */
	const char **why; /* for each rule the reason why there is no value, or no function */
	struct phases phases;
	struct gate_symbol *symbol; /* by name, DSO and mode */
	size_t nsymbols;
	struct lineage_call *call; /* by indexes of symbol[] */
	size_t ncalls;
	double weight; /* that shares are of */
	uint64_t samples;
	uint64_t began_ns; /* on the clock of the samples; orders runs of one host. 0: unknown */
	bool weight_is_ns;
	const char *event, *osrelease;
	const char *guest;   /* stackset.guest */
	const char *panic;   /* why the guest's kernel panicked; NULL: it did not */
	const char *command; /* that the guest ran (run --exec); NULL: none */
	/* Weight from /init on, but for idle processors; NaN: no /init was seen. */
	double work;
	const char *means;   /* comparable_facts() of its totals */
	uint64_t contents;   /* comparable_contents(): the same of two forms of one run */
	bool counted;	     /* weights are exact counts, which repeat from run to run */
	const char *message; /* what a partial profile lacks, or "" */
	struct texts texts;
};

/*
 * Loads a profile and measures it by the rules; the caller frees *out with gate_run_destroy().
 * Errors begin with the path. Returns 0, -ENODATA if no sample counts, or another -errno.
 */
int gate_run_load(struct gate_run **out, const char *path, const struct gate_rules *rules,
		  struct err *e);
/* Does the same for a set that was loaded with keep_samples and is used during the call only. */
int gate_run_make(struct gate_run **out, const char *path, const struct stackset *s,
		  const struct gate_rules *rules, struct err *e);
void gate_run_destroy(struct gate_run *r);
/* Returns a copy of text as clean UTF-8, which the run owns; NULL if out of memory. */
const char *gate_run_keep(struct gate_run *r, const char *text);

/* By name, DSO and mode: <0, 0, >0. */
int gate_symbol_compare(const struct gate_symbol *a, const struct gate_symbol *b);

#endif
