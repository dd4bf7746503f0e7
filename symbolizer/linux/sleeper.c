/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/sleeper.h"

#include "base/cleanup.h"
#include "base/linux_regs.h"

#include <string.h>

const char *linux_sleeper_name(enum linux_sleeper what)
{
	static const char *const name[] = {
		[LINUX_SLEEPER_GOOD] = "taken",
		[LINUX_SLEEPER_RUNS] = "running",
		[LINUX_SLEEPER_DEAD] = "dead",
		[LINUX_SLEEPER_UNKNOWN] = "no stack known",
		[LINUX_SLEEPER_UNREADABLE] = "unreadable",
		[LINUX_SLEEPER_CHANGED] = "changed",
	};

	return (unsigned int)what < ARRAY_SIZE(name) ? name[what] : "?";
}

static bool linux_sleeper_look(const struct linux_sleeper_from *f, uint64_t task,
			       struct linux_sched *out)
{
	struct linux_running now;
	bool on_cpu = f->sched->on_cpu != LINUX_TASK_NONE;

	if (f->forget)
		f->forget(f->forget_ctx);
	if (!on_cpu)
		linux_sched_running(f->sched, f->task, f->memory, f->ncpus, &now);
	return linux_sched_read(f->sched, f->memory, task, on_cpu ? NULL : &now, out);
}

static void add_slice(struct sample *s, uint64_t va, uint32_t len)
{
	s->slice[s->nslices++] = (struct sample_slice){ .va = va, .off = s->stack_len, .len = len };
	s->stack_len += len;
}

/* Copies some of the program's stack, whose pointer was saved at the entry to the kernel. */
static void copy_user_stack(const struct memory *m, uint64_t space, uint32_t frame,
			    struct sample *s)
{
	struct linux_regs regs;
	size_t n;

	if (s->stack_len < frame ||
	    !linux_regs_at_end(s->stack + s->stack_len, s->stack_len - frame, LINUX_REGS_LEN,
			       &regs) ||
	    regs.cs != LINUX_USER_CS64 || regs.sp >> LINUX_USER_BITS)
		return;
	n = m->read(m->ctx, space, regs.sp, s->stack + s->stack_len, LINUX_SLEEPER_USER);
	if (n)
		add_slice(s, regs.sp, (uint32_t)n);
}

static void linux_sleeper_fill(const struct linux_task *t, const struct linux_sched *sched,
			       uint64_t space, struct sample *s)
{
	memset(s, 0, sizeof(*s));
	s->version = SAMPLE_VERSION;
	s->reason = SAMPLE_OFFCPU;
	s->mode = SAMPLE_KERNEL;
	s->stack_end = SAMPLE_STACK_WHOLE;
	s->vcpu = (uint16_t)(sched->cpu > 0 && sched->cpu < (int)LINUX_SCHED_MAX_CPUS ? sched->cpu
										      : 0);
	s->regs.cs = 0x10; /* __KERNEL_CS */
	s->regs.cr3 = space;
	s->task = (struct sample_task){
		.addr = t->task,
		.mm = t->mm,
		.stack = t->stack,
		.start = t->start_time,
		.tid = t->pid,
		.pid = t->tgid,
		.exec_id = t->exec_id,
		.state = SAMPLE_TASK_FOUND,
	};
	memcpy(s->task.comm, t->comm, SAMPLE_COMM);
}

static bool is_same(const struct linux_task *a, const struct linux_task *b)
{
	return a->pid == b->pid && a->tgid == b->tgid && a->start_time == b->start_time &&
	       a->mm == b->mm && a->stack == b->stack;
}

int linux_sleeper_sample(const struct linux_sleeper_from *f, const struct linux_task *t,
			 uint64_t space, struct sample *s, struct linux_sched *sched)
{
	const struct memory *m = f->memory;
	uint32_t size = f->sched->stack_size, skip = f->sched->sp_skip, len;
	const uint32_t frame = skip + LINUX_INACTIVE_LEN;
	struct linux_sched now, after;
	struct linux_task again;

	if (!linux_sleeper_look(f, t->task, &now))
		return LINUX_SLEEPER_UNREADABLE;
	*sched = now;
	if (now.running)
		return LINUX_SLEEPER_RUNS;
	if (now.dead)
		return LINUX_SLEEPER_DEAD;
	if (!t->stack || !now.sp || now.sp % 8 || now.sp - t->stack > size - frame)
		return LINUX_SLEEPER_UNKNOWN;
	linux_sleeper_fill(t, &now, space, s);
	len = size - (uint32_t)(now.sp - t->stack);
	if (len > SAMPLE_MAX_SLICE) {
		len = SAMPLE_MAX_SLICE;
		s->stack_end = SAMPLE_STACK_CAPPED;
	}
	if (!memory_read(m, MEMORY_KERNEL, now.sp, s->stack, len))
		return LINUX_SLEEPER_UNREADABLE;
	add_slice(s, now.sp, len);
	s->regs.rip = memory_word(s->stack, skip + INACTIVE_RET);
	s->regs.gpr[GPR_RBP] = memory_word(s->stack, skip + INACTIVE_BP);
	s->regs.gpr[GPR_RBX] = memory_word(s->stack, skip + INACTIVE_BX);
	s->regs.gpr[GPR_R13] = memory_word(s->stack, skip + INACTIVE_R13);
	s->regs.gpr[GPR_RSP] = now.sp + frame;
	if (space && s->stack_end == SAMPLE_STACK_WHOLE)
		copy_user_stack(m, space, frame, s);
	s->returns.off = s->stack_len;
	s->returns.len = linux_graph_read(f->graph, f->rethook, m, t->task, s->stack + s->stack_len,
					  SAMPLE_MAX_RETURNS);
	s->stack_len += s->returns.len;
	if (!(s->regs.rip >> 63))
		return LINUX_SLEEPER_UNKNOWN;
	if (!linux_sleeper_look(f, t->task, &after) ||
	    linux_task_read(f->task, m, t->task, &again) || !is_same(t, &again) || after.running ||
	    after.dead || after.sp != now.sp || after.raw_state != now.raw_state ||
	    after.switches != now.switches)
		return LINUX_SLEEPER_CHANGED;
	return LINUX_SLEEPER_GOOD;
}
