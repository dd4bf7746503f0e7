/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_host: what reading a guest needs of the machine around it.
 *
 * Whoever has the guest fills it: a VMM, the tracer of another process's machine, an emulator, or
 * nobody but a file of memory. All calls come from the consumer's thread, a few for each sample at
 * most. A function pointer may be NULL where its comment says so.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_GUEST_HOST_H
#define KVMPROF_PROFILE_RECORD_GUEST_GUEST_HOST_H

#include "base/capture_plan.h"
#include "base/gmem.h"

#include <stdbool.h>
#include <stdint.h>

struct guest_host {
	const struct gmem *memory; /* borrowed */
	unsigned int vcpus;
	/* The guest does not run while its samples are processed; now_ns() is its own clock then. */
	bool stands;
	/* Guest-physical memory of what runs first, the kernel or its decompressor; 0: not known. */
	uint64_t boot_low, boot_high;
	/* The firmware of QEMU's PC (SeaBIOS) runs before that, and enters a bzImage at its setup code. */
	bool firmware;

	void *ctx; /* the first argument of all calls */
	/* Returns the time on the clock of the samples. May be NULL unless `stands`. */
	uint64_t (*now_ns)(void *ctx);
	/* Reports how far from its linked addresses the kernel runs. Called at most once. May be NULL. */
	void (*set_slide)(void *ctx, uint64_t slide);
	/* Replaces the task's part of the capture plan, which is copied. May be NULL. */
	void (*set_task_plan)(void *ctx, const struct capture_task_plan *plan);
	/* Returns the number that the layout has from now on, or -errno. NULL: no Python. */
	int (*add_python_layout)(void *ctx, const struct capture_python_layout *layout);
	/* Copy this thread's frames with its samples from now on. NULL: no Python. */
	void (*add_python_thread)(void *ctx, const struct capture_python_thread *thread);
	/* Returns the name of a device that `device` of a sample counts from 0, or NULL. May be NULL. */
	const char *(*device_name)(void *ctx, unsigned int device);
	/* Returns the name of KVM_EXIT_* `kind`. NULL: guest_options.host_frames is not set. */
	const char *(*exit_name)(unsigned int kind);
};

#endif
