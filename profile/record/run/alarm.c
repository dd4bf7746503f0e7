/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/alarm.h"

#include "base/clock.h"
#include "profile/record/run/run.h"
#include "profile/record/why/why.h"
#include "vmm/vm.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SURE 2u /* judgements in a row that have to agree */
/* The time between two judgements is a quarter of --hang-after, within these bounds. */
#define PERIOD_LEAST_NS (9 * NSEC_PER_SEC / 4) /* a guest that is frozen takes 2 s to prove */
#define PERIOD_MOST_NS (5 * NSEC_PER_SEC)
/* A sample of a vCPU is passed to the checks at most this often: some dozens between two looks suffice. */
#define SAMPLE_NS (NSEC_PER_SEC / 40)
#define SPIN_SAMPLES 20u
#define PAGE_MASK UINT64_C(4095)
#define RFLAGS_IF 0x200u
/* How long a command may run after the end of the run. */
#define COMMAND_MS 10000u
#define STEP_NS 1000000

/* -- on the consumer thread ----------------------------------------------------------------- */

/* Returns the number of exits in which a guest does something that progresses. */
static uint64_t exits_of(const struct run_alarm *a, unsigned int vcpu)
{
	const struct vcpu_stats s = vm_stats(a->run->vm, vcpu);

	return s.exits[KVM_EXIT_HLT] + s.exits[KVM_EXIT_IO] + s.exits[KVM_EXIT_MMIO] +
	       s.exits[KVM_EXIT_HYPERCALL];
}

static void note_spin(struct run_alarm *a, struct run_alarm_spin *p, const struct sample *s)
{
	uint64_t page = s->regs.rip & ~PAGE_MASK;

	if (s->regs.rflags & RFLAGS_IF || s->mode == SAMPLE_IDLE) {
		p->page = 0;
		return;
	}
	if (p->page == page && page) {
		p->samples++;
		return;
	}
	p->page = page;
	p->samples = 1;
	p->since_ns = s->time_ns;
	p->exits = exits_of(a, s->vcpu);
}

/* Implements pipeline_options.seen. */
static void see(void *ctx, const struct sample *s, uint32_t pid)
{
	struct run_alarm *a = ctx;
	struct run_alarm_spin *p = &a->spin[s->vcpu];

	(void)pid;
	if (s->vcpu >= vm_vcpus_most(a->run->vm) || s->reason == SAMPLE_OFFCPU)
		return;
	note_spin(a, p, s);
	if (s->time_ns - p->judged_ns < SAMPLE_NS)
		return;
	p->judged_ns = s->time_ns;
	why_sample(a->why, pipeline_guest(a->run->pipeline), s);
}

/* Writes the evidence that a guest whose kernel is not known hangs, or "". */
static void judge_spins(struct run_alarm *a)
{
	uint64_t now = vm_now_ns(a->run->vm), page = 0, ns = 0;

	a->spins[0] = '\0';
	for (unsigned int i = 0; i < vm_vcpus(a->run->vm); i++) {
		const struct run_alarm_spin *p = &a->spin[i];

		if (!p->judged_ns) /* the vCPU has not been started */
			continue;
		if (!p->page || p->samples < SPIN_SAMPLES || now - p->since_ns < a->hang_ns ||
		    exits_of(a, i) != p->exits)
			return;
		page = p->page;
		ns = now - p->since_ns;
	}
	if (page)
		snprintf(a->spins, sizeof(a->spins),
			 "The guest makes no progress, and its kernel is not known: for %.1f s all "
			 "samples have been in the page at 0x%" PRIx64
			 ", with interrupts off and without an exit.",
			 (double)ns / 1e9, page);
}

static void alarm_judge(struct pipeline_job *job, const struct pipeline_stats *stats)
{
	struct run_alarm *a = (struct run_alarm *)((char *)job - offsetof(struct run_alarm, job));
	struct guest *g = pipeline_guest(a->run->pipeline);
	struct err e = { 0 };

	(void)stats;
	json_decref(a->result);
	a->result = NULL;
	a->spins[0] = '\0';
	if (why_look(a->why, g, &e) || why_judge(a->why, g, &a->result, &e))
		judge_spins(a);
	else
		why_repeat(a->why);
	atomic_store(&a->state, RUN_ALARM_DONE);
}

