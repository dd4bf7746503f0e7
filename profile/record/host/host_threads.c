/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/host/host_threads.h"

#include "base/perf_ring.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Pages of a processor's ring: about 300 samples of usual depth. A power of two. */
#define RING_PAGES 32u
/* Threads that are distinguished; the last entry stands for all others. */
#define THREADS_MAX 1024u
#define WEIGHT_LEAST 4u /* a sample stands for at least this part of a period */
#define OTHERS "[others]"
/* Descriptors for all other purposes. */
#define FILES_OTHER 256u
/* words of a sample's record before the chain: ids, time, counter, period, length */
#define WORDS_HEAD 5u

struct host_thread {
	uint32_t tid;
	bool told;
	char comm[SAMPLE_COMM];
	uint64_t weight_ns;
};

/*
 * A counter of a thread, and of those that it starts, on one processor. The kernel's timer for a
 * sample restarts with each turn on the processor and is then late: on Linux 6.18 a fifth of the
 * time of short turns had no samples, and nine tenths of a thread's on a host with more than four
 * threads for each processor. Therefore weights follow the count: the samples that are taken
 * together share it.
 */
struct thread_counter {
	int fd;
	uint64_t id;	  /* its id in records; later counters have greater ones */
	uint64_t given;	  /* sum of the weights of its samples */
	uint64_t each_ns; /* weight of each sample that is waiting */
	unsigned int waiting;
};

/*
 * The ring of a processor, which belongs to its first counter; the others of that processor write
 * into it, too.
 */
struct cpu_ring {
	int fd;
	struct perf_ring records; /* without a page: there is none */
	uint64_t head;		  /* end of the records that are taken now */
	uint64_t next_ns;	  /* time of the first record; UINT64_MAX: there is none */
};

struct host_threads {
	uint64_t period_ns;
	uint8_t event;
	pid_t pid;
	bool own;	  /* the process is this one */
	atomic_bool open; /* set when the members above and below do not change any more */
	unsigned int ncpus, opened;
	struct thread_counter *counter;
	size_t ncounters;
	struct cpu_ring *ring; /* one for each processor */
	/* Members of the consumer thread: */
	uint64_t samples, weight_ns, lost;
	unsigned int nthreads;
	struct host_thread thread[THREADS_MAX];
	host_threads_fn take;
	void *ctx;
	int ret;
	union {
		struct sample s;
		uint8_t bytes[sizeof(struct sample) + SAMPLE_MAX_HOST_BYTES];
	} room;
};

int host_threads_create(struct host_threads **out, uint64_t period_ns, uint8_t event, struct err *e)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return err_nomem(e);
	(*out)->period_ns = period_ns;
	(*out)->event = event;
	return 0;
}

static void threads_close(struct host_threads *t)
{
	for (unsigned int i = 0; t->ring && i < t->ncpus; i++)
		perf_ring_unmap(&t->ring[i].records);
	while (t->ncounters)
		close(t->counter[--t->ncounters].fd);
	free(t->counter);
	free(t->ring);
	t->counter = NULL;
	t->ring = NULL;
}

void host_threads_destroy(struct host_threads *t)
{
	if (t)
		threads_close(t);
	free(t);
}

/* -- the counters ---------------------------------------------------------------------------- */

