/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/pipeline/pipeline.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"
#include "profile/format/sink/where.h"
#include "profile/record/pipeline/sample_queue.h"
#include "profile/record/pipeline/merge.h"
#include "vmm/capture/capture_python.h"
#include "vmm/control.h"
#include "vmm/device.h"
#include "vmm/end.h"
#include "vmm/io_log.h"
#include "vmm/vm.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * How long the consumer thread sleeps when all rings are empty. A ring has room for far more than
 * arrives in this time.
 */
#define POLL_NS 5000000
/*
 * Samples that are older than this are flushed to the file, at this interval: if the process is
 * killed at most a second is lost.
 */
#define FLUSH_NS 500000000u
/* The most samples that are processed before a job runs; about the content of some rings. */
#define JOB_WAITS_FOR 4096u

struct pipeline {
	struct vm *vm;
	struct guest *guest;
	struct offcpu *offcpu; /* NULL: not requested */
	struct sink *sink;
	struct pipeline_options opt;
	struct merge *merge;
	struct sample_queue held;
	struct epochs epochs;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint max_stack;
	_Atomic uint64_t named_ns; /* when names were first known; 0: not yet */
	_Atomic(struct pipeline_job *) job[PIPELINE_JOBS], running;
	struct fault fault; /* guards the consumer thread */
	struct pipeline_stats stats;
	uint64_t *dropped_seen;	    /* for each ring: drops that were reported to the sink */
	uint64_t last_ns;	    /* time of the newest sample */
	uint64_t flush_ns;	    /* time of the last flush */
	struct pipeline_last *last; /* one for each vCPU */
	struct stack stack, crash;
	struct io_join *io; /* NULL: no event of disks or packets */
	/* records of requests, and of packets, for which `io` had no room */
	uint64_t io_full, net_full;
	struct io_stages_log *stages; /* NULL: not requested */
	struct panic_watch panic;
	struct err err;
};

/* Ends the machine if ret, the result of a step, is an error. */
static void pipeline_fail(struct pipeline *p, int ret)
{
	/* The profile cannot be written any more, so the guest need not run on. */
	if (ret)
		vm_end(p->vm, VM_END_ERROR);
}

/* -- counting a sample and writing it ------------------------------------------------- */

/* Keeps the places where stacks broke off, so that the cause can be examined. */
static void note_broken(struct pipeline_stats *st, const struct stack *s)
{
	uint64_t ip = s->ip[s->n - 1];
	unsigned int i;

	for (i = 0; i < st->nbroken; i++)
		if (st->broken[i].ip == ip && st->broken[i].end == s->end)
			break;
	if (i == PIPELINE_MAX_BROKEN) {
		st->broken_beyond++;
		return;
	}
	if (i == st->nbroken)
		st->broken[st->nbroken++] = (struct pipeline_broken){
			.ip = ip,
			.innermost = s->ip[0],
			.end = s->end,
		};
	st->broken[i].count++;
}

static void count_kernel_stack(struct pipeline_stats *st, const struct stack *s)
{
	st->kernel_end[s->end]++;
	if (s->end != STACK_END_ROOT && s->end != STACK_END_USER)
		note_broken(st, s);
}

static void pipeline_count(struct pipeline *p, const struct profile_sample *s)
{
	struct pipeline_stats *st = &p->stats;
	const struct stack *stack = s->stack;

	st->samples++;
	st->kernel[p->epochs.n].samples++;
	st->event_samples[s->event]++;
	st->event_weight[s->event] += s->period;
	if (s->event == 0) {
		st->weight += s->period;
		st->mode_weight[s->mode & 3] += s->period;
	}
	st->end[stack->end]++;
	st->frames += stack->n;
	st->user_frames += stack->n - stack->n_kernel;
	if (stack->user_end)
		st->user_end[stack->user_end]++;
	if (s->mode != SAMPLE_USER)
		count_kernel_stack(st, stack);
	if (stack->n_kernel && !guest_kernel_is_named(p->guest, stack->ip[0]))
		st->unsymbolized++;
	if (s->time_ns > p->last_ns)
		p->last_ns = s->time_ns;
}

