/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_run: the data of one profile that a gate uses: the value of each rule's metric, and the
 * weight of each function.
 *
 * Functions of several runs are identical if name, DSO and mode are (diff.h). Texts are valid UTF-8
 * without control characters. Constant after creation, except for gate_run_keep(); one thread uses
 * a run at a time.
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
	const char *note;      /* a remark; NULL: none (kin.c) */
};

struct gate_run {
	const char *path;
	size_t nrules;
	double *value;	  /* value for each rule; NaN: none, as for each family */
	const char **why; /* for each rule the reason for NaN, or for having no function */
	struct phases phases;
	struct gate_symbol *symbol; /* sorted by name, DSO and mode */
	size_t nsymbols;
	struct lineage_call *call; /* its functions are indexes of symbol[] */
	size_t ncalls;
	double weight; /* total, of which shares are parts */
	uint64_t samples;
	uint64_t began_ns; /* start of the run on the clock of the samples; 0: unknown */
	bool weight_is_ns;
	const char *event, *osrelease;
	const char *guest;   /* stackset.guest */
	const char *panic;   /* reason of the guest kernel's panic; NULL: none */
	const char *hang;    /* verdict on a guest that hung; NULL: none */
	const char *command; /* the guest's command (run --exec); NULL: none */
	/* Weight from /init on without idle processors; NaN: /init did not start. */
	double work;
	const char *means;   /* comparable_facts() of its totals */
	uint64_t contents;   /* comparable_contents(), equal for two files with one run */
	bool counted;	     /* weights are exact counts, which repeat from run to run */
	const char *message; /* describes what a partial profile lacks, or "" */
	struct texts texts;
};

/*
 * Loads a profile and measures it by the rules; the caller frees *out with gate_run_destroy().
 * Errors begin with the path. Returns 0, -ENODATA if no sample counts, or another -errno.
 */
int gate_run_load(struct gate_run **out, const char *path, const struct gate_rules *rules,
		  struct err *e);
/*
 * Does the same for a set that was loaded with keep_samples and is used during the call only.
 * Returns 0, -ENODATA or -ENOMEM.
 */
int gate_run_make(struct gate_run **out, const char *path, const struct stackset *s,
		  const struct gate_rules *rules, struct err *e);
void gate_run_destroy(struct gate_run *r);
/* Returns a copy of text as valid UTF-8, which the run owns; NULL if out of memory. */
const char *gate_run_keep(struct gate_run *r, const char *text);

/* Compares by name, DSO and mode. Returns a number below, equal to or above 0, as for qsort(). */
int gate_symbol_compare(const struct gate_symbol *a, const struct gate_symbol *b);

#endif
