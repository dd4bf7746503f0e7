/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds a task's state and saved stack pointer without any description of struct task_struct.
 *
 *	state	the word in front of the pointer to the stack (behind it saved_state, or
 *		the upper half of a long): only states that there are, 0 in init_task, and
 *		most kernel threads sleep
 *	sp	thread.sp lies in the task's own stack, and what __switch_to_asm left there
 *		ends in an address of the kernel's code, for nearly all the same one;
 *		with flags below it or without
 *
 * As in task_find.c, a place is accepted only if all tasks agree and no second place fits.
 */
#include "symbolizer/linux/sched_find.h"

#include "base/cleanup.h"
#include "base/linux_regs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a task that are examined, kernel threads that are compared, and their minimum number. */
#define SPAN 16384u
#define MAX_TASKS 32u
#define MIN_TASKS 4u
#define MIN_SPAN 1024u
/* __TASK_* and TASK_* up to TASK_FROZEN, and the equivalent of TASK_STATE_MAX in 6.x. */
#define STATES 0x1ffffu

struct sched_find_seen {
	uint64_t va, stack;
	uint8_t *bytes;
};

struct sched_find_finder {
	const struct memory *m;
	const struct linux_task_layout *l;
	const uint64_t *text;
	struct sched_find_seen task[MAX_TASKS];
	unsigned int n;
	size_t len;
};

/* Loads kernel threads that have a stack, without init_task. */
static int load_seen(struct sched_find_finder *f, const struct linux_task_list *list)
{
	for (size_t i = 0; i < list->n && f->n < MAX_TASKS; i++) {
		const struct linux_task *t = &list->task[i];
		struct sched_find_seen *s = &f->task[f->n];
		size_t got;

		if (!t->is_kthread || t->is_idle || !t->stack || t->stack % 4096)
			continue;
		s->bytes = malloc(SPAN);
		if (!s->bytes)
			return -ENOMEM;
		s->va = t->task;
		s->stack = t->stack;
		got = f->m->read(f->m->ctx, MEMORY_KERNEL, t->task, s->bytes, SPAN) & ~(size_t)7;
		if (got < MIN_SPAN) {
			free(s->bytes);
			s->bytes = NULL;
			continue;
		}
		f->len = got < f->len ? got : f->len;
		f->n++;
	}
	return 0;
}

/*
 * Returns the return address of the frame `skip` bytes above this saved stack pointer; 0: it is
 * not a frame.
 */
static uint64_t returns_to(const struct sched_find_finder *f, const struct sched_find_seen *t,
			   uint64_t sp, uint32_t skip)
{
	uint64_t ret;

	if (sp % 8 || sp - t->stack > LINUX_STACK_LEN - LINUX_INACTIVE_LEN - skip ||
	    !memory_u64(f->m, sp + skip + INACTIVE_RET, &ret) ||
	    ret - f->text[0] >= f->text[1] - f->text[0])
		return 0;
	return ret;
}

static bool sp_fits(const struct sched_find_finder *f, size_t off, uint32_t skip)
{
	uint64_t first = 0;
	unsigned int same = 0;

	for (unsigned int i = 0; i < f->n; i++) {
		uint64_t ret = returns_to(f, &f->task[i], memory_word(f->task[i].bytes, off), skip);

		if (!ret)
			return false;
		first = i ? first : ret;
		same += ret == first;
	}
	/* Threads that have never run return to where new ones begin. */
	return same >= f->n / 2;
}

static bool state_fits(const struct sched_find_finder *f, uint32_t off)
{
	unsigned int asleep = 0;
	uint32_t first;

	if (!memory_u32(f->m, f->l->init_task + off, &first) || first)
		return false;
	for (unsigned int i = 0; i < f->n; i++) {
		uint32_t v = (uint32_t)memory_word(f->task[i].bytes, off);

		if (v & ~STATES)
			return false;
		asleep += v == 1 || v == 0x402;
	}
	return asleep >= f->n / 2;
}

int linux_sched_from_content(struct linux_sched_layout *out, const struct linux_task_layout *task,
			     const struct memory *m, const uint64_t text[2], struct err *e)
{
	struct sched_find_finder f = { .m = m, .l = task, .text = text, .len = SPAN };
	struct linux_task_list list = { 0 };
	unsigned int fits = 0;
	uint32_t sp = LINUX_TASK_NONE, skip = 0;
	int ret;

	if (task->stack == LINUX_TASK_NONE || text[0] >= text[1])
		return 0;
	ret = linux_task_list(task, m, &list, e);
	if (ret)
		return ret == -ENOMEM ? ret : 0;
	ret = load_seen(&f, &list);
	linux_task_list_deinit(&list);
	for (size_t off = 0; !ret && f.n >= MIN_TASKS && off + 8 <= f.len; off += 8)
		for (uint32_t with = 0; with <= LINUX_INACTIVE_FLAGS; with += LINUX_INACTIVE_FLAGS)
			if (sp_fits(&f, off, with)) {
				sp = (uint32_t)off;
				skip = with;
				fits++;
			}
	if (fits == 1) {
		out->sp = sp;
		out->sp_skip = skip;
	}
	if (!ret && f.n >= MIN_TASKS && task->stack >= 8 && state_fits(&f, task->stack - 8))
		out->state = task->stack - 8;
	if (out->sp != LINUX_TASK_NONE || out->state != LINUX_TASK_NONE)
		out->source = LINUX_TASK_BY_CONTENT;
	for (unsigned int i = 0; i < f.n; i++)
		free(f.task[i].bytes);
	return ret ? err_nomem(e) : 0;
}
