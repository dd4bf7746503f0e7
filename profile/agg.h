/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agg: weight by symbol.
 *
 * Equal stacks are counted together as they come (one hash of the raw chain for
 * each sample); names are looked up once for each distinct stack, at the end.
 * self: the symbol is innermost. children: it is anywhere in the stack, counted
 * once however often it occurs (recursion).
 */
#ifndef KVMPROF_PROFILE_AGG_H
#define KVMPROF_PROFILE_AGG_H

#include "profile/names.h"
#include "profile/perfdata_read.h"

enum agg_mode {
	AGG_KERNEL,
	AGG_USER,
	AGG_IDLE, /* any frame of a halted vCPU (pid 0) */
	AGG_MODES
};

const char *agg_mode_name(enum agg_mode mode);

struct agg_row {
	const struct symbol *symbol; /* NULL: unnamed, then addr tells them apart */
	uint64_t addr;		     /* symbol's, or the address looked up */
	const char *dso;
	enum agg_mode mode;
	uint64_t self, children; /* weight */
	uint64_t self_samples, children_samples;
	uint64_t stamp; /* agg's own */
};

struct agg {
	uint64_t samples, weight;
	uint64_t mode_weight[AGG_MODES]; /* by the innermost frame */
	size_t nstacks;			 /* distinct */
	struct agg_row *row;
	size_t nrows;
	struct agg_private *priv;
};

/* exact: chain addresses are to be looked up as they are (else callers at ip - 1). */
int agg_create(struct agg **out, bool exact, struct err *e);
void agg_destroy(struct agg *a);

/* r is a sample; its chain must stay where it is until agg_finish() is done. */
int agg_add(struct agg *a, const struct perfdata_record *r, struct err *e);

/* Name and sum up; rows are sorted by children, or by self. Symbols belong to names. */
int agg_finish(struct agg *a, struct names *n, bool by_self, struct err *e);

#endif
