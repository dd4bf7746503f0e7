/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mm_find: finds where a kernel without types keeps what processes have mapped, in its memory. */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MM_FIND_H
#define KVMPROF_SYMBOLIZER_LINUX_MM_FIND_H

#include "symbolizer/linux/mm.h"

/*
 * As linux_mm_layout_init() for a kernel of 6.1 and later without types, found in the memory
 * of the running guest. known: some processes; the more, the surer. Their maple trees say
 * which mappings there are, so an offset in struct vm_area_struct is one at which all
 * of them have what they must; dentries, inodes and mounts point back to where they
 * were reached from. What isn't unique is refused, never guessed. File size, number,
 * device and mtime stay unknown (0 in struct linux_file_id), and so do an overlay's own
 * paths (6.8). mm_pgd and the vDSO's members are given when they are certain.
 *
 * -ENOENT with the reason; that may change as the guest starts programs.
 */
struct linux_mm_known {
	uint64_t mm;
	uint64_t cr3; /* of a vCPU that ran it, 0: not seen; any tells where mm_pgd is */
};

#define LINUX_MM_MAX_KNOWN 64u /* more are not looked at */

int linux_mm_layout_find(struct linux_mm_layout *l, const struct memory *m,
			 const struct linux_mm_known *known, size_t n, struct err *e);

#endif
