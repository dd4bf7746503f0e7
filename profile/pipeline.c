/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/pipeline.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often the rings are looked at: a ring holds far more than this brings. */
#define POLL_NS 5000000

/* The process of a user program in the kernel's own image. */
#define GUEST_PID 1u

struct pipeline {
	struct vm *vm;
	struct guest *guest;
	struct sink *sink;
	struct buf held; /* samples in order, each at a multiple of 8 */
	pthread_t thread;
	atomic_bool stop;
	struct pipeline_stats stats;
	uint64_t *dropped_seen; /* of each ring, already reported to the sink */
	uint64_t last_ns;	/* time of the newest sample */
	struct stack stack, crash;
	struct err err;
};

static void fail_once(struct pipeline *p, int ret)
{
	/* The profile can't be written: there is no use in running on. */
	if (ret)
		vm_end(p->vm, VM_END_ERROR);
}

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

static void count_sample(struct pipeline *p, const struct sample *s)
{
	struct pipeline_stats *st = &p->stats;
	const struct stack *stack = &p->stack;
	uint64_t off;

	st->samples++;
	st->event_samples[s->event]++;
	st->event_weight[s->event] += s->weight;
	if (s->event == 0) {
		st->weight += s->weight;
		st->mode_weight[s->mode & 3] += s->weight;
	}
	st->end[stack->end]++;
	st->frames += stack->n;
	st->user_frames += stack->n - stack->n_kernel;
	if (stack->user_end)
		st->user_end[stack->user_end]++;
	if (s->mode != SAMPLE_USER)
		count_kernel_stack(st, stack);
	if (stack->n_kernel && !guest_kernel_symbol(p->guest, stack->ip[0], &off))
		st->unsymbolized++;
	if (s->time_ns > p->last_ns)
		p->last_ns = s->time_ns;
}

static void process(struct pipeline *p, const struct sample *s)
{
	struct profile_sample out;
	bool crash = s->reason == SAMPLE_CRASH;
	struct err ignored = { 0 };
	int ret;

	if (crash) {
		guest_process(p->guest, s, &p->crash, &out, &ignored);
		return;
	}
	ret = guest_process(p->guest, s, &p->stack, &out, p->err.code ? &ignored : &p->err);
	count_sample(p, s);
	if (!p->err.code)
		ret = p->sink->ops->sample(p->sink, &out, &p->err);
	fail_once(p, ret);
}

/*
 * Until the kernel's place is known. Outside of the kernel's half a stack is of no use:
 * that is its decompressor, whose samples are kept without one.
 */
static bool hold(struct pipeline *p, const struct sample *s)
{
	static const uint8_t zeros[8];
	struct sample head = *s;
	size_t len = sample_size(s), before = p->held.len;

	if (p->held.len + len + sizeof(zeros) > PIPELINE_MAX_HELD)
		return false;
	if (!(s->regs.rip >> 63)) {
		head.nslices = 0;
		head.stack_len = 0;
		len = sizeof(head);
	}
	buf_add(&p->held, &head, sizeof(head));
	buf_add(&p->held, (const uint8_t *)s + sizeof(head), len - sizeof(head));
	buf_add(&p->held, zeros, -len & 7);
	if (p->held.failed) {
		/* No half of a sample. */
		p->held.len = before;
		return false;
	}
	p->stats.held++;
	return true;
}

static void release_held(struct pipeline *p)
{
	size_t at = 0;

	while (at < p->held.len) {
		const struct sample *s = (const struct sample *)(p->held.data + at);

		process(p, s);
		at += (sample_size(s) + 7) & ~(size_t)7;
	}
	buf_deinit(&p->held);
	buf_init(&p->held);
}

static void take_sample(struct pipeline *p, const struct sample *s)
{
	int ret;

	if (!guest_is_ready(p->guest, s, &ret, &p->err)) {
		if (hold(p, s))
			return;
		ret = guest_give_up(p->guest, &p->err);
	}
	fail_once(p, ret);
	if (p->held.len)
		release_held(p);
	process(p, s);
}

static void report_drops(struct pipeline *p, unsigned int vcpu)
{
	uint64_t dropped = ring_dropped(vm_ring(p->vm, vcpu));
	uint64_t fresh = dropped - p->dropped_seen[vcpu];

	if (!fresh)
		return;
	p->dropped_seen[vcpu] = dropped;
	p->stats.dropped += fresh;
	if (!p->err.code)
		fail_once(p, p->sink->ops->lost(p->sink, vcpu, fresh, p->last_ns, &p->err));
}

/* The oldest sample of all rings first, so that the output is nearly in order of time. */
static bool drain_one(struct pipeline *p)
{
	const struct sample *oldest = NULL;
	unsigned int from = 0;
	size_t len;

	for (unsigned int i = 0; i < vm_vcpus(p->vm); i++) {
		const struct sample *s = ring_peek(vm_ring(p->vm, i), &len);

		if (s && (!oldest || s->time_ns < oldest->time_ns)) {
			oldest = s;
			from = i;
		}
	}
	if (!oldest)
		return false;
	take_sample(p, oldest);
	ring_release(vm_ring(p->vm, from));
	return true;
}

static void *consumer(void *arg)
{
	struct pipeline *p = arg;
	const struct timespec nap = { .tv_nsec = POLL_NS };

	for (;;) {
		bool last = atomic_load(&p->stop);

		while (drain_one(p))
			;
		for (unsigned int i = 0; i < vm_vcpus(p->vm); i++)
			report_drops(p, i);
		if (last) {
			fail_once(p, guest_give_up(p->guest, &p->err));
			release_held(p);
			if (!p->err.code)
				fail_once(p, guest_finish(p->guest, &p->err));
			return NULL;
		}
		nanosleep(&nap, NULL);
	}
}

void pipeline_destroy(struct pipeline *p)
{
	if (!p)
		return;
	guest_destroy(p->guest);
	buf_deinit(&p->held);
	free(p->dropped_seen);
	free(p);
}

static int start_thread(struct pipeline *p, struct err *e)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&p->thread, NULL, consumer, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret ? err_set(e, ret, "cannot start the consumer thread: %s", strerror(ret)) : 0;
}

int pipeline_start(struct pipeline **out, struct target *target, struct vm *vm, struct sink *sink,
		   const struct guest_options *opt, const struct profile_map *user_map,
		   struct err *e)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return err_set(e, ENOMEM, "out of memory");
	p->vm = vm;
	p->sink = sink;
	buf_init(&p->held);
	p->dropped_seen = calloc(vm_vcpus(vm), sizeof(*p->dropped_seen));
	ret = p->dropped_seen ? guest_create(&p->guest, target, vm, sink, opt, e)
			      : err_set(e, ENOMEM, "out of memory");
	if (!ret && user_map) {
		struct profile_map map = *user_map;

		map.pid = map.tid = GUEST_PID;
		map.time_ns = clock_mono_ns();
		ret = sink->ops->map(sink, &map, e);
	}
	ret = ret ? ret : start_thread(p, e);
	if (ret)
		pipeline_destroy(p);
	else
		*out = p;
	return ret;
}

int pipeline_finish(struct pipeline *p, struct pipeline_stats *stats, struct stack *crash,
		    struct err *e)
{
	int ret = 0;

	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
	guest_stats(p->guest, &p->stats.guest);
	*stats = p->stats;
	*crash = p->crash;
	if (p->err.code)
		ret = err_set(e, p->err.code, "%s", p->err.text);
	return ret;
}
