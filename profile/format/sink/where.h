/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * where: the state of a vCPU's thread, as a frame in a profile's stacks (event host).
 *
 * A frame with one of these addresses is between the guest's frames and the host's. The addresses
 * are in the last 64 KiB of the address space, like those of profile/record/host/frame.h. The
 * functions are pure; any thread may call them.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_WHERE_H
#define KVMPROF_PROFILE_FORMAT_SINK_WHERE_H

#include "base/sample.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes between the addresses of two frames. */
#define WHERE_STEP 16u
/* One frame for each enum sample_where. */
#define WHERE_BASE UINT64_C(0xffffffffffff2000)
/* VM exits that the VMM handles. */
#define WHERE_EXIT_BASE UINT64_C(0xffffffffffff3000)
#define WHERE_EXITS 512u
/* Functions of the host's kernel. */
#define WHERE_HOST_BASE UINT64_C(0xffffffffffff5000)
#define WHERE_HOSTS 2048u
/* Functions of kvmprof. */
#define WHERE_OWN_BASE UINT64_C(0xffffffffffffd000)
#define WHERE_OWNS 384u
/* Host tasks that ran on the processor instead. */
#define WHERE_TASK_BASE UINT64_C(0xffffffffffffe800)
#define WHERE_TASKS 120u
/* The VMM's devices (profile/record/host/frame.h). */
#define WHERE_VMM_BASE UINT64_C(0xffffffffffff0000)
#define WHERE_VMM_END UINT64_C(0xffffffffffff1000)

/* Returns the address of the frame that stands for this state. */
static inline uint64_t where_address(enum sample_where where)
{
	return WHERE_BASE + (uint64_t)where * WHERE_STEP;
}

/* Sets *out to the state that a frame at va stands for. Returns false if it stands for none. */
static inline bool where_of(uint64_t va, enum sample_where *out)
{
	if (va - WHERE_BASE < SAMPLE_WHERES * WHERE_STEP) {
		*out = (enum sample_where)((va - WHERE_BASE) / WHERE_STEP);
		return true;
	}
	if (va - WHERE_EXIT_BASE < WHERE_EXITS * WHERE_STEP ||
	    va - WHERE_VMM_BASE < WHERE_VMM_END - WHERE_VMM_BASE) {
		*out = SAMPLE_IN_VMM;
		return true;
	}
	return false;
}

/*
 * Returns the name used in tables ("guest", "kvm", ...; the rows of `kvmprof stat`), a constant;
 * "?" for other values.
 */
static inline const char *where_name(enum sample_where where)
{
	static const char *const name[SAMPLE_WHERES] = {
		[SAMPLE_IN_GUEST] = "guest",  [SAMPLE_IN_KVM] = "kvm",
		[SAMPLE_IN_VMM] = "vmm",      [SAMPLE_RUNNABLE] = "runnable",
		[SAMPLE_HALTED] = "halted",   [SAMPLE_STOPPED] = "stopped",
		[SAMPLE_WAITING] = "waiting", [SAMPLE_UNTOLD] = "untold",
	};

	return where < SAMPLE_WHERES ? name[where] : "?";
}

#endif
