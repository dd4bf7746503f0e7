/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/pipeline/offcpu.h"

#include "base/clock.h"
#include "vmm/capture/trigger.h"

#include <errno.h>
#include <stdlib.h>

struct offcpu {
	struct task_walk *look;
	struct trigger trigger; /* counts ns since begin_ns, where the first one is 1 */
	uint64_t begin_ns;	/* time of the first call; 0: there was none */
	/* carried_ns: time that no sample stands for yet */
	uint64_t period_ns, carried_ns;
	uint64_t skip; /* number of coming deadlines that pass without a walk */
	uint8_t event;
	struct offcpu_stats stats;
	/* Valid during a walk: */
	uint64_t now_ns, weight_ns;
	offcpu_sample_fn take;
	void *ctx;
};

int offcpu_create(struct offcpu **out, struct guest *g, uint64_t period_ns, uint8_t event,
		  struct err *e)
{
	struct offcpu *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		return err_nomem(e);
	o->period_ns = period_ns;
	o->event = event;
	o->stats.on = true;
	o->stats.period_ns = period_ns;
	ret = task_walk_create(&o->look, g, e);
	if (ret)
		free(o);
	else
		*out = o;
	return ret;
}

void offcpu_destroy(struct offcpu *o)
{
	if (!o)
		return;
	task_walk_destroy(o->look);
	free(o);
}

void offcpu_stats(struct offcpu *o, struct offcpu_stats *out)
{
	*out = o->stats;
	out->look = *task_walk_stats(o->look);
}

static int on_task(void *ctx, const struct linux_task *t, const struct linux_sched *sched,
		   enum linux_sleeper what, struct sample *s, struct err *e)
{
	struct offcpu *o = ctx;

	(void)t;
	(void)what;
	(void)e;
	if (!s)
		return 0;
	s->event = o->event;
	s->time_ns = o->now_ns;
	s->weight = o->weight_ns;
	s->exit = (uint8_t)sched->state;
	o->stats.samples++;
	o->stats.weight_ns += s->weight;
	o->take(o->ctx, s);
	return 0;
}

/*
 * Returns whether a walk is due. If not, the time that has passed is carried over to the next walk.
 */
static bool has_come(struct offcpu *o, uint64_t now_ns)
{
	uint64_t at = now_ns - o->begin_ns + 1;
	uint32_t missed;

	if (at < o->trigger.deadline_ns)
		return false;
	missed = trigger_advance(&o->trigger, at);
	o->stats.late += missed;
	o->carried_ns += (1 + (uint64_t)missed) * o->period_ns;
	if (o->skip > missed) {
		o->skip -= 1 + missed;
		o->stats.stretched++;
		return false;
	}
	o->skip = 0;
	return true;
}

int offcpu_run(struct offcpu *o, uint64_t now_ns, bool collecting, offcpu_sample_fn take, void *ctx,
	       struct err *e)
{
	struct err why = { 0 };
	uint64_t cost;
	int ret;

	if (!o->begin_ns) {
		o->begin_ns = now_ns;
		trigger_init_count(&o->trigger, &(struct trigger_rule){ .period_ns = o->period_ns,
									.jitter = true,
									.seed = now_ns | 1 });
	}
	if (!has_come(o, now_ns))
		return 0;
	o->now_ns = now_ns;
	o->weight_ns = o->carried_ns;
	o->carried_ns = 0;
	if (!collecting)
		return 0;
	o->take = take;
	o->ctx = ctx;
	ret = task_walk_run(o->look, TASK_WALK_PROGRAMS, on_task, o, &why);
	cost = clock_mono_ns() - now_ns;
	o->skip = cost * OFFCPU_SHARE / o->period_ns;
	if (ret == -EAGAIN)
		return 0;
	return ret ? err_set(e, -ret, "%s", why.text) : 0;
}
