/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/host/host_switches.h"

#include "base/perf_ring.h"
#include "base/proc.h"
#include "profile/record/host/host_runs.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Pages of a ring: 5,000 records, at 10,000 switches a second those of 0.25 s. A power of two. */
#define RING_PAGES 64u
#define DRAIN_NS 10000000u

struct switch_ring {
	int fd;
	struct perf_ring records; /* without a page: the processor is offline */
};

struct host_switches {
	struct host_runs *runs;
	uint64_t drained_ns;
	unsigned int ncpus;
	struct switch_ring ring[];
};

static int ring_open(struct switch_ring *r, unsigned int cpu)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.context_switch = 1,
		.comm = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	r->fd = (int)syscall(SYS_perf_event_open, &a, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	return perf_ring_map(&r->records, r->fd, RING_PAGES);
}

void host_switches_close(struct host_switches *s)
{
	for (unsigned int i = 0; s && i < s->ncpus; i++) {
		perf_ring_unmap(&s->ring[i].records);
		if (s->ring[i].fd >= 0)
			close(s->ring[i].fd);
	}
	if (s)
		host_runs_destroy(s->runs);
	free(s);
}

int host_switches_open(struct host_switches **out, struct err *why)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	unsigned int ncpus = n > 0 ? (unsigned int)n : 1, there = 0;
	struct host_switches *s = calloc(1, sizeof(*s) + ncpus * sizeof(s->ring[0]));
	int ret = 0;

	*out = NULL;
	if (s)
		s->runs = host_runs_create(ncpus);
	if (!s || !s->runs) {
		free(s);
		return err_nomem(why);
	}
	for (s->ncpus = 0; !ret && s->ncpus < ncpus; s->ncpus++) {
		ret = ring_open(&s->ring[s->ncpus], s->ncpus);
		/* A processor that is offline. */
		if (ret == -ENODEV || ret == -ENXIO)
			ret = 0;
		else
			there += !ret;
	}
	if (!ret && there) {
		*out = s;
		return 0;
	}
	host_switches_close(s);
	if (ret == -EACCES || ret == -EPERM)
		return err_set(why, -ret,
			       "it takes CAP_PERFMON, or 0 or less in "
			       "/proc/sys/kernel/perf_event_paranoid, to see who runs");
	return err_set(why, ret ? -ret : ENODEV, "the scheduler's records: %s",
		       strerror(ret ? -ret : ENODEV));
}

struct switch_cpu {
	struct host_runs *runs;
	unsigned int cpu;
};

static void take_record(void *ctx, const struct perf_event_header *h)
{
	const struct switch_cpu *at = ctx;

	host_runs_add(at->runs, at->cpu, h, h->size);
}

static void drain_all(struct host_switches *s)
{
	for (unsigned int i = 0; i < s->ncpus; i++)
		perf_ring_drain(&s->ring[i].records, take_record,
				&(struct switch_cpu){ s->runs, i });
}

void host_switches_drain(struct host_switches *s, uint64_t now_ns)
{
	if (!s || now_ns - s->drained_ns < DRAIN_NS)
		return;
	s->drained_ns = now_ns;
	drain_all(s);
}

/*
 * Reads the name of a task that existed before the records began, and has not changed its name. It
 * may have ended.
 */
static const char *read_comm(struct host_runs *runs, uint32_t tid)
{
	char task[32], comm[HOST_COMM + 1];

	snprintf(task, sizeof(task), "/proc/%" PRIu32, tid);
	if (!proc_comm(task, comm, sizeof(comm)))
		return NULL;
	host_runs_name(runs, tid, comm);
	return host_runs_comm(runs, tid);
}

const char *host_switches_find_task(struct host_switches *s, const struct host_wait *w, char *buf,
				    size_t size)
{
	const char *comm;
	uint32_t who;

	if (!s)
		return NULL;
	drain_all(s);
	who = host_runs_find_task(s->runs, w);
	if (!who)
		return NULL;
	comm = host_runs_comm(s->runs, who);
	if (!comm)
		comm = read_comm(s->runs, who);
	if (comm)
		snprintf(buf, size, "%s", comm);
	else
		snprintf(buf, size, "pid %" PRIu32, who);
	return buf;
}

uint64_t host_switches_lost(const struct host_switches *s)
{
	return s ? host_runs_lost(s->runs) : 0;
}
