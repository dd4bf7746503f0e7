/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_feed: replies of the control socket (docs/control.md), checked and taken over.
 *
 * Pure. A reply that is not what it should be is an error in one line; what it lacks
 * otherwise counts as zero.
 */
#ifndef KVMPROF_PROFILE_CMD_TOP_FEED_H
#define KVMPROF_PROFILE_CMD_TOP_FEED_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/cmd/top/model.h"
#include "profile/cmd/top/view.h"

#include <jansson.h>
#include <stdint.h>

#define TOP_MAX_CODE 65536u

/* The reply to `profile`: a new batch. *seq is for the next one. */
int top_feed_profile(struct top_model *m, const json_t *reply, enum top_older older, uint64_t *seq,
		     struct err *e);

/* The reply to `status`: the figures of *out, not its texts. */
int top_feed_status(struct top_status *out, const json_t *reply, struct err *e);

struct top_hit {
	uint64_t addr;
	double weight;
};

/* The reply to `text`: a function's code. */
struct top_code {
	uint64_t addr;	 /* address of the function */
	struct buf code; /* from addr on */
	struct top_hit *hit;
	size_t nhits;
	char symbol[256];
};

/* out is empty before; top_code_deinit() also after an error. */
int top_feed_code(struct top_code *out, const json_t *reply, struct err *e);
void top_code_deinit(struct top_code *c);

#endif
