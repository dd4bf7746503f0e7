/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/python_join.h"

#include <stdbool.h>
#include <string.h>

/* For each frame of Python the native frame that it is above; n: above none. */
static bool python_tie(const struct stack *st, const struct python_frames *p,
		       uint16_t above[SAMPLE_MAX_PYTHON])
{
	unsigned int at = st->n_kernel, begin = 0;
	uint64_t before = 0;

	for (unsigned int i = 0; i < p->n; i++) {
		uint64_t entry = p->f[i].entry & ~(uint64_t)SAMPLE_PYTHON_SKIPPED;

		if (!entry)
			continue;
		/* Below the innermost frame, or below the call before. */
		if (entry < st->sp[st->n_kernel] || entry <= before)
			return false;
		before = entry;
		while (at + 1 < st->n && st->sp[at + 1] <= entry)
			at++;
		/* Nobody knows where the outermost frame ends. */
		if (at + 1 == st->n && st->user_end != STACK_END_CUT)
			return false;
		for (; begin <= i; begin++)
			above[begin] = (uint16_t)(at + 1 == st->n ? st->n : at);
	}
	/* Of what is left nobody knows where it belongs. */
	return begin == p->n;
}

struct joined {
	struct stack *st;
	unsigned int n;
	bool full;
};

static void join_put(struct joined *j, uint64_t ip, uint64_t sp, uint8_t quality, uint8_t exact)
{
	struct stack *st = j->st;

	if (j->n == STACK_MAX_FRAMES) {
		j->full = true;
		return;
	}
	st->ip[j->n] = ip;
	st->sp[j->n] = sp;
	st->quality[j->n] = quality;
	st->exact[j->n++] = exact;
}

enum python_joined python_join(struct stack *st, const struct python_frames *p)
{
	uint16_t above[SAMPLE_MAX_PYTHON];
	struct joined j = { .st = st };
	const struct stack was = *st;
	unsigned int k = 0;

	if (p->n == 0 || p->n > SAMPLE_MAX_PYTHON || st->n == st->n_kernel ||
	    !python_tie(st, p, above))
		return PYTHON_UNTIED;
	j.n = st->n_kernel;
	for (unsigned int i = st->n_kernel; i <= was.n; i++) {
		for (; k < p->n && above[k] == i; k++) {
			uint64_t sp = i < was.n ? was.sp[i] : 0;

			join_put(&j, p->ip[k], sp, FRAME_REGS, 1);
			if (p->f[k].entry & SAMPLE_PYTHON_SKIPPED)
				join_put(&j, p->unknown, sp, FRAME_REGS, 1);
		}
		if (i < was.n)
			join_put(&j, was.ip[i], was.sp[i], was.quality[i], was.exact[i]);
	}
	st->n = (uint16_t)j.n;
	if (j.full) {
		st->user_end = STACK_END_DEPTH;
		if (!st->n_kernel)
			st->end = STACK_END_DEPTH;
	}
	return PYTHON_JOINED;
}