static void pipeline_cut(struct pipeline *p, struct stack *s)
{
	unsigned int max = atomic_load_explicit(&p->max_stack, memory_order_relaxed);

	if (s->n <= max)
		return;
	s->n = (uint16_t)max;
	if (s->n_kernel > max)
		s->n_kernel = (uint16_t)max;
	p->stats.depth_cut++;
}

static int pipeline_write(struct pipeline *p, const struct profile_sample *out)
{
	if (p->stats.samples == p->opt.max_samples)
		vm_end(p->vm, VM_END_SAMPLES);
	return p->err.code ? 0 : p->sink->ops->sample(p->sink, out, &p->err);
}

/* -- requests of disks and packets, with the stacks of their submitters --------------- */

/* Reports the requests of which no further stage can be learned at now_ns. */
static void tell_stages(struct pipeline *p, uint64_t now_ns)
{
	struct io_stages s;

	while (p->stages && io_stages_next(p->stages, now_ns, &s)) {
		if (p->opt.requests)
			io_stages_add(p->opt.requests, &s);
		if (p->opt.stages)
			p->opt.stages(p->opt.request_ctx, &s);
	}
}

/* Writes a sample for each event that counts this record, with the submitter's stack. */
static void weigh_record(struct pipeline *p, const struct io_record *r, const struct io_who *who)
{
	for (unsigned int i = 0; i < VM_MAX_EVENTS; i++) {
		struct profile_sample out = who->sample;
		enum pipeline_io by = p->opt.io[i];

		if (by == PIPELINE_NO_IO || (by == PIPELINE_NET_BYTES) != io_is_packet(r->type) ||
		    !vm_event_is_armed(p->vm, i) ||
		    (p->opt.max_samples && p->stats.samples == p->opt.max_samples))
			continue;
		p->stack = who->stack;
		out.stack = &p->stack;
		out.event = (uint8_t)i;
		out.period = by == PIPELINE_IO_LATENCY ? r->complete_ns - r->submit_ns : r->bytes;
		if (!out.period) /* a flush has no bytes */
			continue;
		pipeline_count(p, &out);
		pipeline_cut(p, &p->stack);
		pipeline_fail(p, pipeline_write(p, &out));
	}
}

static void process_packet(struct pipeline *p, const struct io_record *r, const struct io_who *who)
{
	struct io_stages s = { .r = *r, .raised_ns = r->raised_ns };
	struct pipeline_io_stats *st = &p->stats.net;
	bool unknown = !who && r->type == IO_SENT;

	st->records++;
	st->failed += r->status != IO_OK;
	st->unknown += unknown;
	if (unknown && r->status == IO_OK)
		st->unknown_bytes += r->bytes;
	if (who) {
		s.task = who->task;
		s.vcpu = who->sample.cpu;
	}
	if (p->opt.packets)
		io_stages_add(p->opt.packets, &s);
	if (who && r->status == IO_OK)
		weigh_record(p, r, who);
}

static void process_request(struct pipeline *p, const struct io_record *r, const struct io_who *who)
{
	struct pipeline_io_stats *st = &p->stats.io;

	st->records++;
	st->failed += r->status != IO_OK;
	st->unknown += !who;
	if (!who && r->status == IO_OK)
		st->unknown_bytes += r->bytes;
	if (p->opt.request)
		p->opt.request(p->opt.request_ctx, p->guest, r, who);
	if (p->stages) {
		tell_stages(p, vm_now_ns(p->vm));
		io_stages_request(p->stages, r, who);
	}
	if (who && r->status == IO_OK)
		weigh_record(p, r, who);
}

/* Stores a record until its submitter is known. */
static void hold_record(struct pipeline *p, const struct io_record *r)
{
	bool packet = io_is_packet(r->type);

	if (!packet && r->type >= IO_TYPES) {
		if (p->stages)
			io_stages_interrupt(p->stages, r);
	} else if (!io_join_record(p->io, r)) {
		p->io_full += !packet;
		p->net_full += packet;
	}
}

