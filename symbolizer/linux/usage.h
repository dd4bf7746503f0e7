/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_usage: reads a task's user and memory: the columns USER, VSZ and RSS of ps(1).
 *
 * Offsets come from the kernel's types only. Pages are counted in mm_struct.rss_stat: an array of
 * atomic numbers before "mm: convert mm's rss stats into percpu_counter" (6.2), and of struct
 * percpu_counter since then, whose parts for each CPU are added up here. Before 6.2 a task also keeps up
 * to 64 events to itself (SPLIT_RSS_COUNTING); those of the task are added, those of its process's other
 * threads are not.
 *
 * Pure functions, any thread; addresses are runtime guest-virtual ones.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_USAGE_H
#define KVMPROF_SYMBOLIZER_LINUX_USAGE_H

#include "symbolizer/core/memory.h"
#include "symbolizer/types/types.h"

#include <stdint.h>

#define LINUX_USAGE_UNKNOWN UINT64_MAX
/* Kernels with more CPUs than this have no known RSS. */
#define LINUX_USAGE_MAX_CPUS 1024u

/* Offsets of members; each may be LINUX_TASK_NONE. */
struct linux_usage_layout {
	uint32_t cred, mm; /* in task_struct: pointers */
	uint32_t uid;	   /* in cred: u32 */
	uint32_t total_vm; /* in mm_struct: u64, pages */
	/* pages of files, anonymous and shared memory */
	uint32_t rss[3];       /* in mm_struct: u64 */
	uint32_t rss_counters; /* from there to a percpu pointer to s32; NONE: no such part */
	uint32_t rss_task[3];  /* in task_struct: s32, not added to the mm's numbers yet */
};

struct linux_usage_cpus {
	uint64_t percpu_offset; /* address of __per_cpu_offset[]; 0: one CPU */
	uint64_t nr_cpu_ids;	/* address of nr_cpu_ids; 0: unknown */
};

/* Each may be LINUX_USAGE_UNKNOWN; a task without memory of its own has 0 bytes. */
struct linux_usage {
	uint64_t uid;
	uint64_t vsz, rss; /* bytes */
};

/* Marks everything as unknown. */
void linux_usage_none(struct linux_usage_layout *out);
/* Sets the members that the types have. Returns 0, or -EINVAL if they are damaged. */
int linux_usage_from_types(struct linux_usage_layout *out, const struct types *types);
/* Reads the task_struct at `task`. What cannot be read, or is out of range, is unknown. */
void linux_usage_read(const struct linux_usage_layout *l, const struct linux_usage_cpus *cpus,
		      const struct memory *m, uint64_t task, struct linux_usage *out);

#endif
