/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/counters/events.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "vmm/capture/counter.h"
#include "vmm/quirks.h"
#include "vmm/quirks_cache.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNEL_EXIT "kvm:kvm_exit"
#define STAT_HINT "; `kvmprof stat` counts such exits"
/*
 * Type and config in perf.data of events that perf does not have, and of tracepoints, of which perf
 * would require more than a name: raw ones of numbers that no processor has. (For
 * PERF_COUNT_SW_DUMMY, made for such uses, perf script prints no stacks.)
 */
#define OUR_CONFIG UINT64_C(0x4b564d00)
/* Clocks: 50000 samples a second are as many as -F takes. */
#define CLOCK_PERIOD_MIN 20000u
#define NEVER (UINT64_C(1) << 62) /* the kernel's counters have 63 bits */

int events_add(struct events *ev, const char *list, struct err *e)
{
	for (;;) {
		size_t len = strcspn(list, ",");
		struct event_name name;
		int ret = event_name_parse(&name, list, len, e);

		if (ret)
			return ret;
		for (unsigned int i = 0; i < ev->n; i++)
			if (!strcmp(ev->at[i].name.text, name.text))
				return err_set(e, EINVAL, "%s: given twice", name.text);
		if (ev->n == VM_MAX_EVENTS)
			return err_set(e, EINVAL, "%s: more than %u events", name.text,
				       VM_MAX_EVENTS);
		ev->at[ev->n].name = name;
		memcpy(ev->at[ev->n].asked, name.text, sizeof(name.text));
		ev->n++;
		if (!list[len])
			return 0;
		list += len + 1;
	}
}

int events_check(const struct events *ev, const struct events_rate *rate, struct err *e)
{
	for (unsigned int i = 0; rate->period && i < ev->n; i++) {
		const struct event_name *n = &ev->at[i].name;

		if (n->class == EVENT_SOFTWARE && n->is_clock && rate->period < CLOCK_PERIOD_MIN)
			return err_set(e, EINVAL, "%llu: %s counts ns, %u at least",
				       (unsigned long long)rate->period, n->text, CLOCK_PERIOD_MIN);
	}
	return 0;
}

/* -- what an event is here ------------------------------------------------------------------ */

static void modifiers(const struct event_name *n, struct vm_counter *c)
{
	if (n->user || n->kernel || n->hv) {
		c->exclude_user = !n->user;
		c->exclude_kernel = !n->kernel;
		c->exclude_hv = !n->hv;
	}
	c->precise_ip = n->precise;
	/* Software events happen in the host; only the processor knows whether a guest runs. */
	if (n->guest || n->host) {
		c->exclude_host = !n->host;
		c->exclude_guest = !n->guest;
	} else {
		c->exclude_host = n->class == EVENT_HARDWARE;
	}
}

static uint64_t clock_period(const struct events_rate *rate)
{
	return (uint64_t)llround(1e9 / rate->freq_hz);
}

static void set_period(const struct event_name *n, const struct events_rate *rate,
		       struct vm_event *out)
{
	struct vm_counter *c = &out->counter;

	c->clock = n->is_clock;
	if (rate->period) {
		out->period = rate->period;
	} else if (c->clock) {
		out->period = clock_period(rate);
	} else if (n->class == EVENT_TRACEPOINT || n->class == EVENT_KERNEL_EXIT) {
		out->period = 1;
	} else {
		c->freq = true;
		out->period = rate->freq_hz < 1 ? 1 : (uint64_t)llround(rate->freq_hz);
	}
}

/* -- the host's tracepoints (Documentation/trace/events.rst) ----------------------------- */

/* Where it is mounted since Linux 4.1, and before. */
static const char *const tracefs_roots[] = { "/sys/kernel/tracing/events",
					     "/sys/kernel/debug/tracing/events" };

static const char *tracefs_root(struct err *why)
{
	int err = ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(tracefs_roots); i++) {
		if (access(tracefs_roots[i], R_OK | X_OK) == 0)
			return tracefs_roots[i];
		if (errno == EACCES)
			err = EACCES;
	}
	err_set(why, err, "%s",
		err == EACCES
			? "/sys/kernel/tracing can't be read by this user"
			: "tracefs is not mounted (mount -t tracefs nodev /sys/kernel/tracing)");
	return NULL;
}