static void pipeline_requests(struct pipeline *p, enum io_join_which which)
{
	struct io_record r[64];
	const struct io_who *who;
	uint64_t packets;
	unsigned int n;

	if (!p->io)
		return;
	while ((n = vm_io_take(p->vm, r, 64)) > 0)
		for (unsigned int i = 0; i < n; i++)
			hold_record(p, &r[i]);
	while (io_join_next(p->io, which, &r[0], &who)) {
		if (io_is_packet(r[0].type))
			process_packet(p, &r[0], who);
		else
			process_request(p, &r[0], who);
	}
	tell_stages(p, which == IO_JOIN_REST ? UINT64_MAX : vm_now_ns(p->vm));
	p->stats.io.lost = vm_io_lost(p->vm, &packets) + p->io_full;
	p->stats.net.lost = packets + p->net_full;
}

/* -- samples and markers ------------------------------------------------------------- */

/* Counts a sample of the event host by where it was taken, which its frames show. */
static void count_where(struct pipeline *p, const struct sample *s)
{
	enum sample_where where = SAMPLE_IN_GUEST;

	if (s->reason != SAMPLE_HOST)
		return;
	for (unsigned int i = 0; i < p->stack.n; i++)
		(void)where_of(p->stack.ip[i], &where);
	p->stats.where[where] += s->weight;
}

static void write_marker(struct pipeline *p, const struct profile_marker *m)
{
	if (!p->err.code)
		pipeline_fail(p, p->sink->ops->marker(p->sink, m, &p->err));
}

/* Writes the markers that are not written yet and are older than before_ns. */
static void process_markers(struct pipeline *p, uint64_t before_ns)
{
	struct marker m;

	while (p->opt.markers && markers_take(p->opt.markers, before_ns, &m))
		write_marker(p, &(struct profile_marker){ .kind = m.kind,
							  .name = m.name,
							  .time_ns = m.time_ns,
							  .cpu = m.cpu });
}

static void keep_last(struct pipeline *p, const struct sample *s)
{
	struct pipeline_last *last = &p->last[s->vcpu];
	unsigned int n = p->stack.n;

	last->time_ns = s->time_ns;
	last->stack.n = p->stack.n;
	last->stack.n_kernel = p->stack.n_kernel;
	memcpy(last->stack.ip, p->stack.ip, n * sizeof(last->stack.ip[0]));
	memcpy(last->stack.exact, p->stack.exact, n * sizeof(last->stack.exact[0]));
}

static void process_breakpoint(struct pipeline *p, const struct sample *s)
{
	unsigned int i = s->event < VM_MAX_BREAKPOINTS ? s->event : 0;
	const char *name = p->opt.breakpoint_name[i] ? p->opt.breakpoint_name[i] : "";
	enum marker_kind kind = p->opt.breakpoint_kind[i];
	struct profile_sample out;
	struct err ignored = { 0 };
	int ret = guest_process(p->guest, s, &p->stack, &out, p->err.code ? &ignored : &p->err);

	keep_last(p, s);
	pipeline_fail(p, ret);
	if (p->opt.markers)
		markers_note(p->opt.markers, kind, name, strlen(name), s->time_ns, s->vcpu);
	write_marker(p, &(struct profile_marker){ .kind = kind,
						  .name = name,
						  .time_ns = s->time_ns,
						  .cpu = s->vcpu,
						  .pid = out.pid,
						  .tid = out.tid,
						  .stack = &p->stack });
}

/*
 * The registers, from which the stack was unwound, are those at the start of the instruction's
 * translation block; exit_addr is the distance from there.
 */
static void name_instruction(struct stack *stack, const struct sample *s)
{
	if (stack->n && stack->ip[0] == s->regs.rip)
		stack->ip[0] += s->exit_addr;
}

