/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake_pmu: a processor's PMU where there is none, for LD_PRELOAD.
 *
 * Hardware events of perf_event_open(2) are this library's, everything else is the kernel's. Such an
 * event counts one for each ns of CPU time of its thread and behaves as the manual page and
 * kernel/events/core.c have it: overflow signals, IOC_REFRESH, IOC_PERIOD, read() by read_format, a ring with SAMPLE, LOST, THROTTLE and UNTHROTTLE records. A count is looked
 * at each LOOK_NS, so overflows come a little late, as a PMU's skid does. Its descriptor is a pipe's
 * end, of which the kernel sends the signals as fcntl() asked for; si_code is POLL_IN always, where
 * the last overflow that IOC_REFRESH allowed has POLL_HUP.
 *
 * FAKE_PMU has, separated by commas:
 *   counters=N   the PMU has N counters (4); more events of a thread take turns each 4 ms
 *   open=ERRNO   perf_event_open fails so (EBUSY, ...), from=N: from the Nth call on
 *   rate=N       so many overflows in 4 ms of a thread, then the event is throttled
 *   full=N       at each Nth overflow the ring is full
 *   ring=0       mmap() of a ring fails with EPERM, as over perf_event_mlock_kb
 * At the end of the process FAKE_PMU_OUT, a file, gets a line for each event: its count, that at
 * the last overflow but one, the overflows, the signals sent, records lost, throttlings, ns enabled and running.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_EVENTS 256
#define LOOK_NS 100000
#define TURN_NS 4000000u
#define PAGE 4096u

/* The calls that are replaced are made by their numbers; syscall() is replaced itself. */
static long (*real_syscall)(long nr, ...);

struct event {
	bool open, enabled, throttled;
	int fd, wake; /* a pipe's ends */
	pid_t tid;
	struct perf_event_attr attr;
	uint64_t period, value, next; /* next: the count at which it overflows */
	long limit;		      /* overflows until it is stopped; 0: no limit */
	uint64_t seen_ns;	      /* the thread's CPU time when it was last looked at */
	uint64_t enabled_ns, running_ns, turn, in_turn;
	uint64_t last, before; /* the counts at the last overflow and at the one before */
	uint64_t overflows, signals, throttles, lost, lost_pending;
	struct perf_event_mmap_page *ring;
	size_t ring_data;
};

static struct event event[MAX_EVENTS];
static unsigned int nevents, opens;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool looking;

static long setting(const char *name, long otherwise)
{
	const char *p = getenv("FAKE_PMU");
	size_t len = strlen(name);

	while (p && *p) {
		if (!strncmp(p, name, len) && p[len] == '=')
			return strtol(p + len + 1, NULL, 10);
		p = strchr(p, ',');
		p = p ? p + 1 : NULL;
	}
	return otherwise;
}

static int refusal(void)
{
	static const struct {
		const char *name;
		int err;
	} row[] = { { "open=EBUSY", EBUSY },   { "open=EMFILE", EMFILE },
		    { "open=ENOENT", ENOENT }, { "open=EACCES", EACCES },
		    { "open=EINVAL", EINVAL }, { "open=EOPNOTSUPP", EOPNOTSUPP } };
	const char *p = getenv("FAKE_PMU");

	for (size_t i = 0; p && i < sizeof(row) / sizeof(row[0]); i++)
		if (strstr(p, row[i].name))
			return row[i].err;
	return 0;
}

