/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame_host: the host's frames on top of the guest's that caused them.
 *
 * A sample of the event host (SAMPLE_HOST) gets one frame that says where the vCPU's thread was
 * ("[kvm]", "[halted]", "[exit: io port 0x3f8]"; in the guest none), then the VMM's device, then the functions of the host's
 * kernel and of kvmprof. These are named when they are first met; each has one address, of the modules "host" and "kvmprof".
 * Above [runnable] is the task that had the processor, of the module "task". Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_FRAME_HOST_H
#define KVMPROF_PROFILE_RECORD_HOST_FRAME_HOST_H

#include "profile/record/host/frame.h"
#include "profile/record/host/host_names.h"
#include "profile/format/sink/where.h"

struct host_switches;
struct frame_host; /* NULL is fine in all calls: there are no such samples */

/* Returns the name of KVM_EXIT_* `kind`, as in "IO"; never NULL. */
typedef const char *(*frame_exit_name)(unsigned int kind);

/* names, switches: borrowed; NULL: there are none. -ENOMEM. */
int frame_host_create(struct frame_host **out, const struct host_names *names,
		      struct host_switches *switches, frame_exit_name exit_name, struct err *e);
void frame_host_destroy(struct frame_host *h);

/* In front of the device's frame, and behind it. Other samples are left alone. Errors are the sink's, and -ENOMEM. */
int frame_host_where(struct frame_host *h, struct sink *sink, const struct sample *s,
		     struct stack *stack, struct err *e);
int frame_host_functions(struct frame_host *h, struct sink *sink, const struct sample *s,
			 struct stack *stack, struct err *e);
/* A SAMPLE_THREAD: its whole stack. */
int frame_host_thread(struct frame_host *h, struct sink *sink, const struct sample *s,
		      struct stack *stack, struct err *e);
/* After the last sample: the sink is told of all names. */
int frame_host_finish(struct frame_host *h, struct sink *sink, struct err *e);

/* NULL: it is none of these. */
const struct symbol *frame_host_symbol(const struct frame_host *h, uint64_t va, uint64_t *off);

static inline bool frame_host_owns(uint64_t va)
{
	return va - WHERE_BASE < WHERE_TASK_BASE + WHERE_TASKS * WHERE_STEP - WHERE_BASE;
}

#endif