static void process(struct pipeline *p, const struct sample *s)
{
	struct profile_sample out = {
		.event = s->event,
		.mode = s->mode,
		.period = s->weight,
		.time_ns = s->time_ns,
		.stack = &p->stack,
	};
	bool crash = s->reason == SAMPLE_CRASH;
	struct err ignored = { 0 };
	int ret;

	if (crash) {
		guest_process(p->guest, s, &p->crash, &out, &ignored);
		return;
	}
	process_markers(p, s->time_ns);
	if (s->reason == SAMPLE_MARKER) {
		process_breakpoint(p, s);
		return;
	}
	if (p->opt.max_samples && p->stats.samples == p->opt.max_samples)
		return;
	ret = guest_process(p->guest, s, &p->stack, &out, p->err.code ? &ignored : &p->err);
	merge_prefetch(p->merge);
	if (s->reason != SAMPLE_OFFCPU) {
		keep_last(p, s);
		panic_watch_stack(&p->panic, p->guest, &p->stack, s->time_ns);
	}
	if (s->reason == SAMPLE_INSN)
		name_instruction(&p->stack, s);
	if (p->stages && s->reason != SAMPLE_OFFCPU)
		io_stages_sample(p->stages, s);
	if (s->reason == SAMPLE_IO) {
		pipeline_fail(p, ret);
		if (p->io)
			io_join_sample(p->io, s, &out, &p->stack);
		return;
	}
	if (p->opt.seen)
		p->opt.seen(p->opt.seen_ctx, s, out.pid);
	if (p->opt.no_samples) {
		pipeline_fail(p, ret);
		return;
	}
	pipeline_count(p, &out);
	count_where(p, s);
	pipeline_cut(p, &p->stack);
	ret = ret ? ret : pipeline_write(p, &out);
	pipeline_fail(p, ret);
}

/* Stores a sample until the place of the kernel is known. Returns false if there is no room. */
static bool pipeline_hold(struct pipeline *p, const struct sample *s)
{
	bool held = sample_queue_add(&p->held, s);

	p->stats.held += held;
	return held;
}

static void process_held(void *ctx, const struct sample *s)
{
	process(ctx, s);
}

/* -- another kernel ------------------------------------------------------------------- */

/*
 * Counts a sample as lost: no kernel is proven for it, and the names of another kernel would be
 * wrong.
 */
static void lose_sample(struct pipeline *p, const struct sample *s)
{
	p->stats.in_doubt++;
	if (!p->err.code)
		pipeline_fail(p, p->sink->ops->lost(p->sink, s->vcpu, 1, s->time_ns, &p->err));
}

/*
 * Processes the sample if it is outside of the kernel's half, where no kernel names it; otherwise
 * it is lost.
 */
static void process_doubtful(void *ctx, const struct sample *s)
{
	if (s->regs.rip >> 63)
		lose_sample(ctx, s);
	else
		process(ctx, s);
}

/* Stores a sample until the next kernel is known. In the kernel's half it is lost. */
static void hold_doubtful(void *ctx, const struct sample *s)
{
	struct pipeline *p = ctx;

	if (s->regs.rip >> 63 || !pipeline_hold(p, s))
		lose_sample(p, s);
}

/* Replaces the guest of the current kernel by that of the next kernel, which runs in *s. */
static void next_kernel(struct pipeline *p, const struct sample *s)
{
	struct err ignored = { 0 };
	int ret;

	/* The stacks of requests were named by this kernel only. */
	pipeline_requests(p, IO_JOIN_KNOWN);
	if (p->io)
		io_join_forget(p->io);
	snprintf(p->stats.kernel[p->epochs.n].release, sizeof(p->stats.kernel[p->epochs.n].release),
		 "%s", guest_release(p->guest));
	ret = epochs_next(&p->epochs, &p->guest, p->err.code ? &ignored : &p->err);
	if (ret) {
		pipeline_fail(p, ret);
		return;
	}
	p->stats.kernel[p->epochs.n].from_ns = s->time_ns;
	p->stats.kernels = p->epochs.n + 1;
	panic_watch_reset(&p->panic);
	/* The next kernel has a profile of its own. */
	host_threads_repeat_names(p->opt.threads);
	offcpu_destroy(p->offcpu);
	p->offcpu = NULL;
	if (p->opt.offcpu_period_ns)
		pipeline_fail(p, offcpu_create(&p->offcpu, p->guest, p->opt.offcpu_period_ns,
					       p->opt.offcpu_event, &p->err));
	epochs_release(&p->epochs, hold_doubtful, p);
}

