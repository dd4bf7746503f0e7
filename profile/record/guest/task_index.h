/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_task_index: finds the task of a sample that was taken before it was known where tasks are.
 *
 * It lists all tasks of the guest and keeps their page tables and kernel stacks. A sample is of a task if
 * its kernel stack is that task's, or if it is of a program whose process has this page table and no other
 * thread. As the list is read later than the sample was taken, a stack or a page table may belong to
 * another task by then. So a part of the sample's stack must still be there unchanged: the end that the
 * task entered first.
 *
 * All functions are called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_TASK_INDEX_H
#define KVMPROF_PROFILE_RECORD_GUEST_TASK_INDEX_H

#include "base/sample.h"
#include "symbolizer/linux/mm.h"
#include "symbolizer/linux/task.h"

/* The list is read anew at this interval, if a sample has no task in it. */
#define GUEST_TASK_INDEX_NS 500000000u

/* The objects that an index reads, which must outlive it. */
struct guest_task_index_parts {
	const struct linux_task_layout *layout;
	const struct linux_mm_layout *mm;
	const bool *have_mm; /* mm is known; that may change from false to true */
	const struct memory *memory;
	uint64_t stack_size; /* size of a kernel stack in bytes */
	/* Stores the guest-physical address of va in the kernel's space. Returns false if there is none. */
	bool (*walk)(void *ctx, uint64_t va, uint64_t *gpa);
	/* Makes the next reads be of this moment. */
	void (*forget)(void *ctx);
	void *ctx;
};

struct guest_task_index;

/* Creates an empty index. Returns NULL if out of memory. The caller frees it with guest_task_index_destroy(). */
struct guest_task_index *guest_task_index_create(const struct guest_task_index_parts *parts);
void guest_task_index_destroy(struct guest_task_index *x);

/*
 * Returns whether the sample's task is known, and stores it in *out. now_ns: CLOCK_MONOTONIC. If there
 * is no memory for the list, no task is found.
 */
bool guest_task_index_find(struct guest_task_index *x, const struct sample *s, uint64_t now_ns,
			   struct sample_task *out);

#endif
