/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/run/ps_json.h"

#include "base/clock.h"
#include "profile/control/reply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct writer {
	struct guest *guest;
	struct guest_look *look;
	struct buf *out;
	bool stacks;
	uint64_t n;
	struct stack stack;
};

static void put_known(struct buf *b, const char *key, uint64_t v)
{
	if (v != LINUX_SCHED_UNKNOWN)
		control_put_u64(b, key, v);
}

static const struct symbol *name_of(const struct writer *w, unsigned int frame, uint64_t *off)
{
	uint64_t ip = w->stack.ip[frame] - (w->stack.exact[frame] ? 0 : 1);
	const struct symbol *s = guest_kernel_symbol(w->guest, ip, off);

	*off += w->stack.exact[frame] ? 0 : 1;
	return s;
}

/* The kernel's own in_sched_functions(), for what /proc/PID/wchan tells. */
static bool is_scheduler(const struct writer *w, uint64_t ip)
{
	const uint64_t *text = guest_look_layout(w->look)->sched_text;

	return ip - text[0] < text[1] - text[0];
}

static void put_wchan(struct writer *w)
{
	uint64_t off;

	if (!guest_look_layout(w->look)->sched_text[1])
		return;
	for (unsigned int i = 0; i < w->stack.n_kernel; i++) {
		const struct symbol *s = name_of(w, i, &off);

		if (!s || is_scheduler(w, s->addr))
			continue;
		control_put_text(w->out, "wchan", s->name);
		return;
	}
}

static void put_stack(struct writer *w)
{
	struct buf *b = w->out;

	buf_printf(b, ",\"stack\":[");
	for (unsigned int i = 0; i < w->stack.n_kernel; i++) {
		uint64_t off = 0;
		const struct symbol *s = name_of(w, i, &off);
		char text[256];

		if (s)
			snprintf(text, sizeof(text), "%.200s+0x%" PRIx64, s->name, off);
		else
			snprintf(text, sizeof(text), "0x%" PRIx64, w->stack.ip[i]);
		buf_printf(b, "%s", i ? "," : "");
		control_string(b, text);
	}
	buf_u8(b, ']');
	control_put_text(b, "stack_end", stack_end_name((enum stack_end)w->stack.end));
}

static int put_task(void *ctx, const struct linux_task *t, const struct linux_sched *s,
		    enum linux_sleeper what, struct sample *sample, struct err *e)
{
	struct writer *w = ctx;
	struct buf *b = w->out;
	char comm[LINUX_TASK_COMM + 1] = { 0 };
	const char state[] = { s->state, '\0' };

	(void)e;
	memcpy(comm, t->comm, LINUX_TASK_COMM);
	buf_printf(b, "%s{\"pid\":%" PRIu32, w->n++ ? "," : "", t->tgid);
	control_put_u64(b, "tid", t->pid);
	control_put_u64(b, "ppid", t->parent_tgid);
	control_put_text(b, "comm", comm);
	control_put_bool(b, "kernel_thread", t->is_kthread);
	if (s->state != '-')
		control_put_text(b, "state", state);
	control_put_bool(b, "running", s->running);
	put_known(b, "cpu_ns", s->run_ns);
	put_known(b, "utime_ns", s->utime_ns);
	put_known(b, "stime_ns", s->stime_ns);
	put_known(b, "switches", s->switches);
	if (t->start_time)
		control_put_u64(b, "start_ns", t->start_time);
	if (s->nice != INT32_MIN)
		buf_printf(b, ",\"nice\":%d", s->nice);
	if (s->policy >= 0)
		control_put_text(b, "policy", linux_sched_policy_name(s->policy));
	if (s->cpu >= 0)
		control_put_u64(b, "cpu", (uint64_t)s->cpu);
	if (sample) {
		guest_unwind(w->guest, sample, &w->stack);
		/* As the kernel has it: who is ready to run waits for nothing. */
		if (s->state != 'R')
			put_wchan(w);
		if (w->stacks)
			put_stack(w);
	} else {
		control_put_text(b, "no_stack", linux_sleeper_name(what));
	}
	buf_u8(b, '}');
	return b->failed ? -ENOMEM : 0;
}

int ps_json(struct guest *g, bool stacks, struct buf *out, struct err *e)
{
	struct writer w = { .guest = g, .out = out, .stacks = stacks };
	const struct guest_look_stats *st;
	uint64_t start = clock_mono_ns();
	size_t before = out->len;
	int ret = guest_look_create(&w.look, g, e);

	if (ret)
		return ret;
	control_put_u64(out, "time_ns", start);
	buf_printf(out, ",\"tasks\":[");
	ret = guest_look_all(w.look, false, put_task, &w, e);
	st = guest_look_stats(w.look);
	buf_u8(out, ']');
	control_put_u64(out, "changed", st->by[LINUX_SLEEPER_CHANGED]);
	control_put_u64(out, "unreadable", st->by[LINUX_SLEEPER_UNREADABLE] + st->skipped);
	control_put_bool(out, "cut", st->cut != 0);
	control_put_text(out, "lacks", guest_look_lacks(w.look));
	control_put_u64(out, "took_ns", clock_mono_ns() - start);
	guest_look_destroy(w.look);
	if (ret)
		out->len = before;
	if (ret == -ENOMEM)
		return err_set(e, ENOMEM, "out of memory");
	return ret;
}
