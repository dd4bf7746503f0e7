/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel_range: the guest-physical addresses at which a kernel may be loaded. */
#ifndef KVMPROF_VMM_IMAGE_KERNEL_RANGE_H
#define KVMPROF_VMM_IMAGE_KERNEL_RANGE_H

#include <stdint.h>

#define GPA_MIB (UINT64_C(1) << 20)

#define GPA_KERNEL_MIN UINT64_C(0x100000) /* below it are the firmware's tables */
#define GPA_PCI_HOLE UINT64_C(0xc0000000) /* end of the first range of RAM */

#endif
