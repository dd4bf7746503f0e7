/* SPDX-License-Identifier: GPL-2.0-or-later */
/* why_scene: reads all tasks and run queues of a guest, and adds samples of vCPUs. */
#include "profile/record/why/private.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_over(struct why *w)
{
	if (++w->reads > WHY_MAX_READS ||
	    (w->reads % 256 == 0 && clock_mono_ns() - w->look_start_ns > WHY_MAX_LOOK_NS))
		w->gave_up = true;
	return w->gave_up;
}

/* Implements memory.read() for w->memory. */
static size_t read_counted(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct why *w = ctx;

	return is_over(w) ? 0 : w->guest_memory.read(w->guest_memory.ctx, space, va, dst, len);
}

bool why_renew_view(struct why *w, struct guest *g, bool anew, struct err *e)
{
	if (!guest_view(g, &w->view, e))
		return false;
	w->guest_memory = *w->view.memory;
	w->memory = (struct memory){ read_counted, w };
	w->view.memory = &w->memory;
	if (anew) {
		w->reads = 0;
		w->look_start_ns = clock_mono_ns();
	}
	return true;
}

void why_scene_deinit(struct why_scene *s)
{
	free(s->task);
	free(s->by_address);
	free(s->by_tid);
	memset(s, 0, sizeof(*s));
}

static void take_frames(struct why *w, const struct stack *from, struct why_stack *to)
{
	to->n = 0;
	for (unsigned int i = 0; i < from->n && to->n < WHY_FRAMES; i++) {
		struct why_frame *f = &to->frame[to->n++];
		bool exact = from->exact[i] || !i;
		const struct symbol *s =
			guest_kernel_symbol(w->guest, from->ip[i] - (exact ? 0 : 1), &f->off);

		f->ip = from->ip[i];
		f->name = s ? s->name : NULL;
		f->off = s ? f->off + (exact ? 0 : 1) : 0;
	}
}

static int add_task(void *ctx, const struct linux_task *t, const struct linux_sched *sched,
		    enum linux_sleeper what, struct sample *sample, struct err *e)
{
	struct why *w = ctx;
	struct why_scene *s = why_now(w);
	struct why_task *at;

	(void)what;
	if (s->n == WHY_MAX_TASKS)
		return 0;
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 256;
		struct why_task *more = realloc(s->task, cap * sizeof(*more));

		if (!more)
			return err_nomem(e);
		s->task = more;
		s->cap = cap;
	}
	at = &s->task[s->n++];
	memset(at, 0, sizeof(*at));
	at->t = *t;
	at->s = *sched;
	at->quiet_ns = at->on_cpu_ns = WHY_UNKNOWN;
	if (sample) {
		guest_unwind(w->guest, sample, &w->stack);
		take_frames(w, &w->stack, &at->stack);
	}
	return 0;
}

bool why_read(const struct why *w, uint64_t at, enum linux_hang_member m, uint64_t *out)
{
	return linux_hang_read(w->hang, w->view.memory, at, m, out);
}

uint64_t why_variable(const struct why *w, const char *name)
{
	const struct symbol *s = guest_function(w->guest, name);

	return s ? s->addr : 0;
}

uint64_t why_percpu(const struct why *w, const char *name, unsigned int cpu)
{
	const struct symbol *s = guest_function(w->guest, name);
	uint64_t table = why_variable(w, "__per_cpu_offset"), base = 0;

	if (!s)
		return 0;
	if (!w->view.target->linux_facts.task.per_cpu)
		return cpu || !(s->addr >> 63) ? 0 : s->addr;
	if (!table || !memory_u64(w->view.memory, table + 8ull * cpu, &base) || !(base >> 63))
		return 0;
	return base + s->addr;
}

static uint64_t unsigned_of(const struct why *w, const char *name)
{
	uint64_t at = why_variable(w, name), v;

	return at && memory_u64(w->view.memory, at, &v) ? v : WHY_UNKNOWN;
}

static uint64_t member_of(const struct why *w, uint64_t at, enum linux_hang_member m)
{
	uint64_t v;

	return at && why_read(w, at, m, &v) ? v : WHY_UNKNOWN;
}

bool why_cpu_is_online(const struct why *w, unsigned int cpu)
{
	uint64_t at = why_variable(w, "__cpu_online_mask"), v;

	return !at || !memory_u64(w->view.memory, at + cpu / 64 * 8, &v) || v >> cpu % 64 & 1;
}

/*
 * Reads a processor's preempt count, whose bit 31 is clear while a reschedule is due
 * (include/asm/preempt.h).
 */