static uint64_t thread_ns(pid_t tid)
{
	struct timespec ts;

	/* clock_gettime(2): CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED */
	if (real_syscall(SYS_clock_gettime, (clockid_t)(~(unsigned int)tid << 3 | 6), &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* -- records ------------------------------------------------------------------------------ */

static bool record(struct event *e, uint32_t type, const uint64_t *word, unsigned int words)
{
	struct perf_event_header h = { .type = type, .size = (uint16_t)(8 + 8 * words) };
	uint64_t head, tail;
	char *data = (char *)e->ring + PAGE;

	if (!e->ring)
		return true;
	head = e->ring->data_head;
	tail = __atomic_load_n(&e->ring->data_tail, __ATOMIC_ACQUIRE);
	if (e->lost_pending) {
		const uint64_t lost[] = { 1, e->lost_pending };

		if (head + 24 + h.size - tail > e->ring_data)
			return false;
		e->lost_pending = 0;
		record(e, PERF_RECORD_LOST, lost, 2);
		head = e->ring->data_head;
	}
	if (head + h.size - tail > e->ring_data)
		return false;
	memcpy(data + head % e->ring_data, &h, sizeof(h));
	for (unsigned int i = 0; i < words; i++)
		memcpy(data + (head + 8 + 8 * i) % e->ring_data, &word[i], 8);
	__atomic_store_n(&e->ring->data_head, head + h.size, __ATOMIC_RELEASE);
	return true;
}

static void log_throttle(struct event *e, uint32_t type)
{
	const uint64_t word[] = { e->seen_ns, (uint64_t)e->fd, (uint64_t)e->fd };

	record(e, type, word, 3);
	e->throttled = type == PERF_RECORD_THROTTLE;
	e->throttles += e->throttled;
}

/* -- counting ----------------------------------------------------------------------------- */

static void overflow(struct event *e)
{
	long full = setting("full", 0), rate = setting("rate", 0);
	bool stops = e->limit && --e->limit == 0;
	char byte;

	e->overflows++;
	e->before = e->last;
	e->last = e->value;
	if ((full && e->overflows % (uint64_t)full == 0) ||
	    !record(e, PERF_RECORD_SAMPLE, NULL, 0)) {
		e->lost++;
		e->lost_pending++;
	}
	if (rate && ++e->in_turn >= (uint64_t)rate && !e->throttled)
		log_throttle(e, PERF_RECORD_THROTTLE);
	if (stops)
		e->enabled = false;
	/* Removes earlier bytes, so that this one signals, too. */
	while (real_syscall(SYS_read, e->fd, &byte, 1) == 1)
		;
	e->signals += real_syscall(SYS_write, e->wake, "", 1) == 1;
}

/* Its place among the events of its thread: has it one of the counters in this turn? */
static bool has_counter(const struct event *e, uint64_t turn)
{
	unsigned int n = 0, mine = 0;

	for (unsigned int i = 0; i < nevents; i++) {
		if (&event[i] == e)
			mine = n;
		n += event[i].open && event[i].tid == e->tid;
	}
	return n == 0 || (mine + turn) % n < (uint64_t)setting("counters", 4);
}

static void look(struct event *e)
{
	uint64_t now = thread_ns(e->tid), turn = now / TURN_NS;
	uint64_t passed = now > e->seen_ns ? now - e->seen_ns : 0;

	if (!now)
		return;
	e->seen_ns = now;
	if (turn != e->turn) { /* the tick */
		e->turn = turn;
		e->in_turn = 0;
		if (e->throttled)
			log_throttle(e, PERF_RECORD_UNTHROTTLE);
	}
	if (!e->enabled)
		return;
	e->enabled_ns += passed;
	if (!has_counter(e, turn))
		return;
	e->running_ns += passed;
	if (e->throttled)
		return;
	e->value += passed;
	if (e->value >= e->next) {
		e->next = e->value + e->period;
		overflow(e);
	}
}

static void *looker(void *unused)
{
	const struct timespec pause = { 0, LOOK_NS };

	(void)unused;
	for (;;) {
		real_syscall(SYS_nanosleep, &pause, NULL);
		pthread_mutex_lock(&lock);
		for (unsigned int i = 0; i < nevents; i++)
			if (event[i].open)
				look(&event[i]);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* -- the calls ---------------------------------------------------------------------------- */

static struct event *event_of(int fd)
{
	for (unsigned int i = 0; i < nevents; i++)
		if (event[i].open && event[i].fd == fd)
			return &event[i];
	return NULL;
}

static long fake_open(const struct perf_event_attr *attr, pid_t tid)
{
	struct event *e = &event[nevents];
	int err = refusal(), end[2];
	pthread_t thread;

	opens++;
	if (err && opens >= (unsigned int)setting("from", 1)) {
		errno = err;
		return -1;
	}
	if (nevents == MAX_EVENTS) {
		errno = ENOSPC;
		return -1;
	}
	memset(e, 0, sizeof(*e));
	if (real_syscall(SYS_pipe2, end, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	e->fd = end[0];
	e->wake = end[1];
	e->open = true;
	e->attr = *attr;
	e->tid = tid ? tid : (pid_t)real_syscall(SYS_gettid);
	e->enabled = !attr->disabled;
	e->period = attr->freq ? 1000000000u / attr->sample_freq : attr->sample_period;
	e->next = e->period;
	e->seen_ns = thread_ns(e->tid);
	e->turn = e->seen_ns / TURN_NS;
	nevents++;
	if (!looking)
		looking = pthread_create(&thread, NULL, looker, NULL) == 0;
	return e->fd;
}

long syscall(long nr, ...)
{
	long a[6], ret;
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_perf_event_open) {
		const struct perf_event_attr *attr = (const void *)a[0];

		if (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
		    attr->type == PERF_TYPE_RAW) {
			pthread_mutex_lock(&lock);
			ret = fake_open(attr, (pid_t)a[1]);
			pthread_mutex_unlock(&lock);
			return ret;
		}
	}
	return real_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* perf_event_enable() after an overflow unthrottles: event_sched_in(). */
static void enable(struct event *e)
{
	e->enabled = true;
	if (e->throttled) {
		log_throttle(e, PERF_RECORD_UNTHROTTLE);
		e->in_turn = 0;
	}
}

static int fake_ioctl(struct event *e, unsigned long request, uintptr_t arg)
{
	look(e);
	switch (request) {
	case PERF_EVENT_IOC_REFRESH:
		e->limit += (long)arg;
		enable(e);
		return 0;
	case PERF_EVENT_IOC_ENABLE:
		enable(e);
		return 0;
	case PERF_EVENT_IOC_DISABLE:
		e->enabled = false;
		return 0;
	case PERF_EVENT_IOC_PERIOD:
		memcpy(&e->period, (const void *)arg, sizeof(e->period));
		if (e->attr.freq)
			e->period = 1000000000u / e->period;
		e->next = e->value + e->period;
		return 0;
	}
	errno = ENOTTY;
	return -1;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct event *e;
	uintptr_t arg;
	va_list ap;
	int ret;

	va_start(ap, request);
	arg = va_arg(ap, uintptr_t);
	va_end(ap);
	/* Other calls wait for no lock: KVM_RUN and the signal's handler are among them. */
	if ((request & 0xff00) != ('$' << 8))
		return (int)real_syscall(SYS_ioctl, fd, request, arg);
	pthread_mutex_lock(&lock);
	e = event_of(fd);
	ret = e ? fake_ioctl(e, request, arg) : (int)real_syscall(SYS_ioctl, fd, request, arg);
	pthread_mutex_unlock(&lock);
	return ret;
}

ssize_t read(int fd, void *buf, size_t len)
{
	struct event *e;
	uint64_t v[3];
	size_t n = 0;

	pthread_mutex_lock(&lock);
	e = event_of(fd);
	if (e) {
		look(e);
		v[n++] = e->value;
		if (e->attr.read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
			v[n++] = e->enabled_ns;
		if (e->attr.read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
			v[n++] = e->running_ns;
	}
	pthread_mutex_unlock(&lock);
	if (!e)
		return real_syscall(SYS_read, fd, buf, len);
	if (len < 8 * n) {
		errno = ENOSPC;
		return -1;
	}
	memcpy(buf, v, 8 * n);
	return (ssize_t)(8 * n);
}

/* The program's mapping, and one of our own, as the program's may go at any time. */
static void *fake_ring(struct event *e, void *addr, size_t len, int prot)
{
	int fd = (int)real_syscall(SYS_memfd_create, "fake_pmu", MFD_CLOEXEC);
	void *p = MAP_FAILED, *own = MAP_FAILED;

	if (fd >= 0 && real_syscall(SYS_ftruncate, fd, len) == 0)
		own = (void *)real_syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED,
					   fd, 0);
	if (own != MAP_FAILED) {
		p = (void *)real_syscall(SYS_mmap, addr, len, prot, MAP_SHARED, fd, 0);
		e->ring = own;
		e->ring_data = len - PAGE;
		e->ring->data_offset = PAGE;
		e->ring->data_size = e->ring_data;
	}
	real_syscall(SYS_close, fd);
	return p;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	size_t pages = len / PAGE;
	struct event *e = NULL;
	void *p = MAP_FAILED;

	if (fd >= 0) {
		pthread_mutex_lock(&lock);
		e = event_of(fd);
	}
	if (!e) {
		if (fd >= 0)
			pthread_mutex_unlock(&lock);
		return (void *)real_syscall(SYS_mmap, addr, len, prot, flags, fd, off);
	}
	/* 1 + 2^n pages from the start, shared. */
	if (!setting("ring", 1)) {
		errno = EPERM;
	} else if (len % PAGE || pages < 2 || ((pages - 1) & (pages - 2)) || off ||
		   !(flags & MAP_SHARED)) {
		errno = EINVAL;
	} else {
		p = fake_ring(e, addr, len, prot);
	}
	pthread_mutex_unlock(&lock);
	return p;
}

int close(int fd)
{
	struct event *e;
	int ret;

	pthread_mutex_lock(&lock);
	e = event_of(fd);
	if (e) {
		look(e);
		e->open = false;
	}
	ret = (int)real_syscall(SYS_close, fd);
	if (e) /* the other end first would signal POLL_HUP */
		real_syscall(SYS_close, e->wake);
	pthread_mutex_unlock(&lock);
	return ret;
}

__attribute__((constructor)) static void begin(void)
{
	real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("FAKE_PMU_OUT");
	FILE *f = path ? fopen(path, "w") : NULL;

	for (unsigned int i = 0; f && i < nevents; i++) {
		const struct event *e = &event[i];

		fprintf(f, "%llu %llu %llu %llu %llu %llu %llu %llu %llu %d\n",
			(unsigned long long)e->attr.config, (unsigned long long)e->value,
			(unsigned long long)e->before, (unsigned long long)e->overflows,
			(unsigned long long)e->signals, (unsigned long long)e->lost,
			(unsigned long long)e->throttles, (unsigned long long)e->enabled_ns,
			(unsigned long long)e->running_ns, e->tid);
	}
	if (f)
		fclose(f);
}
