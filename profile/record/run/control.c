/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/control.h"

#include "base/clock.h"
#include "base/json.h"
#include "profile/record/control/request.h"
#include "profile/record/control/view.h"
#include "profile/record/run/private.h"
#include "profile/record/run/ps_json.h"
#include "profile/record/summary/summary.h"
#include "vmm/control.h"
#include "vmm/end.h"
#include "vmm/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shortest and longest period of a clock: the limits of --freq. */
#define PERIOD_MIN_NS ((uint64_t)(1e9 / RUN_FREQ_MAX))
#define PERIOD_MAX_NS (10 * NSEC_PER_SEC)
#define STACK_SIZE_MIN 256u

#define NO(e, ...) err_set(e, EINVAL, __VA_ARGS__)

/* -- the record of changes ------------------------------------------------------------ */

/* Records a change with a time before it was made, so that no sample that is due to it is older. */
static void note_change(struct run_control *c, struct control_change change)
{
	if (change.from == change.to)
		return;
	change.time_ns = c->request_ns;
	pthread_mutex_lock(&c->lock);
	if (c->nchanges < RUN_CONTROL_MAX_CHANGES)
		c->change[c->nchanges] = change;
	c->nchanges++;
	pthread_mutex_unlock(&c->lock);
}

uint64_t run_control_changes(struct run_control *c)
{
	uint64_t n;

	if (!c)
		return 0;
	pthread_mutex_lock(&c->lock);
	n = c->nchanges;
	pthread_mutex_unlock(&c->lock);
	return n;
}

static struct json_value change_value(const struct control_change *x, uint64_t v)
{
	return x->is_switch ? json_of_bool(v) : json_of_u64(v);
}

static void put_change(const struct run_control *c, const struct control_change *x,
		       struct json_writer *w)
{
	json_object_begin(w, NULL);
	json_put(w, "time_ns", x->time_ns, "what", x->what);
	if (x->event >= 0)
		json_str(w, "event", c->run->profile.info.event[x->event].name);
	if (x->vcpu >= 0)
		json_i64(w, "vcpu", x->vcpu);
	json_put(w, "from", change_value(x, x->from), "to", change_value(x, x->to));
	json_object_end(w);
}

void run_control_json(struct run_control *c, struct json_writer *w)
{
	uint64_t n = 0, kept = 0;

	json_array_begin(w, "changes");
	if (c) {
		pthread_mutex_lock(&c->lock);
		n = c->nchanges;
		kept = n < RUN_CONTROL_MAX_CHANGES ? n : RUN_CONTROL_MAX_CHANGES;
		for (uint64_t i = 0; i < kept; i++)
			put_change(c, &c->change[i], w);
		pthread_mutex_unlock(&c->lock);
	}
	json_array_end(w);
	json_put(w, "changes_beyond", n - kept, "snapshots", c ? atomic_load(&c->snapshots) : 0u);
}

/* -- names in a request --------------------------------------------------------------- */

enum control_unit run_control_unit(const struct run_control *c, unsigned int event)
{
	const struct event_state *s = events_of_vm(&c->run->events, event);

	if (!s || s->vm.kind == VM_EVENT_WALL || s->vm.kind == VM_EVENT_CPU ||
	    s->vm.kind == VM_EVENT_HOST)
		return CONTROL_NS;
	if (s->vm.kind == VM_EVENT_EXIT || s->vm.kind == VM_EVENT_IO)
		return CONTROL_COUNT;
	return s->vm.counter.freq ? CONTROL_HZ : s->vm.counter.clock ? CONTROL_NS : CONTROL_COUNT;
}

const char *run_control_unit_name(enum control_unit unit)
{
	return unit == CONTROL_NS ? "ns" : unit == CONTROL_HZ ? "hz" : "count";
}

unsigned int run_control_events(const struct run_control *c)
{
	return c->run->profile.info.nevents - (c->run->opt->tasks.off_cpu ? 1 : 0) -
	       (c->run->host_side.threads ? 1 : 0);
}

