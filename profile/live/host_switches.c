/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/live/host_switches.h"

#include "base/cleanup.h"
#include "base/proc.h"
#include "profile/live/host_runs.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Pages of a ring: 5,000 records, at 10,000 switches a second those of 0.25 s. A power of two. */
#define RING_PAGES 64u
#define RECORD_MAX 512u
#define DRAIN_NS 10000000u

struct switch_ring {
	int fd;
	struct perf_event_mmap_page *page; /* NULL: that processor is offline */
};

struct host_switches {
	struct host_runs *runs;
	uint64_t drained_ns;
	unsigned int ncpus;
	struct switch_ring ring[];
};

static size_t ring_size(void)
{
	return RING_PAGES * (size_t)sysconf(_SC_PAGESIZE);
}

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
	void *p;

	r->fd = (int)syscall(SYS_perf_event_open, &a, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	p = mmap(NULL, ring_size() + (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		 MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	r->page = p;
	return 0;
}

void host_switches_close(struct host_switches *s)
{
	for (unsigned int i = 0; s && i < s->ncpus; i++) {
		if (s->ring[i].page)
			munmap(s->ring[i].page, ring_size() + (size_t)sysconf(_SC_PAGESIZE));
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
		return err_set(why, ENOMEM, "out of memory");
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

static void ring_copy(const struct switch_ring *r, uint64_t at, void *to, size_t n)
{
	const char *data = (const char *)r->page + sysconf(_SC_PAGESIZE);
	size_t from = at & (ring_size() - 1);
	size_t first = n < ring_size() - from ? n : ring_size() - from;

	memcpy(to, data + from, first);
	memcpy((char *)to + first, data, n - first);
}

static void ring_drain(struct switch_ring *r, struct host_runs *runs, unsigned int cpu)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	char record[RECORD_MAX];
	struct perf_event_header h;

	for (; head - tail >= sizeof(h); tail += h.size) {
		ring_copy(r, tail, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail)
			break;
		if (h.size > sizeof(record))
			continue;
		ring_copy(r, tail, record, h.size);
		host_runs_add(runs, cpu, record, h.size);
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

static void drain_all(struct host_switches *s)
{
	for (unsigned int i = 0; i < s->ncpus; i++)
		if (s->ring[i].page)
			ring_drain(&s->ring[i], s->runs, i);
}

void host_switches_drain(struct host_switches *s, uint64_t now_ns)
{
	if (!s || now_ns - s->drained_ns < DRAIN_NS)
		return;
	s->drained_ns = now_ns;
	drain_all(s);
}

/* A task that was there before us, and has not changed its name. It may have ended. */
static const char *read_comm(struct host_runs *runs, uint32_t tid)
{
	char path[64], comm[HOST_COMM + 1] = "";
	cleanup_fclose FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", tid);
	f = proc_open(path);
	if (!f || !fgets(comm, sizeof(comm), f))
		return NULL;
	comm[strcspn(comm, "\n")] = 0;
	host_runs_name(runs, tid, comm);
	return host_runs_comm(runs, tid);
}

const char *host_switches_who(struct host_switches *s, const struct host_wait *w, uint64_t draw,
			      char *buf, size_t size)
{
	const char *comm;
	uint32_t who;

	if (!s)
		return NULL;
	drain_all(s);
	who = host_runs_who(s->runs, w, draw);
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
