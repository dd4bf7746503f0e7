/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_rest: no thread of the machine is held, or waits for us, while this process is stopped.
 *
 * While this process is stopped (Ctrl-Z) it must trace no thread of the other one: a traced thread
 * stops at every signal and waits for its tracer. The thread that is going to stop this process
 * asks for a rest. It begins when the tracer has detached from all threads, and ends when it has
 * seized them again.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_REST_H
#define KVMPROF_VMM_ATTACH_ATTACH_REST_H

#include "vmm/attach/attach_state.h"

/* The tracer's: rest when that is asked for. */
void attach_rest_if_asked(struct attach *a);
/* The tracer's: it holds nothing any more, for good. */
void attach_end_rests(struct attach *a);
/* Another thread's; machine_ops.rest and .resume. */
void attach_ask_for_rest(struct attach *a);
void attach_ask_to_resume(struct attach *a);

#endif
