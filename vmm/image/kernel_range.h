/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel_range: where a kernel may be loaded in a guest's physical memory. */
#ifndef KVMPROF_VMM_IMAGE_KERNEL_RANGE_H
#define KVMPROF_VMM_IMAGE_KERNEL_RANGE_H

#include <stdint.h>

#define GPA_MIB (UINT64_C(1) << 20)

#define GPA_KERNEL_MIN UINT64_C(0x100000) /* what lies below is for firmware's tables */
#define GPA_PCI_HOLE UINT64_C(0xc0000000) /* the first piece of RAM ends here */

#endif