/*
 * Returns whether the sample belongs to the current kernel, and processes the samples that waited
 * for this decision.
 */
static bool is_of_kernel(struct pipeline *p, const struct sample *s)
{
	enum epoch_state state = guest_epoch(p->guest, s);

	/* No sample follows a crash, and KVM may have reset its registers. */
	if (s->reason == SAMPLE_CRASH)
		return true;
	if (state == EPOCH_OTHER && epochs_have_room(&p->epochs)) {
		next_kernel(p, s);
		return true;
	}
	if (state == EPOCH_SAME) {
		epochs_release(&p->epochs, process_held, p);
		return true;
	}
	if (s->reason == SAMPLE_LOOK)
		return false;
	if (state == EPOCH_OTHER) {
		lose_sample(p, s);
	} else if (!epochs_hold(&p->epochs, s)) {
		epochs_release(&p->epochs, process_doubtful, p);
		process_doubtful(p, s);
	}
	return false;
}

/*
 * Counts by how much the guest's memory, when it is read to name the sample, is newer than the
 * sample. Samples that wait for the kernel to be found are named later still.
 */
static void count_delay(struct pipeline *p, const struct sample *s)
{
	const uint64_t now = vm_now_ns(p->vm);

	hist_add(&p->stats.named_after, now > s->time_ns ? now - s->time_ns : 0);
}

static void take_sample(struct pipeline *p, const struct sample *s)
{
	int ret;

	count_delay(p, s);
	if (!is_of_kernel(p, s))
		return;
	if (!guest_is_ready(p->guest, s, &ret, &p->err)) {
		if (s->reason == SAMPLE_LOOK || pipeline_hold(p, s))
			return;
		ret = guest_end_search(p->guest, &p->err);
	}
	pipeline_fail(p, ret);
	/* Samples that are not written need no names, and must be seen while they are new. */
	if (!p->opt.no_samples && guest_awaits_tasks(p->guest, s, &ret, &p->err) &&
	    (s->reason == SAMPLE_LOOK || pipeline_hold(p, s)))
		return;
	if (!atomic_load(&p->named_ns))
		atomic_store(&p->named_ns, vm_now_ns(p->vm));
	pipeline_fail(p, ret);
	sample_queue_release(&p->held,
			     guest_was_retried(p->guest) ? process_doubtful : process_held, p);
	if (s->reason != SAMPLE_LOOK)
		process(p, s);
}

static void report_drops(struct pipeline *p, unsigned int vcpu)
{
	uint64_t dropped = ring_dropped(vm_ring(p->vm, vcpu));
	uint64_t fresh = dropped - p->dropped_seen[vcpu];

	if (!fresh)
		return;
	p->dropped_seen[vcpu] = dropped;
	p->stats.dropped += fresh;
	if (!p->err.code)
		pipeline_fail(p, p->sink->ops->lost(p->sink, vcpu, fresh, p->last_ns, &p->err));
}

/* Takes the oldest sample of all rings, so that the output is nearly in order of time. */
static bool drain_one(struct pipeline *p)
{
	const struct sample *oldest = merge_next(p->merge);

	if (!oldest)
		return false;
	take_sample(p, oldest);
	merge_prefetch(p->merge);
	merge_release(p->merge);
	return true;
}

/* The tasks are those of the kernel that is known, unless samples wait for a proof of it. */
static void take_offcpu(void *ctx, const struct sample *s)
{
	struct pipeline *p = ctx;

	if (!p->epochs.doubt_ns)
		process(p, s);
	else if (!epochs_hold(&p->epochs, s))
		lose_sample(p, s);
}

