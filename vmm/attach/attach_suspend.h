/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_suspend: detaches from the machine while this process is stopped.
 *
 * A traced thread stops at every signal and waits for its tracer. So this process must trace no
 * thread of the machine while it is stopped itself (Ctrl-Z). The thread that is going to stop this
 * process requests a suspension. It begins when the tracer has detached from all threads, and ends
 * when the tracer has seized them again.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_SUSPEND_H
#define KVMPROF_VMM_ATTACH_ATTACH_SUSPEND_H

#include "vmm/attach/attach_state.h"

/*
 * Detaches from all threads if a suspension is requested, blocks until it ends, and seizes the
 * threads again. Ends the machine (VM_END_ERROR) if that fails. Called by the tracer's thread.
 */
void attach_suspend_if_requested(struct attach *a);
/*
 * Reports that the tracer's thread holds no thread any more, so that no suspension waits for it.
 * Called by the tracer's thread at its end.
 */
void attach_end_suspends(struct attach *a);
/*
 * Requests a suspension and blocks until it has begun, or the tracer's thread has ended
 * (machine_ops.suspend). Called by another thread than the tracer's.
 */
void attach_request_suspend(struct attach *a);
/*
 * Ends a suspension, without waiting until the threads are seized again (machine_ops.resume).
 * Called by another thread than the tracer's.
 */
void attach_request_resume(struct attach *a);

#endif
