/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mm_find: finds where a kernel without types stores the mappings of processes, by searching its
 * memory. Any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MM_FIND_H
#define KVMPROF_SYMBOLIZER_LINUX_MM_FIND_H

#include "symbolizer/linux/mm.h"

/*
 * Does what linux_mm_layout_init() does, for a kernel of 6.1 and later without types, in the
 * memory of the running guest. known: some processes; more give a more certain result. Their maple
 * trees say which mappings exist, so an offset in struct vm_area_struct is one at which all of
 * them have the required value; dentries, inodes and mounts point back to where they were reached
 * from. An ambiguous result is rejected, never guessed. File size, number, device and mtime stay
 * unknown (0 in struct linux_file_id), as do an overlay's own paths (6.8). mm_pgd and the vDSO's
 * members are set if they are certain.
 *
 * Returns 0, or -ENOENT with the reason in *e, which may change as the guest starts programs.
 */
struct linux_mm_known {
	uint64_t mm;
	uint64_t cr3; /* CR3 of a vCPU that ran it, 0: not seen; one is enough to find mm_pgd */
};

#define LINUX_MM_MAX_KNOWN 64u /* further ones are ignored */

int linux_mm_layout_find(struct linux_mm_layout *l, const struct memory *m,
			 const struct linux_mm_known *known, size_t n, struct err *e);

#endif