static void look_offcpu(struct pipeline *p)
{
	struct err e = { 0 };

	if (p->offcpu && !p->err.code && vm_first_entry_ns(p->vm) &&
	    offcpu_run(p->offcpu, clock_mono_ns(), vm_is_collecting(p->vm), take_offcpu, p, &e)) {
		p->err = e;
		pipeline_fail(p, -ENOMEM);
	}
}

static int take_thread(void *ctx, const struct sample *s, bool renamed)
{
	struct pipeline *p = ctx;
	const struct profile_comm comm = { s->task.pid, s->task.tid, s->task.comm, false,
					   s->time_ns };
	struct profile_sample out;
	int ret = 0;

	if (renamed && !p->err.code)
		ret = p->sink->ops->comm(p->sink, &comm, &p->err);
	/* Samples count only while the guest runs and collecting is not switched off. */
	if (p->err.code || p->opt.no_samples || !vm_first_entry_ns(p->vm) ||
	    s->time_ns < vm_first_entry_ns(p->vm) || !vm_is_collecting(p->vm) ||
	    (p->opt.max_samples && p->stats.samples == p->opt.max_samples))
		return ret;
	ret = ret ? ret : guest_process_thread(p->guest, s, &p->stack, &out, &p->err);
	pipeline_count(p, &out);
	pipeline_cut(p, &p->stack);
	return ret ? ret : pipeline_write(p, &out);
}

static void take_threads(struct pipeline *p)
{
	pipeline_fail(p, host_threads_take(p->opt.threads, take_thread, p));
}

/* Takes the samples of the VMM's threads before their counters, which continue to count. */
static void read_threads(struct pipeline *p)
{
	take_threads(p);
	host_threads_stats(p->opt.threads, &p->stats.threads);
}

static void take_stats(struct pipeline *p)
{
	struct epoch_facts *k = &p->stats.kernel[p->epochs.n];

	snprintf(k->release, sizeof(k->release), "%s", guest_release(p->guest));
	guest_stats(p->guest, &p->stats.guest);
	if (p->offcpu)
		offcpu_stats(p->offcpu, &p->stats.offcpu);
}

static void do_job(struct pipeline *p)
{
	struct pipeline_job *job;

	for (unsigned int i = 0; i < PIPELINE_JOBS; i++) {
		if (!atomic_load_explicit(&p->job[i], memory_order_relaxed))
			continue;
		job = atomic_exchange(&p->job[i], NULL);
		if (!job)
			continue;
		atomic_store(&p->running, job);
		take_stats(p);
		read_threads(p);
		job->run(job, &p->stats);
		atomic_store(&p->running, NULL);
	}
}

static void flush_sink(struct pipeline *p)
{
	uint64_t now = vm_now_ns(p->vm);

	if (p->err.code || !p->sink->ops->flush || !clock_is_due(now, p->flush_ns, FLUSH_NS))
		return;
	p->flush_ns = now;
	pipeline_fail(p, p->sink->ops->flush(p->sink, now - FLUSH_NS, &p->err));
}

static void *consumer(void *arg)
{
	struct pipeline *p = arg;
	for (;;) {
		bool last = atomic_load(&p->stop);

		vm_refresh_memory(p->vm);
		/*
		 * A job should see the samples before it, but it must not wait for an empty ring
		 * for ever.
		 */
		for (unsigned int n = 1; drain_one(p); n++) {
			if (n % JOB_WAITS_FOR == 0) {
				do_job(p);
				flush_sink(p);
			}
			/*
			 * A stack in io_join is overwritten by a later one; join its requests
			 * before that.
			 */
			if (n % (IO_JOIN_STACKS / 4) == 0) {
				pipeline_requests(p, IO_JOIN_KNOWN);
				take_threads(p);
			}
		}
		for (unsigned int i = 0; i < vm_vcpus(p->vm); i++)
			report_drops(p, i);
		pipeline_requests(p, IO_JOIN_KNOWN);
		take_threads(p);
		flush_sink(p);
		do_job(p);
		if (!last) {
			look_offcpu(p);
			panic_watch_tick(&p->panic, p->guest, vm_memory(p->vm));
		}
		if (last) {
			read_threads(p);
			pipeline_fail(p, guest_end_search(p->guest, &p->err));
			sample_queue_release(&p->held, process_held, p);
			epochs_release(&p->epochs, process_doubtful, p);
			pipeline_requests(p, IO_JOIN_REST);
			process_markers(p, UINT64_MAX);
			if (!p->err.code)
				pipeline_fail(p, guest_finish(p->guest, &p->err));
			return NULL;
		}
		vm_wait_samples(p->vm, POLL_NS);
	}
}

