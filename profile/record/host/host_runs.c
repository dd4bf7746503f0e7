/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/host/host_runs.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Tasks, each at an index that its number determines: a newer one replaces an older one. A power of
 * two.
 */
#define TASKS 8192u
/* Limits of one query: the newest runs of the thread, and tasks that may be the answer. */
#define OWN_MAX 64u
#define PARTS_MAX 256u

/* A run lasts from `start` to the start of the next one on the same processor. */
struct host_run {
	uint64_t start;
	uint32_t tid;	/* 0: idle, or unknown (a record was lost) */
	bool preempted; /* the task before could have continued */
};

struct cpu_runs {
	uint64_t n; /* number ever; the newest HOST_RUNS_KEPT are kept */
	struct host_run run[HOST_RUNS_KEPT];
};

struct host_task {
	uint32_t tid;
	char comm[HOST_COMM];
	double owed_ns; /* its parts in waits, minus the waits that were attributed to it */
};

struct host_runs {
	unsigned int ncpus;
	uint64_t lost;
	struct host_task task[TASKS];
	struct cpu_runs cpu[];
};

struct host_runs *host_runs_create(unsigned int n)
{
	struct host_runs *r = calloc(1, sizeof(*r) + n * sizeof(r->cpu[0]));

	if (r)
		r->ncpus = n;
	return r;
}

void host_runs_destroy(struct host_runs *r)
{
	free(r);
}

uint64_t host_runs_lost(const struct host_runs *r)
{
	return r->lost;
}

/* -- records ------------------------------------------------------------------------------- */

/* sample_id, the end of each record: TID, then TIME. */
struct record_id {
	uint32_t pid, tid;
	uint64_t time;
};

static struct host_task *task_of(struct host_runs *r, uint32_t tid)
{
	struct host_task *t = &r->task[tid % TASKS];

	if (t->tid != tid)
		*t = (struct host_task){ .tid = tid };
	return t;
}

void host_runs_name(struct host_runs *r, uint32_t tid, const char *comm)
{
	struct host_task *t = task_of(r, tid);

	snprintf(t->comm, sizeof(t->comm), "%s", comm);
}

const char *host_runs_comm(const struct host_runs *r, uint32_t tid)
{
	const struct host_task *t = &r->task[tid % TASKS];

	return t->tid == tid && *t->comm ? t->comm : NULL;
}

static void begin_run(struct cpu_runs *c, uint64_t start, uint32_t tid, bool preempted)
{
	c->run[c->n++ % HOST_RUNS_KEPT] = (struct host_run){ start, tid, preempted };
}

/*
 * The task that is switched out names the next one: each switch is recorded twice, and once
 * suffices.
 */
static void add_switch(struct cpu_runs *c, const uint8_t *body, uint16_t misc,
		       const struct record_id *id)
{
	uint32_t next_tid;

	if (!(misc & PERF_RECORD_MISC_SWITCH_OUT))
		return;
	memcpy(&next_tid, body + 4, sizeof(next_tid));
	begin_run(c, id->time, next_tid, misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
}

/*
 * u32 pid, ppid, tid, ptid; u64 time: the new task has its creator's name until it gets another
 * one.
 */
static void add_fork(struct host_runs *r, const uint8_t *body)
{
	uint32_t tid, ptid;
	const char *comm;

	memcpy(&tid, body + 8, sizeof(tid));
	memcpy(&ptid, body + 12, sizeof(ptid));
	comm = host_runs_comm(r, ptid);
	if (comm || r->task[tid % TASKS].tid == tid)
		host_runs_name(r, tid, comm ? comm : "");
}

/* u32 pid, tid; char comm[], with its NUL. */
static void add_comm(struct host_runs *r, const uint8_t *body, size_t len)
{
	char comm[HOST_COMM] = "";
	uint32_t tid;

	memcpy(&tid, body + 4, sizeof(tid));
	memcpy(comm, body + 8, len - 8 < sizeof(comm) - 1 ? len - 8 : sizeof(comm) - 1);
	host_runs_name(r, tid, comm);
}

void host_runs_add(struct host_runs *r, unsigned int cpu, const void *record, size_t len)
{
	const uint8_t *body = (const uint8_t *)record + sizeof(struct perf_event_header);
	struct perf_event_header h;
	struct record_id id;
	size_t n;

	if (cpu >= r->ncpus || len < sizeof(h) + sizeof(id))
		return;
	memcpy(&h, record, sizeof(h));
	n = len - sizeof(h) - sizeof(id);
	memcpy(&id, body + n, sizeof(id));
	if (h.type == PERF_RECORD_SWITCH_CPU_WIDE && n >= 8) {
		add_switch(&r->cpu[cpu], body, h.misc, &id);
	} else if (h.type == PERF_RECORD_FORK && n >= 24) {
		add_fork(r, body);
	} else if (h.type == PERF_RECORD_COMM && n > 8) {
		add_comm(r, body, n);
	} else if (h.type == PERF_RECORD_LOST) {
		r->lost++;
		begin_run(&r->cpu[cpu], id.time, 0, false);
	}
}

/* -- the answer --------------------------------------------------------------------------- */

/* A run of the thread itself, near a wait. */
struct own_run {
	uint64_t start, end;
	uint32_t tid;
	unsigned int cpu;
	bool preempted; /* at its end */
	uint64_t at;	/* its index (cpu_runs.n) */
};

struct host_runs_part {
	uint32_t tid;
	uint64_t ns;
};

struct host_runs_parts {
	struct host_runs_part part[PARTS_MAX];
	unsigned int n, sure; /* those before `sure` belong to certain waits */
	uint64_t sure_ns, maybe_ns;
};

static const struct host_run *run_at(const struct cpu_runs *c, uint64_t k)
{
	return &c->run[k % HOST_RUNS_KEPT];
}

static uint64_t oldest(const struct cpu_runs *c)
{
	return c->n > HOST_RUNS_KEPT ? c->n - HOST_RUNS_KEPT : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct own_run *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Finds runs of the thread that end or begin in the window, by time. */
static unsigned int find_own(const struct host_runs *r, const struct host_wait *w,
			     struct own_run *own)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->ncpus; i++) {
		const struct cpu_runs *c = &r->cpu[i];
		uint64_t end = UINT64_MAX;
		bool preempted = false;

		for (uint64_t k = c->n; k-- > oldest(c) && end > w->from && n < OWN_MAX;) {
			const struct host_run *run = run_at(c, k);

			if (run->tid == w->tid && run->start <= w->to)
				own[n++] = (struct own_run){ run->start, end,	    w->tid,
							     i,		 preempted, k };
			end = run->start;
			preempted = run->preempted;
		}
	}
	qsort(own, n, sizeof(*own), by_start);
	return n;
}