static uint64_t preempt_of(const struct why *w, unsigned int cpu)
{
	uint64_t at = why_percpu(w, "__preempt_count", cpu), hot;
	uint32_t v;

	if (!at) {
		hot = why_percpu(w, "pcpu_hot", cpu);
		if (!hot || !linux_hang_has(w->hang, LINUX_HANG_PCPU_HOT_PREEMPT))
			return WHY_UNKNOWN;
		at = hot + w->hang->off[LINUX_HANG_PCPU_HOT_PREEMPT];
	}
	return memory_u32(w->view.memory, at, &v) ? v : WHY_UNKNOWN;
}

/*
 * Reads the time for which a processor's clock event device is programmed (kernel/time/tick-
 * common.c, include/linux/clockchips.h).
 */
static uint64_t event_of(const struct why *w, unsigned int cpu)
{
	uint64_t at = why_percpu(w, "tick_cpu_device", cpu), device, state, next;

	if (!at || w->hang->oneshot < 0 || !why_read(w, at, LINUX_HANG_TICK_DEVICE, &device) ||
	    !why_read(w, device, LINUX_HANG_EVENT_STATE, &state) ||
	    (int64_t)(uint32_t)state != w->hang->oneshot ||
	    !why_read(w, device, LINUX_HANG_EVENT_NEXT, &next) || next > INT64_MAX)
		return WHY_UNKNOWN;
	return next == INT64_MAX ? WHY_UNKNOWN : next;
}

/* tick_next_period is the time at which the next tick is due (tick_do_update_jiffies64()). */
static uint64_t mono_of(const struct why *w)
{
	uint64_t next = unsigned_of(w, "tick_next_period"), jiffy = why_jiffy_ns(w);

	return next != WHY_UNKNOWN && jiffy && next <= INT64_MAX && next >= jiffy ? next - jiffy
										  : WHY_UNKNOWN;
}

/*
 * Reads the counts of a processor's softirqs. HI_SOFTIRQ (0) and TASKLET_SOFTIRQ (6) run tasklets
 * (include/linux/interrupt.h).
 */
static void take_softirqs(const struct why *w, unsigned int cpu, struct why_rq *q)
{
	uint64_t at = why_percpu(w, "kstat", cpu);
	uint32_t v;

	q->softirqs = q->tasklets = WHY_UNKNOWN;
	if (!at || !linux_hang_has(w->hang, LINUX_HANG_KSTAT_SOFTIRQS))
		return;
	at += w->hang->off[LINUX_HANG_KSTAT_SOFTIRQS];
	q->softirqs = q->tasklets = 0;
	for (unsigned int i = 0; i < 10; i++) {
		if (!memory_u32(w->view.memory, at + 4ull * i, &v))
			v = 0;
		q->softirqs += v;
		q->tasklets += i == 0 || i == 6 ? v : 0;
	}
}

static void take_queues(struct why *w, struct why_scene *s)
{
	s->clock = 0;
	s->mono = mono_of(w);
	for (unsigned int i = 0; i < w->vcpus; i++) {
		uint64_t at = why_percpu(w, "runqueues", i);
		struct why_rq *q = &s->rq[i];

		q->clock = member_of(w, at, LINUX_HANG_RQ_CLOCK);
		q->curr = member_of(w, at, LINUX_HANG_RQ_CURR);
		if (q->curr == WHY_UNKNOWN)
			q->curr = member_of(w, at, LINUX_HANG_RQ_CURR_UNION);
		q->idle = member_of(w, at, LINUX_HANG_RQ_IDLE);
		q->nr_running = member_of(w, at, LINUX_HANG_RQ_NR_RUNNING);
		q->preempt = preempt_of(w, i);
		q->event = event_of(w, i);
		take_softirqs(w, i, q);
		q->known = q->clock != WHY_UNKNOWN;
		if (q->known && q->clock > s->clock)
			s->clock = q->clock;
	}
}

/* Returns the time since `then` by the run queues' clock, or WHY_UNKNOWN. */
static uint64_t since(const struct why_scene *s, uint64_t then)
{
	return then != WHY_UNKNOWN && then && s->clock >= then ? s->clock - then : WHY_UNKNOWN;
}

