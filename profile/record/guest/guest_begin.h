/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_begin: where the kernel is in the guest's memory, and what is known of it from then on.
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

/* The image's view and the guest's memory meet here, once: known says whether the kernel was found. */
int guest_begin(struct guest *g, bool known, struct err *e);
/* A snapshot tells where the kernel was found to be: begins. */
int guest_place(struct guest *g, struct err *e);
/*
 * Returns the address of the code by which the kernel of *s handles page faults, which is inside of the kernel: gate 14 of the IDT (SDM
 * vol. 3, 6.14.1). Returns 0 if the gate cannot be read.
 */
uint64_t guest_fault_handler(const struct guest *g, const struct sample *s);
/* Creates the parts that read mappings, once tasks and their members are known. */
int guest_create_maps(struct guest *g, struct err *e);
/* Tell the capture path where tasks are, which it could not know when the guest started. */
void guest_set_late_plan(struct guest *g);

/*
 * Where a kernel without type information keeps its tasks, mappings, files and modules is found in
 * the running guest's memory, as soon as enough of it is there. Each try costs a few milliseconds at most.
 */

/* Between two tries, so that a kernel in which nothing is found costs little. */
#define GUEST_SEARCH_NS 100000000u
#define GUEST_SEARCH_MAX_FILES 128u

struct guest_search {
	struct linux_mm_known known[LINUX_MM_MAX_KNOWN];
	size_t n;
	uint64_t tasks_ns, maps_ns, modules_ns; /* the last tries */
	bool mm_found;
};

/* Fills in l->task and have_task; true when that has happened now. */
bool guest_search_tasks(struct guest_search *g, struct target_linux *l, const struct memory *m,
			const struct sample *s);
/* Fills in l->mm, l->file and their flags in the same way. symbols has run-time addresses. */
bool guest_search_maps(struct guest_search *g, struct target_linux *l, const struct memory *m,
		       const struct symtab *symbols, const struct sample *s);
/* Fills in l->modules and have_modules in the same way. */
bool guest_search_modules(struct guest_search *g, struct target_linux *l, const struct memory *m,
			  const struct sample *s);

#endif