static int find_event(const struct run_control *c, const struct control_event *want,
		      unsigned int *out, struct err *e)
{
	const struct profile_info *info = &c->run->profile.info;
	unsigned int n = run_control_events(c);

	for (unsigned int i = n; *want->name && i < info->nevents; i++)
		if (!strcmp(want->name, info->event[i].name))
			return NO(e,
				  "%s is as the run began with it: only events of vCPUs can be "
				  "changed",
				  want->name);
	if (!*want->name) {
		if (want->index >= n)
			return NO(e, "there is no event %u: this run has %u", want->index, n);
		*out = want->index;
		return 0;
	}
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(want->name, info->event[i].name)) {
			*out = i;
			return 0;
		}
	return NO(e, "this run has no event '%.60s'; `status` lists what it has", want->name);
}

static int find_vcpu(const struct run_control *c, const struct control_request *r, struct err *e)
{
	unsigned int n = vm_vcpus(c->run->vm);

	if (r->all || r->vcpu < n)
		return 0;
	return n == 1 ? NO(e, "there is no vCPU %u: this guest has vCPU 0 only", r->vcpu)
		      : NO(e, "there is no vCPU %u: this guest has vCPUs 0 to %u", r->vcpu, n - 1);
}

/* -- changes -------------------------------------------------------------------------- */

static void put_switch(struct json_writer *w, bool from, bool to)
{
	json_put(w, "from", from, "to", to);
}

static void do_collect(struct run_control *c, const struct control_request *r,
		       struct json_writer *w)
{
	bool from = vm_is_collecting(c->run->vm);

	vm_collect(c->run->vm, r->on);
	note_change(c, (struct control_change){ .what = "collect",
						.event = -1,
						.vcpu = -1,
						.is_switch = true,
						.from = from,
						.to = r->on });
	put_switch(w, from, r->on);
}

static int do_vcpu(struct run_control *c, const struct control_request *r, struct json_writer *w,
		   struct err *e)
{
	unsigned int first = r->all ? 0 : r->vcpu;
	unsigned int end = r->all ? vm_vcpus(c->run->vm) : r->vcpu + 1;
	bool all_on = true;
	int ret = find_vcpu(c, r, e);

	if (ret)
		return ret;
	for (unsigned int i = first; i < end; i++) {
		bool from = vm_vcpu_is_collecting(c->run->vm, i);

		all_on &= from;
		vm_collect_vcpu(c->run->vm, i, r->on);
		note_change(c, (struct control_change){ .what = "vcpu",
							.event = -1,
							.vcpu = (int)i,
							.is_switch = true,
							.from = from,
							.to = r->on });
	}
	if (r->all)
		json_str(w, "vcpu", "all");
	else
		json_u64(w, "vcpu", r->vcpu);
	put_switch(w, all_on, r->on);
	return 0;
}

static bool arm(struct run_control *c, unsigned int event, bool on)
{
	bool from = vm_event_is_armed(c->run->vm, event);

	if (from != on)
		vm_arm_event(c->run->vm, event, on);
	note_change(c, (struct control_change){ .what = "arm",
						.event = (int)event,
						.vcpu = -1,
						.is_switch = true,
						.from = from,
						.to = on });
	return from;
}

static int do_arm(struct run_control *c, const struct control_request *r, struct json_writer *w,
		  struct err *e)
{
	bool on = r->cmd == CONTROL_ARM;
	unsigned int event;
	int ret = find_event(c, &r->event[0], &event, e);

	if (ret)
		return ret;
	json_str(w, "event", c->run->profile.info.event[event].name);
	put_switch(w, arm(c, event, on), on);
	return 0;
}

static void put_armed(const struct run_control *c, const char *key, uint32_t armed,
		      struct json_writer *w)
{
	json_array_begin(w, key);
	for (unsigned int i = 0; i < c->run->profile.info.nevents; i++)
		if (armed >> i & 1)
			json_str(w, NULL, c->run->profile.info.event[i].name);
	json_array_end(w);
}

static int do_event(struct run_control *c, const struct control_request *r, struct json_writer *w,
		    struct err *e)
{
	uint32_t from = 0, to = 0;

	for (unsigned int i = 0; i < r->nevents; i++) {
		unsigned int event;
		int ret = find_event(c, &r->event[i], &event, e);

		if (ret)
			return ret;
		to |= 1u << event;
	}
	for (unsigned int i = 0; i < run_control_events(c); i++)
		from |= (uint32_t)arm(c, i, to >> i & 1) << i;
	put_armed(c, "from", from, w);
	put_armed(c, "to", to, w);
	return 0;
}

