/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame_host: the host's frames on top of the guest's frames that caused them.
 *
 * A sample of the event host (SAMPLE_HOST) gets one frame for the state of the vCPU's thread
 * ("[kvm]", "[halted]", "[exit: io port 0x3f8]"; none in the guest), then the VMM's device, then
 * the functions of the host's kernel and of kvmprof. Functions are named when they first occur;
 * each has one address, of the modules "host" and "kvmprof". Above [runnable] is the task that had
 * the processor, of the module "task".
 *
 * All functions are called by the consumer thread only. Those that return int return 0, -ENOMEM or
 * the error of the sink.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_FRAME_HOST_H
#define KVMPROF_PROFILE_RECORD_HOST_FRAME_HOST_H

#include "profile/record/host/frame.h"
#include "profile/record/host/host_names.h"
#include "profile/format/sink/where.h"

struct host_switches;
/* All functions except frame_host_create() accept NULL: there are no such samples. */
struct frame_host;

/* Returns the name of KVM_EXIT_* `kind`, such as "IO"; a static string, never NULL. */
typedef const char *(*frame_exit_name)(unsigned int kind);

/*
 * Creates an object without names. names and switches are borrowed; NULL: there are none. The
 * caller frees *out with frame_host_destroy(), after the sink's end().
 */
int frame_host_create(struct frame_host **out, const struct host_names *names,
		      struct host_switches *switches, frame_exit_name exit_name, struct err *e);
void frame_host_destroy(struct frame_host *h);

/*
 * Push the frames that are inside and outside of the device's frame: _where before it is added,
 * _functions after. Other samples are unchanged.
 */
int frame_host_where(struct frame_host *h, struct sink *sink, const struct sample *s,
		     struct stack *stack, struct err *e);
int frame_host_functions(struct frame_host *h, struct sink *sink, const struct sample *s,
			 struct stack *stack, struct err *e);
/* Makes the whole stack of a SAMPLE_THREAD. */
int frame_host_thread(struct frame_host *h, struct sink *sink, const struct sample *s,
		      struct stack *stack, struct err *e);
/* Reports all names to the sink, after the last sample. */
int frame_host_finish(struct frame_host *h, struct sink *sink, struct err *e);

/* Returns the symbol at the address of such a frame, owned by h, or NULL. */
const struct symbol *frame_host_symbol(const struct frame_host *h, uint64_t va, uint64_t *off);

/* Returns whether va is the address of such a frame. */
static inline bool frame_host_owns(uint64_t va)
{
	return va - WHERE_BASE < WHERE_TASK_BASE + WHERE_TASKS * WHERE_STEP - WHERE_BASE;
}

#endif
