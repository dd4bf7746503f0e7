/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_feed: parses replies of the control socket (docs/control.md).
 *
 * Functions return 0, -EPROTO if the reply is not of the expected form, or -ENOMEM. Members that a
 * reply lacks count as zero. No I/O; called by the main thread. A reply is borrowed during the
 * call.
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

/*
 * Adds the stacks of a reply to `profile` to the model as a new batch. Stores the number with which
 * the caller requests the next batch in *seq. On -ENOMEM a part of the batch has been added.
 */
int top_feed_profile(struct top_model *m, const json_t *reply, enum top_older older, uint64_t *seq,
		     struct err *e);

/* Stores the figures of a reply to `status` in *out, whose texts (title, event, end) are kept. */
int top_feed_status(struct top_status *out, const json_t *reply, struct err *e);

/* Samples at one instruction. */
struct top_hit {
	uint64_t addr;
	double weight;
};

/* The contents of a reply to `text`: a function's code. */
struct top_code {
	uint64_t addr;	     /* address of the function */
	struct buf code;     /* machine code, from addr on */
	struct top_hit *hit; /* nhits items */
	size_t nhits;
	char symbol[256];
};

/*
 * Copies the code and the hits of a reply. The caller frees *out with top_code_deinit(), also after
 * an error.
 */
int top_feed_code(struct top_code *out, const json_t *reply, struct err *e);
void top_code_deinit(struct top_code *c);

#endif
