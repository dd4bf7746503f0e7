/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/sched.h"

#include "base/cleanup.h"
#include "base/linux_regs.h"

#include <errno.h>
#include <string.h>

#define NONE LINUX_TASK_NONE

/* States in include/linux/sched.h. */
enum {
	STATE_INTERRUPTIBLE = 0x1,
	STATE_UNINTERRUPTIBLE = 0x2,
	STATE_PARKED = 0x40,
	STATE_DEAD = 0x80,
	STATE_IDLE = 0x402,
	STATE_RTLOCK_WAIT = 0x1000,
	STATE_FROZEN = 0x8000,
	STATE_REPORT = 0x7f, /* TASK_REPORT: states that /proc/PID/stat distinguishes */
	EXIT_STATES = 0x30,
};
/* MAX_RT_PRIO + 20 (include/linux/sched/prio.h). */
#define DEFAULT_PRIO 120

void linux_sched_none(struct linux_sched_layout *out)
{
	*out = (struct linux_sched_layout){
		.state = NONE,
		.exit_state = NONE,
		.sp = NONE,
		.run_ns = NONE,
		.utime = NONE,
		.stime = NONE,
		.prio = NONE,
		.policy = NONE,
		.switches = { NONE, NONE },
		.cpu = NONE,
		.on_cpu = NONE,
		.stack_size = LINUX_STACK_LEN,
	};
	linux_usage_none(&out->usage);
}

void linux_sched_symbols(struct linux_sched_layout *out, const struct symtab *symbols)
{
	const struct symbol *offset, *ids, *start, *end;

	if (!symbols)
		return;
	offset = symtab_find(symbols, "__per_cpu_offset");
	ids = symtab_find(symbols, "nr_cpu_ids");
	start = symtab_find(symbols, "__sched_text_start");
	end = symtab_find(symbols, "__sched_text_end");
	out->percpu_offset = offset && offset->addr >> 63 ? offset->addr : 0;
	out->nr_cpu_ids = ids && ids->addr >> 63 ? ids->addr : 0;
	if (start && end && start->addr < end->addr) {
		out->sched_text[0] = start->addr;
		out->sched_text[1] = end->addr;
	}
}

static int offset_of(const struct types *t, const char *path, uint32_t size, uint32_t *out)
{
	struct type_member m;
	int ret = t->member(t->ctx, "task_struct", path, &m);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	if (*out == NONE && m.size == size && !m.bit_count && m.off % 4 == 0 &&
	    m.off <= LINUX_TASK_MAX_OFFSET)
		*out = m.off;
	return 0;
}

/*
 * Checks the frame of a sleeping task: an unknown form would give wrong callers, so no stack is
 * read then.
 */
static int ask_frame(struct linux_sched_layout *l, const struct types *t)
{
	struct type_member m;
	int ret = t->member(t->ctx, "inactive_task_frame", "ret_addr", &m);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	if (m.off == INACTIVE_RET + LINUX_INACTIVE_FLAGS)
		l->sp_skip = LINUX_INACTIVE_FLAGS;
	else if (m.off != INACTIVE_RET)
		l->sp = NONE;
	return 0;
}

int linux_sched_from_types(struct linux_sched_layout *out, const struct types *types, struct err *e)
{
	struct linux_sched_layout l = *out;
	/* If a member has several names, the first one that exists is used. */
	const struct {
		const char *path;
		uint32_t size, *off;
	} want[] = {
		/* Renamed by "sched: Change task_struct::state" (5.14). */
		{ "__state", 4, &l.state },
		{ "state", 8, &l.state },
		{ "exit_state", 4, &l.exit_state },
		{ "thread.sp", 8, &l.sp },
		{ "se.sum_exec_runtime", 8, &l.run_ns },
		{ "utime", 8, &l.utime },
		{ "stime", 8, &l.stime },
		{ "static_prio", 4, &l.prio },
		{ "policy", 4, &l.policy },
		{ "nvcsw", 8, &l.switches[0] },
		{ "nivcsw", 8, &l.switches[1] },
		/* Moved by "sched: Snapshot thread_info::cpu" (5.16). */
		{ "thread_info.cpu", 4, &l.cpu },
		{ "cpu", 4, &l.cpu },
		{ "on_cpu", 4, &l.on_cpu },
	};
	uint64_t size = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(want); i++)
		ret = offset_of(types, want[i].path, want[i].size, want[i].off);
	ret = ret ? ret : ask_frame(&l, types);
	ret = ret ? ret : linux_usage_from_types(&l.usage, types);
	if (!ret) {
		ret = types->size(types->ctx, "thread_union", &size);
		ret = ret == -ENOENT ? 0 : ret;
	}
	if (ret)
		return err_set(e, -ret, "the kernel's types are damaged at struct task_struct");
	if (size >= 4096 && size <= LINUX_SCHED_MAX_STACK && !(size & (size - 1)))
		l.stack_size = (uint32_t)size;
	l.source = LINUX_TASK_BY_TYPES;
	*out = l;
	return 0;
}

