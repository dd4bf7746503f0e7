/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/pipeline.h"

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

/* Threads of the guest as the profile shows them until tasks are known: see docs/perf-data.md. */
#define GUEST_PID 1u
#define GUEST_TID(vcpu) (1u + (vcpu))
#define IDLE_PID 0u

struct pipeline {
	struct vm *vm;
	const struct unwinder *u;
	struct sink *sink;
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

static void take_sample(struct pipeline *p, const struct sample *s)
{
	bool idle = s->mode == SAMPLE_IDLE;
	struct profile_sample out = {
		.pid = idle ? IDLE_PID : GUEST_PID,
		.tid = idle ? IDLE_PID : GUEST_TID(s->vcpu),
		.cpu = s->vcpu,
		.time_ns = s->time_ns,
		.period = s->weight_ns,
		.mode = s->mode,
		.stack = &p->stack,
	};

	if (s->reason == SAMPLE_CRASH) {
		unwind(p->u, s, &p->crash);
		return;
	}
	unwind(p->u, s, &p->stack);
	p->stats.samples++;
	p->stats.weight_ns += s->weight_ns;
	p->stats.mode_ns[s->mode & 3] += s->weight_ns;
	p->stats.end[p->stack.end]++;
	p->stats.frames += p->stack.n;
	if (s->mode != SAMPLE_USER)
		count_kernel_stack(&p->stats, &p->stack);
	if (p->stack.n_kernel &&
	    !(p->u->symbols && symtab_lookup(p->u->symbols, p->stack.ip[0], &(uint64_t){ 0 })))
		p->stats.unsymbolized++;
	if (s->time_ns > p->last_ns)
		p->last_ns = s->time_ns;
	if (!p->err.code)
		fail_once(p, p->sink->ops->sample(p->sink, &out, &p->err));
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
		if (last)
			return NULL;
		nanosleep(&nap, NULL);
	}
}

/* Names of the pseudo threads, and the user program where there is one. */
static int announce(struct pipeline *p, const struct profile_map *user_map)
{
	uint64_t now = clock_mono_ns();
	int ret = 0;

	for (unsigned int i = 0; !ret && i < vm_vcpus(p->vm); i++) {
		char comm[16];

		snprintf(comm, sizeof(comm), i ? "vcpu%u" : "guest", i);
		ret = p->sink->ops->comm(p->sink, GUEST_PID, GUEST_TID(i), comm, false, now,
					 &p->err);
	}
	if (!ret && user_map) {
		struct profile_map map = *user_map;

		map.pid = map.tid = GUEST_PID;
		map.time_ns = now;
		ret = p->sink->ops->map(p->sink, &map, &p->err);
	}
	return ret;
}

static void pipeline_free(struct pipeline *p)
{
	free(p->dropped_seen);
	free(p);
}

int pipeline_start(struct pipeline **out, struct vm *vm, const struct unwinder *u,
		   struct sink *sink, const struct profile_map *user_map, struct err *e)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	sigset_t all, old;
	int ret;

	if (p)
		p->dropped_seen = calloc(vm_vcpus(vm), sizeof(*p->dropped_seen));
	if (!p || !p->dropped_seen) {
		free(p);
		return err_set(e, ENOMEM, "out of memory");
	}
	p->vm = vm;
	p->u = u;
	p->sink = sink;
	ret = announce(p, user_map);
	if (ret) {
		err_set(e, -ret, "%s", p->err.text);
		pipeline_free(p);
		return ret;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&p->thread, NULL, consumer, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		pipeline_free(p);
		return err_set(e, ret, "cannot start the consumer thread: %s", strerror(ret));
	}
	*out = p;
	return 0;
}

int pipeline_finish(struct pipeline *p, struct pipeline_stats *stats, struct stack *crash,
		    struct err *e)
{
	int ret = 0;

	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
	*stats = p->stats;
	*crash = p->crash;
	if (p->err.code)
		ret = err_set(e, p->err.code, "%s", p->err.text);
	pipeline_free(p);
	return ret;
}