/* The number of a tracepoint for perf_event_open; name is "subsystem:event". err says why not. */
static int tracepoint_id(const char *name, uint64_t *id, struct err *why)
{
	const char *root = tracefs_root(why), *colon = strchr(name, ':');
	cleanup_fclose FILE *f = NULL;
	char path[PATH_MAX];
	unsigned long long v;

	if (!root)
		return -why->code;
	if (!colon)
		return err_set(why, EINVAL, "%s: no tracepoint", name);
	snprintf(path, sizeof(path), "%s/%.*s/%s/id", root, (int)(colon - name), name, colon + 1);
	f = fopen(path, "re");
	if (!f)
		return err_set(why, errno,
			       errno == ENOENT ? "the host's kernel has no tracepoint %s"
					       : "the tracepoint %s can't be read by this user",
			       name);
	if (fscanf(f, "%llu", &v) != 1)
		return err_set(why, EINVAL, "%s has no number", path);
	*id = v;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

size_t events_tracepoints(const char *subsystem, char ***names, struct err *why)
{
	const char *root = tracefs_root(why);
	char path[PATH_MAX];
	struct dirent *d;
	size_t n = 0, cap = 0;
	DIR *dir;

	*names = NULL;
	if (!root)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", root, subsystem);
	dir = opendir(path);
	if (!dir) {
		err_set(why, errno, "%s: %s", path, strerror(errno));
		return 0;
	}
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || d->d_type != DT_DIR)
			continue;
		if (ARRAY_ROOM(*names, n, cap) ||
		    asprintf(&(*names)[n], "%s:%s", subsystem, d->d_name) < 0)
			break;
		n++;
	}
	closedir(dir);
	if (n)
		qsort(*names, n, sizeof(**names), by_name);
	return n;
}

/* -- what an event is on this host ---------------------------------------------------- */

/*
 * Not every KVM reports its exits: does the guest that is tried at the start of each run have any?
 */
static int try_kernel_exits(const struct kvm_host *host, const struct vm_counter *c,
			    struct err *why)
{
	struct counter counter;
	struct quirks q = { 0 };
	uint64_t seen;
	struct vm_counter all = *c;
	int ret;

	all.filter = NULL;
	if ((ret = counter_open(&counter, &all, &(struct trigger_rule){ .period_ns = NEVER }, SIGIO,
				why)) ||
	    (ret = counter_start(&counter, why)))
		return ret;
	quirks_find(host, &q);
	quirks_release(&q);
	seen = counter_read(&counter);
	counter_close(&counter);
	return seen ? 0
		    : err_set(why, EOPNOTSUPP,
			      "this host's KVM does not report its exits through " KERNEL_EXIT);
}

static int probe_tracepoint(const struct event_name *n, const struct kvm_host *host,
			    struct vm_event *out, struct err *why)
{
	bool exits = n->class == EVENT_KERNEL_EXIT;
	int ret = tracepoint_id(exits ? KERNEL_EXIT : n->text, &out->counter.config, why);

	out->counter.type = PERF_TYPE_TRACEPOINT;
	out->counter.filter = n->filter;
	ret = ret ? ret : counter_probe(&out->counter, out->period, why);
	if (!ret && exits && host->fd >= 0)
		ret = try_kernel_exits(host, &out->counter, why);
	if (ret && exits) {
		struct err cause = *why;

		*why = (struct err){ 0 };
		return err_set(why, -ret, "KVM handles these by itself, and %.150s" STAT_HINT,
			       cause.text);
	}
	return ret;
}

/* The thread's CPU time: exact by a counter, else by a timer that expires in the host's ticks. */
static int probe_cpu(struct vm_event *out, struct err *why)
{
	struct err cause;

	out->counter.type = PERF_TYPE_SOFTWARE;
	out->counter.config = PERF_COUNT_SW_TASK_CLOCK;
	out->counter.exclude_host = false;
	if (counter_probe(&out->counter, out->period, why) == 0)
		return 0;
	out->timer = true;
	cause = *why;
	*why = (struct err){ 0 };
	err_set(why, cause.code,
		"no task-clock (%.180s); by a timer that expires in the host's ticks only",
		cause.text);
	return 0;
}