static void take_ages(const struct why *w, struct why_scene *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct why_task *t = &s->task[i];
		uint64_t sum = member_of(w, t->t.task, LINUX_HANG_TASK_SUM_EXEC);
		uint64_t before = member_of(w, t->t.task, LINUX_HANG_TASK_PREV_SUM_EXEC);

		if (!t->s.running) {
			t->quiet_ns = since(s, member_of(w, t->t.task, LINUX_HANG_TASK_EXEC_START));
			continue;
		}
		t->on_cpu_ns = since(s, member_of(w, t->t.task, LINUX_HANG_TASK_LAST_ARRIVAL));
		if (t->on_cpu_ns == WHY_UNKNOWN && sum != WHY_UNKNOWN && before != WHY_UNKNOWN &&
		    sum >= before)
			t->on_cpu_ns = sum - before;
	}
}

static void take_rcu(const struct why *w, struct why_scene *s)
{
	uint64_t at = why_variable(w, "rcu_state"), node;

	s->jiffies = unsigned_of(w, "jiffies");
	if (s->jiffies == WHY_UNKNOWN)
		s->jiffies = unsigned_of(w, "jiffies_64");
	s->gp_seq = member_of(w, at, LINUX_HANG_RCU_GP_SEQ);
	s->gp_start = member_of(w, at, LINUX_HANG_RCU_GP_START);
	node = at && linux_hang_has(w->hang, LINUX_HANG_RCU_NODE_FIRST)
		       ? at + w->hang->off[LINUX_HANG_RCU_NODE_FIRST]
		       : 0;
	s->qsmask = member_of(w, node, LINUX_HANG_RCU_QSMASK);
}

/* Returns a counter of /proc/vmstat, which is the sum over all processors, or WHY_UNKNOWN. */
static uint64_t event_sum(const struct why *w, int64_t item)
{
	uint64_t sum = 0;

	if (item < 0 || item > 4096 || !linux_hang_has(w->hang, LINUX_HANG_VM_EVENTS))
		return WHY_UNKNOWN;
	for (unsigned int i = 0; i < w->vcpus; i++) {
		uint64_t at = why_percpu(w, "vm_event_states", i), v;

		if (!at ||
		    !memory_u64(w->view.memory,
				at + w->hang->off[LINUX_HANG_VM_EVENTS] + 8 * (uint64_t)item, &v))
			return WHY_UNKNOWN;
		sum += v;
	}
	return sum;
}

static void take_reclaim(const struct why *w, struct why_scene *s)
{
	s->killed = event_sum(w, w->hang->oom_kill);
	s->scanned = s->stolen = 0;
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t scanned = event_sum(w, w->hang->scans[i]);
		uint64_t stolen = event_sum(w, w->hang->steals[i]);

		if (scanned == WHY_UNKNOWN || stolen == WHY_UNKNOWN) {
			s->scanned = s->stolen = WHY_UNKNOWN;
			return;
		}
		s->scanned += scanned;
		s->stolen += stolen;
	}
}

/* Compares for qsort_r() by the address of the task. */
static int compare_address(const void *a, const void *b, void *ctx)
{
	const struct why_task *task = ctx;
	uint64_t x = task[*(const uint32_t *)a].t.task, y = task[*(const uint32_t *)b].t.task;

	return (x > y) - (x < y);
}

static int compare_tid(const void *a, const void *b, void *ctx)
{
	const struct why_task *task = ctx;
	uint32_t x = task[*(const uint32_t *)a].t.pid, y = task[*(const uint32_t *)b].t.pid;

	return (x > y) - (x < y);
}

static int sort_tasks(struct why_scene *s, struct err *e)
{
	s->by_address = calloc(s->n + 1, sizeof(*s->by_address));
	s->by_tid = calloc(s->n + 1, sizeof(*s->by_tid));
	if (!s->by_address || !s->by_tid)
		return err_nomem(e);
	for (uint32_t i = 0; i < s->n; i++)
		s->by_address[i] = s->by_tid[i] = i;
	qsort_r(s->by_address, s->n, sizeof(*s->by_address), compare_address, s->task);
	qsort_r(s->by_tid, s->n, sizeof(*s->by_tid), compare_tid, s->task);
	return 0;
}

int why_scene_read(struct why *w, struct why_scene *s, struct err *e)
{
	int ret;

	why_scene_deinit(s);
	ret = task_walk_run(w->look, TASK_WALK_KERNEL, add_task, w, e);
	ret = ret ? ret : sort_tasks(s, e);
	if (ret)
		return ret;
	take_queues(w, s);
	take_ages(w, s);
	take_rcu(w, s);
	take_reclaim(w, s);
	why_find_waits(w, s);
	s->time_ns = clock_mono_ns();
	return 0;
}

struct why_task *why_task_at(struct why_scene *s, uint64_t task)
{
	size_t low = 0, high = task && s->by_address ? s->n : 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		struct why_task *t = &s->task[s->by_address[mid]];

