/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pipeline_count: a sample in the figures of the run, and on its way to the sink. */
#include "profile/record/pipeline/pipeline_private.h"

/* A table of places, so that a reason can be looked into and not only counted. */
static void note_broken(struct pipeline_stats *st, const struct stack *s)
{
	uint64_t ip = s->ip[s->n - 1];
	unsigned int i;

	for (i = 0; i < st->nbroken; i++)
		if (st->broken[i].ip == ip && st->broken[i].end == s->end)
			break;
	if (i == PIPELINE_MAX_BROKEN) {
		st->broken_beyond++;
		return;
	}
	if (i == st->nbroken)
		st->broken[st->nbroken++] = (struct pipeline_broken){
			.ip = ip,
			.innermost = s->ip[0],
			.end = s->end,
		};
	st->broken[i].count++;
}

static void count_kernel_stack(struct pipeline_stats *st, const struct stack *s)
{
	st->kernel_end[s->end]++;
	if (s->end != STACK_END_ROOT && s->end != STACK_END_USER)
		note_broken(st, s);
}

void pipeline_count(struct pipeline *p, const struct profile_sample *s)
{
	struct pipeline_stats *st = &p->stats;
	const struct stack *stack = s->stack;

	st->samples++;
	st->event_samples[s->event]++;
	st->event_weight[s->event] += s->period;
	if (s->event == 0) {
		st->weight += s->period;
		st->mode_weight[s->mode & 3] += s->period;
	}
	st->end[stack->end]++;
	st->frames += stack->n;
	st->user_frames += stack->n - stack->n_kernel;
	if (stack->user_end)
		st->user_end[stack->user_end]++;
	if (s->mode != SAMPLE_USER)
		count_kernel_stack(st, stack);
	if (stack->n_kernel && !guest_kernel_is_named(p->guest, stack->ip[0]))
		st->unsymbolized++;
	if (s->time_ns > p->last_ns)
		p->last_ns = s->time_ns;
}

void pipeline_cut(struct pipeline *p, struct stack *s)
{
	unsigned int max = atomic_load_explicit(&p->max_stack, memory_order_relaxed);

	if (s->n <= max)
		return;
	s->n = (uint16_t)max;
	if (s->n_kernel > max)
		s->n_kernel = (uint16_t)max;
	p->stats.depth_cut++;
}

int pipeline_write(struct pipeline *p, const struct profile_sample *out)
{
	if (p->stats.samples == p->opt.max_samples)
		vm_end(p->vm, VM_END_SAMPLES);
	return p->err.code ? 0 : p->sink->ops->sample(p->sink, out, &p->err);
}