int events_probe(const struct event_name *n, const struct events_rate *rate,
		 const struct kvm_host *host, struct vm_event *out, struct err *why)
{
	bool alone;
	int ret;

	*out = (struct vm_event){ .kind = VM_EVENT_PERF };
	why->code = 0;
	why->text[0] = '\0';
	switch (n->class) {
	case EVENT_WALL:
		out->kind = VM_EVENT_WALL;
		out->period = clock_period(rate);
		return 0;
	case EVENT_CPU:
		out->kind = VM_EVENT_CPU;
		out->period = clock_period(rate);
		out->counter.clock = true;
		return probe_cpu(out, why);
	case EVENT_HOST:
		out->kind = VM_EVENT_HOST;
		out->period = clock_period(rate);
		out->counter = (struct vm_counter){
			.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_CPU_CLOCK,
			.clock = true,
			.chain = true,
		};
		return counter_probe(&out->counter, out->period, why);
	case EVENT_EXIT:
		out->kind = VM_EVENT_EXIT;
		out->period = rate->period ? rate->period : 1;
		out->exits = n->exits;
		return 0;
	case EVENT_IO:
	case EVENT_NET:
		out->kind = VM_EVENT_IO;
		out->packets = n->class == EVENT_NET;
		out->period = 1;
		return 0;
	case EVENT_KERNEL_EXIT:
	case EVENT_TRACEPOINT:
		set_period(n, rate, out);
		return probe_tracepoint(n, host, out, why);
	case EVENT_HARDWARE:
	case EVENT_SOFTWARE:
		break;
	}
	out->counter.type = n->type;
	out->counter.config = n->config;
	modifiers(n, &out->counter);
	set_period(n, rate, out);
	alone = out->counter.exclude_host;
	ret = counter_probe(&out->counter, out->period, why);
	if (ret || out->counter.exclude_host == alone)
		return ret;
	if (n->guest) /* :G leaves no choice */
		return err_set(why, EINVAL, "the PMU can't leave out what the host does");
	err_set(why, EINVAL,
		"the PMU can't leave out what the host does: its share on the vCPU's thread is in "
		"the counts");
	return 0;
}

/* -- a run's events --------------------------------------------------------------------------- */

static bool sampled(const struct events *ev, const char *name, unsigned int but)
{
	for (unsigned int i = 0; i < ev->n; i++)
		if (i != but && !ev->at[i].dropped && !strcmp(ev->at[i].name.text, name))
			return true;
	return false;
}

/* Tries to replace a refused event. */
static void fall_back(struct events *ev, unsigned int i, const struct events_rate *rate,
		      const struct kvm_host *host, const struct err *cause)
{
	struct event_state *s = &ev->at[i];
	struct err why = { 0 };

	s->dropped = !s->name.is_time || sampled(ev, "cpu", i);
	if (s->dropped) {
		snprintf(s->why, sizeof(s->why), "%.240s; %s", cause->text,
			 s->name.is_time ? "cpu is sampled already" : "it is left out");
		return;
	}
	(void)event_name_parse(&s->name, "cpu", 3, &why);
	(void)events_probe(&s->name, rate, host, &s->vm, &why);
	s->vm.jitter = rate->jitter;
	snprintf(s->why, sizeof(s->why), "%.200s; cpu stands in for it%s", cause->text,
		 s->vm.timer ? ", by a timer that expires in the host's ticks only" : "");
}

static int prepare_one(struct events *ev, unsigned int i, const struct events_rate *rate,
		       const struct kvm_host *host, struct err *e)
{
	struct event_state *s = &ev->at[i];
	struct err why = { 0 };
	int ret = events_probe(&s->name, rate, host, &s->vm, &why);

	s->vm.jitter = rate->jitter;
	if (ret && rate->strict)
		return err_set(e, -ret, "event %s: %s", s->asked, why.text);
	if (ret) {
		fall_back(ev, i, rate, host, &why);
	} else {
		snprintf(s->why, sizeof(s->why), "%.240s", why.text);
	}
	return 0;
}

