/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_host: what reading a guest needs from the machine around it.
 *
 * It is filled in by the owner of the guest: a VMM, the tracer of another process's machine, an
 * emulator, or a command that only has a file of memory. All calls come from the consumer thread,
 * at most a few for each sample. A function pointer may be NULL where its comment says so.
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
	/*
	 * The guest is stopped while its samples are processed; now_ns() is then the guest's own
	 * clock.
	 */
	bool stands;
	/*
	 * Guest-physical range of what runs first, the kernel or its decompressor; 0,0 if unknown.
	 */
	uint64_t boot_low, boot_high;
	/*
	 * The firmware of QEMU's PC (SeaBIOS) runs before that, and enters a bzImage at its setup
	 * code.
	 */
	bool firmware;

	void *ctx; /* the first argument of all calls */
	/* Returns the time on the clock of the samples. May be NULL unless `stands`. */
	uint64_t (*now_ns)(void *ctx);
	/*
	 * Reports the distance of the kernel from its linked addresses. Called at most once. May be
	 * NULL.
	 */
	void (*set_slide)(void *ctx, uint64_t slide);
	/* Replaces the task's part of the capture plan with a copy of *plan. May be NULL. */
	void (*set_task_plan)(void *ctx, const struct capture_task_plan *plan);
	/*
	 * Registers a layout, which is copied. Returns its number, 0 or more, or -errno. NULL: no
	 * Python.
	 */
	int (*add_python_layout)(void *ctx, const struct capture_python_layout *layout);
	/*
	 * Starts to copy this thread's Python frames with its samples. *thread is copied. NULL: no
	 * Python.
	 */
	void (*add_python_thread)(void *ctx, const struct capture_python_thread *thread);
	/*
	 * Returns the name of the device with the index `device` of a sample, or NULL; owned by the
	 * callee. May be NULL.
	 */
	const char *(*device_name)(void *ctx, unsigned int device);
	/*
	 * Returns the name of KVM_EXIT_* `kind`, a static string. May be NULL if
	 * guest_options.host_frames is not set.
	 */
	const char *(*exit_name)(unsigned int kind);
};

#endif
