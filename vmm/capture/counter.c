/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/capture/counter.h"

#include "base/count.h"

#include "base/vcpu_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"
#define MAX_RATE "/proc/sys/kernel/perf_event_max_sample_rate"

/* Returns the number in a file of /proc/sys; -1000 if it cannot be read. */
static long sysctl_number(const char *path)
{
	FILE *f = fopen(path, "re");
	long v = -1000;

	if (f) {
		if (fscanf(f, "%ld", &v) != 1)
			v = -1000;
		fclose(f);
	}
	return v;
}

/*
 * Returns whether the processor counts it, so that the host's share and the guest's can be
 * separated.
 */
static bool is_hardware(const struct vm_counter *what)
{
	return what->type == PERF_TYPE_HARDWARE || what->type == PERF_TYPE_HW_CACHE ||
	       what->type == PERF_TYPE_RAW;
}

/*
 * Returns whether the kernel exposes the processor's PMU; hybrid processors have one for each kind
 * of core.
 */
static bool has_pmu(void)
{
	return access("/sys/bus/event_source/devices/cpu", F_OK) == 0 ||
	       access("/sys/bus/event_source/devices/cpu_core", F_OK) == 0;
}

/* Explains an errno of perf_event_open: see its man page, ERRORS, and kernel/events/core.c. */
static int refused(const struct vm_counter *what, uint64_t period, int err, struct err *e)
{
	switch (err) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return err_set(e, err, "%s (%s)",
			       !is_hardware(what) ? "the host's kernel does not know it"
			       : has_pmu()	  ? "this host's processor does not count it"
					   : "this host has no hardware PMU, as most virtual "
					     "machines have none",
			       strerrorname_np(err));
	case EOPNOTSUPP:
		return err_set(e, err,
			       "this host's PMU can't interrupt, or KVM has given it to its guests "
			       "(mediated vPMU) (%s)",
			       strerrorname_np(err));
	case EACCES:
	case EPERM:
		return err_set(e, err,
			       "not allowed (%s): " PARANOID " is %ld; it takes CAP_PERFMON, or 1 "
			       "or less there",
			       strerrorname_np(err), sysctl_number(PARANOID));
	case EINVAL:
		if (what->freq && sysctl_number(MAX_RATE) > 0 &&
		    period > (uint64_t)sysctl_number(MAX_RATE))
			return err_set(e, err,
				       "%llu samples a second are more than " MAX_RATE ", %ld",
				       (unsigned long long)period, sysctl_number(MAX_RATE));
		return err_set(
			e, err,
			"can't be counted like that here: check the modifiers and the period "
			"(%s)",
			strerrorname_np(err));
	case ENOSYS:
		return err_set(e, err, "the host's kernel was built without perf events (ENOSYS)");
	case EBUSY:
		return err_set(e, err,
			       "another event uses the PMU exclusively (EBUSY): end the profiler "
			       "that uses it");
	case EMFILE:
		return err_set(e, err, "too many open files (ulimit -n)");
	default:
		return err_set(e, err, "perf_event_open: %s", strerror(err));
	}
}

static void fill_attr(struct perf_event_attr *a, const struct vm_counter *what, uint64_t period)
{
	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->type = what->type;
	a->config = what->config;
	a->disabled = 1;
	a->freq = what->freq;
	if (what->freq)
		a->sample_freq = period;
	else
		a->sample_period = period;
	a->exclude_user = what->exclude_user;
	a->exclude_kernel = what->exclude_kernel;
	a->exclude_hv = what->exclude_hv;
	a->exclude_host = what->exclude_host;
	a->exclude_guest = what->exclude_guest;
	a->precise_ip = what->precise_ip & 3;
	if (what->chain) {
		a->sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
		a->sample_max_stack = SAMPLE_MAX_HOST;
		a->use_clockid = 1;
		a->clockid = CLOCK_MONOTONIC;
	}
	a->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
}

