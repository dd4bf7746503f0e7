/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/capture/trigger.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Returns the next random number (xorshift64*), which needs no shared state and a few cycles. */
static uint64_t trigger_draw(struct trigger *t)
{
	t->rng ^= t->rng >> 12;
	t->rng ^= t->rng << 25;
	t->rng ^= t->rng >> 27;
	return t->rng * 0x2545f4914f6cdd1dull;
}

static uint64_t deadline_in(struct trigger *t, uint64_t period_no)
{
	uint64_t at = t->start_ns + period_no * t->period_ns;

	if (!t->jitter)
		return at + t->period_ns;
	return at + (uint64_t)((unsigned __int128)trigger_draw(t) * t->period_ns >> 64);
}

static void trigger_set_up(struct trigger *t, clockid_t clock, const struct trigger_rule *rule)
{
	memset(t, 0, sizeof(*t));
	t->clock = clock;
	t->period_ns = rule->period_ns;
	t->jitter = rule->jitter;
	t->rng = rule->seed ? rule->seed : 1;
}

int trigger_init(struct trigger *t, clockid_t clock, int signo, int value,
		 const struct trigger_rule *rule, struct err *e)
{
	struct sigevent ev;

	trigger_set_up(t, clock, rule);
	memset(&ev, 0, sizeof(ev));
	ev.sigev_notify = SIGEV_THREAD_ID;
	ev.sigev_signo = signo;
	ev.sigev_value.sival_int = value;
	ev.sigev_notify_thread_id = gettid();
	if (timer_create(t->clock, &ev, &t->timer) < 0)
		return err_set(e, errno, "cannot create the sampling timer: %s%s", strerror(errno),
			       errno == EAGAIN ? " (timers and queued signals of this user: "
						 "`ulimit -i` says how many)"
					       : "");
	t->armed = true;
	return 0;
}

void trigger_init_count(struct trigger *t, const struct trigger_rule *rule)
{
	trigger_set_up(t, CLOCK_MONOTONIC, rule);
	/*
	 * Period 0 covers the counts 1 to `period`: its end is the last of them, a random place
	 * any of them.
	 */
	t->start_ns = rule->jitter ? 1 : 0;
	t->deadline_ns = deadline_in(t, 0);
}

void trigger_deinit(struct trigger *t)
{
	if (t->armed)
		timer_delete(t->timer);
	t->armed = false;
}

static void trigger_arm(struct trigger *t)
{
	struct itimerspec its = {
		.it_value = { (time_t)(t->deadline_ns / NSEC_PER_SEC),
			      (long)(t->deadline_ns % NSEC_PER_SEC) },
	};

	/* It fails only for an invalid timer or time, and kvmprof passes neither. */
	(void)timer_settime(t->timer, TIMER_ABSTIME, &its, NULL);
}

void trigger_begin(struct trigger *t, uint64_t now_ns)
{
	t->start_ns = now_ns;
	t->period_no = 0;
	t->deadline_ns = deadline_in(t, 0);
}

void trigger_start(struct trigger *t, uint64_t now_ns)
{
	trigger_begin(t, now_ns);
	trigger_arm(t);
}

void trigger_lengthen(struct trigger *t, uint64_t period_ns)
{
	t->start_ns += t->period_no * t->period_ns;
	t->period_no = 0;
	t->period_ns = period_ns;
	t->deadline_ns = deadline_in(t, 0);
	trigger_arm(t);
}

uint32_t trigger_advance(struct trigger *t, uint64_t now_ns)
{
	uint64_t now_no = (now_ns - t->start_ns) / t->period_ns;
	uint64_t missed = 0;

	/*
	 * After a long stop (the host was suspended), skip the past periods without drawing a
	 * deadline for each.
	 */
	if (now_no > t->period_no + 1) {
		missed = now_no - t->period_no - 1;
		t->period_no = now_no - 1;
	}
	for (;;) {
		t->deadline_ns = deadline_in(t, ++t->period_no);
		if (t->deadline_ns > now_ns)
			break;
		missed++;
	}
	return missed > UINT32_MAX ? UINT32_MAX : (uint32_t)missed;
}

uint32_t trigger_next(struct trigger *t, uint64_t now_ns)
{
	uint32_t missed = trigger_advance(t, now_ns);

	trigger_arm(t);
	return missed;
}