static int counter_of(const struct host_threads *t, pid_t tid, unsigned int cpu, bool kernel,
		      bool threads_alone)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = t->period_ns,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
		.sample_max_stack = SAMPLE_MAX_HOST,
		.sample_id_all = 1,
		.comm = 1,
		.task = 1,
		.inherit = 1,
		.exclude_kernel = !kernel,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	a.inherit_thread = threads_alone;
	return (int)syscall(SYS_perf_event_open, &a, tid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int add_counter(struct host_threads *t, unsigned int cpu, int fd)
{
	struct cpu_ring *ring = &t->ring[cpu];
	struct thread_counter *more = realloc(t->counter, (t->ncounters + 1) * sizeof(*more));
	uint64_t id;

	if (more)
		t->counter = more;
	if (!more || ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0) {
		int ret = more ? -errno : -ENOMEM;

		close(fd);
		return ret;
	}
	t->counter[t->ncounters++] = (struct thread_counter){ .fd = fd, .id = id };
	if (ring->records.page)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0 ? -errno : 0;
	ring->fd = fd;
	return perf_ring_map(&ring->records, fd, RING_PAGES);
}

/* The features that this host permits, found out with the first counter. */
struct threads_way {
	bool kernel, threads_alone;
};

static int open_counter(struct host_threads *t, pid_t tid, unsigned int cpu,
			struct threads_way *way)
{
	int fd = counter_of(t, tid, cpu, way->kernel, way->threads_alone);

	/* Linux 5.13 and later. */
	if (fd < 0 && errno == EINVAL && way->threads_alone && !t->ncounters) {
		way->threads_alone = false;
		fd = counter_of(t, tid, cpu, way->kernel, false);
	}
	if (fd < 0 && (errno == EACCES || errno == EPERM) && way->kernel && !t->ncounters) {
		way->kernel = false;
		fd = counter_of(t, tid, cpu, false, way->threads_alone);
	}
	return fd < 0 ? -errno : add_counter(t, cpu, fd);
}

static bool is_one_of(pid_t tid, const pid_t *list, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (list[i] == tid)
			return true;
	return false;
}

/* Returns 0 also if the thread has ended, or all its processors are offline. */
static int open_thread(struct host_threads *t, pid_t tid, struct threads_way *way)
{
	bool any = false;

	for (unsigned int cpu = 0; cpu < t->ncpus; cpu++) {
		int ret = open_counter(t, tid, cpu, way);

		if (ret == -ESRCH)
			return 0;
		if (ret && ret != -ENODEV && ret != -ENXIO)
			return ret;
		any |= !ret;
	}
	t->opened += any;
	return 0;
}

static DIR *tasks_of(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return opendir(path);
}

/* Raises the limit of descriptors to the needed number, if that is permitted. */
static void want_files(size_t n)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= n + FILES_OTHER)
		return;
	l.rlim_cur = n + FILES_OTHER < l.rlim_max ? n + FILES_OTHER : l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

static int open_all(struct host_threads *t, const pid_t *but, unsigned int n,
		    struct threads_way *way)
{
	DIR *d = tasks_of(t->pid);
	struct dirent *entry;
	size_t threads = 0;
	int ret = 0;

	if (!d)
		return -errno;
	while (readdir(d))
		threads++;
	want_files(threads * t->ncpus);
	rewinddir(d);
	while (!ret && (entry = readdir(d))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && !is_one_of(tid, but, n))
			ret = open_thread(t, tid, way);
	}
	closedir(d);
	return ret;
}

int host_threads_open(struct host_threads *t, pid_t pid, const pid_t *but, unsigned int n,
		      struct err *note, struct err *why)
{
	struct threads_way way = { .kernel = true, .threads_alone = true };
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int ret;

	t->own = !pid;
	t->pid = pid ? pid : getpid();
	t->ncpus = cpus > 0 ? (unsigned int)cpus : 1;
	t->ring = calloc(t->ncpus, sizeof(*t->ring));
	ret = t->ring ? open_all(t, but, n, &way) : -ENOMEM;
	if (!ret && !t->opened)
		ret = -ESRCH;
	if (ret)
		threads_close(t);
	if (ret == -EACCES || ret == -EPERM)
		return err_set(why, -ret,
			       "not allowed: it takes CAP_PERFMON, or 2 or less in "
			       "/proc/sys/kernel/perf_event_paranoid (and room in "
			       "perf_event_mlock_kb)");
	if (ret == -EMFILE)
		return err_set(why, -ret,
			       "too many open files (ulimit -n): it takes one for each thread and "
			       "processor");
	if (ret)
		return err_set(why, -ret, "%s", strerror(-ret));
	if (!way.kernel)
		err_set(note, EACCES,
			"of the VMM's other threads the time in the host's kernel is not there: "
			"that takes "
			"CAP_PERFMON, or 1 or less in /proc/sys/kernel/perf_event_paranoid");
	atomic_store_explicit(&t->open, true, memory_order_release);
	return 0;
}

/* -- records --------------------------------------------------------------------------------- */

static struct host_thread *thread_of(struct host_threads *t, uint32_t tid)
{
	struct host_thread *x = t->thread;

	while (x < t->thread + t->nthreads && x->tid != tid)
		x++;
	if (x == t->thread + THREADS_MAX - 1) {
		snprintf(x->comm, sizeof(x->comm), OTHERS);
		return x;
	}
	if (x == t->thread + t->nthreads) {
		x->tid = tid;
		t->nthreads++;
	}
	return x;
}

static void thread_name(struct host_thread *x, const char *comm, int len)
{
	if (!strcmp(x->comm, OTHERS))
		return;
	snprintf(x->comm, sizeof(x->comm), "%.*s",
		 len < (int)SAMPLE_COMM ? len : (int)SAMPLE_COMM - 1, comm);
	x->told = false;
}

/* Reads the name of a thread that existed before; "": it has ended. */
static void read_comm(const struct host_threads *t, struct host_thread *x)
{
	char task[64], text[SAMPLE_COMM];

	snprintf(task, sizeof(task), "/proc/%d/task/%" PRIu32, (int)t->pid, x->tid);
	(void)proc_comm(task, text, sizeof(text));
	thread_name(x, text, SAMPLE_COMM - 1);
}