void pipeline_destroy(struct pipeline *p)
{
	/* The data that the thread was changing may be inconsistent: see base/fault.h. */
	if (!p || fault_happened(&p->fault))
		return;
	offcpu_destroy(p->offcpu);
	guest_destroy(p->guest);
	epochs_deinit(&p->epochs);
	io_stages_destroy(p->stages);
	io_join_destroy(p->io);
	merge_destroy(p->merge);
	sample_queue_deinit(&p->held);
	free(p->dropped_seen);
	free(p->last);
	free(p);
}

static struct ring *ring_of(void *ctx, unsigned int vcpu)
{
	return vm_ring(ctx, vcpu);
}

/* Calls gone() for the jobs that will not run. */
static void refuse_jobs(struct pipeline *p)
{
	struct pipeline_job *running = atomic_exchange(&p->running, NULL);

	for (unsigned int i = 0; i < PIPELINE_JOBS; i++) {
		struct pipeline_job *waiting = atomic_exchange(&p->job[i], NULL);

		if (waiting)
			waiting->gone(waiting);
	}
	if (running)
		running->gone(running);
}

static void on_fault(struct fault *f)
{
	struct pipeline *p = (struct pipeline *)((char *)f - offsetof(struct pipeline, fault));

	vm_consumer_gone(p->vm);
	refuse_jobs(p);
}

static int start_thread(struct pipeline *p, struct err *e)
{
	int ret;

	p->fault.ended = on_fault;
	ret = thread_start_guarded(&p->thread, THREAD_CONSUMER, consumer, p, &p->fault);
	return ret ? err_set(e, ret, "cannot start the consumer thread: %s", strerror(ret)) : 0;
}

/* -- the machine, as the guest's reader sees it ---------------------------------------- */

static uint64_t host_now_ns(void *vm)
{
	return vm_now_ns(vm);
}

static void host_set_slide(void *vm, uint64_t slide)
{
	vm_set_slide(vm, slide);
}

static void host_set_task_plan(void *vm, const struct capture_task_plan *plan)
{
	vm_set_task_plan(vm, plan);
}

static int host_add_python_layout(void *vm, const struct capture_python_layout *layout)
{
	return capture_python_find_layout(vm, layout);
}

static void host_add_python_thread(void *vm, const struct capture_python_thread *thread)
{
	capture_python_find_thread(vm, thread);
}

static const char *host_device_name(void *vm, unsigned int device)
{
	return vm_device_name(vm, device);
}

static struct guest_host host_of(struct vm *vm)
{
	struct guest_host host = {
		.memory = vm_memory(vm),
		.vcpus = vm_vcpus(vm),
		.stands = vm_is_exact(vm),
		.firmware = vm_is_exact(vm),
		.ctx = vm,
		.now_ns = host_now_ns,
		.set_slide = host_set_slide,
		.set_task_plan = host_set_task_plan,
		.add_python_layout = host_add_python_layout,
		.add_python_thread = host_add_python_thread,
		.device_name = host_device_name,
		.exit_name = vm_exit_name,
	};

	vm_boot_memory(vm, &host.boot_low, &host.boot_high);
	return host;
}

/* -- creation and the main thread's calls ---------------------------------------------- */