/* Converts the request's value to the period that vm_set_period() takes. */
static int period_of(const struct run_control *c, const struct control_request *r,
		     unsigned int event, uint64_t *period, struct err *e)
{
	enum control_unit unit = run_control_unit(c, event);
	const char *name = c->run->profile.info.event[event].name;
	bool freq = r->cmd == CONTROL_FREQ;

	if (freq && unit == CONTROL_COUNT)
		return NO(e, "%s is counted, not measured in time: use 'period'", name);
	if (!freq && unit == CONTROL_HZ)
		return NO(e,
			  "the periods of %s are chosen by their rate: use 'freq', or start the "
			  "run with -c",
			  name);
	if (unit == CONTROL_HZ && (r->hz < 1 || r->hz > RUN_FREQ_MAX))
		return NO(e, "%s may have 1 to 50000 samples a second", name);
	*period = unit == CONTROL_HZ ? (uint64_t)(r->hz + 0.5)
		  : freq	     ? (uint64_t)fmin(1e9 / r->hz + 0.5, 1e18)
				     : r->value;
	if (unit == CONTROL_NS && (*period < PERIOD_MIN_NS || *period > PERIOD_MAX_NS))
		return NO(e,
			  "a period of %s may have %" PRIu64 " to %" PRIu64
			  " ns, which is 50000 to 0.1 samples a second",
			  name, PERIOD_MIN_NS, (uint64_t)PERIOD_MAX_NS);
	return 0;
}

static int do_period(struct run_control *c, const struct control_request *r, struct json_writer *w,
		     struct err *e)
{
	uint64_t from, to = 0;
	unsigned int event;
	int ret = find_event(c, &r->event[0], &event, e);

	if (ret)
		return ret;
	ret = period_of(c, r, event, &to, e);
	if (ret)
		return ret;
	from = vm_period(c->run->vm, event);
	if (from != to)
		vm_set_period(c->run->vm, event, to);
	note_change(c, (struct control_change){ .what = "period",
						.event = (int)event,
						.vcpu = -1,
						.from = from,
						.to = to });
	json_put(w, "event", c->run->profile.info.event[event].name, "from", from, "to", to);
	return 0;
}

static int do_depth(struct run_control *c, const struct control_request *r, struct json_writer *w,
		    struct err *e)
{
	bool size = r->cmd == CONTROL_STACK_SIZE;
	uint32_t *now = size ? &c->stack_size : &c->max_stack, from = *now;
	uint32_t min = size ? STACK_SIZE_MIN : 1;
	uint32_t max = size ? c->run->opt->stack_size : STACK_MAX_FRAMES;

	if (r->value < min || r->value > max)
		return NO(e, "%s: expected %u to %u %s", control_cmd_name(r->cmd), min, max,
			  size ? "bytes, no more than the run began with" : "frames");
	*now = (uint32_t)r->value & ~(size ? 7u : 0u);
	if (size)
		vm_set_stack_max(c->run->vm, *now);
	else
		pipeline_set_max_stack(c->run->pipeline, *now);
	note_change(c, (struct control_change){ .what = control_cmd_name(r->cmd),
						.event = -1,
						.vcpu = -1,
						.from = from,
						.to = *now });
	json_put(w, "from", from, "to", *now);
	return 0;
}

static void do_mark(struct run_control *c, const struct control_request *r, struct json_writer *w)
{
	uint64_t now = clock_mono_ns();

	markers_add(&c->run->markers.list, MARKER_CONTROL, r->name, strlen(r->name), now, 0);
	json_put(w, "name", json_of_str(r->name), "time_ns", now);
}

/* -- queries -------------------------------------------------------------------------- */

static int do_hello(struct run_control *c, const struct control_request *r, struct json_writer *w,
		    struct err *e)
{
	const struct run *run = c->run;

	if (r->value != CONTROL_VERSION)
		return NO(e, "this kvmprof speaks version %u of the protocol, not %" PRIu64,
			  CONTROL_VERSION, r->value);
	json_put(w, "version", CONTROL_VERSION, "kvmprof", json_of_str(KVMPROF_VERSION), "pid",
		 (uint64_t)getpid(), "image", run->opt->image ? run->opt->image : "", "output",
		 run->opt->output ? run->opt->output : "", "vcpus", vm_vcpus(run->vm));
	put_armed(c, "events", UINT32_MAX, w);
	return 0;
}