/* Called in a signal handler. */
static void refuse(struct pipeline_job *job)
{
	struct run_alarm *a = (struct run_alarm *)((char *)job - offsetof(struct run_alarm, job));

	atomic_store(&a->state, RUN_ALARM_DONE);
}

/* -- actions -------------------------------------------------------------------------------- */

static const char *member(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void print_reason(struct run *r)
{
	struct buf text;

	if (!r->alarm.result)
		return;
	buf_init(&text);
	why_print(r->alarm.result, &text);
	if (!text.failed)
		reporter_printf(r->opt->reporter, "%.*s", (int)text.len, (const char *)text.data);
	buf_deinit(&text);
}

static void execute(struct run *r, enum handler_event event, const char *verdict)
{
	struct handler_message m = {
		.event = event,
		.pid = r->opt->attach ? r->opt->attach : getpid(),
	};
	struct err e = { 0 };

	snprintf(m.cause, sizeof(m.cause), "%s", member(r->alarm.result, "cause"));
	snprintf(m.verdict, sizeof(m.verdict), "%s", verdict);
	if (handler_execute(&r->alarm.handler, &m, &e))
		reporter_printf(r->opt->reporter, "kvmprof: --on-%s: %s\n",
				event == HANDLER_PANIC ? "panic" : "hang", e.text);
}

static void act(struct run *r, enum handler_event event, const char *verdict)
{
	const struct run_action *todo =
		event == HANDLER_PANIC ? &r->opt->alarm.on_panic : &r->opt->alarm.on_hang;

	console_hide_status(&r->console);
	reporter_printf(r->opt->reporter, "kvmprof: the guest %s: %s\n",
			event == HANDLER_PANIC ? "fails" : "hangs", verdict);
	if (todo->kind == RUN_ACTION_EXEC)
		execute(r, event, verdict);
	else
		print_reason(r);
	r->alarm.ends |= todo->kind == RUN_ACTION_END;
}

static void hangs(struct run *r, const char *verdict)
{
	struct run_alarm *a = &r->alarm;

	a->hang_told = true;
	a->found.count++;
	snprintf(a->found.text, sizeof(a->found.text), "%s", verdict);
	snprintf(a->found.cause, sizeof(a->found.cause), "%s", member(a->result, "cause"));
	act(r, HANDLER_HANG, verdict);
}

static void panics(struct run *r, const char *verdict)
{
	r->alarm.panic_told = true;
	act(r, HANDLER_PANIC, verdict);
}

/* -- what the run notices ------------------------------------------------------------------- */

static bool panic_is_due(const struct run *r)
{
	return r->opt->alarm.on_panic.kind && !r->alarm.panic_told &&
	       atomic_load(&r->panic.live.noticed);
}

/* Decides by the last judgement. */
static void alarm_take(struct run *r)
{
	struct run_alarm *a = &r->alarm;
	const char *cause = member(a->result, "cause");
	const char *verdict = *a->spins ? a->spins : member(a->result, "verdict");
	bool well = a->result ? why_status(a->result) == 0 : !*a->spins;
	bool panic = !strcmp(cause, "panic") || atomic_load(&r->panic.live.noticed);

	atomic_store(&a->state, RUN_ALARM_IDLE);
	if (panic) {
		if (r->opt->alarm.on_panic.kind && !a->panic_told)
			panics(r, *cause ? verdict : "The guest's kernel is in a panic.");
		return;
	}
	a->bad = well ? 0 : a->bad + 1;
	a->well = well ? a->well + 1 : 0;
	if (!r->opt->alarm.on_hang.kind)
		return;
	if (a->bad == SURE && !a->hang_told) {
		hangs(r, verdict);
	} else if (a->well == SURE && a->hang_told) {
		a->hang_told = false;
		reporter_printf(r->opt->reporter, "kvmprof: the guest makes progress again\n");
	}
}

static void post(struct run *r)
{
	struct run_alarm *a = &r->alarm;

	a->job = (struct pipeline_job){ .run = alarm_judge, .gone = refuse };
	atomic_store(&a->state, RUN_ALARM_POSTED);
	pipeline_post(r->pipeline, &a->job, PIPELINE_JOB_ALARM);
}

bool run_alarm_check(struct run *r, uint64_t now_ns)
{
	struct run_alarm *a = &r->alarm;

	if (!a->why || r->crashed)
		return false;
	if (atomic_load(&a->state) == RUN_ALARM_DONE && !run_has_crashed(r))
		alarm_take(r);
	if (atomic_load(&a->state) != RUN_ALARM_IDLE || (now_ns < a->due_ns && !panic_is_due(r)))
		return a->ends;
	a->due_ns = now_ns + a->period_ns;
	post(r);
	return a->ends;
}

/* The limits on reads and time of a look bound this. */
static void wait_for_job(struct run_alarm *a)
{
	const struct timespec step = { 0, STEP_NS };

	while (atomic_load(&a->state) == RUN_ALARM_POSTED)
		nanosleep(&step, NULL);
}

/*
 * Judges once more, because a guest that reboots at once after its panic leaves no time to notice it. A machine that
 * has ended makes no progress, so this shows no hang.
 */
void run_alarm_finish(struct run *r, bool triple_fault)
{
	struct run_alarm *a = &r->alarm;
	bool noticed = atomic_load(&r->panic.live.noticed);
	const char *cause;

	if (!a->why || r->crashed)
		return;
	wait_for_job(a);
	if (!r->opt->alarm.on_panic.kind || a->panic_told || run_has_crashed(r))
		return;
	post(r);
	wait_for_job(a);
	if (run_has_crashed(r))
		return;
	cause = member(a->result, "cause");
	if (!strcmp(cause, "panic") || (noticed && *cause))
		panics(r, member(a->result, "verdict"));
	else if (noticed)
		panics(r, "The guest's kernel is in a panic.");
	else if (triple_fault)
		panics(r, "The guest has shut down by a triple fault.");
}

/* -- begin and end -------------------------------------------------------------------------- */

int run_alarm_begin(struct run *r, struct err *e)
{
	const struct run_alarm_options *o = &r->opt->alarm;

	if (o->on_hang.kind == RUN_ACTION_EXEC)
		r->alarm.handler.command[HANDLER_HANG] = o->on_hang.command;
	if (o->on_panic.kind == RUN_ACTION_EXEC)
		r->alarm.handler.command[HANDLER_PANIC] = o->on_panic.command;
	return handler_start(&r->alarm.handler, e);
}

int run_alarm_start(struct run *r, struct err *e)
{
	const double hang_s = r->opt->alarm.hang_s > 0 ? r->opt->alarm.hang_s : RUN_HANG_S;
	struct run_alarm *a = &r->alarm;

	if (!run_options_has_alarm(r->opt))
		return 0;
	a->run = r;
	a->hang_ns = (uint64_t)(hang_s * 1e9);
	a->period_ns = a->hang_ns / 4;
	if (a->period_ns < PERIOD_LEAST_NS)
		a->period_ns = PERIOD_LEAST_NS;
	if (a->period_ns > PERIOD_MOST_NS)
		a->period_ns = PERIOD_MOST_NS;
	a->due_ns = clock_mono_ns() + a->period_ns;
	a->spin = calloc(vm_vcpus_most(r->vm), sizeof(*a->spin));
	if (!a->spin)
		return err_nomem(e);
	r->pipeline_options.seen = see;
	r->pipeline_options.seen_ctx = a;
	return why_create(&a->why, a->hang_ns, e);
}

int run_alarm_deinit(struct run *r)
{
	struct run_alarm *a = &r->alarm;
	struct err e = { 0 };
	int ret = handler_end(&a->handler, COMMAND_MS, &e);

	if (ret)
		reporter_printf(r->opt->reporter, "kvmprof: --on-%s: %s\n",
				a->found.count ? "hang" : "panic", e.text);
	/* The data of a crashed consumer thread stays as it is: base/fault.h. */
	if (r->crashed)
		return ret ? 1 : 0;
	why_destroy(a->why);
	json_decref(a->result);
	free(a->spin);
	*a = (struct run_alarm){ 0 };
	return ret ? 1 : 0;
}
