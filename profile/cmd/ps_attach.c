/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/ps_attach.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "profile/record/run/ps_json.h"
#include "profile/record/run/run.h"
#include "profile/format/sink/null.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* So often a vCPU is looked at, which tells where its kernel is. */
#define FREQ_HZ 49
#define NAP_MS 50

struct look {
	struct pipeline_job job;
	struct guest *guest;
	int done; /* eventfd */
	enum ps_stacks stacks;
	json_t *tasks;
	struct err err;
	int ret;
};

/* On the consumer's thread. */
static void run_look(struct pipeline_job *job, const struct pipeline_stats *stats)
{
	struct look *l = (struct look *)((char *)job - offsetof(struct look, job));
	uint64_t one = 1;

	(void)stats;
	l->ret = ps_look(l->guest, l->stacks, &l->tasks, &l->err);
	(void)!write(l->done, &one, sizeof(one));
}

/* In a signal handler. */
static void refuse_look(struct pipeline_job *job)
{
	struct look *l = (struct look *)((char *)job - offsetof(struct look, job));
	uint64_t one = 1;

	l->ret = -EFAULT;
	(void)!write(l->done, &one, sizeof(one));
}

/* Until the look is made: it can't be called off. */
static int look_once(struct run *r, struct look *l, json_t **out, struct err *e)
{
	struct pollfd done = { .fd = l->done, .events = POLLIN };
	uint64_t count;

	l->err = (struct err){ 0 };
	l->job.run = run_look;
	l->job.gone = refuse_look;
	pipeline_post(r->pipeline, &l->job);
	while (poll(&done, 1, -1) < 0 && errno == EINTR)
		;
	(void)!read(l->done, &count, sizeof(count));
	if (l->ret == -EFAULT)
		return err_set(e, EFAULT, "the thread that reads the guest's memory has crashed");
	if (l->ret)
		return err_set(e, -l->ret, "%s", l->err.text);
	*out = l->tasks;
	return 0;
}

/* -EINTR: a signal; -ESRCH: the machine has ended; 0: time has passed. */
static int nap(struct run *r, double ms, struct err *e)
{
	struct pollfd fds[] = {
		{ .fd = r->signal_fd, .events = POLLIN },
		{ .fd = vm_end_fd(r->vm), .events = POLLIN },
	};
	uint64_t end = clock_mono_ns() + (uint64_t)(ms * 1e6), now;

	while ((now = clock_mono_ns()) < end) {
		int n = poll(fds, 2, (int)((end - now) / 1000000) + 1);

		if (n > 0 && fds[0].revents && run_is_to_end(r))
			return err_set(e, EINTR, "interrupted");
		if (n > 0 && fds[1].revents)
			return err_set(e, ESRCH, "the machine has ended");
	}
	return 0;
}

static int look_until_known(struct run *r, struct look *l, json_t **out, struct err *e)
{
	uint64_t start = clock_mono_ns();
	struct err why = { 0 };
	int ret;

	for (;;) {
		why = (struct err){ 0 };
		ret = look_once(r, l, out, &why);
		if (ret != -EAGAIN)
			return ret ? err_set(e, -ret, "%s", why.text) : 0;
		if (clock_mono_ns() - start > PS_ATTACH_WAIT_S * NSEC_PER_SEC)
			return err_set(e, ETIMEDOUT, "no tasks found after %d s: %.200s",
				       PS_ATTACH_WAIT_S, why.text);
		ret = nap(r, NAP_MS, e);
		if (ret)
			return ret;
	}
}

static int looks(struct run *r, double interval_s, enum ps_stacks stacks, json_t **before,
		 json_t **now, struct err *e)
{
	struct look l = { .guest = pipeline_guest(r->pipeline) };
	int ret = 0;

	l.done = eventfd(0, EFD_CLOEXEC);
	if (l.done < 0)
		return err_set(e, errno, "eventfd: %s", strerror(errno));
	if (interval_s > 0) {
		ret = look_until_known(r, &l, before, e);
		ret = ret ? ret : nap(r, interval_s * 1e3, e);
	}
	l.stacks = stacks;
	ret = ret ? ret : look_until_known(r, &l, now, e);
	close(l.done);
	return ret;
}

static int look_at_machine(struct run *r, double interval_s, enum ps_stacks stacks, json_t **before,
			   json_t **now, struct err *e)
{
	struct guest_options go = { .runs = true };
	int ret = run_prepare(r, e);

	if (ret)
		return ret;
	target_bind(&r->source.target, vm_memory(r->vm));
	go.moves = r->source.target.image.is_linux;
	ret = sink_null_create(&r->sink, e);
	if (ret)
		return ret;
	ret = pipeline_start(&r->pipeline,
			     &(struct pipeline_parts){ &r->source.target, r->vm, r->sink }, &go,
			     NULL, NULL, e);
	if (ret)
		return ret;
	ret = vm_start(r->vm, e);
	if (ret)
		return ret;
	ret = looks(r, interval_s, stacks, before, now, e);
	vm_end(r->vm, VM_END_ASKED);
	vm_join(r->vm);
	run_give_stops_back(r);
	pipeline_finish(r->pipeline, &r->stats, &r->crash, NULL);
	r->pipeline_done = true;
	return ret;
}

int ps_attach(const struct attach_request *what, double interval_s, enum ps_stacks stacks,
	      json_t **before, json_t **now, struct err *e)
{
	cleanup_free struct run *r = calloc(1, sizeof(*r)); /* large: two stacks of frames */
	char name[64];
	int ret;

	if (!r)
		return err_set(e, ENOMEM, "out of memory");
	run_options_default(&r->asked);
	r->asked.command = "ps";
	r->asked.quiet = true;
	r->asked.tune = false;
	r->asked.freq_hz = FREQ_HZ;
	ret = attach_find(what, &r->asked.attach, &r->domain, e);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "(guest of process %d)", (int)r->asked.attach);
	r->asked.attach_name = name;
	run_init(r);
	console_init(&r->console, -1);
	ret = run_markers_init(&r->markers, &r->asked, &r->console, e);
	ret = ret ? ret : look_at_machine(r, interval_s, stacks, before, now, e);
	run_deinit(r);
	return ret;
}