int pipeline_start(struct pipeline **out, const struct pipeline_parts *parts,
		   const struct guest_options *opt, const struct pipeline_options *own,
		   const struct profile_map *user_map, struct err *e)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	struct guest_host host = host_of(parts->vm);
	int ret;

	if (!p)
		return err_nomem(e);
	p->vm = parts->vm;
	p->sink = parts->sink;
	atomic_init(&p->max_stack, STACK_MAX_FRAMES);
	for (unsigned int i = 0; i < PIPELINE_JOBS; i++)
		atomic_init(&p->job[i], NULL);
	atomic_init(&p->running, NULL);
	if (own)
		p->opt = *own;
	sample_queue_init(&p->held);
	p->held.programs = opt->runs;
	epochs_init(&p->epochs);
	p->stats.kernels = 1;
	p->dropped_seen = calloc(vm_vcpus_most(p->vm), sizeof(*p->dropped_seen));
	p->last = calloc(vm_vcpus_most(p->vm), sizeof(*p->last));
	p->merge = merge_create(ring_of, p->vm, vm_vcpus_most(p->vm));
	ret = p->dropped_seen && p->last && p->merge
		      ? guest_create(&p->guest, parts->target, &host, p->sink, opt, e)
		      : err_nomem(e);
	for (unsigned int i = 0; i < VM_MAX_EVENTS; i++) {
		enum pipeline_io by = p->opt.io[i];

		p->stats.io.wanted |= by == PIPELINE_IO_BYTES || by == PIPELINE_IO_LATENCY;
		p->stats.net.wanted |= by == PIPELINE_NET_BYTES;
	}
	if (!ret && (p->stats.io.wanted || p->stats.net.wanted))
		ret = io_join_create(&p->io, vm_vcpus_most(p->vm), e);
	if (!ret && p->stats.io.wanted && (p->opt.requests || p->opt.stages))
		ret = io_stages_create(&p->stages, e);
	if (!ret && p->opt.offcpu_period_ns)
		ret = offcpu_create(&p->offcpu, p->guest, p->opt.offcpu_period_ns,
				    p->opt.offcpu_event, e);
	if (!ret && user_map) {
		struct profile_map map = *user_map;

		map.pid = map.tid = GUEST_PID;
		map.time_ns = vm_now_ns(p->vm);
		ret = p->sink->ops->map(p->sink, &map, e);
	}
	ret = ret ? ret : start_thread(p, e);
	if (ret)
		pipeline_destroy(p);
	else
		*out = p;
	return ret;
}

void pipeline_set_max_stack(struct pipeline *p, unsigned int frames)
{
	atomic_store_explicit(&p->max_stack, frames ? frames : 1, memory_order_relaxed);
}

struct guest *pipeline_guest(struct pipeline *p)
{
	return p->guest;
}

void pipeline_post(struct pipeline *p, struct pipeline_job *job, enum pipeline_poster who)
{
	atomic_store(&p->job[who], job);
	if (fault_happened(&p->fault))
		refuse_jobs(p);
}

bool pipeline_crashed(struct pipeline *p, struct err *why)
{
	char text[128];

	if (!fault_happened(&p->fault))
		return false;
	fault_describe(&p->fault, text, sizeof(text));
	err_set(why, EFAULT, "%s", text);
	return true;
}

uint64_t pipeline_named_ns(const struct pipeline *p)
{
	return atomic_load(&p->named_ns);
}

const struct panic_watch *pipeline_panic(const struct pipeline *p)
{
	return &p->panic;
}

const struct pipeline_last *pipeline_last(const struct pipeline *p, unsigned int vcpu)
{
	return &p->last[vcpu];
}

int pipeline_finish(struct pipeline *p, struct pipeline_stats *stats, struct stack *crash,
		    struct err *e)
{
	int ret = 0;

	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
	if (fault_happened(&p->fault)) {
		*stats = p->stats;
		return err_set(e, EFAULT, "the consumer's thread has crashed");
	}
	take_stats(p);
	*stats = p->stats;
	*crash = p->crash;
	if (p->err.code)
		ret = err_set(e, p->err.code, "%s", p->err.text);
	return ret;
}