static void add_part(struct host_runs_parts *p, uint32_t tid, uint64_t ns, uint64_t *sum)
{
	if (p->n == PARTS_MAX || !ns)
		return;
	p->part[p->n++] = (struct host_runs_part){ tid, ns };
	*sum += ns;
}

/*
 * Adds the tasks that ran on the processor that it got, from `left` until it got it. sure: it
 * waited all that time.
 */
static void who_between(const struct host_runs *r, uint64_t left, const struct own_run *in,
			bool sure, struct host_runs_parts *p)
{
	const struct cpu_runs *c = &r->cpu[in->cpu];
	uint64_t end = in->start;

	for (uint64_t k = in->at; k-- > oldest(c) && end > left;) {
		const struct host_run *run = run_at(c, k);

		if (run->tid == in->tid)
			return;
		if (run->tid)
			add_part(p, run->tid, end - (run->start > left ? run->start : left),
				 sure ? &p->sure_ns : &p->maybe_ns);
		else if (!sure)
			/*
			 * the processor was idle, so this stretch is no wait for it; unknown
			 * stretches are attributed to no task
			 */
			return;
		end = run->start;
	}
}

/* Returns the time of the waits after a sleep; those after a preemption are known. */
static uint64_t rest_of(const struct host_runs_parts *p, uint64_t wait_ns)
{
	return wait_ns > p->sure_ns ? wait_ns - p->sure_ns : 0;
}

static uint32_t most_owed(struct host_runs *r, const struct host_runs_parts *p, uint64_t wait_ns)
{
	uint64_t rest = rest_of(p, wait_ns), maybe = p->maybe_ns < rest ? p->maybe_ns : rest;
	/* The part of the wait that a nanosecond of a part stands for. */
	double sure_weight, maybe_weight = 0;
	struct host_task *who = NULL;

	if (!(p->sure_ns + maybe))
		return 0;
	sure_weight = (double)wait_ns / (double)(p->sure_ns + maybe);
	if (maybe)
		maybe_weight = sure_weight * (double)maybe / (double)p->maybe_ns;
	for (unsigned int i = 0; i < p->n; i++)
		task_of(r, p->part[i].tid)->owed_ns +=
			(double)p->part[i].ns * (i < p->sure ? sure_weight : maybe_weight);
	for (unsigned int i = 0; i < p->n; i++) {
		struct host_task *t = task_of(r, p->part[i].tid);

		if (!who || t->owed_ns > who->owed_ns)
			who = t;
	}
	if (!who)
		return 0;
	who->owed_ns -= (double)wait_ns;
	return who->tid;
}

uint32_t host_runs_find_task(struct host_runs *r, const struct host_wait *w)
{
	struct own_run own[OWN_MAX];
	struct host_runs_parts p = { .n = 0 };
	unsigned int n = find_own(r, w, own);

	/* Two passes, because the certain waits come first. */
	for (int all = 1; all >= 0; all--) {
		for (unsigned int i = 0; i < n; i++) {
			bool sure = i && own[i - 1].preempted;
			uint64_t left, rest = rest_of(&p, w->wait_ns);

			if (own[i].start <= w->from || sure != (all == 1))
				continue;
			left = i && own[i - 1].end > w->from ? own[i - 1].end : w->from;
			/* A wait ends when the thread gets a processor. */
			if (!sure && own[i].start - left > rest)
				left = own[i].start - rest;
			who_between(r, left, &own[i], sure, &p);
		}
		if (all)
			p.sure = p.n;
	}
	return most_owed(r, &p, w->wait_ns);
}
