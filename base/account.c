/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/account.h"

#include "base/clock.h"
#include "base/count.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void account_begin(struct account *a, uint64_t now_ns, const struct account_thread *t)
{
	*a = (struct account){
		.begun_ns = now_ns,
		.now_ns = now_ns,
		.looked_ns = now_ns,
		.span = ACCOUNT_VMM,
		.cpu_ns = t->cpu_ns,
		.delay_ns = t->delay_ns,
	};
}

void account_next(struct account *a, enum account_span next, uint64_t now_ns)
{
	uint64_t wall = now_ns - a->now_ns;

	count_add(&a->wall[a->span], wall);
	count_add(&a->pending[a->span], wall);
	count_set(&a->now_ns, now_ns);
	count_set(&a->span, next);
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Attributes up to `most` ns of the time off the processor to spans of this kind. */
static void put_off(struct account *a, enum account_span span, uint64_t most, uint64_t *delay,
		    uint64_t *blocked)
{
	uint64_t d = least(*delay, most), b = least(*blocked, most - d);

	count_add(&a->delay[span], d);
	count_add(&a->blocked[span], b);
	*delay -= d;
	*blocked -= b;
}

void account_update(struct account *a, const struct account_thread *t, enum account_span span,
		    uint64_t len_ns)
{
	uint64_t outside = a->pending[ACCOUNT_VMM] + a->pending[ACCOUNT_STOPPED];
	uint64_t in_run = a->pending[ACCOUNT_RUN];
	uint64_t off = since(outside + in_run, since(t->cpu_ns, a->cpu_ns));
	uint64_t delay = least(off, since(t->delay_ns, a->delay_ns));
	uint64_t blocked = off - delay;

	if (len_ns >= ACCOUNT_LONG_NS) {
		put_off(a, span, len_ns, &delay, &blocked);
		if (span == ACCOUNT_RUN)
			in_run -= len_ns;
		else
			outside -= len_ns;
	}
	/*
	 * The rest was in short spans: time that does not fit into those of the VMM was in KVM_RUN.
	 */
	put_off(a, ACCOUNT_RUN, least(in_run, since(delay + blocked, outside)), &delay, &blocked);
	count_add(&a->elsewhere, delay + blocked);
	for (unsigned int i = 0; i < ACCOUNT_SPANS; i++)
		count_set(&a->pending[i], 0);
	count_set(&a->looked_ns, a->now_ns);
	count_set(&a->cpu_ns, t->cpu_ns);
	count_set(&a->delay_ns, t->delay_ns);
}

int account_open(void)
{
	return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void account_read_thread(int fd, struct account_thread *out)
{
	unsigned long long run, delay;
	char text[64];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	*out = (struct account_thread){ .cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) };
	if (n <= 0)
		return;
	text[n] = 0;
	out->have_delay = sscanf(text, "%llu %llu ", &run, &delay) == 2;
	if (out->have_delay)
		out->delay_ns = delay;
}
