/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/sleeper.h"

#include "base/cleanup.h"

#include <string.h>

/* struct inactive_task_frame: r15, r14, r13, r12, bx, bp, ret_addr */
enum { FRAME_R13 = 16, FRAME_BX = 32, FRAME_BP = 40, FRAME_RET = 48, FRAME_SIZE = 56 };
/* From the end of struct pt_regs, the outermost thing on a program's kernel stack. */
enum { PT_SIZE = 168, PT_CS_BACK = 32, PT_SP_BACK = 16 };
/* With CONFIG_X86_FRED (6.9) there are two more words: TOP_OF_KERNEL_STACK_PADDING. */
#define FRED_PADDING 16u
#define USER_CS64 0x33u

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

static bool look(const struct linux_sleeper_from *f, uint64_t task, struct linux_sched *out)
{
	struct linux_running now;
	bool on_cpu = f->sched->on_cpu != LINUX_TASK_NONE;

	if (f->forget)
		f->forget(f->forget_ctx);
	if (!on_cpu)
		linux_sched_running(f->sched, f->task, f->memory, f->ncpus, &now);
	return linux_sched_read(f->sched, f->memory, task, on_cpu ? NULL : &now, out);
}

static uint64_t word(const struct sample *s, uint32_t off)
{
	uint64_t v;

	memcpy(&v, s->stack + off, 8);
	return v;
}

static void add_slice(struct sample *s, uint64_t va, uint32_t len)
{
	s->slice[s->nslices++] = (struct sample_slice){ .va = va, .off = s->stack_len, .len = len };
	s->stack_len += len;
}

/* Some of the program's stack, whose pointer the entry to the kernel has saved. */
static void copy_user_stack(const struct memory *m, uint64_t space, struct sample *s)
{
	for (uint32_t pad = 0; pad <= FRED_PADDING; pad += FRED_PADDING) {
		uint32_t end = s->stack_len - pad;
		uint64_t sp;
		size_t n;

		if (s->stack_len < FRAME_SIZE + PT_SIZE + pad ||
		    (word(s, end - PT_CS_BACK) & 0xffff) != USER_CS64)
			continue;
		sp = word(s, end - PT_SP_BACK);
		if (!sp || sp >> 47)
			continue;
		n = m->read(m->ctx, space, sp, s->stack + s->stack_len, LINUX_SLEEPER_USER);
		if (n)
			add_slice(s, sp, (uint32_t)n);
		return;
	}
}

static void fill(const struct linux_task *t, const struct linux_sched *sched, uint64_t space,
		 struct sample *s)
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
		.state = SAMPLE_TASK_FOUND,
	};
	memcpy(s->task.comm, t->comm, SAMPLE_COMM);
}

static bool is_same(const struct linux_task *a, const struct linux_task *b)
{
	return a->pid == b->pid && a->tgid == b->tgid && a->start_time == b->start_time &&
	       a->mm == b->mm && a->stack == b->stack;
}

int linux_sleeper_take(const struct linux_sleeper_from *f, const struct linux_task *t,
		       uint64_t space, struct sample *s, struct linux_sched *sched)
{
	const struct memory *m = f->memory;
	uint32_t size = f->sched->stack_size, len;
	struct linux_sched now, after;
	struct linux_task again;

	if (!look(f, t->task, &now))
		return LINUX_SLEEPER_UNREADABLE;
	*sched = now;
	if (now.running)
		return LINUX_SLEEPER_RUNS;
	if (now.dead)
		return LINUX_SLEEPER_DEAD;
	if (!t->stack || !now.sp || now.sp % 8 || now.sp - t->stack > size - FRAME_SIZE)
		return LINUX_SLEEPER_UNKNOWN;
	fill(t, &now, space, s);
	len = size - (uint32_t)(now.sp - t->stack);
	if (len > SAMPLE_MAX_SLICE) {
		len = SAMPLE_MAX_SLICE;
		s->stack_end = SAMPLE_STACK_CAPPED;
	}
	if (!memory_read(m, MEMORY_KERNEL, now.sp, s->stack, len))
		return LINUX_SLEEPER_UNREADABLE;
	add_slice(s, now.sp, len);
	s->regs.rip = word(s, FRAME_RET);
	s->regs.gpr[GPR_RBP] = word(s, FRAME_BP);
	s->regs.gpr[GPR_RBX] = word(s, FRAME_BX);
	s->regs.gpr[GPR_R13] = word(s, FRAME_R13);
	s->regs.gpr[GPR_RSP] = now.sp + FRAME_SIZE;
	if (space && s->stack_end == SAMPLE_STACK_WHOLE)
		copy_user_stack(m, space, s);
	if (!(s->regs.rip >> 63))
		return LINUX_SLEEPER_UNKNOWN;
	if (!look(f, t->task, &after) || linux_task_read(f->task, m, t->task, &again) ||
	    !is_same(t, &again) || after.running || after.dead || after.sp != now.sp ||
	    after.raw_state != now.raw_state || after.switches != now.switches)
		return LINUX_SLEEPER_CHANGED;
	return LINUX_SLEEPER_GOOD;
}