static int open_fd(struct counter *c, pid_t tid, const struct vm_counter *what, uint64_t first,
		   uint64_t period, struct err *e)
{
	struct perf_event_attr attr;

	fill_attr(&attr, what, first);
	/* The sandbox allows a vCPU to count only the calling thread, which is 0 here. */
	c->fd = (int)syscall(SYS_perf_event_open, &attr, tid == gettid() ? 0 : tid, -1, -1,
			     PERF_FLAG_FD_CLOEXEC);
	if (c->fd < 0)
		return refused(what, period, errno, e);
	c->set = first;
	if (what->filter && ioctl(c->fd, PERF_EVENT_IOC_SET_FILTER, what->filter) < 0)
		return err_set(e, errno, "the kernel refuses the filter `%s': %s", what->filter,
			       strerror(errno));
	return 0;
}

/* Directs the overflow signals to exactly this thread. */
static int route(int fd, pid_t tid, int signo, struct err *e)
{
	struct f_owner_ex owner = { F_OWNER_TID, tid };

	if (fcntl(fd, F_SETOWN_EX, &owner) < 0 || fcntl(fd, F_SETSIG, signo) < 0 ||
	    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
		return err_set(e, errno, "a counter's signal: fcntl: %s", strerror(errno));
	return 0;
}

/* -- the ring ----------------------------------------------------------------------------- */

/* Data pages of the ring: room for 512 overflow records without call chains. */
#define RING_PAGES 1u

/*
 * Stores the call chain of a PERF_RECORD_SAMPLE: u64 time, u64 nr, u64 ips[nr], with context marks
 * among the ips.
 */
static void take_chain(struct counter *c, const struct perf_event_header *h)
{
	unsigned int mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	c->fresh = true;
	c->in_guest = mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
	c->chain_ns = perf_record_word(h, 0);
	c->nchain = (uint16_t)perf_record_chain(h, 1, c->chain, SAMPLE_MAX_HOST);
}

struct counter_drain {
	struct counter *c;
	struct vm_counter_stats *to;
};

/* Handles a record as in perf_event_open(2), with attr.sample_type 0 or time and chain. */
static void take_record(void *ctx, const struct perf_event_header *h)
{
	const struct counter_drain *d = ctx;

	if (h->type == PERF_RECORD_SAMPLE && d->c->with_chain && h->size >= 24)
		take_chain(d->c, h);
	else if (h->type == PERF_RECORD_THROTTLE)
		count_add(&d->to->throttled, 1);
	else if (h->type == PERF_RECORD_LOST && h->size >= 24)
		count_add(&d->to->lost, perf_record_word(h, 1));
}

static void counter_drain(struct counter *c, struct vm_counter_stats *to)
{
	perf_ring_drain(&c->ring, take_record, &(struct counter_drain){ c, to });
}

int counter_open(struct counter *c, const struct vm_counter *what, const struct trigger_rule *rule,
		 int signo, struct err *e)
{
	return counter_open_on(c, gettid(), what, rule, signo, e);
}

int counter_open_on(struct counter *c, pid_t tid, const struct vm_counter *what,
		    const struct trigger_rule *rule, int signo, struct err *e)
{
	uint64_t period = rule->period_ns;
	int ret;

	memset(c, 0, sizeof(*c));
	c->freq = what->freq;
	c->with_chain = what->chain;
	c->by_hand = what->type == PERF_TYPE_TRACEPOINT;
	trigger_init_count(&c->axis, rule);
	ret = open_fd(c, tid, what, c->freq ? period : c->axis.deadline_ns, period, e);
	ret = ret ? ret : route(c->fd, tid, signo, e);
	if (ret)
		counter_close(c);
	else
		/* Without a ring (perf_event_mlock_kb is used up) throttling is not noticed. */
		(void)perf_ring_map(&c->ring, c->fd, RING_PAGES);
	if (!ret && what->chain && !c->ring.page) {
		counter_close(c);
		ret = err_set(
			e, ENOMEM,
			"no ring for call chains: /proc/sys/kernel/perf_event_mlock_kb is used up");
	}
	return ret;
}

/*
 * Enables the counter for one overflow, at which it stops (perf_event_open(2)). A tracepoint that
 * was stopped in this way never counts again (seen on Linux 6.18), so it is enabled without a
 * limit.
 */
static int counter_rearm(const struct counter *c)
{
	return c->by_hand ? ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0)
			  : ioctl(c->fd, PERF_EVENT_IOC_REFRESH, 1);
}