		if (t->t.task == task)
			return t;
		if (t->t.task < task)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

const struct why_task *why_task_of(const struct why_scene *s, uint32_t tid)
{
	size_t low = 0, high = s->by_tid ? s->n : 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct why_task *t = &s->task[s->by_tid[mid]];

		if (t->t.pid == tid)
			return t;
		if (t->t.pid < tid)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* -- vCPUs ------------------------------------------------------------------------------- */

static bool is_spin(const char *name)
{
	return !strcmp(name, "native_queued_spin_lock_slowpath") ||
	       !strcmp(name, "queued_spin_lock_slowpath") ||
	       !strcmp(name, "__pv_queued_spin_lock_slowpath") ||
	       !strcmp(name, "queued_read_lock_slowpath") ||
	       !strcmp(name, "queued_write_lock_slowpath");
}

static bool is_interrupt(const char *name)
{
	return !strncmp(name, "asm_sysvec_", 11) || !strncmp(name, "sysvec_", 7) ||
	       !strncmp(name, "asm_common_interrupt", 20) || !strcmp(name, "common_interrupt") ||
	       !strcmp(name, "__do_softirq") || !strcmp(name, "handle_softirqs") ||
	       !strcmp(name, "run_ksoftirqd") || !strcmp(name, "apic_timer_interrupt") ||
	       !strcmp(name, "asm_exc_nmi");
}

/*
 * Linux sets the task priority to 0, or to class 1, which blocks interrupts with vectors of
 * exceptions.
 */
#define LINUX_CR8 1u

static void note_lock(struct why *w, struct why_vcpu *v, const struct sample *s)
{
	struct err e = { 0 };
	uint32_t word = 0;
	uint64_t lock =
		why_renew_view(w, w->guest, false, &e) ? why_spinlock_of(w, &s->regs, &word) : 0;

	v->lock_moves |= v->lock && (lock != v->lock || word != v->word);
	v->lock = lock;
	v->word = word;
}

static void note_kernel(struct why *w, struct why_vcpu *v, const struct sample *s)
{
	uint64_t func = v->stack.n && v->stack.frame[0].name
				? v->stack.frame[0].ip - v->stack.frame[0].off
				: s->regs.rip & ~UINT64_C(4095);
	bool spin = false, interrupt = false;

	for (unsigned int i = 0; i < v->stack.n; i++) {
		const char *name = v->stack.frame[i].name;

		spin |= name && is_spin(name);
		interrupt |= name && is_interrupt(name);
		if (!i && spin)
			note_lock(w, v, s);
	}
	v->func = v->kernel && v->func != func ? 0 : func;
	v->kernel++;
	v->irqs_off += !(s->regs.rflags & 0x200);
	v->spinning += spin;
	v->interrupt += interrupt;
}

void why_sample(struct why *w, const struct guest *g, const struct sample *s)
{
	struct why_vcpu *v = &w->vcpu[s->vcpu % WHY_MAX_CPUS];
	struct guest *guest = (struct guest *)(uintptr_t)g;

	if (s->vcpu >= WHY_MAX_CPUS || !w->looks)
		return;
	w->guest = guest;
	guest_unwind(guest, s, &w->stack);
	take_frames(w, &w->stack, &v->stack);
	if (!v->samples || s->regs.rip < v->rip_low)
		v->rip_low = s->regs.rip;
	if (!v->samples || s->regs.rip > v->rip_high)
		v->rip_high = s->regs.rip;
	if (!v->samples)
		v->first_ns = s->time_ns;
	v->tid = !v->samples || v->tid == s->task.tid ? s->task.tid : UINT32_MAX;
	v->samples++;
	v->last_ns = s->time_ns;
	v->regs = s->regs;
	v->mode = s->mode;
	v->open += s->regs.rflags >> 9 & 1;
	v->masked += s->regs.rflags >> 9 & 1 && s->regs.cr8 > LINUX_CR8;
	v->task = s->task.state == SAMPLE_TASK_FOUND ? s->task.addr : 0;
	if (s->mode == SAMPLE_IDLE) {
		bool spin = false;

		for (unsigned int i = 0; i < v->stack.n; i++)
			spin |= v->stack.frame[i].name && is_spin(v->stack.frame[i].name);
		v->idle++;
		v->spinning += spin;
		v->dead += !spin && !(s->regs.rflags & 0x200);
	} else if (s->mode == SAMPLE_USER) {
		v->user++;
	} else {
		note_kernel(w, v, s);
	}
}