void linux_sched_running(const struct linux_sched_layout *l, const struct linux_task_layout *task,
			 const struct memory *m, unsigned int ncpus, struct linux_running *out)
{
	unsigned int n = !task->per_cpu			? 1
			 : ncpus < LINUX_SCHED_MAX_CPUS ? ncpus
							: LINUX_SCHED_MAX_CPUS;

	out->n = 0;
	for (unsigned int i = 0; i < n; i++) {
		uint64_t base = 0, at;

		if (task->per_cpu && (!l->percpu_offset ||
				      !memory_u64(m, l->percpu_offset + 8 * (uint64_t)i, &base)))
			continue;
		if (memory_u64(m, linux_task_current(task, base), &at) && at >> 63)
			out->task[out->n++] = at;
	}
}

static char state_letter(uint32_t state, uint32_t exit_state)
{
	static const char letter[] = "RSDTtXZP";
	uint32_t seen = (state | exit_state) & STATE_REPORT;
	unsigned int i = 0;

	if ((state & STATE_IDLE) == STATE_IDLE && !(seen & EXIT_STATES))
		return 'I';
	if (state & (STATE_RTLOCK_WAIT | STATE_FROZEN))
		return 'D';
	/* It is exiting; while its exit state is unknown it is listed as a zombie. */
	if (state & STATE_DEAD && !seen)
		return 'Z';
	for (; seen; seen >>= 1)
		i++;
	return letter[i];
}

static bool read_times(const struct linux_sched_layout *l, const struct memory *m, uint64_t task,
		       struct linux_sched *s)
{
	const struct {
		uint32_t off;
		uint64_t *to;
	} want[] = {
		{ l->run_ns, &s->run_ns },
		{ l->utime, &s->utime_ns },
		{ l->stime, &s->stime_ns },
	};
	uint64_t n[2];

	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		if (want[i].off != NONE && !memory_u64(m, task + want[i].off, want[i].to))
			return false;
	if (l->switches[0] == NONE || l->switches[1] == NONE)
		return true;
	for (unsigned int i = 0; i < 2; i++)
		if (!memory_u64(m, task + l->switches[i], &n[i]))
			return false;
	s->switches = n[0] + n[1];
	return true;
}

static bool read_prio(const struct linux_sched_layout *l, const struct memory *m, uint64_t task,
		      struct linux_sched *s)
{
	uint32_t v;

	if (l->prio != NONE) {
		if (!memory_u32(m, task + l->prio, &v))
			return false;
		if (v - (DEFAULT_PRIO - 20) < 40)
			s->nice = (int)v - DEFAULT_PRIO;
	}
	if (l->policy != NONE) {
		if (!memory_u32(m, task + l->policy, &v))
			return false;
		s->policy = linux_sched_policy_name((int)v) ? (int)v : -1;
	}
	if (l->cpu != NONE) {
		if (!memory_u32(m, task + l->cpu, &v))
			return false;
		/* NR_CPUS has 13 bits at most. */
		s->cpu = v < 8192 ? (int)v : -1;
	}
	return true;
}

bool linux_sched_read(const struct linux_sched_layout *l, const struct memory *m, uint64_t task,
		      const struct linux_running *now, struct linux_sched *out)
{
	struct linux_sched s = {
		.state = '-',
		.run_ns = LINUX_SCHED_UNKNOWN,
		.utime_ns = LINUX_SCHED_UNKNOWN,
		.stime_ns = LINUX_SCHED_UNKNOWN,
		.switches = LINUX_SCHED_UNKNOWN,
		.nice = INT32_MIN,
		.policy = -1,
		.cpu = -1,
	};
	uint32_t exit_state = 0, on_cpu;

	if ((l->state != NONE && !memory_u32(m, task + l->state, &s.raw_state)) ||
	    (l->exit_state != NONE && !memory_u32(m, task + l->exit_state, &exit_state)) ||
	    (l->sp != NONE && !memory_u64(m, task + l->sp, &s.sp)) || !read_times(l, m, task, &s) ||
	    !read_prio(l, m, task, &s))
		return false;
	if (l->state != NONE)
		s.state = state_letter(s.raw_state, exit_state);
	s.dead = s.state == 'Z' || s.state == 'X';
	if (l->on_cpu != NONE) {
		if (!memory_u32(m, task + l->on_cpu, &on_cpu))
			return false;
		s.running = on_cpu != 0;
	}
	for (unsigned int i = 0; now && i < now->n; i++)
		s.running |= now->task[i] == task;
	linux_usage_read(&l->usage, &(struct linux_usage_cpus){ l->percpu_offset, l->nr_cpu_ids },
			 m, task, &s.usage);
	*out = s;
	return true;
}

const char *linux_sched_policy_name(int policy)
{
	/* include/uapi/linux/sched.h; 7 is 6.12's */
	static const char *const name[] = { "other", "fifo", "rr",	 "batch",
					    NULL,    "idle", "deadline", "ext" };

	return (size_t)(unsigned int)policy < ARRAY_SIZE(name) ? name[policy] : NULL;
}
