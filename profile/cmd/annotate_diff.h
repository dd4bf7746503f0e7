/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_diff: the output of `kvmprof annotate --diff`: the instructions of a function in two
 * profiles, with the share of each. Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_ANNOTATE_DIFF_H
#define KVMPROF_PROFILE_CMD_ANNOTATE_DIFF_H

#include "base/buf.h"
#include "profile/analyse/annotate/annotate.h"

#include <stdbool.h>
#include <stdint.h>

/* One side of the comparison. All pointers are borrowed. */
struct annotate_side {
	const struct annotate *a;
	const char *input, *function, *dso; /* texts for display */
	uint64_t weight, samples;	    /* the function's, with callees if these are compared */
	uint64_t total_samples;		    /* of the whole profile */
	uint64_t total_weight;
	bool counted; /* weights are exact counts */
};

enum annotate_compared { ANNOTATE_SELF, ANNOTATE_WITH_CALLEES };

/*
 * Append the comparison as text, or as one JSON object. Shares are percentages of a->whole of each
 * side. Return 0 or -ENOMEM; out->failed is set if out of memory.
 */
int annotate_diff_text(struct buf *out, const struct annotate_side *base,
		       const struct annotate_side *head, enum annotate_compared what,
		       struct err *e);
int annotate_diff_json(struct buf *out, const struct annotate_side *base,
		       const struct annotate_side *head, enum annotate_compared what,
		       struct err *e);

#endif
