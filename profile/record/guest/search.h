/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_search: where a kernel without type information keeps its tasks, mappings, files
 * and modules, found in the running guest's memory as soon as enough of it is there.
 *
 * Used by the consumer's thread alone; each try costs a few milliseconds at most.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_SEARCH_H
#define KVMPROF_PROFILE_RECORD_GUEST_SEARCH_H

#include "base/sample.h"
#include "symbolizer/linux/facts.h"

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
/* The same for l->mm, l->file and their flags. symbols: run-time addresses. */
bool guest_search_maps(struct guest_search *g, struct target_linux *l, const struct memory *m,
		       const struct symtab *symbols, const struct sample *s);
/* The same for l->modules and have_modules. */
bool guest_search_modules(struct guest_search *g, struct target_linux *l, const struct memory *m,
			  const struct sample *s);

#endif