static int control_answer(struct run_control *c, const struct control_request *r,
			  struct json_writer *w, struct err *e)
{
	switch (r->cmd) {
	case CONTROL_HELLO:
		return do_hello(c, r, w, e);
	case CONTROL_STATUS:
		run_control_put_status(c, w);
		return 0;
	case CONTROL_STATS:
		run_control_put_stats(c, w);
		return 0;
	case CONTROL_COLLECT:
		do_collect(c, r, w);
		return 0;
	case CONTROL_VCPU:
		return do_vcpu(c, r, w, e);
	case CONTROL_ARM:
	case CONTROL_DISARM:
		return do_arm(c, r, w, e);
	case CONTROL_EVENT:
		return do_event(c, r, w, e);
	case CONTROL_PERIOD:
	case CONTROL_FREQ:
		return do_period(c, r, w, e);
	case CONTROL_STACK_SIZE:
	case CONTROL_MAX_STACK:
		return do_depth(c, r, w, e);
	case CONTROL_MARK:
		do_mark(c, r, w);
		return 0;
	default: /* CONTROL_STOP */
		vm_end(c->run->vm, VM_END_ASKED);
		return 0;
	}
}

/* -- requests that the consumer's thread answers, between two samples ------------------ */

/* Writes the profile to c->request.path, or to the file from which the keeper takes it. */
static int control_write_snapshot(struct run_control *c, const struct profile_totals *totals,
				  struct err *e)
{
	struct run_keep *k = &c->run->keep;
	const char *path = c->request.path, *own = c->entry.file;
	struct err why = { 0 };
	int ret;

	if (!k->keeper)
		return sink_snapshot(c->run->profile.sink, path, totals, e);
	ret = run_keep_begin_entry(k, path, &c->entry, e);
	if (ret)
		return ret;
	ret = sink_snapshot(c->run->profile.sink, own, totals, &why);
	/* The client uses its own name for the file. */
	if (ret && !strncmp(why.text, own, strlen(own)))
		return err_set(e, -ret, "%s%s", path, why.text + strlen(own));
	return ret ? err_set(e, -ret, "%s", why.text) : 0;
}

static int control_snapshot(struct run_control *c, const struct pipeline_stats *stats,
			    struct json_writer *w, struct err *e)
{
	struct run *r = c->run;
	uint64_t start = clock_mono_ns(), lost = run_control_lost(c);
	struct profile_totals totals = { .first_ns = vm_first_entry_ns(r->vm), .last_ns = start };
	struct summary s;
	struct buf json;
	int ret = 0;

	buf_init(&json);
	run_summary(r, stats, &s);
	summary_json(&s, &json);
	buf_u8(&json, 0);
	totals.json = (const char *)json.data;
	if (json.failed)
		ret = err_nomem(e);
	ret = ret ? ret : control_write_snapshot(c, &totals, e);
	buf_deinit(&json);
	if (ret)
		return ret;
	c->wrote = true;
	json_put(w, "path", json_of_str(c->request.path), "samples", stats->samples, "took_ns",
		 clock_mono_ns() - start, "lost", run_control_lost(c) - lost);
	return 0;
}

static int control_profile(struct run_control *c)
{
	const struct live_query q = {
		.since = c->request.since,
		.max_stacks = c->request.max_stacks,
		.max_depth = c->request.max_depth,
		.now_ns = clock_mono_ns(),
	};

	view_sink_profile(c->run->profile.sink, &q, &c->reply);
	return 0;
}

static void control_do_job(struct run_control *c, const struct pipeline_stats *stats)
{
	const struct control_request *r = &c->request;
	struct json_writer w;
	struct err e = { 0 };
	int ret;

	c->wrote = false;
	control_reply_begin(&w, &c->reply, r);
	/* The other requests begin a writer of their own behind these members. */
	if (r->cmd == CONTROL_SNAPSHOT)
		ret = control_snapshot(c, stats, &w, &e);
	else if (r->cmd == CONTROL_PROFILE)
		ret = control_profile(c);
	else if (r->cmd == CONTROL_PS)
		ret = ps_json(pipeline_guest(c->run->pipeline),
			      r->on ? PS_WITH_STACKS : PS_WITHOUT_STACKS, &c->reply, &e);
	else
		ret = view_sink_text(c->run->profile.sink, r->addr, r->len, &c->reply, &e);
	if (ret) {
		c->reply.len = 0;
		control_reply_error(&c->reply, r, e.text);
	} else {
		control_reply_end(&w);
	}
}

