/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_poll.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Notifications that are closer than this belong to one stream of requests. */
#define NEAR_NS 100000u
/*
 * The number of close notifications in a row that start polling: at first, and when the last
 * polling has paid.
 */
#define NEAR_COUNT 16u
#define NEAR_AGAIN 2u
/* Polling ends after this time without a request. */
#define IDLE_NS 100000u
/*
 * A check that took longer, plus an allowance for each request in it, means that the thread did not
 * run.
 */
#define LOST_NS 500000u
#define LOST_EACH_NS 200000u
/* Polling in which this many requests came has paid. */
#define PAID 64u
/* The shortest and the longest wait after polling that did not pay. */
#define AWAY_MIN_NS 5000000u
#define AWAY_MAX_NS 1000000000u
/* After polling for this long, the previous waits are forgotten. */
#define LONG_NS 100000000u
#define PAUSES 8u

struct virtio_poll {
	struct virtio_poll_config cfg;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t begin, ended;
	uint64_t wanted; /* bit mask of queues to poll */
	bool polling, ending;
	atomic_bool stop;
	atomic_uint_fast64_t not_before; /* ns, CLOCK_MONOTONIC */
	atomic_uint enough;		 /* number of close notifications that start polling */
	uint64_t away;			 /* last wait in ns; used by the polling thread only */
	/* For each queue: time of the last notification, and number of close ones in a row. */
	atomic_uint_fast64_t last[VIRTIO_MAX_QUEUES];
	atomic_uint near[VIRTIO_MAX_QUEUES];
};

static void pause_shortly(void)
{
	for (unsigned int i = 0; i < PAUSES; i++)
		__builtin_ia32_pause();
}

static unsigned int serve_all(struct virtio_poll *p, uint64_t queues)
{
	unsigned int n = 0;

	for (; queues; queues &= queues - 1)
		n += p->cfg.serve(p->cfg.d, (unsigned int)__builtin_ctzll(queues));
	return n;
}

static void set_quiet(struct virtio_poll *p, uint64_t queues, bool on)
{
	for (; queues; queues &= queues - 1)
		virtio_quiet(p->cfg.d, (unsigned int)__builtin_ctzll(queues), on);
}

/* Polls until no request comes. Returns how long to wait before polling again, in ns. */
static uint64_t poll_look(struct virtio_poll *p, uint64_t queues)
{
	uint64_t begin = clock_mono_ns(), now = begin, last = begin, before, away = p->away * 2;
	unsigned int served = 0, n;
	bool lost = false;

	set_quiet(p, queues, true);
	while (!lost && now - last <= IDLE_NS && !atomic_load(&p->stop)) {
		n = serve_all(p, queues);
		before = now;
		now = clock_mono_ns();
		lost = now - before > LOST_NS + n * LOST_EACH_NS;
		if (n)
			last = now;
		else
			pause_shortly();
		served += n;
	}
	set_quiet(p, queues, false);
	/* Handles requests that came before the driver noticed the change. */
	serve_all(p, queues);
	if (!lost && served >= PAID)
		return 0;
	if (away < AWAY_MIN_NS || now - begin > LONG_NS)
		return AWAY_MIN_NS;
	return away < AWAY_MAX_NS ? away : AWAY_MAX_NS;
}

static void *poll_main(void *arg)
{
	struct virtio_poll *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->ending) {
		uint64_t queues = p->wanted;

		p->wanted = 0;
		if (!queues) {
			pthread_cond_wait(&p->begin, &p->lock);
			continue;
		}
		p->polling = true;
		pthread_mutex_unlock(&p->lock);
		p->away = poll_look(p, queues);
		atomic_store(&p->enough, p->away ? NEAR_COUNT : NEAR_AGAIN);
		atomic_store(&p->not_before, clock_mono_ns() + p->away);
		pthread_mutex_lock(&p->lock);
		p->polling = false;
		pthread_cond_broadcast(&p->ended);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/*
 * Checks the affinity of the polling thread. The calling thread is a vCPU's, which --pin binds to
 * one processor.
 */
static bool has_processors(const struct virtio_poll *p)
{
	cpu_set_t set;

	return pthread_getaffinity_np(p->thread, sizeof(set), &set) ||
	       (unsigned int)CPU_COUNT(&set) > p->cfg.vcpus;
}

void virtio_poll_kicked(struct virtio_poll *p, unsigned int q)
{
	uint64_t now = clock_mono_ns(), last = atomic_exchange(&p->last[q], now);

	if (now - last > NEAR_NS) {
		atomic_store(&p->near[q], 0);
		return;
	}
	if (atomic_fetch_add(&p->near[q], 1) + 1 < atomic_load(&p->enough) ||
	    now < atomic_load(&p->not_before))
		return;
	atomic_store(&p->near[q], 0);
	if (!has_processors(p))
		return;
	pthread_mutex_lock(&p->lock);
	p->wanted |= UINT64_C(1) << q;
	pthread_cond_signal(&p->begin);
	pthread_mutex_unlock(&p->lock);
}

void virtio_poll_stop(struct virtio_poll *p)
{
	pthread_mutex_lock(&p->lock);
	p->wanted = 0;
	atomic_store(&p->stop, true);
	while (p->polling)
		pthread_cond_wait(&p->ended, &p->lock);
	atomic_store(&p->stop, false);
	pthread_mutex_unlock(&p->lock);
}

int virtio_poll_create(struct virtio_poll **out, const struct virtio_poll_config *cfg,
		       struct err *e)
{
	struct virtio_poll *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return err_set(e, ENOMEM, "%s: out of memory", cfg->d->name);
	p->cfg = *cfg;
	p->enough = NEAR_COUNT;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->begin, NULL);
	pthread_cond_init(&p->ended, NULL);
	ret = thread_start(&p->thread, THREAD_DISK_POLL, poll_main, p);
	if (ret) {
		free(p);
		return err_set(e, ret, "%s: cannot start a thread: %s", cfg->d->name,
			       strerror(ret));
	}
	*out = p;
	return 0;
}

void virtio_poll_destroy(struct virtio_poll *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	atomic_store(&p->stop, true);
	pthread_cond_signal(&p->begin);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->begin);
	pthread_cond_destroy(&p->ended);
	free(p);
}
