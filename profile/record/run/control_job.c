/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_control_job: requests that the profile's own thread answers, between two samples.
 */
#include "base/clock.h"
#include "profile/record/control/reply.h"
#include "profile/record/run/ps_json.h"
#include "profile/record/run/control_private.h"
#include "profile/record/control/view.h"
#include "profile/record/summary/summary.h"

#include <errno.h>

static int snapshot(struct run_control *c, const struct pipeline_stats *stats, struct err *e)
{
	struct run *r = c->run;
	uint64_t start = clock_mono_ns(), lost = run_control_lost(c);
	struct profile_totals totals = { .first_ns = vm_first_entry_ns(r->vm), .last_ns = start };
	struct summary s;
	struct buf json;
	int ret = 0;

	buf_init(&json);
	run_summary(r, stats, &s);
	summary_json(&s, &json);
	buf_u8(&json, 0);
	totals.json = (const char *)json.data;
	if (json.failed)
		ret = err_set(e, ENOMEM, "out of memory");
	ret = ret ? ret : sink_snapshot(r->sink, c->request.path, &totals, e);
	buf_deinit(&json);
	if (ret)
		return ret;
	atomic_fetch_add(&c->snapshots, 1);
	control_put_text(&c->reply, "path", c->request.path);
	control_put_u64(&c->reply, "samples", stats->samples);
	control_put_u64(&c->reply, "took_ns", clock_mono_ns() - start);
	control_put_u64(&c->reply, "lost", run_control_lost(c) - lost);
	return 0;
}

static int profile(struct run_control *c)
{
	const struct live_query q = {
		.since = c->request.since,
		.max_stacks = c->request.max_stacks,
		.max_depth = c->request.max_depth,
		.now_ns = clock_mono_ns(),
	};

	sink_live_profile(c->run->sink, &q, &c->reply);
	return 0;
}

void run_control_do_job(struct run_control *c, const struct pipeline_stats *stats)
{
	const struct control_request *r = &c->request;
	struct err e = { 0 };
	int ret;

	control_reply_begin(&c->reply, r);
	if (r->cmd == CONTROL_SNAPSHOT)
		ret = snapshot(c, stats, &e);
	else if (r->cmd == CONTROL_PROFILE)
		ret = profile(c);
	else if (r->cmd == CONTROL_PS)
		ret = ps_json(pipeline_guest(c->run->pipeline),
			      r->on ? PS_WITH_STACKS : PS_WITHOUT_STACKS, &c->reply, &e);
	else
		ret = sink_live_text(c->run->sink, r->addr, r->len, &c->reply, &e);
	if (ret) {
		c->reply.len = 0;
		control_reply_error(&c->reply, r, e.text);
	} else {
		control_reply_end(&c->reply);
	}
}
