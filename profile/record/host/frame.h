/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame: frames that no code has, for the VMM's work and for tasks that wait.
 *
 * A sample whose period ended while its vCPU's thread worked for a device gets one
 * more frame, the innermost: "[vmm] serial" of the module "vmm". A sample of a guest that the guest
 * runs has one such frame alone: "[nested guest]". A sample of a task that waits (SAMPLE_OFFCPU)
 * gets its state as ps has it in brackets, "[S]" or "[D]", of the module "off-cpu". A frame in code of the kernel
 * that was replaced by other code at about that time is "[changed code]". Their addresses
 * are ones that no Linux has code at. Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_FRAME_H
#define KVMPROF_PROFILE_RECORD_HOST_FRAME_H

#include "base/sample.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/core/stack.h"

/*
 * In the last 2 MiB, which Linux leaves unused (Documentation/arch/x86/x86_64/mm.rst), above
 * all kernel code: perf takes symbols behind a module's for another kernel's. Below -4095,
 * where perf has its context marks. A few bytes for each device.
 */
#define FRAME_VMM_BASE UINT64_C(0xffffffffffff0000)
#define FRAME_VMM_STEP 16u
#define FRAME_VMM_FRAMES (SAMPLE_MAX_DEVICES + 2u) /* devices, and two for nested guests */

/* One address for each letter of a task's state, behind those of the devices. */
#define FRAME_STATE_BASE (FRAME_VMM_BASE + UINT64_C(0x1000))
#define FRAME_STATE_STEP 16u
#define FRAME_STATE_LETTERS 128u

/* In place of an address in code that may be of either of two. */
#define FRAME_CHANGED (FRAME_STATE_BASE + UINT64_C(0x1000))
#define FRAME_CHANGED_LEN 16u

/* Names of devices, counted from 0; NULL: there is none of that number. */
struct frame_devices {
	const char *(*name)(void *ctx, unsigned int device); /* NULL: no device has a name */
	void *ctx;
};

/* All zero but for `devices`. The symbols are NULL until the first such sample; the sink borrows them. */
struct frame_names {
	struct frame_devices devices;
	struct symtab *vmm, *state, *changed;
};

void frame_names_deinit(struct frame_names *f);
/* Returns the name of such a frame, or NULL. */
const struct symbol *frame_names_at(const struct frame_names *f, uint64_t va, uint64_t *off);

/*
 * Each puts its frame on top of an unwound stack, and reports its module to the sink the first
 * time. Other samples are left alone. Errors are the sink's, and -ENOMEM.
 */
int frame_add_device(struct frame_names *f, struct sink *sink, const struct sample *s,
		     struct stack *stack, struct err *e);
int frame_add_state(struct frame_names *f, struct sink *sink, const struct sample *s,
		    struct stack *stack, struct err *e);

/* Replaces the i-th frame, and drops those outside of it, which were found by the tables of one of the two. */
int frame_replace_changed(struct frame_names *f, struct sink *sink, struct stack *stack,
			  unsigned int i, struct err *e);

/* Returns whether it is a sample of a nested guest. Then its stack is that one frame; frame_add_device() follows. */
bool frame_nested(const struct sample *s, struct stack *stack);

/* Puts a frame at va in front of all others, as if the kernel were there. */
void frame_push(struct stack *stack, uint64_t va);

/* Returns whether va is the address of such a frame: one of a device or a nested guest, or a state. */
static inline bool frame_vmm_owns(uint64_t va)
{
	return va - FRAME_VMM_BASE < FRAME_VMM_FRAMES * FRAME_VMM_STEP;
}

/* Returns the device that the frame at va is of, counted from 0. */
static inline unsigned int frame_vmm_device(uint64_t va)
{
	return (unsigned int)((va - FRAME_VMM_BASE) / FRAME_VMM_STEP);
}

static inline bool frame_changed_owns(uint64_t va)
{
	return va - FRAME_CHANGED < FRAME_CHANGED_LEN;
}

static inline bool frame_state_owns(uint64_t va)
{
	return va - FRAME_STATE_BASE < FRAME_STATE_LETTERS * FRAME_STATE_STEP;
}

#endif