int events_prepare(struct events *ev, const struct events_rate *rate, const struct kvm_host *host,
		   struct err *e)
{
	struct vm_event ignored[VM_MAX_EVENTS];
	int ret = ev->n ? 0 : events_add(ev, "wall", e);

	for (unsigned int i = 0; !ret && i < ev->n; i++)
		ret = prepare_one(ev, i, rate, host, e);
	if (!ret && !events_for_vm(ev, ignored))
		ret = err_set(e, ENOTSUP, "event %s: %s; nothing is left to sample",
			      ev->at[0].asked, ev->at[0].why);
	return ret;
}

int events_prepare_exact(struct events *ev, uint64_t period, struct err *e)
{
	int ret = ev->n ? 0 : events_add(ev, "instructions", e);
	struct event_state *s = &ev->at[0];

	if (ret)
		return ret;
	if (ev->n != 1 || s->name.class != EVENT_HARDWARE || s->name.type != PERF_TYPE_HARDWARE ||
	    s->name.config != PERF_COUNT_HW_INSTRUCTIONS ||
	    s->name.base_len != strlen(s->name.text))
		return err_set(e, EINVAL,
			       "event %s: --engine exact samples by the event instructions alone, "
			       "without modifiers",
			       ev->n > 1 && s->name.config == PERF_COUNT_HW_INSTRUCTIONS
				       ? ev->at[1].asked
				       : s->asked);
	s->vm = (struct vm_event){
		.kind = VM_EVENT_PERF,
		.period = period,
		.counter = { .type = s->name.type, .config = s->name.config },
	};
	return 0;
}

unsigned int events_for_vm(const struct events *ev, struct vm_event *out)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < ev->n; i++)
		if (!ev->at[i].dropped)
			out[n++] = ev->at[i].vm;
	return n;
}

const struct event_state *events_of_vm(const struct events *ev, unsigned int i)
{
	for (unsigned int k = 0; k < ev->n; k++)
		if (!ev->at[k].dropped && i-- == 0)
			return &ev->at[k];
	return NULL;
}

struct profile_event events_off_cpu(uint64_t period_ns)
{
	return (struct profile_event){
		.name = OFFCPU_EVENT,
		.type = PERF_TYPE_RAW,
		.config = OUR_CONFIG + VM_MAX_EVENTS,
		.period = period_ns,
	};
}

struct profile_event events_host_threads(uint64_t period_ns)
{
	return (struct profile_event){
		.name = HOST_THREADS_EVENT,
		.type = PERF_TYPE_RAW,
		.config = OUR_CONFIG + VM_MAX_EVENTS + 1,
		.period = period_ns,
	};
}

bool events_contain(const struct events *ev, enum event_class class)
{
	for (unsigned int i = 0; i < ev->n; i++)
		if (ev->at[i].name.class == class)
			return true;
	return false;
}

unsigned int events_for_profile(const struct events *ev, double freq_hz, struct profile_event *out)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < ev->n; i++) {
		const struct event_state *s = &ev->at[i];
		struct profile_event *p = &out[n];

		if (s->dropped)
			continue;
		n++;
		*p = (struct profile_event){
			.name = s->name.text,
			.type = PERF_TYPE_RAW,
			.config = OUR_CONFIG + i,
			.period = s->vm.period,
			.exits = s->vm.kind == VM_EVENT_EXIT,
		};
		if (s->vm.kind == VM_EVENT_PERF && s->vm.counter.type != PERF_TYPE_TRACEPOINT) {
			p->type = s->vm.counter.type;
			p->config = s->vm.counter.config;
		} else if (s->vm.kind == VM_EVENT_WALL || s->vm.kind == VM_EVENT_HOST) {
			p->type = PERF_TYPE_SOFTWARE;
			p->config = PERF_COUNT_SW_CPU_CLOCK;
		} else if (s->vm.kind == VM_EVENT_CPU) {
			p->type = PERF_TYPE_SOFTWARE;
			p->config = PERF_COUNT_SW_TASK_CLOCK;
		}
		if (s->vm.kind == VM_EVENT_WALL || s->vm.kind == VM_EVENT_CPU ||
		    s->vm.kind == VM_EVENT_HOST || s->vm.counter.freq)
			p->freq_hz = freq_hz;
	}
	return n;
}
