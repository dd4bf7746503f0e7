/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/ps_json.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct writer {
	struct guest *guest;
	struct task_walk *look;
	json_t *tasks;
	enum ps_stacks stacks;
	bool failed; /* out of memory */
	struct stack stack;
};

static void ps_json_set(struct writer *w, json_t *o, const char *key, json_t *v)
{
	w->failed |= json_object_set_new(o, key, v) < 0;
}

static void set_number(struct writer *w, json_t *o, const char *key, uint64_t v)
{
	if (v != LINUX_SCHED_UNKNOWN)
		ps_json_set(w, o, key, json_integer((json_int_t)v));
}

/* Converts text of the guest, which may contain any bytes. */
static json_t *text_of(const char *s)
{
	cleanup_free char *text = utf8_copy(s);

	return text ? json_string(text) : NULL;
}

static const struct symbol *name_of(const struct writer *w, unsigned int frame, uint64_t *off)
{
	uint64_t ip = w->stack.ip[frame] - (w->stack.exact[frame] ? 0 : 1);
	const struct symbol *s = guest_kernel_symbol(w->guest, ip, off);

	*off += w->stack.exact[frame] ? 0 : 1;
	return s;
}

/* Implements the kernel's in_sched_functions(), which decides what /proc/PID/wchan contains. */
static bool is_scheduler(const struct writer *w, uint64_t ip)
{
	const uint64_t *text = task_walk_layout(w->look)->sched_text;

	return ip - text[0] < text[1] - text[0];
}

static void set_wchan(struct writer *w, json_t *o)
{
	uint64_t off;

	if (!task_walk_layout(w->look)->sched_text[1])
		return;
	for (unsigned int i = 0; i < w->stack.n_kernel; i++) {
		const struct symbol *s = name_of(w, i, &off);

		if (!s || is_scheduler(w, s->addr))
			continue;
		ps_json_set(w, o, "wchan", text_of(s->name));
		return;
	}
}

static void set_stack(struct writer *w, json_t *o)
{
	json_t *frames = json_array();

	for (unsigned int i = 0; i < w->stack.n_kernel; i++) {
		uint64_t off = 0;
		const struct symbol *s = name_of(w, i, &off);
		char text[256];

		if (s)
			snprintf(text, sizeof(text), "%.200s+0x%" PRIx64, s->name, off);
		else
			snprintf(text, sizeof(text), "0x%" PRIx64, w->stack.ip[i]);
		w->failed |= json_array_append_new(frames, text_of(text)) < 0;
	}
	ps_json_set(w, o, "stack", frames);
	ps_json_set(w, o, "stack_end", json_string(stack_end_name((enum stack_end)w->stack.end)));
}

static int add_task(void *ctx, const struct linux_task *t, const struct linux_sched *s,
		    enum linux_sleeper what, struct sample *sample, struct err *e)
{
	struct writer *w = ctx;
	char comm[LINUX_TASK_COMM + 1] = { 0 };
	const char state[] = { s->state, '\0' };
	json_t *o = json_object();

	(void)e;
	memcpy(comm, t->comm, LINUX_TASK_COMM);
	set_number(w, o, "pid", t->tgid);
	set_number(w, o, "tid", t->pid);
	set_number(w, o, "ppid", t->parent_tgid);
	ps_json_set(w, o, "comm", text_of(comm));
	ps_json_set(w, o, "kernel_thread", json_boolean(t->is_kthread));
	if (s->state != '-')
		ps_json_set(w, o, "state", text_of(state));
	ps_json_set(w, o, "running", json_boolean(s->running));
	set_number(w, o, "cpu_ns", s->run_ns);
	set_number(w, o, "utime_ns", s->utime_ns);
	set_number(w, o, "stime_ns", s->stime_ns);
	set_number(w, o, "switches", s->switches);
	if (t->start_time)
		set_number(w, o, "start_ns", t->start_time);
	if (s->nice != INT32_MIN)
		ps_json_set(w, o, "nice", json_integer(s->nice));
	if (s->policy >= 0)
		ps_json_set(w, o, "policy", json_string(linux_sched_policy_name(s->policy)));
	if (s->cpu >= 0)
		set_number(w, o, "cpu", (uint64_t)s->cpu);
	/* LINUX_USAGE_UNKNOWN is LINUX_SCHED_UNKNOWN, which set_number() omits. */
	set_number(w, o, "uid", s->usage.uid);
	set_number(w, o, "vsz_bytes", s->usage.vsz);
	set_number(w, o, "rss_bytes", s->usage.rss);
	if (sample) {
		guest_unwind(w->guest, sample, &w->stack);
		/* As in the kernel, a task that is ready to run waits for nothing. */
		if (s->state != 'R')
			set_wchan(w, o);
		if (w->stacks == PS_WITH_STACKS)
			set_stack(w, o);
	} else {
		ps_json_set(w, o, "no_stack", json_string(linux_sleeper_name(what)));
	}
	w->failed |= json_array_append_new(w->tasks, o) < 0;
	return w->failed ? -ENOMEM : 0;
}

int ps_json_read(struct guest *g, enum ps_stacks stacks, json_t **out, struct err *e)
{
	struct writer w = { .guest = g, .stacks = stacks, .tasks = json_array() };
	json_t *o = json_object();
	const struct task_walk_stats *st;
	uint64_t start = clock_mono_ns();
	int ret = task_walk_create(&w.look, g, e);

	set_number(&w, o, "time_ns", start);
	ps_json_set(&w, o, "tasks", w.tasks);
	if (!ret)
		ret = w.failed ? -ENOMEM : task_walk_run(w.look, TASK_WALK_KERNEL, add_task, &w, e);
	if (!ret) {
		st = task_walk_stats(w.look);
		set_number(&w, o, "changed", st->by[LINUX_SLEEPER_CHANGED]);
		set_number(&w, o, "unreadable", st->by[LINUX_SLEEPER_UNREADABLE] + st->skipped);
		ps_json_set(&w, o, "cut", json_boolean(st->cut != 0));
		ps_json_set(&w, o, "lacks", json_string(task_walk_lacks(w.look)));
		set_number(&w, o, "took_ns", clock_mono_ns() - start);
	}
	task_walk_destroy(w.look);
	if (w.failed)
		ret = err_nomem(e);
	if (ret)
		json_decref(o);
	else
		*out = o;
	return ret;
}

static int ps_json_append(const char *text, size_t len, void *out)
{
	buf_add(out, text, len);
	return 0;
}

int ps_json(struct guest *g, enum ps_stacks stacks, struct buf *out, struct err *e)
{
	json_t *o = NULL;
	int ret = ps_json_read(g, stacks, &o, e);

	if (ret)
		return ret;
	buf_u8(out, ',');
	if (json_dump_callback(o, ps_json_append, out,
			       JSON_COMPACT | JSON_EMBED | JSON_ENSURE_ASCII))
		out->failed = true;
	json_decref(o);
	return 0;
}
