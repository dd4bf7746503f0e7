/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crash: what becomes of a run whose consumer's thread has crashed (profile/live/pipeline.h).
 *
 * That thread reads what the guest has written, so that a guest may know a defect of it. It alone
 * ends; what was its own is left as it is from then on, locked or half changed.
 */
#include "profile/record/run/run.h"

#include <stdio.h>

static void tell_crash(struct run *r, const struct err *why, int ret, const struct err *lost)
{
	const char *path = run_to_stdout(r->opt) ? "standard output" : r->opt->output;
	const char *had = ret ? lost->text : path ? "what it had is in " : "none was asked for";
	/* An exact machine runs only while that thread lets it. */
	bool goes_on = !vm_result(r->vm)->reason && !vm_is_exact(r->vm);

	console_hide_status(&r->console);
	fprintf(stderr, "kvmprof: thread consumer crashed (%s): the profile ends here, %s%s%s\n",
		why->text, had, !ret && path ? path : "", goes_on ? "; the guest goes on" : "");
}

bool run_has_crashed(struct run *r)
{
	struct err why = { 0 }, lost = { 0 };
	int ret;

	if (r->crashed || !r->pipeline || !pipeline_crashed(r->pipeline, &why))
		return r->crashed;
	r->crashed = true;
	vm_collect(r->vm, false);
	ret = r->sink->ops->abandon(r->sink, SINK_KEEP, &lost);
	tell_crash(r, &why, ret, &lost);
	/* Another's goes on without us. */
	if (vm_is_exact(r->vm) || run_is_attached(r->opt))
		vm_end(r->vm, VM_END_ERROR);
	/* In place of that thread, which alone could see that it is to end. */
	if (vm_is_exact(r->vm))
		vm_rest(r->vm, 1);
	return true;
}