/* -- the server's calls --------------------------------------------------------------- */

static bool is_later(enum control_cmd cmd)
{
	return cmd == CONTROL_SNAPSHOT || cmd == CONTROL_PROFILE || cmd == CONTROL_TEXT ||
	       cmd == CONTROL_PS;
}

/* Runs on the consumer thread. */
static void run_job(struct pipeline_job *job, const struct pipeline_stats *stats)
{
	struct run_control *c =
		(struct run_control *)((char *)job - offsetof(struct run_control, job));

	control_do_job(c, stats);
	control_server_done(c->server);
}

/* Called if the consumer thread has crashed, in a signal handler. */
static void refuse_job(struct pipeline_job *job)
{
	struct run_control *c =
		(struct run_control *)((char *)job - offsetof(struct run_control, job));

	atomic_store(&c->gone, true);
	control_server_done(c->server);
}

static bool on_request(void *ctx, const struct control_request *r, struct buf *reply)
{
	struct run_control *c = ctx;
	size_t start = reply->len;
	struct json_writer w;
	struct err e = { 0 };

	if (is_later(r->cmd)) {
		c->request = *r;
		buf_init(&c->reply);
		c->job.run = run_job;
		c->job.gone = refuse_job;
		pipeline_post(c->run->pipeline, &c->job, PIPELINE_JOB_COMMAND);
		return false;
	}
	control_reply_begin(&w, reply, r);
	c->request_ns = clock_mono_ns();
	if (control_answer(c, r, &w, &e) < 0) {
		reply->len = start;
		control_reply_error(reply, r, e.text);
	} else {
		control_reply_end(&w);
	}
	return true;
}

static void on_later(void *ctx, struct buf *reply)
{
	struct run_control *c = ctx;
	struct err e = { 0 };

	/* c->reply may be half written, by the thread that has crashed. */
	if (atomic_load(&c->gone)) {
		control_reply_error(reply, &c->request,
				    "the profile has ended: its thread crashed");
		return;
	}
	if (c->wrote && c->run->keep.keeper &&
	    run_keep_publish_entry(&c->run->keep, &c->entry, &e)) {
		control_reply_error(reply, &c->request, e.text);
	} else {
		if (c->wrote)
			atomic_fetch_add(&c->snapshots, 1);
		buf_add(reply, c->reply.data, c->reply.len);
		reply->failed |= c->reply.failed;
	}
	buf_deinit(&c->reply);
}

static void on_tick(void *ctx)
{
	struct run_control *c = ctx;

	c->before = c->last;
	c->last.time_ns = clock_mono_ns();
	c->last.samples = run_control_samples(c);
}

static const struct control_ops ops = {
	.request = on_request,
	.is_later = is_later,
	.later = on_later,
	.tick = on_tick,
};

/* -- creation ------------------------------------------------------------------------- */

int run_control_open(struct run_control **out, const char *path, struct err *e)
{
	struct run_control *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return err_nomem(e);
	ret = control_listen(&c->listener, path, e);
	if (ret) {
		free(c);
		return ret;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	*out = c;
	return 0;
}

int run_control_start(struct run_control *c, struct run *r, struct err *e)
{
	c->run = r;
	c->stack_size = r->opt->stack_size;
	c->max_stack = r->opt->max_stack ? r->opt->max_stack : STACK_MAX_FRAMES;
	return control_server_start(&c->server, &c->listener, &ops, c, NULL, e);
}

void run_control_stop(struct run_control *c)
{
	if (!c)
		return;
	control_server_stop(c->server);
	c->server = NULL;
	control_unlisten(&c->listener);
}

const char *run_control_path(const struct run_control *c)
{
	return c->listener.path;
}

void run_control_destroy(struct run_control *c)
{
	if (!c)
		return;
	run_control_stop(c);
	pthread_mutex_destroy(&c->lock);
	if (c->statm >= 0)
		close(c->statm);
	free(c);
}
