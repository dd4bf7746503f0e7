/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_begin: what happens once when the kernel is found in the guest's memory, and the search for
 * the structures of a kernel without types.
 *
 * All functions are called by the consumer thread, or by the thread that creates the guest.
 * Functions that return int return 0, -ENOMEM or the error of the sink.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_GUEST_BEGIN_H
#define KVMPROF_PROFILE_RECORD_GUEST_GUEST_BEGIN_H

#include "base/err.h"
#include "base/sample.h"
#include "profile/record/guest/target.h"
#include "symbolizer/linux/mm.h"
#include "symbolizer/linux/mm_find.h"

#include <stdbool.h>
#include <stdint.h>

struct guest;

/*
 * Creates the parts of g that depend on the kernel's address, and calls the sink's kernel(). To be
 * called once. `known` is whether the kernel was found.
 */
int guest_begin(struct guest *g, bool known, struct err *e);
/* Moves the target to the address that guest_options has, and calls guest_begin(). */
int guest_place(struct guest *g, struct err *e);
/*
 * Expects the kernel that was read from memory to be there for the next sample. Without a banner the
 * mark is taken from memory.
 */
void guest_expect_kernel(struct guest *g);
/*
 * Returns the address of the page-fault handler of the kernel of *s, which lies in the kernel: gate
 * 14 of the IDT (SDM vol. 3, 6.14.1). Returns 0 if the gate cannot be read.
 */
uint64_t guest_fault_handler(const struct guest *g, const struct sample *s);
/*
 * Creates the parts that read mappings, once tasks and the members of their structures are known.
 */
int guest_create_maps(struct guest *g, struct err *e);
/* Passes the capture path the layout of tasks, which was unknown when the guest started. */
void guest_set_late_plan(struct guest *g);

/*
 * The search for tasks, mappings, files and modules in the memory of a kernel without types, which
 * succeeds as soon as enough of them exist. Each attempt costs a few milliseconds at most.
 */

/* Interval between two attempts, so that a kernel in which nothing is found costs little. */
#define GUEST_SEARCH_NS 100000000u
#define GUEST_SEARCH_MAX_FILES 128u

struct guest_search {
	struct linux_mm_known known[LINUX_MM_MAX_KNOWN];
	size_t n;
	uint64_t tasks_ns, maps_ns, modules_ns; /* time of the last attempts */
	bool mm_found;
};

/*
 * Tries to find the layout of tasks. Returns true if it was found by this call; l->task and
 * l->have_task are then set.
 */
bool guest_search_tasks(struct guest_search *g, struct target_linux *l, const struct memory *m,
			const struct sample *s);
/* Does the same for l->mm, l->file and their flags. symbols have run-time addresses; NULL: none. */
bool guest_search_maps(struct guest_search *g, struct target_linux *l, const struct memory *m,
		       const struct symtab *symbols, const struct sample *s);
/* Does the same for l->modules, but returns whether the layout is known. */
bool guest_search_modules(struct guest_search *g, struct target_linux *l, const struct memory *m,
			  const struct sample *s);

#endif
