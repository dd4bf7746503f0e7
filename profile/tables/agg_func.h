/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agg_func: the distinct functions of a profile, numbered.
 *
 * A function is known by its symbol, code without one by DSO and address. One thread.
 */
#ifndef KVMPROF_PROFILE_TABLES_AGG_FUNC_H
#define KVMPROF_PROFILE_TABLES_AGG_FUNC_H

#include "profile/tables/agg.h"

/* All zero is an empty set. */
struct agg_funcs {
	struct agg_func *func;
	size_t n, cap;
	uint32_t *slot; /* index + 1; 0 is free */
	size_t slots;	/* a power of two, at most half full */
};

void agg_funcs_deinit(struct agg_funcs *f);

/* The number of the function at f; the expressions of c are asked once for each. -ENOMEM. */
int agg_funcs_add(struct agg_funcs *fs, const struct agg_config *c, const struct agg_frame *f,
		  uint32_t *out);

#endif
