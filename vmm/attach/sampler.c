/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/sampler.h"

#include "base/clock.h"
#include "vmm/machine.h"
#include "vmm/control.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int sampler_open(struct sampler *s)
{
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s->wake_fd < 0 ? -errno : 0;
}

void sampler_close(struct sampler *s)
{
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	s->wake_fd = -1;
}

void sampler_wake(const struct sampler *s)
{
	uint64_t one = 1;

	(void)!write(s->wake_fd, &one, sizeof(one));
}

void sampler_start(struct sampler *s)
{
	atomic_store(&s->go, true);
	sampler_wake(s);
}

bool sampler_wait(const struct sampler *s, int fd, uint64_t when)
{
	struct pollfd p[2] = { { .fd = s->wake_fd, .events = POLLIN },
			       { .fd = fd, .events = POLLIN } };
	uint64_t now = clock_mono_ns(), word, left = when > now ? when - now : 0;
	struct timespec ts = { (time_t)(left / NSEC_PER_SEC), (long)(left % NSEC_PER_SEC) };

	if (ppoll(p, 2, &ts, NULL) <= 0)
		return false;
	if (p[0].revents)
		(void)!read(s->wake_fd, &word, sizeof(word));
	return true;
}

uint64_t sampler_late(const struct trigger *t, uint64_t time)
{
	return time > t->deadline_ns ? time - t->deadline_ns : 0;
}

struct capture_cause sampler_cause(struct trigger *t, uint64_t now_ns, uint64_t time)
{
	struct capture_cause cause = { .now = now_ns, .reason = SAMPLE_TIMER };

	cause.missed = trigger_advance(t, time);
	cause.weight = (1 + (uint64_t)cause.missed) * t->period_ns;
	return cause;
}

static void sampler_restart(struct sampler *s, unsigned int i, uint64_t period, uint64_t time)
{
	struct trigger *t = &s->trigger[i];

	t->period_ns = period;
	t->jitter = s->vm->cfg.event[0].jitter;
	t->rng = t->rng ? t->rng : (clock_mono_ns() * 0x9e3779b97f4a7c15ull + i) | 1;
	trigger_begin(t, time);
	if (s->armed && s->driver->restarted)
		s->driver->restarted(s->ctx, i, time);
}

static void sampler_set(struct vm *vm, unsigned int i, uint64_t period)
{
	vm->vcpu[i].stack_max = atomic_load_explicit(&vm->control.stack_max, memory_order_relaxed);
	vm->vcpu[i].source[0].period = period;
}

/* Applies the settings of control. Returns whether the event is armed. */
static bool sampler_follow(struct sampler *s, uint64_t time)
{
	struct vm *vm = s->vm;
	const unsigned int seen = atomic_load_explicit(&vm->control.changes, memory_order_acquire);
	const uint64_t period = vm_period(vm, 0);
	const bool armed = vm_event_is_armed(vm, 0);
	/* The time in which the event was not armed has no samples. */
	const bool restarts = s->trigger[0].period_ns != period || (armed && !s->armed);

	s->armed = armed;
	if (s->control_seen == seen && !restarts)
		return armed;
	s->control_seen = seen;
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		sampler_set(vm, i, period);
	for (unsigned int i = 0; restarts && i < s->ntriggers; i++)
		sampler_restart(s, i, period, time);
	return armed;
}

static uint64_t sampler_time(const struct sampler *s, uint64_t now_ns)
{
	return s->driver->time ? s->driver->time(s->ctx, now_ns) : now_ns;
}

void sampler_add(struct sampler *s, unsigned int i)
{
	const uint64_t period = s->trigger[0].period_ns;

	sampler_set(s->vm, i, period);
	sampler_restart(s, i, period, sampler_time(s, clock_mono_ns()));
}

/* Takes the sample that is due. Returns the time of the next turn. */
static uint64_t sampler_turn(struct sampler *s)
{
	const struct sampler_driver *d = s->driver;
	uint64_t now = clock_mono_ns(), when = now + SAMPLER_IDLE_NS, time, due;

	if (d->is_ready && !d->is_ready(s->ctx, now, &when))
		return when;
	if (!atomic_load(&s->go) || atomic_load(&s->vm->stop))
		return when;
	time = sampler_time(s, now);
	if (!sampler_follow(s, time))
		return when;
	due = d->due(s->ctx);
	if (due <= time) {
		d->take(s->ctx);
		now = clock_mono_ns();
		time = sampler_time(s, now);
		due = d->due(s->ctx);
	}
	if (due == SAMPLER_NEVER)
		return when;
	return due > time ? now + (due - time) : now;
}

void sampler_run(struct sampler *s)
{
	while (s->driver->begin(s->ctx)) {
		uint64_t when = sampler_turn(s);

		s->driver->end(s->ctx, when);
	}
}