static bool is_sample(const struct perf_event_header *h)
{
	return h->type == PERF_RECORD_SAMPLE &&
	       h->size >= sizeof(*h) + WORDS_HEAD * sizeof(uint64_t);
}

static int by_id(const void *key, const void *c)
{
	const uint64_t id = *(const uint64_t *)key, other = ((const struct thread_counter *)c)->id;

	return id < other ? -1 : id > other;
}

static struct thread_counter *counter_by_id(struct host_threads *t, uint64_t id)
{
	return bsearch(&id, t->counter, t->ncounters, sizeof(*t->counter), by_id);
}

static uint64_t weight_of(struct host_threads *t, uint64_t id, uint64_t period)
{
	struct thread_counter *c = counter_by_id(t, id);
	uint64_t weight = c && c->waiting ? c->each_ns : period;

	if (!c)
		return period;
	c->waiting -= c->waiting != 0;
	c->given += weight;
	return weight;
}

static uint64_t count_of(const struct thread_counter *c)
{
	uint64_t ns;

	return read(c->fd, &ns, sizeof(ns)) == sizeof(ns) ? ns : 0;
}

static void threads_waiting(void *ctx, const struct perf_event_header *h)
{
	struct thread_counter *c = is_sample(h) ? counter_by_id(ctx, perf_record_word(h, 2)) : NULL;

	if (c)
		c->waiting++;
}

/* Computes the weight of the samples that wait. On average half a period has no sample yet. */
static void threads_share(struct host_threads *t)
{
	for (unsigned int i = 0; i < t->ncpus; i++) {
		struct cpu_ring *r = &t->ring[i];

		r->head = perf_ring_head(&r->records);
		perf_ring_visit(&r->records, r->head, threads_waiting, t);
	}
	for (size_t i = 0; i < t->ncounters; i++) {
		struct thread_counter *c = &t->counter[i];
		uint64_t count, have = c->given + t->period_ns / 2;

		if (!c->waiting)
			continue;
		count = count_of(c);
		c->each_ns = count > have ? (count - have) / c->waiting : 0;
		if (c->each_ns < t->period_ns / WEIGHT_LEAST)
			c->each_ns = t->period_ns / WEIGHT_LEAST;
	}
}

static void take_sample(struct host_threads *t, const struct perf_event_header *h)
{
	const uint64_t ids = perf_record_word(h, 0);
	struct sample_host host = { .where = SAMPLE_IN_VMM };
	struct host_thread *x;
	struct sample *s = &t->room.s;
	bool renamed;

	if ((uint32_t)ids != (uint32_t)t->pid)
		return;
	x = thread_of(t, (uint32_t)(ids >> 32));
	if (!*x->comm)
		read_comm(t, x);
	if (!*x->comm) {
		char text[SAMPLE_COMM];

		snprintf(text, sizeof(text), "tid %" PRIu32, x->tid);
		thread_name(x, text, SAMPLE_COMM - 1);
	}
	host.n = (uint16_t)perf_record_chain(h, WORDS_HEAD - 1, host.ip, SAMPLE_MAX_HOST);
	if (!t->own)
		host.n = (uint16_t)perf_chain_trusted(host.ip, host.n);
	memset(s, 0, sizeof(*s));
	s->version = SAMPLE_VERSION;
	s->reason = SAMPLE_THREAD;
	s->mode = SAMPLE_KERNEL;
	s->event = t->event;
	s->time_ns = perf_record_word(h, 1);
	s->weight = weight_of(t, perf_record_word(h, 2), perf_record_word(h, 3));
	s->task.state = SAMPLE_TASK_FOUND;
	s->task.pid = HOST_THREADS_PID + (uint32_t)t->pid;
	s->task.tid = HOST_THREADS_PID + x->tid;
	memcpy(s->task.comm, x->comm, sizeof(s->task.comm));
	sample_put_host(s, &host);
	t->samples++;
	t->weight_ns += s->weight;
	x->weight_ns += s->weight;
	renamed = !x->told;
	x->told = true;
	t->ret = t->ret ? t->ret : t->take(t->ctx, s, renamed);
}

void host_threads_repeat_names(struct host_threads *t)
{
	for (unsigned int i = 0; t && i < THREADS_MAX; i++)
		t->thread[i].told = false;
}

