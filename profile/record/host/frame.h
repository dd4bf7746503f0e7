/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame: frames without code, for the VMM's work and for tasks that wait.
 *
 * A sample whose period ended while its vCPU's thread worked for a device gets an additional
 * innermost frame: "[vmm] serial" of the module "vmm". A sample of a guest within the guest has a
 * single frame: "[nested guest]". A sample of a waiting task (SAMPLE_OFFCPU) gets its state as ps
 * prints it, in brackets: "[S]" or "[D]", of the module "off-cpu". A frame in kernel code that was
 * replaced by other code at about that time is "[changed code]". Linux has no code at the addresses
 * of these frames.
 *
 * All functions are called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_FRAME_H
#define KVMPROF_PROFILE_RECORD_HOST_FRAME_H

#include "base/sample.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/core/stack.h"

/*
 * The addresses are in the last 2 MiB, which Linux leaves unused
 * (Documentation/arch/x86/x86_64/mm.rst), above all kernel code: perf attributes symbols after a
 * module's to another kernel. They are below -4095, where perf has its context marks. Each device
 * has a few bytes.
 */
#define FRAME_VMM_BASE UINT64_C(0xffffffffffff0000)
#define FRAME_VMM_STEP 16u
#define FRAME_VMM_FRAMES (SAMPLE_MAX_DEVICES + 2u) /* devices, and two for nested guests */

/* One address for each letter of a task's state, after those of the devices. */
#define FRAME_STATE_BASE (FRAME_VMM_BASE + UINT64_C(0x1000))
#define FRAME_STATE_STEP 16u
#define FRAME_STATE_LETTERS 128u

/* Replaces an address in code that may be one of two. */
#define FRAME_CHANGED (FRAME_STATE_BASE + UINT64_C(0x1000))
#define FRAME_CHANGED_LEN 16u

/*
 * The names of devices, counted from 0. `name` returns NULL if there is no device of that number;
 * the string is owned by the callee.
 */
struct frame_devices {
	const char *(*name)(void *ctx, unsigned int device); /* NULL: no device has a name */
	void *ctx;
};

/*
 * All zero except `devices`. The symbols are owned, and NULL until the first such sample; the sink
 * borrows them until its end().
 */
struct frame_names {
	struct frame_devices devices;
	struct symtab *vmm, *state, *changed;
};

/* Frees the symbols, after the sink's end(). */
void frame_names_deinit(struct frame_names *f);
/* Returns the symbol of such a frame, owned by f, or NULL. */
const struct symbol *frame_names_at(const struct frame_names *f, uint64_t va, uint64_t *off);

/*
 * Push a frame onto an unwound stack if the sample has such a frame, and report its module to the
 * sink at the first use. Other samples are unchanged. Return 0, -ENOMEM or the error of the sink.
 */
int frame_add_device(struct frame_names *f, struct sink *sink, const struct sample *s,
		     struct stack *stack, struct err *e);
int frame_add_state(struct frame_names *f, struct sink *sink, const struct sample *s,
		    struct stack *stack, struct err *e);

/*
 * Replaces frame i, and drops the frames outside of it, which were found with the tables of one of
 * the two codes. Returns as above.
 */
int frame_replace_changed(struct frame_names *f, struct sink *sink, struct stack *stack,
			  unsigned int i, struct err *e);

/*
 * Returns whether this is a sample of a nested guest. Then its stack is replaced by that one frame;
 * frame_add_device() follows.
 */
bool frame_nested(const struct sample *s, struct stack *stack);

/* Pushes a frame at va as the innermost one, as a frame of the kernel. */
void frame_push(struct stack *stack, uint64_t va);

/*
 * Returns whether va is the address of such a frame: of a device or a nested guest; of changed
 * code; of a state.
 */
static inline bool frame_vmm_owns(uint64_t va)
{
	return va - FRAME_VMM_BASE < FRAME_VMM_FRAMES * FRAME_VMM_STEP;
}

/* Returns the device of the frame at va, counted from 0. */
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
