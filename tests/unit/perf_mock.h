/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulated perf_event counters, which replace the C library's syscall(), ioctl(), fcntl(), mmap(),
 * read() and close(); calls for other descriptors reach the kernel. A test sets the result of
 * perf_event_open, lets counters count, and checks what was requested of them.
 */
#ifndef KVMPROF_TESTS_PERF_MOCK_H
#define KVMPROF_TESTS_PERF_MOCK_H

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOCK_FD 5000 /* descriptor of the first one */
#define MOCK_MAX 64

struct mock_counter {
	struct perf_event_attr attr;
	pid_t pid;
	int cpu, group;
	unsigned long flags;
	bool open, enabled;
	long limit;	   /* number of overflows allowed in total */
	bool routed_first; /* the signal was routed before the counter was started */
	struct f_owner_ex owner;
	int signo, fl;
	uint64_t value, period;
	uint64_t enabled_ns, running_ns;
	struct perf_event_mmap_page *ring; /* NULL: not mapped */
	unsigned int periods;		   /* how often a period was set */
	char filter[300];
};

static struct {
	struct mock_counter at[MOCK_MAX];
	unsigned int n, opens, runs;
	/* errno of perf_event_open, 0: success; also only with or without exclude_host. */
	int refuse, refuse_guest_only;
	uint32_t refuse_type; /* refused type; UINT32_MAX: all */
	int refuse_fcntl;     /* this command fails */
	bool refuse_filter, refuse_ring;
} mock;

static inline void mock_reset(void)
{
	memset(&mock, 0, sizeof(mock));
	mock.refuse_type = UINT32_MAX;
}

static inline unsigned int mock_open_now(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < mock.n; i++)
		n += mock.at[i].open;
	return n;
}

static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (ret < 0 && ret > -4096) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
}

static struct mock_counter *mock_of(int fd)
{
	return fd >= MOCK_FD && fd < MOCK_FD + (int)mock.n ? &mock.at[fd - MOCK_FD] : NULL;
}

static long mock_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		      unsigned long flags)
{
	struct mock_counter *c;
	int err = mock.refuse;

	mock.opens++;
	if (attr->exclude_host && mock.refuse_guest_only)
		err = mock.refuse_guest_only;
	if (err && (mock.refuse_type == UINT32_MAX || mock.refuse_type == attr->type)) {
		errno = err;
		return -1;
	}
	if (mock.n == MOCK_MAX) {
		errno = EMFILE;
		return -1;
	}
	c = &mock.at[mock.n++];
	*c = (struct mock_counter){
		.attr = *attr,
		.pid = pid,
		.cpu = cpu,
		.group = group,
		.flags = flags,
		.open = true,
		.period = attr->sample_period,
	};
	return MOCK_FD + (int)mock.n - 1;
}

long syscall(long nr, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_perf_event_open)
		return mock_open((const struct perf_event_attr *)a[0], (pid_t)a[1], (int)a[2],
				 (int)a[3], (unsigned long)a[4]);
	return raw(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct mock_counter *c = mock_of(fd);
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd == -1 && request == KVM_RUN) {
		mock.runs++;
		errno = EINTR;
		return -1;
	}
	if (!c)
		return (int)raw(SYS_ioctl, fd, (long)request, (long)arg, 0, 0, 0);
	switch (request) {
	case PERF_EVENT_IOC_REFRESH:
		c->routed_first = c->signo != 0;
		c->enabled = (long)arg == 1;
		c->limit += (long)arg;
		return 0;
	case PERF_EVENT_IOC_ENABLE:
		c->routed_first = c->signo != 0;
		c->enabled = true;
		return 0;
	case PERF_EVENT_IOC_DISABLE:
		c->enabled = false;
		return 0;
	case PERF_EVENT_IOC_PERIOD:
		memcpy(&c->period, arg, sizeof(c->period));
		c->periods++;
		return 0;
	case PERF_EVENT_IOC_SET_FILTER:
		strncpy(c->filter, arg, sizeof(c->filter) - 1);
		errno = EINVAL;
		return mock.refuse_filter ? -1 : 0;
	}
	errno = ENOTTY;
	return -1;
}

int fcntl(int fd, int cmd, ...)
{
	struct mock_counter *c = mock_of(fd);
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	if (!c)
		return (int)raw(SYS_fcntl, fd, cmd, arg, 0, 0, 0);
	if (cmd == mock.refuse_fcntl) {
		errno = EINVAL;
		return -1;
	}
	if (cmd == F_SETOWN_EX)
		memcpy(&c->owner, (void *)arg, sizeof(c->owner));
	else if (cmd == F_SETSIG)
		c->signo = (int)arg;
	else if (cmd == F_SETFL)
		c->fl = (int)arg;
	return 0;
}

ssize_t read(int fd, void *buf, size_t len)
{
	struct mock_counter *c = mock_of(fd);

	if (!c)
		return raw(SYS_read, fd, (long)buf, (long)len, 0, 0, 0);
	{
		const uint64_t v[] = { c->value, c->enabled_ns, c->running_ns };
		const uint64_t want =
			PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

		if (c->attr.read_format != want || len < sizeof(v)) {
			errno = ENOSPC;
			return -1;
		}
		memcpy(buf, v, sizeof(v));
		return sizeof(v);
	}
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	struct mock_counter *c = mock_of(fd);
	long p;

	if (!c)
		return (void *)raw(SYS_mmap, (long)addr, (long)len, prot, flags, fd, off);
	if (mock.refuse_ring) {
		errno = EPERM;
		return MAP_FAILED;
	}
	p = raw(SYS_mmap, 0, (long)len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != -1)
		c->ring = (void *)p;
	return (void *)p;
}

/* Writes a record like the kernel; there must be room for it. */
static inline void mock_record(struct mock_counter *c, uint32_t type, const uint64_t *word,
			       uint16_t words)
{
	const struct perf_event_header h = { .type = type, .size = (uint16_t)(8 + 8 * words) };
	uint64_t *data = (uint64_t *)((char *)c->ring + 4096);

	memcpy(&data[c->ring->data_head % 4096 / 8], &h, sizeof(h));
	for (unsigned int i = 0; i < words; i++)
		data[(c->ring->data_head + 8 + 8 * i) % 4096 / 8] = word[i];
	c->ring->data_head += h.size;
}

int close(int fd)
{
	struct mock_counter *c = mock_of(fd);

	if (!c)
		return (int)raw(SYS_close, fd, 0, 0, 0, 0, 0);
	c->open = false;
	return 0;
}

#endif
