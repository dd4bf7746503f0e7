/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/visit.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/signals.h"
#include "base/vcpu_stats.h"
#include "profile/record/run/run.h"
#include "profile/record/run/sandbox.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/attach/foreign.h"
#include "vmm/control.h"
#include "vmm/vm.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The longest search for the kernel. An idle guest is found in that time, a stopped one is not. */
#define ATTACH_WAIT_S 20
#define NAP_MS 10

struct visit {
	struct run *run;
	const struct visit_request *request;
	struct pipeline_job job;
	int done; /* eventfd: the look has been made */
	visit_look_fn look;
	struct err err;
	int ret;
};

/* Called by the consumer thread. */
static void run_look(struct pipeline_job *job, const struct pipeline_stats *stats)
{
	struct visit *v = (struct visit *)((char *)job - offsetof(struct visit, job));
	uint64_t one = 1;

	(void)stats;
	v->ret = v->look(v->request->ctx, pipeline_guest(v->run->pipeline), &v->err);
	(void)!write(v->done, &one, sizeof(one));
}

/* Called in a signal handler. */
static void refuse_look(struct pipeline_job *job)
{
	struct visit *v = (struct visit *)((char *)job - offsetof(struct visit, job));
	uint64_t one = 1;

	v->ret = -EFAULT;
	(void)!write(v->done, &one, sizeof(one));
}

/* Waits until the look is made; it cannot be cancelled. */
static int look_once(struct visit *v, struct err *e)
{
	struct pollfd done = { .fd = v->done, .events = POLLIN };
	uint64_t count;

	v->err = (struct err){ 0 };
	v->job.run = run_look;
	v->job.gone = refuse_look;
	pipeline_post(v->run->pipeline, &v->job, PIPELINE_JOB_COMMAND);
	while (poll(&done, 1, -1) < 0 && errno == EINTR)
		;
	(void)!read(v->done, &count, sizeof(count));
	if (v->ret == -EFAULT)
		return err_set(e, EFAULT, "the thread that reads guest memory has crashed");
	return v->ret ? err_set(e, -v->ret, "%s", v->err.text) : 0;
}

int visit_nap(struct visit *v, double ms, struct err *e)
{
	return run_nap(v->run, ms, e);
}

int visit_look(struct visit *v, visit_look_fn look, struct err *e)
{
	uint64_t start = clock_mono_ns();
	struct err why = { 0 };
	int ret;

	v->look = look;
	for (;;) {
		why = (struct err){ 0 };
		ret = look_once(v, &why);
		if (ret != -EAGAIN)
			return ret ? err_set(e, -ret, "%s", why.text) : 0;
		if (clock_mono_ns() - start > ATTACH_WAIT_S * NSEC_PER_SEC)
			return err_set(e, ETIMEDOUT, "no tasks found after %d s: %.200s",
				       ATTACH_WAIT_S, why.text);
		ret = visit_nap(v, NAP_MS, e);
		if (ret)
			return ret;
	}
}

void visit_sample(struct visit *v, bool on)
{
	vm_arm_event(v->run->vm, 0, on);
}

void visit_cost(const struct visit *v, struct visit_cost *out)
{
	struct attach_facts facts = { 0 };

	memset(out, 0, sizeof(*out));
	if (v->request->gdb) {
		foreign_facts(v->run->vm, &facts);
		*out = (struct visit_cost){ facts.stops, facts.stood_ns, facts.longest_ns };
		return;
	}
	for (unsigned int i = 0; i < vm_vcpus(v->run->vm); i++) {
		struct vcpu_stats s = vm_stats(v->run->vm, i);

		if (s.stop_ns.sum >= out->stopped_ns)
			*out = (struct visit_cost){ s.stop_ns.count, s.stop_ns.sum, s.stop_ns.max };
	}
}

/* Implements pipeline_options.seen. */
static void pass_sample(void *ctx, const struct sample *s, uint32_t pid)
{
	const struct visit *v = ctx;

	(void)pid;
	v->request->seen(v->request->ctx, pipeline_guest(v->run->pipeline), s);
}

static int visit_run(struct run *r, const struct visit_request *q, struct err *e)
{
	/* The sandbox lets a visit read the cache of kernels that attach has read before, and not add to it. */
	struct guest_options go = { .runs = true,
				    .explains = q->explains,
				    .known_kernels = !q->still };
	struct visit visit = { .run = r, .request = q, .done = -1 };
	struct pipeline_options own = { .no_samples = true,
					.seen = q->seen ? pass_sample : NULL,
					.seen_ctx = &visit };
	/* This thread opens no descriptor once it is bound. */
	cleanup_close int done = eventfd(0, EFD_CLOEXEC);
	int ret = done < 0 ? err_set(e, errno, "eventfd: %s", strerror(errno)) : run_prepare(r, e);

	if (ret)
		return ret;
	ret = run_sandbox_begin(r, e);
	if (ret)
		return ret;
	signals_set(SIGNALS_GRACE); /* what waits for a look at the guest can't be called off */
	target_bind(&r->source.target, vm_memory(r->vm));
	go.moves = r->source.target.is_linux;
	ret = sink_null_create(&r->profile.sink, e);
	if (ret)
		return ret;
	ret = pipeline_start(&r->pipeline,
			     &(struct pipeline_parts){ &r->source.target, r->vm, r->profile.sink },
			     &go, &own, NULL, e);
	if (ret)
		return ret;
	ret = vm_start(r->vm, e);
	if (ret)
		return ret;
	ret = run_sandbox_attached(r, e);
	if (ret)
		return ret;
	visit.done = done;
	ret = q->body(&visit, q->ctx, e);
	run_leave(r);
	pipeline_finish(r->pipeline, &r->stats, &r->crash, NULL);
	r->pipeline_done = true;
	if (q->ended)
		q->ended(&visit, q->ctx);
	return ret;
}

int visit_machine(const struct visit_request *q, struct err *e)
{
	cleanup_free struct run *r = calloc(1, sizeof(*r)); /* large: two stacks of frames */
	char name[64];
	int ret;

	if (!r)
		return err_nomem(e);
	r->asked.reporter = q->reporter;
	run_options_default(&r->asked);
	r->asked.command = q->command;
	r->asked.quiet = true;
	r->asked.tune = false;
	r->asked.freq_hz = q->freq_hz;
	r->asked.gdb = q->gdb;
	r->asked.still = q->still;
	ret = q->gdb || q->still ? 0 : attach_domain_find(q->what, &r->asked.attach, &r->domain, e);
	if (!ret && q->found && r->asked.attach)
		ret = q->found(r->asked.attach, q->ctx, e);
	if (ret)
		return ret < 0 ? ret : 0;
	if (q->still)
		snprintf(name, sizeof(name), "(saved guest)");
	else if (q->gdb)
		snprintf(name, sizeof(name), "(guest behind a gdbstub)");
	else
		snprintf(name, sizeof(name), "(guest of process %d)", (int)r->asked.attach);
	r->asked.attach_name = name;
	run_init(r);
	console_init(&r->console, -1);
	ret = run_markers_init(&r->markers, &r->asked, &r->console, e);
	ret = ret ? ret : visit_run(r, q, e);
	run_deinit(r);
	return ret;
}
