/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_suspend: no thread of the machine is held, or waits for us, while this process is stopped.
 *
 * While this process is stopped (Ctrl-Z) it must trace no thread of the other one: a traced thread
 * stops at every signal and waits for its tracer. The thread that is going to stop this process
 * asks for a rest. It begins when the tracer has detached from all threads, and ends when it has
 * seized them again.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_SUSPEND_H
#define KVMPROF_VMM_ATTACH_ATTACH_SUSPEND_H

#include "vmm/attach/attach_state.h"

/* The tracer's: rest when that is asked for. */
void attach_suspend_if_requested(struct attach *a);
/* The tracer's: it holds nothing any more, for good. */
void attach_end_suspends(struct attach *a);
/* Another thread's; machine_ops.suspend and .resume. */
void attach_request_suspend(struct attach *a);
void attach_request_resume(struct attach *a);

#endif
