/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/diverge/diverge.h"

#include "base/reporter.h"
#include "profile/record/diverge/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Instructions that are traced in addition at both ends of a window, because translation blocks may
 * straddle its edges.
 */
#define MARGIN (2 * TRACE_MAX_INSNS)

static int diverge_read(struct diverge *d, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; i < 2 && !ret; i++) {
		ret = trace_open(&d->reader[i], d->side[i].trace, TRACE_SIZE, e);
		if (!ret && d->reader[i].head.full)
			ret = err_set(e, EFBIG, "%s: its run is too long to be traced",
				      d->side[i].profile);
	}
	return ret;
}

/*
 * Returns whether a check has differed already, while the runs go on. The file only grows
 * meanwhile.
 */
static bool diverge_has_parted(const struct rerun side[2])
{
	struct trace_reader r[2];
	uint64_t n;

	if (trace_open(&r[0], side[0].trace, TRACE_SIZE, NULL) ||
	    trace_open(&r[1], side[1].trace, TRACE_SIZE, NULL))
		return false;
	n = r[0].head.nchecks < r[1].head.nchecks ? r[0].head.nchecks : r[1].head.nchecks;
	/* Once different, the checksums stay different. */
	return n && r[0].check[n - 1].flow != r[1].check[n - 1].flow;
}

/* Returns the number of the first of n checks whose checksums differ, counted from 1; 0: none. */
static uint64_t diverge_first_check(const struct trace_reader r[2], uint64_t n, bool values)
{
	for (uint64_t i = 0; i < n; i++)
		if (values ? r[0].check[i].values != r[1].check[i].values
			   : r[0].check[i].flow != r[1].check[i].flow)
			return i + 1;
	return 0;
}

/* Finds the steps with differences by the checksums. */
static void diverge_compare_sums(struct diverge *d)
{
	const struct trace_reader *r = d->reader;
	const struct trace_head *a = &r[0].head, *b = &r[1].head;
	uint64_t n = a->nchecks < b->nchecks ? a->nchecks : b->nchecks;

	d->has_values = a->has_values && b->has_values;
	d->count[0] = a->count;
	d->count[1] = b->count;
	d->step = diverge_first_check(r, n, false);
	d->value_step = diverge_first_check(r, n, true);
	if (!d->step && (a->count != b->count || a->sums.flow != b->sums.flow))
		d->step = n + 1;
	if (!d->value_step && a->sums.values != b->sums.values)
		d->value_step = n + 1;
	/* A difference after the divergence follows from it. */
	if (d->step && d->value_step > d->step)
		d->value_step = 0;
}

static void diverge_set_windows(struct diverge *d)
{
	uint64_t until = 0;

	for (unsigned int i = 0; i < 2; i++) {
		struct exact_trace *t = &d->side[i].plan;
		uint64_t step = d->step ? d->step : d->value_step, value = d->value_step;
		uint64_t from = (step - 1) * DIVERGE_STEP, back = DIVERGE_BACK + MARGIN;

		t->plan.step = 0;
		t->plan.window[0].from = from > back ? from - back : 0;
		t->plan.window[0].to = until = step * DIVERGE_STEP + MARGIN;
		from = value ? (value - 1) * DIVERGE_STEP : 0;
		t->plan.window[1].from = from > MARGIN ? from - MARGIN : 0;
		t->plan.window[1].to = value ? value * DIVERGE_STEP + MARGIN : 0;
		t->at[0] = until + MARGIN;
		t->nat = 1;
	}
}

/* Both windows are in one stream, the earlier one first: each search finds the first difference. */
static int diverge_look(struct diverge *d, struct err *e)
{
	uint64_t from = d->side[0].plan.plan.window[0].from, end = UINT64_MAX;
	struct trace_reader r[2];
	int ret = 0;

	memcpy(r, d->reader, sizeof(r));
	if (d->step) {
		ret = difference_find_flow(&d->flow, r, e);
		end = d->flow.found ? d->flow.last.number + 1 : UINT64_MAX;
		if (!ret && !d->flow.found)
			return err_set(
				e, EIO,
				"the runs part in the %llu instructions before instruction %llu, "
				"and did "
				"not when they were made once more: QEMU or the files have changed "
				"meanwhile",
				(unsigned long long)DIVERGE_STEP,
				(unsigned long long)d->step * DIVERGE_STEP);
	}
	if (!ret && d->has_values) {
		memcpy(r, d->reader, sizeof(r));
		ret = difference_find_value(&d->value, r, end, e);
	}
	if (!ret && d->flow.found) {
		memcpy(r, d->reader, sizeof(r));
		/* Skip the earlier window, unless both are the same one. */
		for (unsigned int i = 0; i < 2 && !ret; i++)
			ret = difference_skip(&r[i], from, e);
		ret = ret ? ret : difference_find_regs(&d->regs, r, end, e);
	}
	return ret;
}

static void diverge_say(const struct diverge_options *o, const char *what)
{
	if (!o->quiet)
		reporter_printf(o->reporter, "kvmprof: %s\n", what);
}

static int diverge_check_inputs(struct diverge *d, struct err *e)
{
	int ret;

	/* One instruction is enough to have all files read. */
	for (unsigned int i = 0; i < 2; i++) {
		d->side[i].plan.at[0] = 1;
		d->side[i].plan.nat = 1;
	}
	ret = rerun_both(d->side, false, NULL, e);
	for (unsigned int i = 0; i < 2 && !ret; i++)
		ret = rerun_check(&d->side[i], e);
	return ret;
}

static int diverge_run_for_sums(struct diverge *d, struct err *e)
{
	int ret;

	for (unsigned int i = 0; i < 2; i++) {
		d->side[i].plan.nat = 0;
		d->side[i].plan.plan = (struct trace_plan){ .step = DIVERGE_STEP };
	}
	ret = rerun_both(d->side, true, diverge_has_parted, e);
	if (ret)
		return ret;
	ret = diverge_read(d, e);
	if (!ret)
		diverge_compare_sums(d);
	return ret;
}

int diverge_find(struct diverge **out, const struct diverge_options *o, struct err *e)
{
	struct diverge *d = *out = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return err_nomem(e);
	for (unsigned int i = 0; i < 2; i++)
		d->side[i] = (struct rerun){ .plan = { .fd = -1 }, .said = -1, .totals = -1 };
	for (unsigned int i = 0; i < 2; i++) {
		ret = rerun_open(&d->side[i], o->path[i], e);
		if (ret)
			return ret;
	}
	ret = diverge_check_inputs(d, e);
	if (ret)
		return ret;
	diverge_say(o, "repeating both runs side by side");
	ret = diverge_run_for_sums(d, e);
	if (ret || (!d->step && !d->value_step))
		return ret;
	diverge_say(o, "they differ; repeating them up to there, block by block");
	diverge_set_windows(d);
	ret = rerun_both(d->side, true, NULL, e);
	if (ret)
		return ret;
	ret = diverge_read(d, e);
	if (ret)
		return ret;
	ret = diverge_look(d, e);
	if (ret || (!d->flow.found && !d->value.found))
		return ret;
	diverge_say(o, "repeating them for the stacks there");
	return diverge_find_stacks(d, o, e);
}

void diverge_destroy(struct diverge *d)
{
	if (!d)
		return;
	diverge_free_stacks(d);
	for (unsigned int i = 0; i < 2; i++)
		rerun_close(&d->side[i]);
	free(d);
}

bool diverge_is_same(const struct diverge *d)
{
	return !d->flow.found && !d->value.found;
}