/* u32 pid, tid; char comm[], with its NUL, then who wrote it. */
static void take_comm(struct host_threads *t, const struct perf_event_header *h)
{
	const char *comm = (const char *)(h + 1) + sizeof(uint64_t);
	const uint64_t ids = perf_record_word(h, 0);
	struct host_thread *x;

	if ((uint32_t)ids != (uint32_t)t->pid)
		return;
	x = thread_of(t, (uint32_t)(ids >> 32));
	thread_name(x, comm, (int)(h->size - sizeof(*h) - sizeof(uint64_t)));
}

/*
 * u32 pid, ppid, tid, ptid: it has its creator's name, even if another thread had this number
 * before.
 */
static void take_fork(struct host_threads *t, const struct perf_event_header *h)
{
	const uint64_t pids = perf_record_word(h, 0), tids = perf_record_word(h, 1);
	struct host_thread *parent;

	if ((uint32_t)pids != (uint32_t)t->pid)
		return;
	parent = thread_of(t, (uint32_t)(tids >> 32));
	if (!*parent->comm)
		read_comm(t, parent);
	thread_name(thread_of(t, (uint32_t)tids), parent->comm, SAMPLE_COMM - 1);
}

static void threads_record(void *ctx, const struct perf_event_header *h)
{
	struct host_threads *t = ctx;

	if (is_sample(h))
		take_sample(t, h);
	else if (h->type == PERF_RECORD_COMM && h->size > sizeof(*h) + 2 * sizeof(uint64_t))
		take_comm(t, h);
	else if (h->type == PERF_RECORD_FORK && h->size >= sizeof(*h) + 3 * sizeof(uint64_t))
		take_fork(t, h);
	else if (h->type == PERF_RECORD_LOST && h->size >= sizeof(*h) + 2 * sizeof(uint64_t))
		t->lost += perf_record_word(h, 1);
}

/* The last words of each record except a sample: ids, time, counter. */
static uint64_t threads_time(const struct perf_event_header *h)
{
	const size_t words = (h->size - sizeof(*h)) / sizeof(uint64_t);

	return h->type == PERF_RECORD_SAMPLE ? is_sample(h) ? perf_record_word(h, 1) : 0
	       : words >= 3		     ? perf_record_word(h, (unsigned int)words - 2)
					     : 0;
}

static void threads_next(struct cpu_ring *r)
{
	union perf_record record;

	r->next_ns = perf_ring_first(&r->records, r->head, &record) ? threads_time(&record.h)
								    : UINT64_MAX;
}

/*
 * The name of a thread that changes processors is in the ring of the first one, so records are
 * taken in the order of time.
 */
static void threads_in_order(struct host_threads *t)
{
	for (unsigned int i = 0; i < t->ncpus; i++)
		threads_next(&t->ring[i]);
	for (;;) {
		struct cpu_ring *r = &t->ring[0];
		union perf_record record;

		for (unsigned int i = 1; i < t->ncpus; i++)
			if (t->ring[i].next_ns < r->next_ns)
				r = &t->ring[i];
		if (!perf_ring_first(&r->records, r->head, &record))
			return;
		threads_record(t, &record.h);
		perf_ring_skip(&r->records, &record);
		threads_next(r);
	}
}

int host_threads_take(struct host_threads *t, host_threads_fn take, void *ctx)
{
	if (!t || !atomic_load_explicit(&t->open, memory_order_acquire))
		return 0;
	t->take = take;
	t->ctx = ctx;
	t->ret = 0;
	threads_share(t);
	threads_in_order(t);
	return t->ret;
}

/* -- results ----------------------------------------------------------------------------------- */

static void keep_most(struct host_threads_stats *out, const struct host_thread *x)
{
	const unsigned int n = sizeof(out->most) / sizeof(out->most[0]);
	unsigned int at = n;

	while (at && x->weight_ns > out->most[at - 1].weight_ns)
		at--;
	if (at == n)
		return;
	memmove(&out->most[at + 1], &out->most[at], (n - 1 - at) * sizeof(out->most[0]));
	memcpy(out->most[at].comm, x->comm, sizeof(x->comm));
	out->most[at].weight_ns = x->weight_ns;
}

void host_threads_stats(const struct host_threads *t, struct host_threads_stats *out)
{
	*out = (struct host_threads_stats){ .opened = 0 };
	if (!t || !atomic_load_explicit(&t->open, memory_order_acquire))
		return;
	out->opened = t->opened;
	out->samples = t->samples;
	out->weight_ns = t->weight_ns;
	out->lost = t->lost;
	for (size_t i = 0; i < t->ncounters; i++)
		out->counted_ns += count_of(&t->counter[i]);
	for (unsigned int i = 0; i < t->nthreads; i++) {
		out->seen += t->thread[i].weight_ns != 0;
		keep_most(out, &t->thread[i]);
	}
}