void counter_signalled(const struct counter *c)
{
	if (c->by_hand)
		(void)ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0);
}

int counter_start(struct counter *c, struct err *e)
{
	if (counter_rearm(c) < 0)
		return err_set(e, errno, "a counter does not start: %s", strerror(errno));
	return 0;
}

void counter_resume(struct counter *c)
{
	/* It succeeded at the start, and nothing has changed. */
	(void)counter_rearm(c);
}

void counter_close(struct counter *c)
{
	if (c->fd > 0) {
		perf_ring_unmap(&c->ring);
		close(c->fd);
	}
	c->fd = -1;
}

uint64_t counter_read(struct counter *c)
{
	uint64_t v[3]; /* in the order of read_format: count, time enabled, time running */

	if (read(c->fd, v, sizeof(v)) != sizeof(v))
		return 0;
	c->enabled_ns = v[1];
	c->running_ns = v[2];
	return v[0];
}

void counter_note(struct counter *c, struct vm_counter_stats *to)
{
	count_add(&to->enabled_ns, c->enabled_ns - c->noted_enabled);
	count_add(&to->running_ns, c->running_ns - c->noted_running);
	c->noted_enabled = c->enabled_ns;
	c->noted_running = c->running_ns;
	counter_drain(c, to);
}

bool counter_chain(struct counter *c, struct vm_counter_stats *to)
{
	bool fresh;

	counter_drain(c, to);
	fresh = c->fresh;
	c->fresh = false;
	return fresh;
}

/* Programs the next overflow `period` counts from here. */
static void counter_set_period(struct counter *c, uint64_t period)
{
	if (period == c->set)
		return;
	/* It fails only for 0 and for huge periods; the old period then remains. */
	if (ioctl(c->fd, PERF_EVENT_IOC_PERIOD, &period) == 0)
		c->set = period;
}

bool counter_handle_signal(struct counter *c, uint64_t *weight, uint32_t *missed)
{
	uint64_t value = counter_read(c);
	bool ended = value >= c->axis.deadline_ns;

	if (c->freq) {
		*weight = value > c->last ? value - c->last : 0;
		*missed = 0;
		c->last += *weight;
		return *weight != 0;
	}
	if (ended) {
		*missed = trigger_advance(&c->axis, value);
		*weight = (1 + (uint64_t)*missed) * c->axis.period_ns;
	}
	/*
	 * If the period has not ended, a timer was a little early, or an old signal was delivered
	 * late.
	 */
	counter_set_period(c, c->axis.deadline_ns - value);
	return ended;
}

int counter_probe(struct vm_counter *what, uint64_t period, struct err *e)
{
	const struct trigger_rule rule = { .period_ns = period, .seed = 1 };
	struct counter c;
	struct err with_host = { 0 };
	int ret = counter_open(&c, what, &rule, SIGIO, e);

	if ((ret == -EINVAL || ret == -EOPNOTSUPP) && what->exclude_host && is_hardware(what)) {
		struct vm_counter both = *what;

		both.exclude_host = false;
		if (counter_open(&c, &both, &rule, SIGIO, &with_host) == 0) {
			*what = both;
			if (e)
				err_clear(e);
			ret = 0;
		}
	}
	if (!ret)
		counter_close(&c);
	return ret;
}
